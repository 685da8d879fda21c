//! The policies in a queue's record: what was declared, as it was declared. What it means is read
//! from the arguments again.

use bytes::Bytes;

use super::AmqpPolicy;
use super::arguments::{Declared, queue_text};
use crate::record::{Reader, put_long};
use crate::{DeclareQueue, ReplayError};

const DURABLE: u8 = 1;
const EXCLUSIVE: u8 = 2;
const AUTO_DELETE: u8 = 4;
const ALL: u8 = 7;

/// Layout: `u8 flags | u32 length, arguments`.
pub(crate) fn encode_policy(out: &mut Vec<u8>, policy: &AmqpPolicy) {
    let flags = [
        (policy.durable, DURABLE),
        (policy.exclusive, EXCLUSIVE),
        (policy.auto_delete, AUTO_DELETE),
    ];
    let set = flags.into_iter().filter(|(is_set, _)| *is_set);
    out.push(set.fold(0, |flags, (_, flag)| flags | flag));
    put_long(out, &policy.args);
}

/// Reads what [`encode_policy`] wrote.
pub(crate) fn decode_policy(reader: &mut Reader<'_>) -> Result<AmqpPolicy, ReplayError> {
    let flags = reader.u8()?;
    if flags & !ALL != 0 {
        return Err(reader.problem(&format!("flags {flags} of a declared queue are unknown")));
    }
    let len = reader.u32()?;
    let args = reader.bytes(len)?;
    let spec = DeclareQueue {
        durable: flags & DURABLE != 0,
        exclusive: flags & EXCLUSIVE != 0,
        auto_delete: flags & AUTO_DELETE != 0,
        args: Bytes::copy_from_slice(args),
        ..DeclareQueue::default()
    };
    let declared = Declared::check(&spec, &queue_text("", ""));
    let declared = declared.map_err(|error| reader.problem(&error.text))?;
    Ok(declared.policy)
}
