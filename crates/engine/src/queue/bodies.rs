//! Bodies of transient messages: in memory only, and counted.
//!
//! They stay in the buffers they came in. What one request puts into a queue is a *lot*: messages
//! that share its buffer, each of which knows the lot and its place there (in [`Entry::at`], which
//! has no other meaning while nothing of a message is in the log). So a message costs no memory of
//! its own and a delivery of neighbours one reference count, as with bodies in the log.
//!
//! A buffer lives as long as one of its messages. Two rules keep what is pinned in proportion to
//! what is stored: a lot that has less than half of its buffer is copied at once into a buffer of
//! its own, and one that was left behind with less than a quarter is copied then.

use bytes::Bytes;

use super::Queue;
use super::entries::{Entries, Entry, Flags, Slot};
use crate::Lsn;

/// Buffers that are not worth a copy.
const SMALL_BYTES: usize = 1024;
/// No lot.
const NO_LOT: u32 = u32::MAX;

/// See the module.
#[derive(Debug)]
pub(crate) struct TransientBodies {
    lots: Vec<Lot>,
    /// Numbers of lots without messages.
    free: Vec<u32>,
    /// The lot that further messages of its buffer join.
    open: u32,
    /// The lot of the message that left last.
    left: u32,
    len: usize,
    memory_bytes: usize,
}

/// Messages that share a buffer.
#[derive(Debug, Default)]
struct Lot {
    bytes: Bytes,
    /// Those that came with it; some may have left.
    slots: Vec<Slot>,
    live: u32,
    live_bytes: usize,
}

impl Default for TransientBodies {
    fn default() -> Self {
        Self {
            lots: Vec::new(),
            free: Vec::new(),
            open: NO_LOT,
            left: NO_LOT,
            len: 0,
            memory_bytes: 0,
        }
    }
}

/// Where a body lies: the lot, and the first byte there.
#[expect(
    clippy::cast_possible_truncation,
    reason = "two halves of a number, taken apart"
)]
const fn place_of(at: Lsn) -> (u32, u32) {
    ((at.0 >> 32) as u32, at.0 as u32)
}

const fn at(lot: u32, start: u32) -> Lsn {
    Lsn((lot as u64) << 32 | start as u64)
}

impl TransientBodies {
    /// Messages.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Memory that they take, buffers that others share counted whole.
    pub(super) const fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// The body of a message that has one.
    pub(crate) fn of(&self, entry: &Entry) -> Option<&[u8]> {
        let (bytes, start) = self.buffer_of(entry)?;
        let start = start as usize;
        bytes.get(start..start.checked_add(entry.len as usize)?)
    }

    /// The buffer that a body lies in, and where it begins there.
    pub(crate) fn buffer_of(&self, entry: &Entry) -> Option<(&Bytes, u32)> {
        if !entry.flags.has(Flags::TRANSIENT) {
            return None;
        }
        let (lot, start) = place_of(entry.at);
        Some((&self.lots.get(lot as usize)?.bytes, start))
    }

    /// Keeps a body of `len` bytes that begins at `start` of a buffer; returns what its message's
    /// entry says of it.
    fn keep(&mut self, slot: Slot, (buffer, start): (&Bytes, u32), len: u32) -> Lsn {
        let joins = self.lots.get(self.open as usize).is_some_and(|open| {
            (open.bytes.as_ptr(), open.bytes.len()) == (buffer.as_ptr(), buffer.len())
        });
        if !joins {
            self.open = self.begin(buffer.clone());
        }
        if let Some(lot) = self.lots.get_mut(self.open as usize) {
            lot.slots.push(slot);
            lot.live += 1;
            lot.live_bytes += len as usize;
        }
        self.len += 1;
        self.memory_bytes += size_of::<Slot>();
        at(self.open, start)
    }

    fn begin(&mut self, bytes: Bytes) -> u32 {
        self.memory_bytes += bytes.len() + size_of::<Lot>();
        let lot = Lot {
            bytes,
            ..Lot::default()
        };
        if let Some(number) = self.free.pop()
            && let Some(place) = self.lots.get_mut(number as usize)
        {
            *place = lot;
            return number;
        }
        self.lots.push(lot);
        u32::try_from(self.lots.len() - 1).unwrap_or(NO_LOT)
    }

    /// The buffer's messages are all there.
    fn close(&mut self, entries: &mut Entries) {
        let number = core::mem::replace(&mut self.open, NO_LOT);
        self.copy_if_below(number, 2, entries);
    }

    /// A message of which `len` bytes were kept is gone; its entry may be, too.
    fn leave(&mut self, (place, len): (Lsn, u32), entries: &mut Entries) {
        let (number, _) = place_of(place);
        let Some(lot) = self.lots.get_mut(number as usize) else {
            return;
        };
        lot.live -= 1;
        lot.live_bytes -= len as usize;
        self.len -= 1;
        if lot.live == 0 {
            self.end(number);
        }
        let left = core::mem::replace(&mut self.left, number);
        if left != number && left != self.open {
            self.copy_if_below(left, 4, entries);
        }
    }

    fn end(&mut self, number: u32) {
        if self.len == 0 {
            *self = Self::default();
            return;
        }
        if let Some(lot) = self.lots.get_mut(number as usize) {
            let held = lot.bytes.len() + size_of::<Lot>() + lot.slots.len() * size_of::<Slot>();
            self.memory_bytes -= held;
            *lot = Lot::default();
            self.free.push(number);
        }
        if self.open == number {
            self.open = NO_LOT;
        }
    }

    /// Copies a lot's messages into a buffer of their own if that takes less than the `part`th of
    /// the old one.
    fn copy_if_below(&mut self, number: u32, part: usize, entries: &mut Entries) {
        let Some(lot) = self.lots.get_mut(number as usize) else {
            return;
        };
        let before = lot.bytes.len();
        if before <= SMALL_BYTES || lot.live_bytes.saturating_mul(part) >= before {
            return;
        }
        let mut copy = Vec::with_capacity(lot.live_bytes);
        let listed = lot.slots.len();
        // A slot may have been given back and used again, also by this lot.
        lot.slots.sort_unstable();
        lot.slots.dedup();
        lot.slots.retain(|slot| {
            let Some(entry) = entries.live(*slot) else {
                return false;
            };
            let (of, start) = place_of(entry.at);
            if !entry.flags.has(Flags::TRANSIENT) || of != number {
                return false;
            }
            let (start, len) = (start as usize, entry.len as usize);
            let body = lot.bytes.get(start..start.saturating_add(len));
            let to = u32::try_from(copy.len()).unwrap_or(u32::MAX);
            copy.extend_from_slice(body.unwrap_or_default());
            entries.at_mut(*slot).at = at(number, to);
            true
        });
        lot.slots.shrink_to_fit();
        lot.bytes = copy.into();
        let gone = (listed - lot.slots.len()) * size_of::<Slot>();
        self.memory_bytes -= gone + before - lot.bytes.len();
    }
}

impl Queue {
    /// Keeps the body of a transient message where it lies.
    pub(crate) fn share_body(&mut self, slot: Slot, buffer: (&Bytes, u32)) {
        let len = self.entries.at(slot).len;
        self.entries.at_mut(slot).at = self.transient.keep(slot, buffer, len);
    }

    /// Keeps the body of a transient message in a buffer of its own.
    pub(crate) fn keep_body(&mut self, slot: Slot, body: &Bytes) {
        self.close_bodies();
        self.share_body(slot, (body, 0));
        self.close_bodies();
    }

    /// No more bodies of the buffer of the last one come.
    pub(crate) fn close_bodies(&mut self) {
        self.transient.close(&mut self.entries);
    }

    /// The body of a transient message is not wanted any more; the message may be gone already.
    pub(crate) fn drop_body(&mut self, entry: &Entry) {
        self.transient
            .leave((entry.at, entry.len), &mut self.entries);
    }
}

#[cfg(test)]
mod tests {
    use super::super::entries::Place;
    use super::*;

    struct Kept {
        bodies: TransientBodies,
        entries: Entries,
    }

    impl Kept {
        fn new() -> Self {
            Self {
                bodies: TransientBodies::default(),
                entries: Entries::default(),
            }
        }

        fn keep(&mut self, buffer: &Bytes, start: u32, len: u32) -> Slot {
            let slot = self.entries.insert(Entry {
                len,
                place: Place::Ready,
                flags: Flags::TRANSIENT,
                ..Entry::default()
            });
            self.entries.at_mut(slot).at = self.bodies.keep(slot, (buffer, start), len);
            slot
        }

        fn remove(&mut self, slot: Slot) {
            let entry = self.entries.remove(slot);
            let of = (entry.at, entry.len);
            self.bodies.leave(of, &mut self.entries);
        }

        fn close(&mut self) {
            self.bodies.close(&mut self.entries);
        }

        fn body(&self, slot: Slot) -> &[u8] {
            self.bodies.of(self.entries.at(slot)).unwrap()
        }
    }

    fn buffer(len: usize) -> Bytes {
        (0..=250).cycle().take(len).collect::<Vec<u8>>().into()
    }

    #[test]
    fn what_came_together_shares_its_buffer() {
        let mut kept = Kept::new();
        let all = buffer(10_000);
        let slots: Vec<_> = (0..10).map(|i| kept.keep(&all, i * 1000, 1000)).collect();
        kept.close();
        assert_eq!(kept.bodies.lots.len(), 1);
        for (i, slot) in slots.iter().enumerate() {
            assert_eq!(kept.body(*slot).as_ptr(), all[i * 1000..].as_ptr());
        }
        for slot in slots {
            kept.remove(slot);
        }
        assert_eq!((kept.bodies.len(), kept.bodies.memory_bytes()), (0, 0));
        assert!(all.is_unique());
    }

    #[test]
    fn a_small_message_pins_no_large_buffer() {
        let mut kept = Kept::new();
        let all = buffer(10_000);
        let slot = kept.keep(&all, 5000, 10);
        assert!(!all.is_unique());
        kept.close();
        assert!(all.is_unique());
        assert_eq!(kept.body(slot), &all[5000..5010]);
        assert!(kept.bodies.memory_bytes() < 200);
    }

    #[test]
    fn what_stays_of_a_lot_is_copied_when_others_go_on() {
        let mut kept = Kept::new();
        let (first, second) = (buffer(10_000), buffer(20_000));
        let olds: Vec<_> = (0..10).map(|i| kept.keep(&first, i * 1000, 1000)).collect();
        kept.close();
        let news: Vec<_> = (0..20)
            .map(|i| kept.keep(&second, i * 1000, 1000))
            .collect();
        kept.close();
        for slot in &olds[..9] {
            kept.remove(*slot);
        }
        assert!(!first.is_unique());
        kept.remove(news[3]);
        assert!(first.is_unique());
        assert_eq!(kept.body(olds[9]), &first[9000..]);
        assert_eq!(kept.body(news[19]), &second[19_000..]);
        kept.remove(olds[9]);
        for slot in news.into_iter().enumerate().filter(|it| it.0 != 3) {
            kept.remove(slot.1);
        }
        assert_eq!(kept.bodies.memory_bytes(), 0);
    }

    #[test]
    fn slots_used_again_within_a_lot_and_beside_it_keep_their_bodies() {
        let mut kept = Kept::new();
        let (first, second) = (buffer(9000), buffer(3000));
        let stays = kept.keep(&first, 1000, 100);
        let gone = kept.keep(&first, 2000, 1000);
        kept.remove(gone);
        let again = kept.keep(&first, 4000, 100);
        assert_eq!(gone, again);
        kept.close();
        assert!(first.is_unique());
        assert_eq!(kept.body(stays), &first[1000..1100]);
        assert_eq!(kept.body(again), &first[4000..4100]);
        kept.remove(again);
        let beside = kept.keep(&second, 7, 2000);
        kept.close();
        assert_eq!(kept.body(beside), &second[7..2007]);
        assert_eq!(kept.body(stays), &first[1000..1100]);
        kept.remove(stays);
        kept.remove(beside);
        assert_eq!(kept.bodies.memory_bytes(), 0);
    }
}
