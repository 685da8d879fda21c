//! Deduplication keys: remembered while their message is in the queue or its dead-letter queue,
//! and for a window after it left.

use ahash::RandomState;

use crate::record::KeyImage;
use crate::steady::{Chunks, Line, SteadyTable};
use crate::{MessageId, Millis};

/// What is remembered of a key.
#[derive(Clone, Copy, Debug)]
struct Remembered {
    key: u128,
    id: MessageId,
    state: State,
}

/// Where the message of a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The slot holds no key.
    Free,
    /// In the queue or its dead-letter queue.
    Here,
    /// It left; the key's window began.
    Left(Millis),
}

/// All keys of a queue and its dead-letter queue: a slab, so that they can be walked in slices,
/// with an index by key and one by message.
#[derive(Debug)]
pub(crate) struct Dedup {
    keys: Chunks<Remembered>,
    free: Vec<u32>,
    by_key: SteadyTable<u32>,
    /// Only keys whose message is here.
    by_id: SteadyTable<u32>,
    /// Keys whose message left, in the order they left. Those whose key was taken over by another
    /// message since are skipped.
    left: Line<(Millis, u32)>,
    hasher: RandomState,
}

impl Dedup {
    pub(crate) fn new(hasher: &RandomState) -> Self {
        Self {
            keys: Chunks::new(),
            free: Vec::new(),
            by_key: SteadyTable::new(),
            by_id: SteadyTable::new(),
            left: Line::new(),
            hasher: hasher.clone(),
        }
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "slots come from insert and stay valid until removed"
    )]
    fn at(&self, slot: u32) -> &Remembered {
        &self.keys[slot as usize]
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "slots come from insert and stay valid until removed"
    )]
    fn at_mut(&mut self, slot: u32) -> &mut Remembered {
        &mut self.keys[slot as usize]
    }

    fn slot_of(&self, key: u128) -> Option<u32> {
        let hash = self.hasher.hash_one(key);
        let found = self.by_key.find(hash, |slot| self.at(*slot).key == key);
        found.copied()
    }

    /// The message a key is remembered from.
    pub(crate) fn find(&self, key: u128) -> Option<MessageId> {
        self.slot_of(key).map(|slot| self.at(slot).id)
    }

    /// Keys remembered now.
    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Remembers the key of a message. In replay, which knows no clock, it may take over a key that
    /// is remembered from a message that left.
    pub(crate) fn insert(&mut self, key: u128, id: MessageId) {
        let fresh = Remembered {
            key,
            id,
            state: State::Here,
        };
        if let Some(slot) = self.slot_of(key) {
            let before = *self.at(slot);
            if before.state == State::Here {
                self.forget_id(slot, before.id);
            }
            *self.at_mut(slot) = fresh;
            self.index_id(slot, id);
            return;
        }
        let slot = self.put(fresh);
        let (keys, hasher) = (&self.keys, &self.hasher);
        let hash = |slot: &u32| {
            keys.get(*slot as usize)
                .map_or(0, |it| hasher.hash_one(it.key))
        };
        self.by_key.insert_unique(hasher.hash_one(key), slot, hash);
        self.index_id(slot, id);
    }

    fn put(&mut self, fresh: Remembered) -> u32 {
        if let Some(slot) = self.free.pop() {
            *self.at_mut(slot) = fresh;
            return slot;
        }
        let slot = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        assert!(slot < u32::MAX, "a queue remembers at most 2^32 - 2 keys");
        self.keys.push(fresh);
        slot
    }

    fn index_id(&mut self, slot: u32, id: MessageId) {
        let (keys, hasher) = (&self.keys, &self.hasher);
        let hash = |slot: &u32| {
            keys.get(*slot as usize)
                .map_or(0, |it| hasher.hash_one(it.id))
        };
        self.by_id.insert_unique(hasher.hash_one(id), slot, hash);
    }

    fn forget_id(&mut self, slot: u32, id: MessageId) {
        let hash = self.hasher.hash_one(id);
        self.by_id.remove(hash, |other| *other == slot);
    }

    /// The message left the queue and its dead-letter queue.
    pub(crate) fn on_left(&mut self, id: MessageId, now: Millis) {
        let hash = self.hasher.hash_one(id);
        let found = self.by_id.find(hash, |slot| self.at(*slot).id == id);
        if let Some(slot) = found.copied() {
            self.forget_id(slot, id);
            self.at_mut(slot).state = State::Left(now);
            self.left.push_back((now, slot));
        }
    }

    /// When the next key is forgotten.
    pub(crate) fn next_end(&self, window_ms: u64) -> Option<Millis> {
        self.left.front().map(|(at, _)| at.after_ms(window_ms))
    }

    /// Forgets the next key whose window has passed; false when there is none.
    pub(crate) fn pop_ended(&mut self, window_ms: u64, now: Millis) -> bool {
        while self.next_end(window_ms).is_some_and(|end| end <= now) {
            let Some((left, slot)) = self.left.pop_front() else {
                break;
            };
            let it = self.keys.get_mut(slot as usize);
            let Some(it) = it.filter(|it| it.state == State::Left(left)) else {
                continue;
            };
            it.state = State::Free;
            let hash = self.hasher.hash_one(it.key);
            self.by_key.remove(hash, |other| *other == slot);
            self.free.push(slot);
            self.give_back();
            return true;
        }
        false
    }

    /// A queue that remembers nothing keeps little memory for what it remembered.
    fn give_back(&mut self) {
        const KEPT: usize = 64;
        if self.by_key.is_empty() && self.keys.len() > KEPT {
            self.keys = Chunks::new();
            self.free = Vec::new();
            self.left = Line::new();
            self.by_key = SteadyTable::new();
            self.by_id = SteadyTable::new();
        }
    }

    /// Slots to look at when walking all keys.
    pub(crate) fn slots(&self) -> usize {
        self.keys.len()
    }

    /// The keys in at most `budget` slots from `from` on.
    pub(crate) fn images(&self, from: usize, budget: usize) -> impl Iterator<Item = KeyImage> {
        let live = |it: &Remembered| {
            let left = match it.state {
                State::Free => return None,
                State::Here => None,
                State::Left(at) => Some(at),
            };
            Some(KeyImage {
                key: it.key,
                id: it.id,
                left,
            })
        };
        let slots = from..self.keys.len().min(from.saturating_add(budget));
        let slots = slots.filter_map(|slot| self.keys.get(slot));
        slots.filter_map(live)
    }

    /// Bytes of memory it holds, about.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.keys.capacity() * size_of::<Remembered>()
            + self.free.capacity() * size_of::<u32>()
            + (self.by_key.capacity() + self.by_id.capacity()) * (size_of::<u32>() + 1)
            + self.left.memory_bytes()
    }

    /// Panics when slab and indexes disagree.
    pub(crate) fn assert_invariants(&self) {
        let (mut live, mut here) = (0, 0);
        for it in self.keys.iter().filter(|it| it.state != State::Free) {
            assert_eq!(self.find(it.key), Some(it.id), "a key is not found");
            live += 1;
            if it.state == State::Here {
                here += 1;
                let hash = self.hasher.hash_one(it.id);
                let found = self.by_id.find(hash, |slot| self.at(*slot).id == it.id);
                assert!(found.is_some(), "a message's key is not found");
            }
        }
        assert_eq!((live, here), (self.by_key.len(), self.by_id.len()), "keys");
        assert!(live - here <= self.left.len(), "keys nobody will forget");
    }
}
