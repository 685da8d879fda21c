//! Keys of Tanda, by the Amaquet door.

use tanda_wire::amaquet::frame::{self, Header};
use tanda_wire::amaquet::{Kind, Opcode, Sender, Split, split_frame};

use super::{Dialect, Op, VALUE_BYTES};
use crate::error::BenchError;

/// See the module.
pub(crate) enum Amaquet {}

const OK: &[u8] = br#"{"ok":true"#;

impl Dialect for Amaquet {
    fn request(op: Op, key: &str, id: u64, out: &mut Vec<u8>) {
        let value = "x".repeat(VALUE_BYTES);
        let value = format!(r#"{{"type":"text","data":"{value}"}}"#);
        let payload = match op {
            Op::Set => format!(r#"{{"command":"value.set","key":"{key}","value":{value}}}"#),
            Op::Get => format!(r#"{{"command":"value.get","key":"{key}"}}"#),
            Op::Count => format!(r#"{{"command":"counter.add","key":"{key}"}}"#),
            Op::Push => format!(r#"{{"command":"list.push","key":"{key}","values":[{value}]}}"#),
            Op::Publish => format!(
                r#"{{"command":"pubsub.publish","key":"bench","channel":"all","payload":{value}}}"#
            ),
        };
        write(Opcode::Command, id, &payload, out);
    }

    fn scan(bytes: &[u8]) -> Result<(usize, usize), BenchError> {
        let (mut taken, mut answers) = (0, 0);
        loop {
            let rest = bytes.get(taken..).unwrap_or_default();
            let split = split_frame(rest, Sender::Server, frame::PAYLOAD_BYTES_HARD_MAX);
            match split.map_err(|error| BenchError::Protocol(error.to_string()))? {
                Split::Incomplete { .. } => return Ok((taken, answers)),
                Split::Frame(found) => {
                    if found.header.kind != Kind::Response || !found.payload.starts_with(OK) {
                        let said = found.payload.escape_ascii();
                        return Err(BenchError::Protocol(format!("it was answered {said}")));
                    }
                    taken += found.consumed();
                    answers += 1;
                }
            }
        }
    }

    fn subscribe() -> Vec<u8> {
        let mut out = Vec::new();
        let payload = r#"{"key":"bench","channel":"all","buffer":65536}"#;
        write(Opcode::Subscribe, 1, payload, &mut out);
        out
    }
}

fn write(opcode: Opcode, id: u64, payload: &str, out: &mut Vec<u8>) {
    let header = Header::request(opcode, id);
    let written = frame::write_frame(out, header, frame::PAYLOAD_BYTES_DEFAULT, |out| {
        out.extend_from_slice(payload.as_bytes());
    });
    debug_assert!(written.is_ok(), "requests are small");
}
