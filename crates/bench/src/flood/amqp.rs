//! AMQP 0-9-1 for the load generator: one channel, the default exchange.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use tanda_wire::amqp::frame::PROTOCOL_HEADER;
use tanda_wire::amqp::{
    Arguments, FrameType, LongStr, Method, Properties, Property, ShortStr, Split, Table, basic,
    channel, confirm, connection, encode, queue, split_frame,
};

use super::{Dialect, QueueShape, Seen, Settling};
use crate::error::BenchError;

/// No answer to a preparing method takes longer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
const CHANNEL: u16 = 1;
const FRAME_MAX: u32 = 128 << 10;
const READ_BYTES: usize = 64 << 10;

/// Class and method as they stand at the front of a payload.
const DELIVER: [u8; 4] = basic::Deliver::ID.to_bytes();
const ACK: [u8; 4] = basic::Ack::ID.to_bytes();

/// A connection with one open channel.
#[derive(Debug)]
pub(crate) struct Amqp {
    stream: TcpStream,
    /// Read and not yet looked at.
    rest: Vec<u8>,
}

impl Amqp {
    fn send(&mut self, bytes: &[u8]) -> Result<(), BenchError> {
        self.stream
            .write_all(bytes)
            .map_err(BenchError::io("sending"))
    }

    /// Sends a method and waits for one of `answer`'s kind; other frames are dropped.
    fn call<'a, M: Arguments<'a>, T>(
        &mut self,
        channel: u16,
        method: &M,
        take: impl Fn(&Method<'_>) -> Option<T>,
    ) -> Result<T, BenchError> {
        let mut out = Vec::new();
        encode::write_method(&mut out, channel, method);
        self.send(&out)?;
        self.await_answer(take)
    }

    fn await_answer<T>(
        &mut self,
        take: impl Fn(&Method<'_>) -> Option<T>,
    ) -> Result<T, BenchError> {
        loop {
            let Some((answer, taken)) = first_method(&self.rest, &take)? else {
                let mut room = vec![0; READ_BYTES];
                let count = self.stream.read(&mut room);
                let count = count.map_err(BenchError::io("receiving"))?;
                if count == 0 {
                    let text = "the server closed the connection".to_owned();
                    return Err(BenchError::Protocol(text));
                }
                self.rest
                    .extend_from_slice(room.get(..count).unwrap_or_default());
                continue;
            };
            self.rest.drain(..taken);
            if let Some(answer) = answer {
                return Ok(answer);
            }
        }
    }
}

/// The frame at the front, when it is whole: what `take` makes of it, and its length.
fn first_method<T>(
    bytes: &[u8],
    take: impl Fn(&Method<'_>) -> Option<T>,
) -> Result<Option<(Option<T>, usize)>, BenchError> {
    let protocol = |text: String| BenchError::Protocol(text);
    let split = split_frame(bytes, FRAME_MAX).map_err(|e| protocol(e.to_string()))?;
    let Split::Frame(frame) = split else {
        return Ok(None);
    };
    if frame.frame_type != FrameType::Method {
        return Ok(Some((None, frame.consumed())));
    }
    let method = Method::decode(frame.payload).map_err(|e| protocol(e.to_string()))?;
    refuse_close(&method)?;
    Ok(Some((take(&method), frame.consumed())))
}

fn refuse_close(method: &Method<'_>) -> Result<(), BenchError> {
    let (code, text) = if let Method::Connection(connection::Method::Close(it)) = method {
        (it.reply_code, it.reply_text)
    } else if let Method::Channel(channel::Method::Close(it)) = method {
        (it.reply_code, it.reply_text)
    } else if let Method::Basic(basic::Method::Nack(_)) = method {
        let text = "the server refused a message".to_owned();
        return Err(BenchError::Protocol(text));
    } else {
        return Ok(());
    };
    let text = String::from_utf8_lossy(text.as_bytes());
    Err(BenchError::Protocol(format!(
        "the server said {code}: {text}"
    )))
}

impl Dialect for Amqp {
    fn connect(addr: SocketAddr) -> Result<Self, BenchError> {
        let stream = TcpStream::connect(addr).map_err(BenchError::io("connecting"))?;
        let set = stream
            .set_nodelay(true)
            .and_then(|()| stream.set_read_timeout(Some(ANSWER_TIMEOUT)));
        set.map_err(BenchError::io("connecting"))?;
        let mut it = Self {
            stream,
            rest: Vec::new(),
        };
        it.send(&PROTOCOL_HEADER)?;
        it.await_answer(|method| {
            matches!(method, Method::Connection(connection::Method::Start(_))).then_some(())
        })?;
        let start = connection::StartOk {
            client_properties: Table::default(),
            mechanism: ShortStr::clip("PLAIN"),
            response: LongStr::clip("\0guest\0guest"),
            locale: ShortStr::clip("en_US"),
        };
        let tune = it.call(0, &start, |method| {
            if let Method::Connection(connection::Method::Tune(tune)) = method {
                return Some(*tune);
            }
            None
        })?;
        let mut out = Vec::new();
        let tune = connection::TuneOk {
            channel_max: tune.channel_max,
            frame_max: FRAME_MAX,
            heartbeat: 0,
        };
        encode::write_method(&mut out, 0, &tune);
        it.send(&out)?;
        let open = connection::Open {
            virtual_host: ShortStr::clip("/"),
        };
        it.call(0, &open, |method| {
            matches!(method, Method::Connection(connection::Method::OpenOk(_))).then_some(())
        })?;
        it.call(CHANNEL, &channel::Open {}, |method| {
            matches!(method, Method::Channel(channel::Method::OpenOk(_))).then_some(())
        })?;
        Ok(it)
    }

    fn declare(&mut self, queue: &QueueShape) -> Result<(), BenchError> {
        let declare = queue::Declare {
            queue: ShortStr::clip(&queue.name),
            passive: false,
            durable: queue.durable,
            exclusive: false,
            auto_delete: false,
            no_wait: false,
            arguments: Table::default(),
        };
        self.call(CHANNEL, &declare, |method| {
            matches!(method, Method::Queue(queue::Method::DeclareOk(_))).then_some(())
        })
    }

    fn count(&mut self, queue: &str) -> Result<u64, BenchError> {
        let declare = queue::Declare {
            queue: ShortStr::clip(queue),
            passive: true,
            durable: false,
            exclusive: false,
            auto_delete: false,
            no_wait: false,
            arguments: Table::default(),
        };
        self.call(CHANNEL, &declare, |method| {
            if let Method::Queue(queue::Method::DeclareOk(it)) = method {
                return Some(u64::from(it.message_count));
            }
            None
        })
    }

    fn confirm(&mut self) -> Result<(), BenchError> {
        self.call(CHANNEL, &confirm::Select { no_wait: false }, |method| {
            matches!(method, Method::Confirm(confirm::Method::SelectOk(_))).then_some(())
        })
    }

    fn consume(&mut self, queue: &str, settling: Settling) -> Result<(), BenchError> {
        if let Settling::Window(prefetch_count) = settling {
            let qos = basic::Qos {
                prefetch_size: 0,
                prefetch_count,
                global: false,
            };
            self.call(CHANNEL, &qos, |method| {
                matches!(method, Method::Basic(basic::Method::QosOk(_))).then_some(())
            })?;
        }
        let consume = basic::Consume {
            queue: ShortStr::clip(queue),
            consumer_tag: ShortStr::clip("c"),
            no_local: false,
            no_ack: settling == Settling::None,
            exclusive: false,
            no_wait: false,
            arguments: Table::default(),
        };
        self.call(CHANNEL, &consume, |method| {
            matches!(method, Method::Basic(basic::Method::ConsumeOk(_))).then_some(())
        })?;
        // From now on silence is no failure.
        self.stream
            .set_read_timeout(None)
            .map_err(BenchError::io("a socket"))
    }

    fn publishes(queue: &QueueShape, (payload, _): (&[u8], bool), count: usize) -> Vec<u8> {
        let publish = basic::Publish {
            exchange: ShortStr::clip(""),
            routing_key: ShortStr::clip(&queue.name),
            mandatory: false,
            immediate: false,
        };
        let mut persistent = Vec::new();
        Properties::default().with(&mut persistent, Property::DeliveryMode(2));
        let properties = if queue.durable {
            Properties::decode(&persistent).unwrap_or_default()
        } else {
            Properties::default()
        };
        let mut out = Vec::new();
        for _ in 0..count {
            encode::write_content(&mut out, CHANNEL, &publish, properties, payload, FRAME_MAX);
        }
        out
    }

    fn scan(bytes: &[u8]) -> Result<Seen, BenchError> {
        let mut seen = Seen::default();
        while let Some(rest) = bytes.get(seen.taken..)
            && let Some(([kind, _, _, s0, s1, s2, s3], payload)) = rest.split_first_chunk::<7>()
        {
            let size = u32::from_be_bytes([*s0, *s1, *s2, *s3]) as usize;
            let Some(payload) = payload.get(..size).filter(|_| payload.len() > size) else {
                break;
            };
            if *kind == FrameType::Method.to_wire() {
                scan_method(payload, &mut seen)?;
            }
            seen.taken += size + 8;
        }
        Ok(seen)
    }

    fn settle(out: &mut Vec<u8>, tag: u64, _count: u64) {
        let ack = basic::Ack {
            delivery_tag: tag,
            multiple: true,
        };
        encode::write_method(out, CHANNEL, &ack);
    }

    fn stream(&self) -> &TcpStream {
        &self.stream
    }

    fn take_rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.rest)
    }
}

fn scan_method(payload: &[u8], seen: &mut Seen) -> Result<(), BenchError> {
    let (id, rest) = payload.split_first_chunk::<4>().unwrap_or((&[0; 4], &[]));
    if *id == DELIVER {
        let tag = rest.split_first().and_then(|(len, rest)| {
            let rest = rest.get(usize::from(*len)..)?;
            Some(u64::from_be_bytes(*rest.first_chunk()?))
        });
        seen.delivered += 1;
        seen.last_tag = tag.unwrap_or_default();
    } else if *id == ACK {
        let tag = rest.first_chunk().map(|tag| u64::from_be_bytes(*tag));
        seen.confirmed_to = seen.confirmed_to.max(tag.unwrap_or_default());
    } else {
        let method = Method::decode(payload);
        refuse_close(&method.map_err(|e| BenchError::Protocol(e.to_string()))?)?;
    }
    Ok(())
}
