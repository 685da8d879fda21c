//! FireMQ for the load generator: one subscription per connection, the default exchange.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use tanda_wire::firemq::consume::{Ack, Credit, Deliver, Subscribe};
use tanda_wire::firemq::frame::{
    Framing, MAX_FRAME_DEFAULT, PREAMBLE, Split, split_frame, write_head,
};
use tanda_wire::firemq::publish::{Confirm, Publish};
use tanda_wire::firemq::reply::{ErrorReply, OkReply};
use tanda_wire::firemq::session::{Auth, Hello, MECHANISM_PLAIN};
use tanda_wire::firemq::topology::DeclareQueue;
use tanda_wire::firemq::{Header, Op, PROTOCOL_VERSION, peek_uint};

use super::{Dialect, QueueShape, Seen, Settling};
use crate::error::BenchError;

/// No answer to a preparing request takes longer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
const READ_BYTES: usize = 64 << 10;
/// The only subscription.
const SUB: u64 = 1;
/// Credit of who settles nothing: more than any measurement delivers.
const CREDIT_ENDLESS: u64 = u32::MAX as u64;
/// A number that takes four bytes, as all that take its place do.
const SEQ: u64 = 0x8000_0000;
/// Its encoding, with its key.
const SEQ_BYTES: &[u8] = b"\xa3seq\xce\x80\0\0\0";

/// A connection after its welcome.
#[derive(Debug)]
pub(crate) struct Fire {
    stream: TcpStream,
    /// Read and not yet looked at.
    rest: Vec<u8>,
}

impl Fire {
    fn send<'a>(&mut self, header: &impl Header<'a>) -> Result<(), BenchError> {
        let mut out = Vec::new();
        write(&mut out, header, &[]);
        self.write(&out)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), BenchError> {
        self.stream
            .write_all(bytes)
            .map_err(BenchError::io("sending"))
    }

    /// Waits for a frame of this op and returns its header; others are dropped.
    fn await_answer(&mut self, op: Op) -> Result<Vec<u8>, BenchError> {
        loop {
            let split = split_frame(&self.rest, MAX_FRAME_DEFAULT).map_err(not_understood)?;
            let Split::Frame(frame) = split else {
                let mut room = vec![0; READ_BYTES];
                let count = self.stream.read(&mut room);
                let count = count.map_err(BenchError::io("receiving"))?;
                if count == 0 {
                    let text = "the server closed the connection".to_owned();
                    return Err(BenchError::Protocol(text));
                }
                let come = room.get(..count).unwrap_or_default();
                self.rest.extend_from_slice(come);
                continue;
            };
            refuse_error(frame.op, frame.header)?;
            let answer = (frame.op == op).then(|| frame.header.to_vec());
            let consumed = frame.consumed;
            self.rest.drain(..consumed);
            if let Some(answer) = answer {
                return Ok(answer);
            }
        }
    }
}

fn write<'a>(out: &mut Vec<u8>, header: &impl Header<'a>, payload: &[u8]) {
    let head = write_head(
        out,
        Framing::Stream,
        header,
        payload.len(),
        MAX_FRAME_DEFAULT,
    );
    debug_assert!(head.is_ok(), "no frame here is near the limit");
    out.extend_from_slice(payload);
}

fn not_understood(error: impl std::fmt::Display) -> BenchError {
    BenchError::Protocol(format!("the server sent {error}"))
}

fn refuse_error(op: Op, header: &[u8]) -> Result<(), BenchError> {
    if op != Op::Error {
        return Ok(());
    }
    let error = ErrorReply::decode(header).map_err(not_understood)?;
    Err(BenchError::Protocol(format!(
        "the server said: {}",
        error.msg
    )))
}

impl Dialect for Fire {
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
        it.write(&PREAMBLE)?;
        it.send(&Hello {
            ver: PROTOCOL_VERSION,
            auth: Auth {
                mech: MECHANISM_PLAIN,
                user: "guest",
                pass: "guest",
            },
            ..Hello::default()
        })?;
        it.await_answer(Op::Welcome)?;
        Ok(it)
    }

    fn declare(&mut self, queue: &QueueShape) -> Result<(), BenchError> {
        self.send(&DeclareQueue {
            rid: 1,
            name: &queue.name,
            durable: queue.durable,
            ..DeclareQueue::default()
        })?;
        self.await_answer(Op::Ok).map(drop)
    }

    fn count(&mut self, queue: &str) -> Result<u64, BenchError> {
        self.send(&DeclareQueue {
            rid: 1,
            name: queue,
            passive: true,
            ..DeclareQueue::default()
        })?;
        let answer = self.await_answer(Op::Ok)?;
        let answer = OkReply::decode(&answer).map_err(not_understood)?;
        Ok(answer.messages)
    }

    fn confirm(&mut self) -> Result<(), BenchError> {
        // Numbers ask for it.
        Ok(())
    }

    fn consume(&mut self, queue: &str, settling: Settling) -> Result<(), BenchError> {
        let credit = match settling {
            Settling::None => CREDIT_ENDLESS,
            Settling::Window(window) => u64::from(window),
        };
        self.send(&Subscribe {
            rid: 1,
            sub: SUB,
            queue,
            credit,
            no_ack: settling == Settling::None,
            ..Subscribe::default()
        })?;
        self.await_answer(Op::Ok)?;
        // From now on silence is no failure.
        self.stream
            .set_read_timeout(None)
            .map_err(BenchError::io("a socket"))
    }

    fn publishes(queue: &QueueShape, load: (&[u8], bool), count: usize) -> Vec<u8> {
        let (payload, confirmed) = load;
        let publish = Publish {
            seq: if confirmed { SEQ } else { 0 },
            key: &queue.name,
            persistent: queue.durable,
            ..Publish::default()
        };
        let mut out = Vec::new();
        for _ in 0..count {
            write(&mut out, &publish, payload);
        }
        out
    }

    fn number(frames: &mut [u8], frame_bytes: usize, first: u64) {
        let mut places = frames.windows(SEQ_BYTES.len());
        // The number itself changes, its key does not.
        let key = SEQ_BYTES.get(..5).unwrap_or_default();
        let Some(at) = places.position(|bytes| bytes.starts_with(key)) else {
            return;
        };
        for (seq, frame) in (first..).zip(frames.chunks_exact_mut(frame_bytes)) {
            let seq = u32::try_from(seq).unwrap_or(u32::MAX);
            if let Some(place) = frame.get_mut(at + 5..at + 9) {
                place.copy_from_slice(&seq.to_be_bytes());
            }
        }
    }

    fn scan(bytes: &[u8]) -> Result<Seen, BenchError> {
        let mut seen = Seen::default();
        let mut last: &[u8] = &[];
        while let Some(rest) = bytes.get(seen.taken..) {
            let split = split_frame(rest, MAX_FRAME_DEFAULT).map_err(not_understood)?;
            let Split::Frame(frame) = split else { break };
            seen.taken += frame.consumed;
            if frame.op == Deliver::OP {
                seen.delivered += 1;
                last = frame.header;
            } else if frame.op == Confirm::OP {
                let confirm = Confirm::decode(frame.header).map_err(not_understood)?;
                if confirm.nack {
                    let text = format!("the server refused a message: {}", confirm.msg);
                    return Err(BenchError::Protocol(text));
                }
                seen.confirmed_to = seen.confirmed_to.max(confirm.upto);
            } else {
                refuse_error(frame.op, frame.header)?;
            }
        }
        if !last.is_empty() {
            seen.last_tag = peek_uint(last, "tag").unwrap_or_default();
        }
        Ok(seen)
    }

    fn settle(out: &mut Vec<u8>, tag: u64, count: u64) {
        let ack = Ack {
            tag,
            multiple: true,
        };
        write(out, &ack, &[]);
        let credit = Credit {
            sub: SUB,
            credit: count,
        };
        write(out, &credit, &[]);
    }

    fn stream(&self) -> &TcpStream {
        &self.stream
    }

    fn take_rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.rest)
    }
}
