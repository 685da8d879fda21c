//! An AMQP server that does nothing, to measure the load generator against.
//!
//! It confirms all that came with one read together, and sends deliveries without end to who
//! consumes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tanda_wire::amqp::frame::PROTOCOL_HEADER;
use tanda_wire::amqp::{
    Arguments, FrameType, LongStr, Method, Properties, ShortStr, Split, Table, basic, channel,
    confirm, connection, encode, queue, split_frame,
};

use crate::error::BenchError;

const FRAME_MAX: u32 = 128 << 10;
const READ_BYTES: usize = 256 << 10;
/// Deliveries in one write.
const DELIVERIES: u64 = 500;

/// Listens until the program ends. Counted are the messages it was sent.
pub(crate) fn start(payload_bytes: usize) -> Result<(SocketAddr, Arc<AtomicU64>), BenchError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(BenchError::io("sink"))?;
    let addr = listener.local_addr().map_err(BenchError::io("sink"))?;
    let taken = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&taken);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let count = Arc::clone(&count);
            // A connection ends with an error of its socket, as every client hangs up.
            thread::spawn(move || serve(&stream, payload_bytes, &count));
        }
    });
    Ok((addr, taken))
}

#[derive(Default)]
struct Session {
    confirms: bool,
    consumes: bool,
    published: u64,
}

fn serve(
    mut stream: &TcpStream,
    payload_bytes: usize,
    taken: &AtomicU64,
) -> Result<(), BenchError> {
    let io = || BenchError::io("sink");
    stream.set_nodelay(true).map_err(io())?;
    let mut header = [0; PROTOCOL_HEADER.len()];
    stream.read_exact(&mut header).map_err(io())?;
    let mut out = Vec::new();
    let start = connection::Start {
        version_major: 0,
        version_minor: 9,
        server_properties: Table::default(),
        mechanisms: LongStr::clip("PLAIN"),
        locales: LongStr::clip("en_US"),
    };
    encode::write_method(&mut out, 0, &start);
    stream.write_all(&out).map_err(io())?;
    let mut session = Session::default();
    let mut bytes = vec![0; READ_BYTES];
    let mut filled = 0;
    while !session.consumes {
        let room = bytes.get_mut(filled..).unwrap_or_default();
        let count = stream.read(room).map_err(io())?;
        if count == 0 {
            return Ok(());
        }
        filled += count;
        out.clear();
        let before = session.published;
        let used = session.take(bytes.get(..filled).unwrap_or_default(), &mut out)?;
        bytes.copy_within(used..filled, 0);
        filled -= used;
        taken.fetch_add(session.published - before, Ordering::Relaxed);
        if session.confirms && session.published > before {
            let ack = basic::Ack {
                delivery_tag: session.published,
                multiple: true,
            };
            encode::write_method(&mut out, 1, &ack);
        }
        stream.write_all(&out).map_err(io())?;
    }
    let frames = deliveries(payload_bytes);
    loop {
        stream.write_all(&frames).map_err(io())?;
    }
}

impl Session {
    /// Answers whole frames; returns the bytes they took.
    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, BenchError> {
        let protocol = |text: String| BenchError::Protocol(text);
        let publish = const { basic::Publish::ID.to_bytes() };
        let mut used = 0;
        loop {
            let rest = bytes.get(used..).unwrap_or_default();
            let split = split_frame(rest, FRAME_MAX).map_err(|e| protocol(e.to_string()))?;
            let Split::Frame(frame) = split else {
                return Ok(used);
            };
            used += frame.consumed();
            if frame.frame_type != FrameType::Method {
                continue;
            }
            if frame.payload.starts_with(&publish) {
                self.published += 1;
            } else {
                let method = Method::decode(frame.payload);
                self.answer(method.map_err(|e| protocol(e.to_string()))?, out);
            }
        }
    }

    fn answer(&mut self, method: Method<'_>, out: &mut Vec<u8>) {
        if let Method::Connection(connection::Method::StartOk(_)) = method {
            let tune = connection::Tune {
                channel_max: 1,
                frame_max: FRAME_MAX,
                heartbeat: 0,
            };
            encode::write_method(out, 0, &tune);
        } else if let Method::Connection(connection::Method::Open(_)) = method {
            encode::write_method(out, 0, &connection::OpenOk {});
        } else if let Method::Channel(channel::Method::Open(_)) = method {
            encode::write_method(out, 1, &channel::OpenOk {});
        } else if let Method::Confirm(confirm::Method::Select(_)) = method {
            self.confirms = true;
            encode::write_method(out, 1, &confirm::SelectOk {});
        } else if let Method::Queue(queue::Method::Declare(it)) = method {
            let ok = queue::DeclareOk {
                queue: it.queue,
                message_count: 0,
                consumer_count: 0,
            };
            encode::write_method(out, 1, &ok);
        } else if let Method::Basic(basic::Method::Consume(it)) = method {
            self.consumes = true;
            let consumer_tag = it.consumer_tag;
            encode::write_method(out, 1, &basic::ConsumeOk { consumer_tag });
        }
    }
}

fn deliveries(payload_bytes: usize) -> Vec<u8> {
    let payload = vec![0; payload_bytes];
    let mut frames = Vec::new();
    for delivery_tag in 1..=DELIVERIES {
        let deliver = basic::Deliver {
            consumer_tag: ShortStr::clip("c"),
            delivery_tag,
            redelivered: false,
            exchange: ShortStr::clip(""),
            routing_key: ShortStr::clip("queue"),
        };
        let none = Properties::default();
        encode::write_content(&mut frames, 1, &deliver, none, &payload, FRAME_MAX);
    }
    frames
}
