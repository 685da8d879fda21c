//! `on_enqueue`: what a message is, and how it is classified.

use mlua::Buffer;

use crate::{
    error::{Broken, bounded},
    hook::Hook,
    packed::Packed,
};

/// A message that asks for its classification.
#[derive(Clone, Copy, Debug)]
pub struct EnqueueCall<'a> {
    /// The message's content, or the headers at its beginning: big-endian `u16 count`, then
    /// `u16 length, name, u16 length, value` each. Of two headers with one name the last counts.
    pub content: &'a [u8],
    /// Size of its payload.
    pub payload_bytes: u64,
    /// The producer's fairness key, if there is one.
    pub fairness_key: Option<&'a [u8]>,
    /// The producer's weight.
    pub weight: u32,
}

/// What the hook decided; a field that is `None` or empty changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classification {
    /// The fairness key; empty for the group without one.
    pub fairness_key: Option<String>,
    /// The weight, at least 1.
    pub weight: Option<u32>,
    /// Names and values, in no order that means anything; each name once.
    pub attributes: Vec<(String, String)>,
}

/// What `lua/on_enqueue.lua` returns: weight, bytes of the key, count of attributes, bytes
/// written, a larger buffer.
type Returned = (u32, i64, usize, usize, Option<Buffer>);

/// Calls the hook for one message.
pub(crate) fn call(
    hook: &mut Hook,
    call: &EnqueueCall<'_>,
    packed: &mut Packed,
    read: &mut Vec<u8>,
) -> Result<Classification, Broken> {
    packed.begin(call.content);
    packed.push(call.fairness_key.unwrap_or_default());
    let handed = hook.begin(packed)?;
    let result = hook.run.call((
        handed.large,
        handed.shape,
        packed.values_at(),
        packed.values().len() - packed.values_at(),
        // Numbers of Lua are exact up to 2^53.
        call.payload_bytes as f64,
        call.weight,
        call.fairness_key.map_or(-1, |key| key.len() as i64),
    ));
    let (weight, key_bytes, attributes, len, larger): Returned = hook.end(result)?;
    let mut classification = Classification {
        fairness_key: None,
        weight: (weight > 0).then_some(weight),
        attributes: Vec::with_capacity(attributes),
    };
    if key_bytes < 0 && attributes == 0 {
        return Ok(classification);
    }
    hook.read(read, len, larger)?;
    let mut rest = read.as_slice();
    if let Ok(len) = usize::try_from(key_bytes) {
        classification.fairness_key = Some(text(take(&mut rest, len)?, "fairness_key", "")?);
    }
    for _ in 0..attributes {
        let name_bytes = take_u16(&mut rest)?;
        let value_bytes = take_u16(&mut rest)?;
        let name = text(take(&mut rest, name_bytes)?, "an attribute's name", "")?;
        let value = text(take(&mut rest, value_bytes)?, "attributes.", &name)?;
        classification.attributes.push((name, value));
    }
    Ok(classification)
}

fn text(bytes: &[u8], what: &str, name: &str) -> Result<String, Broken> {
    match str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(not_text(bytes, what, name)),
    }
}

#[cold]
fn not_text(bytes: &[u8], what: &str, name: &str) -> Broken {
    let shown = bytes.get(..40.min(bytes.len())).unwrap_or_default();
    let shown = shown.escape_ascii();
    Broken::Failed(bounded(&format!(
        "on_enqueue returned {what}{name} = \"{shown}\"; it must be UTF-8"
    )))
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], Broken> {
    let (taken, after) = rest.split_at_checked(len).ok_or_else(cut_short)?;
    *rest = after;
    Ok(taken)
}

fn take_u16(rest: &mut &[u8]) -> Result<usize, Broken> {
    let bytes = take(rest, 2)?;
    let bytes = bytes.first_chunk().ok_or_else(cut_short)?;
    Ok(usize::from(u16::from_le_bytes(*bytes)))
}

#[cold]
fn cut_short() -> Broken {
    Broken::Failed("a bug: the result of on_enqueue is cut short".to_owned())
}
