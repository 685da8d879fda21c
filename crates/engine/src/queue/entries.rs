//! One queue's messages: 64 bytes each, in chunks that never move.

use crate::{Lsn, MessageId};

/// Index of a message in its queue's [`Entries`].
pub(crate) type Slot = u32;

/// No slot, lane or group.
pub(crate) const NIL: u32 = u32::MAX;

/// The one place a message is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Place {
    /// The slot holds no message.
    #[default]
    Free,
    /// Stored, not yet given a place: only between two lines of one function, and in replay.
    New,
    /// In its lane, deliverable.
    Ready,
    /// In the queue's `delayed` set.
    Delayed,
    /// Behind the head of its ordering group.
    Behind,
    /// In the queue's `leases`.
    Leased,
}

/// What the engine remembers of one message besides its content.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) id: MessageId,
    /// Order within the queue; unlike `id` it changes when the message moves.
    pub(crate) position: u64,
    /// Where its content lies in the log; for a transient message the log's end when it came.
    pub(crate) at: Lsn,
    /// Bytes of its content.
    pub(crate) len: u32,
    /// Its fairness key's lane.
    pub(crate) lane: u32,
    /// The next one in its lane, its group's waiting list or the free list.
    pub(crate) next: Slot,
    pub(crate) weight: u32,
    /// Its ordering group; `NIL` = none.
    pub(crate) group: u32,
    /// Times it was delivered, not counting deliveries that never left.
    pub(crate) deliveries: u32,
    /// Times a delivery failed.
    pub(crate) failures: u32,
    /// Times it was redriven.
    pub(crate) redrives: u16,
    pub(crate) place: Place,
    pub(crate) flags: Flags,
}

const _: () = assert!(
    size_of::<Entry>() == 64,
    "a queued message costs one cache line"
);

/// Rare properties of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(u8);

impl Flags {
    /// Its deduplication key is remembered.
    pub(crate) const DEDUP: Self = Self(1);
    /// Its content lives in memory only.
    pub(crate) const TRANSIENT: Self = Self(2);

    pub(crate) const fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }

    pub(crate) const fn with(self, flag: Self) -> Self {
        Self(self.0 | flag.0)
    }
}

const CHUNK: usize = 1024;

/// Entries of the first chunk at first: a broker may hold very many queues with a message or two.
const FIRST: usize = 8;

/// An empty queue keeps its first chunk up to this many entries.
const KEPT: usize = 64;

/// A slab of entries. Freed slots are used again, latest first.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// All of `CHUNK` entries, but for the first while it is the only one.
    chunks: Vec<Box<[Entry]>>,
    free: Slot,
    free_any: bool,
    /// Slots ever used: all live ones are below.
    used: u32,
    len: u32,
}

impl Entries {
    /// Live messages.
    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    /// Slots to look at when walking all messages.
    pub(crate) const fn slots(&self) -> u32 {
        self.used
    }

    pub(crate) fn insert(&mut self, entry: Entry) -> Slot {
        let slot = if self.free_any {
            let slot = self.free;
            let next = self.at(slot).next;
            self.free_any = next != NIL;
            self.free = next;
            slot
        } else {
            let slot = self.used;
            assert!(slot < NIL - 1, "a queue holds at most 2^32 - 2 messages");
            if slot as usize == self.capacity() {
                self.grow();
            }
            self.used += 1;
            slot
        };
        *self.at_mut(slot) = entry;
        self.len += 1;
        slot
    }

    fn capacity(&self) -> usize {
        match self.chunks.as_slice() {
            [only] => only.len(),
            chunks => chunks.len() * CHUNK,
        }
    }

    fn grow(&mut self) {
        match self.chunks.as_mut_slice() {
            [only] if only.len() < CHUNK => {
                let mut grown = vec![Entry::default(); (only.len() * 2).min(CHUNK)];
                for (to, from) in grown.iter_mut().zip(only.iter()) {
                    *to = *from;
                }
                *only = grown.into_boxed_slice();
            }
            chunks => {
                let entries = if chunks.is_empty() { FIRST } else { CHUNK };
                let chunk = vec![Entry::default(); entries];
                self.chunks.push(chunk.into_boxed_slice());
            }
        }
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> Entry {
        let free = if self.free_any { self.free } else { NIL };
        let entry = core::mem::take(self.at_mut(slot));
        assert!(entry.place != Place::Free, "slot {slot} is freed twice");
        self.at_mut(slot).next = free;
        self.free = slot;
        self.free_any = true;
        self.len -= 1;
        if self.len == 0 {
            self.reset();
        }
        entry
    }

    /// A drained backlog gives its memory back, but for a little that the next messages need.
    fn reset(&mut self) {
        self.chunks.truncate(1);
        self.chunks.retain(|only| only.len() <= KEPT);
        self.free_any = false;
        self.used = 0;
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "slots come from insert and stay valid until removed"
    )]
    pub(crate) fn at(&self, slot: Slot) -> &Entry {
        &self.chunks[slot as usize / CHUNK][slot as usize % CHUNK]
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "slots come from insert and stay valid until removed"
    )]
    pub(crate) fn at_mut(&mut self, slot: Slot) -> &mut Entry {
        &mut self.chunks[slot as usize / CHUNK][slot as usize % CHUNK]
    }

    /// Live slots from `from` on, at most `budget` slots looked at.
    pub(crate) fn live_slots(&self, from: Slot, budget: u32) -> impl Iterator<Item = Slot> {
        (from..self.used.min(from.saturating_add(budget)))
            .filter(|slot| self.at(*slot).place != Place::Free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(position: u64) -> Entry {
        Entry {
            position,
            place: Place::Ready,
            ..Entry::default()
        }
    }

    #[test]
    fn a_queue_takes_memory_for_the_messages_it_holds() {
        let mut entries = Entries::default();
        assert_eq!(entries.capacity(), 0);
        for position in 0..3 * CHUNK as u64 {
            let slot = entries.insert(entry(position));
            assert_eq!(u64::from(slot), position);
            let len = entries.len() as usize;
            assert!(entries.capacity() <= (2 * len).max(FIRST));
        }
        for slot in 0..entries.slots() {
            assert_eq!(entries.at(slot).position, u64::from(slot));
        }
        for slot in 0..entries.slots() {
            entries.remove(slot);
        }
        assert_eq!((entries.capacity(), entries.slots()), (0, 0));
    }

    #[test]
    fn an_empty_queue_keeps_room_for_a_few_messages() {
        let mut entries = Entries::default();
        for position in 0..KEPT as u64 {
            entries.insert(entry(position));
        }
        for slot in 0..entries.slots() {
            entries.remove(slot);
        }
        assert_eq!(entries.capacity(), KEPT);
        assert_eq!(entries.insert(entry(7)), 0);
    }
}
