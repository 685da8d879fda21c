//! All buckets of all throttles: by value, by the time at which something happens to them.

use std::collections::{BTreeSet, VecDeque};

use ahash::RandomState;

use super::history::{History, NextRoom};
use super::rules::Rules;
use crate::Millis;
use crate::queue::entries::NIL;
use crate::queues::QueueIndex;
use crate::steady::{Chunks, SteadyTable};

/// What a bucket counts: a throttle and the values of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BucketKey<'a> {
    pub(crate) throttle: u32,
    /// The bucket of messages that lack a part of the key.
    pub(crate) shared: bool,
    /// One value per part, each with its length ([`super::values`]).
    pub(crate) values: &'a [u8],
}

/// Messages of one queue and priority that wait for a bucket.
pub(crate) type Unit = (QueueIndex, u8);

/// One bucket.
#[derive(Debug)]
pub(crate) struct Bucket {
    /// `NIL` = the slot is free.
    pub(crate) throttle: u32,
    pub(crate) shared: bool,
    pub(crate) values: Box<[u8]>,
    pub(crate) history: History,
    /// Whose messages wait for it, in the order in which they are woken.
    pub(crate) units: VecDeque<Unit>,
    /// It is in `open`.
    is_open: bool,
    /// The time its timer is set to.
    armed: Option<Millis>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Buckets {
    slots: Chunks<Bucket>,
    free: Vec<u32>,
    table: SteadyTable<u32>,
    hasher: RandomState,
    timers: BTreeSet<(Millis, u32)>,
    /// Buckets that may have room for those that wait.
    open: VecDeque<u32>,
    /// Memory of histories and values.
    held_bytes: usize,
}

impl Buckets {
    pub(crate) fn new(hasher: &RandomState) -> Self {
        Self {
            slots: Chunks::new(),
            free: Vec::new(),
            table: SteadyTable::new(),
            hasher: hasher.clone(),
            timers: BTreeSet::new(),
            open: VecDeque::new(),
            held_bytes: 0,
        }
    }

    /// Buckets there are.
    pub(crate) const fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// All numbers are below.
    pub(crate) fn end(&self) -> u32 {
        u32::try_from(self.slots.len()).unwrap_or(NIL)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * (size_of::<Bucket>() + 2 * size_of::<u32>())
            + self.timers.len() * (size_of::<(Millis, u32)>() + 8)
            + self.held_bytes
    }

    fn hash(&self, key: BucketKey<'_>) -> u64 {
        self.hasher.hash_one((key.throttle, key.shared, key.values))
    }

    pub(crate) fn find(&self, key: BucketKey<'_>) -> Option<u32> {
        let slots = &self.slots;
        let same = |at: &u32| slots.get(*at as usize).is_some_and(|it| it.key() == key);
        self.table.find(self.hash(key), same).copied()
    }

    pub(crate) fn find_or_add(&mut self, key: BucketKey<'_>) -> u32 {
        if let Some(found) = self.find(key) {
            return found;
        }
        let fresh = Bucket {
            throttle: key.throttle,
            shared: key.shared,
            values: key.values.into(),
            history: History::default(),
            units: VecDeque::new(),
            is_open: false,
            armed: None,
        };
        self.held_bytes += fresh.values.len();
        let at = match self.free.pop() {
            Some(at) => {
                *self.at_mut(at) = fresh;
                at
            }
            None => {
                self.slots.push(fresh);
                self.end() - 1
            }
        };
        let (slots, hasher) = (&self.slots, &self.hasher);
        self.table.insert_unique(self.hash(key), at, |other| {
            let key = slots.get(*other as usize).map(Bucket::key);
            key.map_or(0, |key| {
                hasher.hash_one((key.throttle, key.shared, key.values))
            })
        });
        at
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "bucket numbers come from find_or_add and stay valid until removed"
    )]
    pub(crate) fn at(&self, bucket: u32) -> &Bucket {
        &self.slots[bucket as usize]
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "bucket numbers come from find_or_add and stay valid until removed"
    )]
    pub(crate) fn at_mut(&mut self, bucket: u32) -> &mut Bucket {
        &mut self.slots[bucket as usize]
    }

    /// The bucket of a number, if there is one.
    pub(crate) fn live(&self, bucket: u32) -> Option<&Bucket> {
        let it = self.slots.get(bucket as usize)?;
        (it.throttle != NIL).then_some(it)
    }

    /// The bucket of a number, if there is one.
    pub(crate) fn live_mut(&mut self, bucket: u32) -> Option<&mut Bucket> {
        let it = self.slots.get_mut(bucket as usize)?;
        (it.throttle != NIL).then_some(it)
    }

    /// Changes a bucket's history, keeping count of its memory.
    pub(crate) fn change(&mut self, bucket: u32, change: impl FnOnce(&mut History)) {
        let history = &mut self.at_mut(bucket).history;
        let before = history.memory_bytes();
        change(history);
        let after = history.memory_bytes();
        self.held_bytes = self.held_bytes + after - before;
    }

    /// After anything that may have changed what a bucket waits for: sets its timer, or puts it
    /// in line to wake those that wait. Removes it when nothing of it matters any more; true then.
    pub(crate) fn follow(&mut self, bucket: u32, rules: &Rules, now: Millis) -> bool {
        let it = self.at_mut(bucket);
        let at = if it.units.is_empty() {
            match it.history.idle_at(rules) {
                Some(at) if at <= now => {
                    self.remove(bucket);
                    return true;
                }
                at => at,
            }
        } else {
            match it.history.next_room(rules, now) {
                NextRoom::Now => {
                    if !it.is_open {
                        it.is_open = true;
                        self.open.push_back(bucket);
                    }
                    None
                }
                NextRoom::At(at) => Some(at),
                NextRoom::OnRelease => None,
            }
        };
        self.arm(bucket, at);
        false
    }

    /// Sets a bucket's timer to when it has room, if it has none; it was just asked what it wakes.
    pub(crate) fn rest(&mut self, bucket: u32, rules: &Rules, now: Millis) {
        let at = match self.at(bucket).history.next_room(rules, now) {
            NextRoom::At(at) => Some(at),
            NextRoom::Now | NextRoom::OnRelease => None,
        };
        self.arm(bucket, at);
    }

    fn arm(&mut self, bucket: u32, at: Option<Millis>) {
        let before = core::mem::replace(&mut self.at_mut(bucket).armed, at);
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.timers.remove(&(before, bucket));
        }
        if let Some(at) = at {
            self.timers.insert((at, bucket));
        }
    }

    fn remove(&mut self, bucket: u32) {
        self.arm(bucket, None);
        let hash = self.hash(self.at(bucket).key());
        let it = self.at_mut(bucket);
        let freed = it.values.len() + it.history.memory_bytes();
        it.throttle = NIL;
        it.values = Box::default();
        it.history = History::default();
        it.units = VecDeque::new();
        it.is_open = false;
        self.held_bytes -= freed;
        self.table.remove(hash, |at| *at == bucket);
        self.free.push(bucket);
        if self.free.len() == self.slots.len() {
            self.slots = Chunks::new();
            self.free = Vec::new();
            self.table = SteadyTable::new();
            self.open.clear();
        }
    }

    /// A bucket whose time has come.
    pub(crate) fn pop_due(&mut self, now: Millis) -> Option<u32> {
        let (at, bucket) = self.timers.first().copied()?;
        if at > now {
            return None;
        }
        self.timers.pop_first();
        self.at_mut(bucket).armed = None;
        Some(bucket)
    }

    /// A bucket that may have room for those that wait.
    pub(crate) fn pop_open(&mut self) -> Option<u32> {
        while let Some(bucket) = self.open.pop_front() {
            let it = self.slots.get_mut(bucket as usize);
            if let Some(it) = it.filter(|it| it.is_open) {
                it.is_open = false;
                return Some(bucket);
            }
        }
        None
    }

    pub(crate) fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    pub(crate) fn next_time(&self) -> Option<Millis> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Panics when the structures contradict each other.
    pub(crate) fn assert_invariants(&self) {
        let mut held_bytes = 0;
        for (at, it) in (0..).zip(self.slots.iter()) {
            if it.throttle == NIL {
                assert!(it.armed.is_none() && !it.is_open, "bucket {at} is gone");
                continue;
            }
            assert_eq!(self.find(it.key()), Some(at), "bucket {at} by its values");
            held_bytes += it.values.len() + it.history.memory_bytes();
            assert_eq!(it.is_open, self.open.contains(&at), "bucket {at} is open");
            let timer = it.armed.map(|armed| self.timers.contains(&(armed, at)));
            assert!(timer != Some(false), "bucket {at} has no timer");
        }
        assert_eq!(held_bytes, self.held_bytes, "memory of histories");
        assert_eq!(self.table.len(), self.len(), "buckets by value");
    }
}

impl Bucket {
    pub(crate) fn key(&self) -> BucketKey<'_> {
        BucketKey {
            throttle: self.throttle,
            shared: self.shared,
            values: &self.values,
        }
    }
}
