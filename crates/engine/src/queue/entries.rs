//! One queue's messages: 64 bytes each, in chunks that never move.

use crate::{Form, Lsn, MessageId};

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
    /// Waits for room in a throttle's bucket, out of its lane (others wait with their lane).
    Throttled,
    /// In the queue's `leases`.
    Leased,
    /// Unclassified: waits for a script. In the queue's `parking`.
    Parked,
    /// Behind the first unclassified message of an ordered queue. In the queue's `parking`.
    Stopped,
    /// Its delivery failed, and a script decides what follows. In the queue's `deciding`.
    Deciding,
    /// It died, and is on its way to an exchange. In the queue's `departures`.
    Departing,
    /// A dead letter that a redrive took out of its place: it waits for a script, or stays.
    Aside,
}

/// What the engine remembers of one message besides its content.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) id: MessageId,
    /// Order within the queue; unlike `id` it changes when the message moves.
    pub(crate) position: u64,
    /// Where its content lies in the log; a transient message's: in the queue's buffers, see
    /// [`super::bodies`].
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
    /// See [`super::capture`].
    pub(crate) const GENERATION: Self = Self(4);
    /// No script has classified it yet, and one is to.
    pub(crate) const UNCLASSIFIED: Self = Self(8);
    /// A script's attributes follow the payload in its content.
    pub(crate) const ATTRIBUTES: Self = Self(16);
    /// It has a time of its own to leave undelivered, see [`super::expiry`].
    pub(crate) const EXPIRES: Self = Self(128);
    const AMQP: Self = Self(32);
    const FIRE: Self = Self(64);

    /// That its content has this form.
    pub(crate) const fn of_form(form: Form) -> Self {
        match form {
            Form::Fila => Self(0),
            Form::Amqp => Self::AMQP,
            Form::Fire => Self::FIRE,
        }
    }

    /// The form of its content.
    pub(crate) const fn form(self) -> Form {
        if self.has(Self::AMQP) {
            Form::Amqp
        } else if self.has(Self::FIRE) {
            Form::Fire
        } else {
            Form::Fila
        }
    }

    /// What the message is, without its generation.
    pub(crate) const fn bits(self) -> u8 {
        self.0 & !Self::GENERATION.0
    }

    pub(crate) const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// Those that are set.
    pub(crate) fn of(flags: &[(bool, Self)]) -> Self {
        let set = flags.iter().filter(|(is_set, _)| *is_set);
        set.fold(Self::default(), |flags, (_, flag)| flags.with(*flag))
    }

    pub(crate) const fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }

    pub(crate) const fn with(self, flag: Self) -> Self {
        Self(self.0 | flag.0)
    }

    pub(crate) const fn without(self, flag: Self) -> Self {
        Self(self.0 & !flag.0)
    }
}

const CHUNK: usize = 1024;

/// Entries of the first chunk at first: a broker may hold very many queues with a message or two.
const FIRST: usize = 8;

/// An empty queue keeps its first chunk up to this many entries.
const KEPT: usize = 64;

/// A slab of entries. Slots of the chunk used last are used first, and a chunk without messages
/// gives its memory back, so that a backlog that became pages costs none.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// All of `CHUNK` entries, but for the first while it is the only one.
    chunks: Vec<Chunk>,
    /// Chunks that had free slots when they were put here; those without memory are skipped.
    open: Vec<u32>,
    /// Chunks without memory.
    bare: Vec<u32>,
    /// Slots ever used: all live ones are below.
    used: u32,
    len: u32,
    /// Entries there is memory for.
    capacity: usize,
}

#[derive(Debug)]
struct Chunk {
    /// None while it holds no message and others have room.
    entries: Box<[Entry]>,
    /// Slots that were used and are not any more.
    free: Slot,
    live: u32,
    /// It is in `open`.
    listed: bool,
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

    /// Memory that the entries take.
    pub(crate) const fn bytes(&self) -> usize {
        self.capacity * size_of::<Entry>()
    }

    pub(crate) fn insert(&mut self, entry: Entry) -> Slot {
        let slot = match self.reuse() {
            Some(slot) => slot,
            None => self.extend(),
        };
        *self.at_mut(slot) = entry;
        self.len += 1;
        if let Some(chunk) = self.chunk_mut(slot) {
            chunk.live += 1;
        }
        slot
    }

    fn chunk_mut(&mut self, slot: Slot) -> Option<&mut Chunk> {
        self.chunks.get_mut(slot as usize / CHUNK)
    }

    /// A slot that was used before.
    fn reuse(&mut self) -> Option<Slot> {
        loop {
            let Some(number) = self.open.last().copied() else {
                let number = self.bare.pop()?;
                self.fill(number);
                self.open.push(number);
                continue;
            };
            let chunk = self.chunks.get_mut(number as usize)?;
            let slot = chunk.free;
            if chunk.entries.is_empty() {
                chunk.listed = false;
                self.open.pop();
                self.bare.push(number);
                continue;
            }
            let entry = chunk.entries.get(slot as usize % CHUNK)?;
            chunk.free = entry.next;
            if chunk.free == NIL {
                chunk.listed = false;
                self.open.pop();
            }
            return Some(slot);
        }
    }

    /// Gives a chunk its memory back, all slots free.
    fn fill(&mut self, number: u32) {
        let Some(chunk) = self.chunks.get_mut(number as usize) else {
            return;
        };
        chunk.entries = vec![Entry::default(); CHUNK].into_boxed_slice();
        chunk.listed = true;
        self.capacity += CHUNK;
        #[expect(clippy::cast_possible_truncation, reason = "a chunk has 1024 entries")]
        let first = number * CHUNK as u32;
        let mut last = NIL;
        for (slot, entry) in (first..).zip(&mut chunk.entries) {
            entry.next = last;
            last = slot;
        }
        chunk.free = last;
    }

    /// A slot that was never used.
    fn extend(&mut self) -> Slot {
        let slot = self.used;
        assert!(slot < NIL - 1, "a queue holds at most 2^32 - 2 messages");
        let room = match self.chunks.as_slice() {
            [only] if !only.entries.is_empty() => only.entries.len(),
            chunks => chunks.len() * CHUNK,
        };
        if slot as usize == room {
            self.grow();
        }
        self.used += 1;
        slot
    }

    fn grow(&mut self) {
        match self.chunks.as_mut_slice() {
            [only] if only.entries.len() < CHUNK => {
                let mut grown = vec![Entry::default(); (only.entries.len() * 2).min(CHUNK)];
                for (to, from) in grown.iter_mut().zip(only.entries.iter()) {
                    *to = *from;
                }
                self.capacity = grown.len();
                only.entries = grown.into_boxed_slice();
            }
            chunks => {
                let entries = if chunks.is_empty() { FIRST } else { CHUNK };
                let entries = vec![Entry::default(); entries].into_boxed_slice();
                self.capacity += entries.len();
                self.chunks.push(Chunk {
                    entries,
                    free: NIL,
                    live: 0,
                    listed: false,
                });
            }
        }
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> Entry {
        let entry = core::mem::take(self.at_mut(slot));
        assert!(entry.place != Place::Free, "slot {slot} is freed twice");
        self.len -= 1;
        if self.len == 0 {
            self.reset();
            return entry;
        }
        let unused = self.capacity - self.len as usize;
        #[expect(clippy::cast_possible_truncation, reason = "slots are u32")]
        let number = (slot as usize / CHUNK) as u32;
        let is_last = self.chunks.len() == number as usize + 1;
        let Some(chunk) = self.chunk_mut(slot) else {
            return entry;
        };
        chunk.live -= 1;
        if let Some(it) = chunk.entries.get_mut(slot as usize % CHUNK) {
            it.next = chunk.free;
        }
        chunk.free = slot;
        let list = !chunk.listed;
        chunk.listed = true;
        // The last one may have slots that were never used. Some room stays, so that a queue
        // around a border does not take and give memory all the time.
        if chunk.live == 0 && !is_last && unused > 2 * CHUNK {
            chunk.entries = Box::default();
            self.capacity -= CHUNK;
        }
        if list {
            self.open.push(number);
        }
        entry
    }

    /// A drained backlog gives its memory back, but for a little that the next messages need.
    fn reset(&mut self) {
        self.chunks.truncate(1);
        self.chunks
            .retain(|only| (1..=KEPT).contains(&only.entries.len()));
        self.capacity = 0;
        for only in &mut self.chunks {
            (only.free, only.live, only.listed) = (NIL, 0, false);
            self.capacity = only.entries.len();
        }
        self.open = Vec::new();
        self.bare = Vec::new();
        self.used = 0;
    }

    /// The entry of a slot; `None` when it holds no message.
    pub(crate) fn live(&self, slot: Slot) -> Option<&Entry> {
        let chunk = self.chunks.get(slot as usize / CHUNK)?;
        let entry = chunk.entries.get(slot as usize % CHUNK)?;
        (entry.place != Place::Free).then_some(entry)
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "slots come from insert and stay valid until removed"
    )]
    pub(crate) fn at(&self, slot: Slot) -> &Entry {
        &self.chunks[slot as usize / CHUNK].entries[slot as usize % CHUNK]
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "slots come from insert and stay valid until removed"
    )]
    pub(crate) fn at_mut(&mut self, slot: Slot) -> &mut Entry {
        &mut self.chunks[slot as usize / CHUNK].entries[slot as usize % CHUNK]
    }

    /// Live slots from `from` on, at most `budget` slots looked at.
    pub(crate) fn live_slots(&self, from: Slot, budget: u32) -> impl Iterator<Item = Slot> {
        (from..self.used.min(from.saturating_add(budget))).filter(|slot| self.live(*slot).is_some())
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
        assert_eq!(entries.bytes(), 0);
        for position in 0..3 * CHUNK as u64 {
            let slot = entries.insert(entry(position));
            assert_eq!(u64::from(slot), position);
            let len = entries.len() as usize;
            assert!(entries.capacity <= (2 * len).max(FIRST));
        }
        for slot in 0..entries.slots() {
            assert_eq!(entries.at(slot).position, u64::from(slot));
        }
        for slot in 0..entries.slots() {
            entries.remove(slot);
        }
        assert_eq!((entries.capacity, entries.slots()), (0, 0));
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
        assert_eq!(entries.capacity, KEPT);
        assert_eq!(entries.insert(entry(7)), 0);
    }

    #[test]
    fn what_left_from_the_middle_costs_nothing_and_comes_back() {
        let mut entries = Entries::default();
        let chunks = 10;
        let all = chunks * u32::try_from(CHUNK).unwrap();
        for position in 0..u64::from(all) {
            entries.insert(entry(position));
        }
        let kept = [0, all - 1];
        for slot in 1..all - 1 {
            entries.remove(slot);
        }
        assert!(entries.capacity <= 4 * CHUNK, "{}", entries.capacity);
        let live: Vec<_> = entries.live_slots(0, all).collect();
        assert_eq!(live, kept);
        let mut seen = std::collections::BTreeSet::new();
        for position in 1..u64::from(all) - 1 {
            let slot = entries.insert(entry(position));
            assert!(seen.insert(slot) && !kept.contains(&slot), "{slot} twice");
        }
        assert_eq!((entries.len(), entries.slots()), (all, all));
        assert_eq!(entries.capacity, all as usize);
        for slot in seen.into_iter().rev() {
            entries.remove(slot);
        }
        assert_eq!(entries.at(all - 1).position, u64::from(all - 1));
        assert!(entries.live(5).is_none());
    }
}
