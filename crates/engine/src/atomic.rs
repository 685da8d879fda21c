//! Several records that happen together or not at all.
//!
//! The records of one step may lie in several batches of the log, and a crash may keep some of
//! these and lose the others. What must not be torn is one record of kind `Atomic`, which contains
//! the others. While it is put together nobody knows where in the log it will lie: contents in it
//! have *relative* positions, their distance from its beginning, and get their real ones when it
//! has been appended. Owns that; refuses to know what the records say.

use crate::engine::{Cx, Engine};
use crate::queue::entries::Slot;
use crate::queues::QueueIndex;
use crate::record::{Kind, begin};
use crate::{ContentRead, Journal, Lsn, PageSlot, QueueId};

/// The bit of a position that says that it is the distance from the beginning of the `Atomic`
/// record that it is in. The log's own positions, and those of cold segments, never have it.
const RELATIVE: u64 = 1 << 62;

/// Bytes of a record's header, and of the length before each record within.
const HEADER: usize = 26;
const LENGTH: usize = 4;

/// Contents and queues that the atomic step under way concerns.
#[derive(Debug, Default)]
pub(crate) struct Atomic {
    /// A step is under way.
    is_open: bool,
    /// Messages whose contents have relative positions.
    placed: Vec<(QueueIndex, Slot)>,
    /// Queues that got messages: what is over their length is dropped afterwards.
    stored_in: Vec<QueueIndex>,
    /// Other queues that answers are given about.
    touched: Vec<QueueIndex>,
    /// The record, between two steps.
    record: Vec<u8>,
}

impl Atomic {
    pub(crate) const fn is_open(&self) -> bool {
        self.is_open
    }

    /// A message's content lies in this record.
    pub(crate) fn note_placed(&mut self, index: QueueIndex, slot: Slot) {
        self.placed.push((index, slot));
    }

    /// A queue got messages.
    pub(crate) fn note_stored(&mut self, index: QueueIndex) {
        if self.stored_in.last() != Some(&index) {
            self.stored_in.push(index);
        }
    }

    /// Answers about this queue, and its deliveries, wait for this record.
    pub(crate) fn note_touched(&mut self, index: QueueIndex) {
        if self.touched.last() != Some(&index) {
            self.touched.push(index);
        }
    }

    pub(crate) const fn memory_bytes(&self) -> usize {
        self.record.capacity()
    }
}

/// Whether a position is the distance from the beginning of an `Atomic` record.
pub(crate) const fn is_relative(at: Lsn) -> bool {
    at.0 & RELATIVE != 0 && at.0 >> 63 == 0
}

/// The position that a relative one means in an `Atomic` record at `base`.
pub(crate) const fn absolute(at: Lsn, base: Lsn) -> Lsn {
    Lsn(base.0.saturating_add(at.0 & !RELATIVE))
}

/// Gathers records instead of appending them; all else is the log's.
struct Gather<'a> {
    journal: &'a mut dyn Journal,
    record: Vec<u8>,
    count: u32,
}

impl Journal for Gather<'_> {
    fn append(&mut self, record: &[u8]) -> Lsn {
        crate::record::put_long(&mut self.record, record);
        self.count += 1;
        Lsn(RELATIVE | (self.record.len() - record.len()) as u64)
    }

    fn end(&self) -> Lsn {
        self.journal.end()
    }

    fn read_content(&mut self, at: Lsn, len: u32, into: &mut Vec<u8>) -> ContentRead {
        if !is_relative(at) {
            return self.journal.read_content(at, len, into);
        }
        let start = usize::try_from(at.0 & !RELATIVE).ok();
        let end = start.and_then(|start| start.checked_add(len as usize));
        let range = start.zip(end).map(|(start, end)| start..end);
        match range.and_then(|range| self.record.get(range)) {
            Some(bytes) => {
                into.extend_from_slice(bytes);
                ContentRead::Cached
            }
            None => ContentRead::Unavailable,
        }
    }

    fn write_page(&mut self, page: &[u8]) -> Option<PageSlot> {
        self.journal.write_page(page)
    }

    fn read_page(&mut self, slot: PageSlot, into: &mut Vec<u8>) -> bool {
        self.journal.read_page(slot, into)
    }

    fn note_deliveries(&mut self, record: &[u8]) {
        self.journal.note_deliveries(record);
    }

    fn free_page(&mut self, slot: PageSlot) {
        self.journal.free_page(slot);
    }
}

impl Engine {
    /// Does a step whose records are all or nothing after a crash. What it stores must fit into
    /// one record of the log (256 MiB).
    ///
    /// Inside of it no message leaves that it stored: queues drop what is over their length after
    /// it. Queues other than those that get messages are told with [`Atomic::note_touched`].
    pub(crate) fn atomically<T>(
        &mut self,
        cx: &mut Cx<'_>,
        step: impl FnOnce(&mut Self, &mut Cx<'_>) -> T,
    ) -> T {
        self.finish_store(cx);
        debug_assert!(!self.atomic.is_open, "an atomic step within another");
        self.atomic.is_open = true;
        let mut record = core::mem::take(&mut self.atomic.record);
        begin(&mut record, Kind::Atomic, QueueId(0), cx.now);
        let mut gather = Gather {
            journal: cx.journal,
            record,
            count: 0,
        };
        let inner = &mut Cx {
            now: cx.now,
            journal: &mut gather,
            out: cx.out,
        };
        let result = step(self, inner);
        self.finish_store(inner);
        let (record, count) = (gather.record, gather.count);
        self.atomic.is_open = false;
        self.finish_atomic(cx, &record, count);
        if record.capacity() <= 4 << 20 {
            self.atomic.record = record;
        }
        result
    }

    fn finish_atomic(&mut self, cx: &mut Cx<'_>, record: &[u8], count: u32) {
        let base = match (count, record.split_at_checked(HEADER + LENGTH)) {
            (0, _) | (_, None) => Lsn::ZERO,
            // One record is one anyhow.
            (1, Some((head, only))) => {
                let at = cx.journal.append(only);
                Lsn(at.0.saturating_sub(head.len() as u64))
            }
            (_, Some(_)) => cx.journal.append(record),
        };
        let end = cx.journal.end();
        let mut placed = core::mem::take(&mut self.atomic.placed);
        for (index, slot) in placed.drain(..) {
            let entry = self.queues.at_mut(index).entries.at_mut(slot);
            entry.at = absolute(entry.at, base);
            self.segments.add(entry.at, entry.len);
        }
        self.atomic.placed = placed;
        let mut touched = core::mem::take(&mut self.atomic.touched);
        for index in touched.drain(..) {
            let queue = self.queues.at_mut(index);
            (queue.last_lsn, queue.stored_lsn) = (end, end);
            self.touch(index);
        }
        self.atomic.touched = touched;
        let mut stored_in = core::mem::take(&mut self.atomic.stored_in);
        // What is in memory only waits for nothing.
        for index in stored_in.iter().filter(|_| count > 0) {
            let queue = self.queues.at_mut(*index);
            (queue.last_lsn, queue.stored_lsn) = (end, end);
        }
        for index in stored_in.drain(..) {
            self.drop_overflow(cx, index);
            self.touch(index);
        }
        self.atomic.stored_in = stored_in;
    }
}

/// The records in the rest of an `Atomic` record, each with its offset in it.
pub(crate) fn records_in(
    record: &[u8],
) -> impl Iterator<Item = Result<(usize, &[u8]), crate::ReplayError>> {
    let mut at = HEADER;
    core::iter::from_fn(move || {
        let rest = record.get(at..).filter(|rest| !rest.is_empty())?;
        let next = rest
            .split_first_chunk::<LENGTH>()
            .and_then(|(len, rest)| rest.get(..usize::try_from(u32::from_be_bytes(*len)).ok()?));
        let Some(next) = next else {
            let problem = format!(
                "an atomic record of {} bytes ends within a record at byte {at}",
                record.len()
            );
            at = record.len();
            return Some(Err(crate::ReplayError { problem }));
        };
        let start = at + LENGTH;
        at = start + next.len();
        Some(Ok((start, next)))
    })
}

#[cfg(test)]
pub(crate) mod tests;
