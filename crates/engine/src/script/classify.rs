//! What results say: their bounds, when a failed try is repeated, and how the classification of a
//! stored message is written down.

use std::sync::Arc;

use super::{Classification, QueueScripts, ScriptFault};
use crate::engine::{Cx, Engine};
use crate::queue::Queue;
use crate::queue::entries::{Flags, Slot};
use crate::queue::parking::NextTry;
use crate::queues::QueueIndex;
use crate::record::{
    Classified, ClassifiedFields, FailedTry, Kind, add_classified, begin_counted, finish_counted,
    put_short,
};
use crate::store::RECORD_BYTES;
use crate::{Content, Lsn, Millis};

/// Longest text of an error that is kept.
const ERROR_BYTES: usize = 512;
/// The first delay after a timeout; it doubles with each of them.
const BACKOFF_MS: u64 = 1_000;
const BACKOFF_MS_MAX: u64 = 60_000;
/// What cannot be read is tried again after this.
const UNREADABLE_MS: u64 = 60_000;

/// A call without a usable result.
#[derive(Clone, Debug)]
pub(crate) struct Faulted {
    pub(crate) error: String,
    pub(crate) timed_out: bool,
    /// It was never run: does not count as a try.
    pub(crate) unreadable: bool,
}

impl Faulted {
    pub(crate) fn of(fault: ScriptFault) -> Self {
        let (mut error, timed_out, unreadable) = match fault {
            ScriptFault::Failed(error) => (error, false, false),
            ScriptFault::TimedOut => ("the script did not end in time".to_owned(), true, false),
            ScriptFault::Unreadable => ("the message cannot be read now".to_owned(), true, true),
        };
        error.truncate(error.floor_char_boundary(ERROR_BYTES));
        Self {
            error,
            timed_out,
            unreadable,
        }
    }
}

/// A result within its bounds, or what is wrong with it.
pub(super) fn checked(it: Classification) -> Result<Classification, ScriptFault> {
    let max = usize::from(u16::MAX);
    let key = it.fairness_key.as_ref().map_or(0, String::len);
    if key > max {
        let why = format!("on_enqueue returned a fairness key of {key} bytes, more than {max}");
        return Err(ScriptFault::Failed(why));
    }
    let bytes = it
        .attributes
        .iter()
        .map(|(name, value)| name.len() + value.len() + 4);
    let bytes = bytes.sum::<usize>();
    let max = Classification::ATTRIBUTE_BYTES_MAX;
    if bytes > max {
        let why = format!("on_enqueue returned attributes of {bytes} bytes, more than {max}");
        return Err(ScriptFault::Failed(why));
    }
    Ok(it)
}

/// Attributes as they follow the content; empty when there are none.
pub(super) fn attributes_of(it: &Classification) -> Vec<u8> {
    let named = it.attributes.iter().filter(|(name, _)| !name.is_empty());
    let pairs = named.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    put_attributes(pairs.collect())
}

/// The attributes of a stored message that is classified. That the broker wrote the history in its
/// headers is still so.
pub(super) fn attributes_of_stored(it: &Classification, content: Content<'_>) -> Vec<u8> {
    let history = content.attribute(b"").map(|value| (&b""[..], value));
    let named = it.attributes.iter().filter(|(name, _)| !name.is_empty());
    let pairs = named.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    put_attributes(history.into_iter().chain(pairs).collect())
}

fn put_attributes(pairs: Vec<(&[u8], &[u8])>) -> Vec<u8> {
    let mut out = Vec::new();
    if pairs.is_empty() {
        return out;
    }
    // Each takes at least four bytes of fewer than 65,536.
    let count = u16::try_from(pairs.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&count.to_be_bytes());
    for (name, value) in pairs {
        put_short(&mut out, name);
        put_short(&mut out, value);
    }
    out
}

/// The queue's version of the script that a job ran; 0 when that was not the present one.
pub(super) fn version_of(queue: &Queue, ran: &QueueScripts) -> u64 {
    let present = queue
        .hooks
        .as_ref()
        .and_then(|it| it.scripts.on_enqueue.as_ref());
    match (present, &ran.on_enqueue) {
        (Some(a), Some(b)) if Arc::ptr_eq(a, b) => queue.config.script_version,
        _ => 0,
    }
}

/// When a message is tried again on which this version of the script failed, `timeouts` times in a
/// row not in time.
pub(crate) fn next_try(queue: &Queue, version: u64, timeouts: u32, now: Millis) -> NextTry {
    if version != queue.config.script_version {
        return NextTry::Soon;
    }
    if timeouts == 0 {
        return NextTry::OnChange;
    }
    let doublings = (timeouts - 1).min(16);
    let delay_ms = (BACKOFF_MS << doublings).min(BACKOFF_MS_MAX);
    NextTry::At(now.after_ms(delay_ms))
}

/// When a message is tried again that could not be read.
pub(super) fn unreadable_try(now: Millis) -> NextTry {
    NextTry::At(now.after_ms(UNREADABLE_MS))
}

/// The `Classified` record under construction.
#[derive(Debug, Default)]
pub(super) struct ClassifiedRecord {
    record: Vec<u8>,
    count: u32,
    /// Messages with new contents: offset and length.
    contents: Vec<(Slot, usize, u32)>,
}

/// The new values of a message that is stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewValues<'a> {
    pub(super) key: &'a str,
    pub(super) weight: u32,
    pub(super) group: Option<u128>,
    pub(super) dedup: Option<u128>,
    /// As they follow the content; empty = none.
    pub(super) attributes: &'a [u8],
}

impl Engine {
    /// A script failed on a stored message.
    pub(super) fn record_try(
        &mut self,
        cx: &mut Cx<'_>,
        (index, slot): (QueueIndex, Slot),
        failed: FailedTry,
        out: &mut ClassifiedRecord,
    ) {
        let queue = self.queues.at_mut(index);
        queue.preserve(slot);
        queue.note_try(slot, failed.version, failed.timed_out);
        self.add_classified(cx, (index, slot), &Classified::Failed(failed), out);
    }

    /// A stored message gets its values. Without its `content` it keeps the one
    /// it has, which then must have no attributes.
    pub(super) fn record_classified(
        &mut self,
        cx: &mut Cx<'_>,
        (index, slot): (QueueIndex, Slot),
        new: NewValues<'_>,
        content: Option<Content<'_>>,
        out: &mut ClassifiedRecord,
    ) {
        let queue = self.queues.at_mut(index);
        queue.preserve(slot);
        let entry = queue.entries.at_mut(slot);
        let (had, id) = (entry.flags.has(Flags::ATTRIBUTES), entry.id);
        if new.dedup.is_some() && !entry.flags.has(Flags::TRANSIENT) {
            entry.flags = entry.flags.with(Flags::DEDUP);
        }
        let mut bytes = Vec::new();
        let mut attributes = had;
        if let Some(content) = content
            && (had || !new.attributes.is_empty())
        {
            bytes.extend_from_slice(content.without_attributes());
            bytes.extend_from_slice(new.attributes);
            attributes = !new.attributes.is_empty();
        }
        queue.classify(slot, new.key, new.weight, attributes);
        if let Some(key) = new.dedup {
            queue.dedup.insert(key, id);
        }
        let fields = ClassifiedFields {
            key: new.key,
            weight: new.weight.max(1),
            group: new.group,
            dedup: new.dedup,
            attributes,
            content: (!bytes.is_empty()).then_some((0, &bytes)),
        };
        self.add_classified(cx, (index, slot), &Classified::Done(fields), out);
    }

    fn add_classified(
        &mut self,
        cx: &mut Cx<'_>,
        (index, slot): (QueueIndex, Slot),
        entry: &Classified<'_>,
        out: &mut ClassifiedRecord,
    ) {
        let queue = self.queues.at_mut(index);
        let it = queue.entries.at(slot);
        if it.flags.has(Flags::TRANSIENT) {
            if let Classified::Done(ClassifiedFields {
                content: Some((_, content)),
                ..
            }) = entry
            {
                queue.replace_body(slot, bytes::Bytes::copy_from_slice(content));
            }
            return;
        }
        let position = it.position;
        if out.count == 0 {
            let id = queue.identity.id;
            begin_counted(&mut out.record, Kind::Classified, id, cx.now);
        }
        let offset = add_classified(&mut out.record, position, entry);
        out.count += 1;
        if let Some(offset) = offset {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a content of less than 4 GiB and its attributes of less than 64 KiB"
            )]
            let len = (out.record.len() - offset) as u32;
            out.contents.push((slot, offset, len));
        }
        if out.record.len() >= RECORD_BYTES {
            self.finish_classified(cx, index, out);
        }
    }

    /// Appends the record under construction and tells its messages where their contents lie.
    pub(super) fn finish_classified(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        out: &mut ClassifiedRecord,
    ) {
        if out.count == 0 {
            return;
        }
        finish_counted(&mut out.record, out.count);
        out.count = 0;
        let at = cx.journal.append(&out.record);
        let queue = self.queues.at_mut(index);
        let end = cx.journal.end();
        queue.last_lsn = end;
        queue.stored_lsn = end;
        for (slot, offset, len) in out.contents.drain(..) {
            let new_at = Lsn(at.0 + offset as u64);
            let (old_at, old_len) = queue.replace_content(slot, new_at, len);
            self.segments.add(new_at, len);
            self.segments.remove(old_at, old_len);
        }
    }
}

impl Queue {
    /// A transient message has another body.
    fn replace_body(&mut self, slot: Slot, body: bytes::Bytes) {
        let entry = *self.entries.at(slot);
        self.drop_body(&entry);
        let len = u32::try_from(body.len()).unwrap_or(u32::MAX);
        self.replace_content(slot, entry.at, len);
        self.keep_body(slot, &body);
    }
}
