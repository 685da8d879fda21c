//! Fairness: one lane per fairness key and priority, and the rings that give each its turn.
//!
//! A lane's ready messages go in position order: a FIFO of those that came in order, and a small
//! ordered set of those that came back. Rings are deficit round robin in messages: a turn adds
//! `weight * quantum`, a delivery costs 1, an emptied lane leaves its ring and loses its deficit.
//! Every step is O(1) in the number of keys.

use std::collections::BTreeMap;

use hashbrown::HashTable;

use super::Weighs;
use super::entries::{Entries, NIL, Slot};
use super::rings::Ring;

/// One fairness key at one priority.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(super) head: Slot,
    pub(super) tail: Slot,
    tail_position: u64,
    /// What is left of its turn.
    pub(crate) deficit: i64,
    /// That of the newest message enqueued under the key.
    pub(crate) weight: u32,
    /// Ready messages, `returned` included.
    pub(super) ready: u32,
    pub(super) prev: u32,
    pub(super) next: u32,
    /// Messages that came back to an old position.
    #[expect(
        clippy::box_collection,
        reason = "rarely there, and a lane is to stay small"
    )]
    pub(super) returned: Option<Box<BTreeMap<u64, Slot>>>,
    pub(crate) key: Box<str>,
    /// Pending messages: ready, delayed, behind.
    pub(crate) pending: u32,
    /// Messages that belong to this lane, wherever they are.
    pub(super) held: u32,
    pub(super) priority: u8,
}

/// How far [`Lanes::take_before`] has come; for one step, in which nothing becomes ready.
#[derive(Debug, Default)]
pub(crate) struct RingWalk {
    /// Rings that have nothing to take.
    passed: usize,
}

/// All lanes of a queue.
#[derive(Debug)]
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    free: Vec<u32>,
    table: HashTable<u32>,
    hasher: ahash::RandomState,
    /// Highest priority first.
    pub(super) rings: Vec<Ring>,
    pub(super) ready: u64,
    quantum: i64,
    /// Lanes with pending messages.
    pub(super) active: u64,
}

impl Lanes {
    pub(crate) fn new(hasher: ahash::RandomState, quantum: u32) -> Self {
        Self {
            lanes: Vec::new(),
            free: Vec::new(),
            table: HashTable::new(),
            hasher,
            rings: Vec::new(),
            ready: 0,
            quantum: i64::from(quantum.max(1)),
            active: 0,
        }
    }

    /// Ready messages.
    pub(crate) const fn ready(&self) -> u64 {
        self.ready
    }

    /// Lanes with pending messages.
    pub(crate) const fn active(&self) -> u64 {
        self.active
    }

    /// Lanes that take turns with `lane`.
    pub(crate) fn ring_lanes(&self, lane: u32) -> u32 {
        let priority = self.at(lane).priority;
        self.rings
            .iter()
            .find(|ring| ring.priority == priority)
            .map_or(0, |ring| ring.lanes)
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "lane numbers come from hold and stay valid"
    )]
    pub(crate) fn at(&self, lane: u32) -> &Lane {
        &self.lanes[lane as usize]
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "lane numbers come from hold and stay valid"
    )]
    pub(super) fn at_mut(&mut self, lane: u32) -> &mut Lane {
        &mut self.lanes[lane as usize]
    }

    pub(crate) fn priority(&self, lane: u32) -> u8 {
        self.at(lane).priority
    }

    /// All lanes with messages.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Lane> {
        self.lanes.iter().filter(|lane| lane.held > 0)
    }

    /// The lane of `key`, with one more message that belongs to it.
    pub(crate) fn hold(&mut self, key: &str, priority: u8, (weight, weighs): (u32, Weighs)) -> u32 {
        let hash = self.hasher.hash_one((key, priority));
        let lanes = &self.lanes;
        // Empty keys are not compared as bytes: they have no address, and glibc's vector memcmp
        // then spends a microcode assist on the masked load (a quarter of an enqueue, 2026-11).
        let same = |lane: &u32| {
            lanes.get(*lane as usize).is_some_and(|l| {
                let is_empty = key.is_empty() && l.key.is_empty();
                l.priority == priority && (is_empty || &*l.key == key)
            })
        };
        let lane = match self.table.find(hash, same) {
            Some(lane) => *lane,
            None => self.add(key, priority, hash),
        };
        let it = self.at_mut(lane);
        it.held += 1;
        if weighs == Weighs::Key || it.held == 1 {
            it.weight = weight;
        }
        lane
    }

    fn add(&mut self, key: &str, priority: u8, hash: u64) -> u32 {
        let fresh = Lane {
            head: NIL,
            tail: NIL,
            tail_position: 0,
            deficit: 0,
            weight: 1,
            ready: 0,
            prev: NIL,
            next: NIL,
            returned: None,
            key: key.into(),
            pending: 0,
            held: 0,
            priority,
        };
        let lane = if let Some(lane) = self.free.pop() {
            *self.at_mut(lane) = fresh;
            lane
        } else {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "one lane per message at most"
            )]
            let lane = self.lanes.len() as u32;
            self.lanes.push(fresh);
            lane
        };
        let (lanes, hasher) = (&self.lanes, &self.hasher);
        self.table.insert_unique(hash, lane, |other| {
            lanes
                .get(*other as usize)
                .map_or(0, |l| hasher.hash_one((&*l.key, l.priority)))
        });
        lane
    }

    /// A message of the lane is gone for good; the last one takes the lane with it.
    pub(crate) fn release(&mut self, lane: u32) {
        let it = self.at_mut(lane);
        it.held -= 1;
        if it.held > 0 {
            return;
        }
        assert!(
            it.ready == 0 && it.pending == 0,
            "lane {lane} is released with messages in it"
        );
        let (key, priority) = (core::mem::take(&mut it.key), it.priority);
        let hash = self.hasher.hash_one((&*key, priority));
        if let Ok(found) = self.table.find_entry(hash, |other| *other == lane) {
            found.remove();
        }
        self.free.push(lane);
        if self.free.len() == self.lanes.len() {
            self.lanes = Vec::new();
            self.free = Vec::new();
            self.table = HashTable::new();
        }
    }

    /// A message of the lane becomes pending.
    pub(crate) fn add_pending(&mut self, lane: u32) {
        let it = self.at_mut(lane);
        it.pending += 1;
        if it.pending == 1 {
            self.active += 1;
        }
    }

    /// A message of the lane is no longer pending.
    pub(crate) fn remove_pending(&mut self, lane: u32) {
        let it = self.at_mut(lane);
        it.pending -= 1;
        if it.pending == 0 {
            self.active -= 1;
        }
    }

    /// Puts a message into its lane, at the place its position gives it.
    pub(crate) fn push(&mut self, entries: &mut Entries, slot: Slot) {
        let (lane, position) = {
            let entry = entries.at_mut(slot);
            entry.next = NIL;
            (entry.lane, entry.position)
        };
        let it = self.at_mut(lane);
        if it.head == NIL {
            (it.head, it.tail, it.tail_position) = (slot, slot, position);
        } else if position > it.tail_position {
            entries.at_mut(it.tail).next = slot;
            (it.tail, it.tail_position) = (slot, position);
        } else {
            it.returned.get_or_insert_default().insert(position, slot);
        }
        it.ready += 1;
        let first = it.ready == 1;
        self.ready += 1;
        if first {
            self.join_ring(lane);
        }
    }

    /// The first message of a lane, by position.
    fn first(&self, entries: &Entries, lane: u32) -> Option<(u64, Slot)> {
        let it = self.at(lane);
        let back = it.returned.as_ref().and_then(|set| set.first_key_value());
        let front = (it.head != NIL).then(|| (entries.at(it.head).position, it.head));
        match (front, back) {
            (Some(front), Some((position, slot))) => Some(front.min((*position, *slot))),
            (Some(front), None) => Some(front),
            (None, Some((position, slot))) => Some((*position, *slot)),
            (None, None) => None,
        }
    }

    /// Takes the first message out of a lane; the lane stays on its ring.
    fn pop_first(&mut self, entries: &Entries, lane: u32) -> Option<Slot> {
        let it = self.at(lane);
        let slot = if it.returned.is_none() {
            (it.head != NIL).then_some(it.head)?
        } else {
            self.first(entries, lane)?.1
        };
        let it = self.at_mut(lane);
        if it.head == slot {
            it.head = entries.at(slot).next;
        } else if let Some(set) = it.returned.as_mut() {
            set.remove(&entries.at(slot).position);
            if set.is_empty() {
                it.returned = None;
            }
        }
        it.ready -= 1;
        self.ready -= 1;
        Some(slot)
    }

    /// The next message by priority, turn and position; `None` when nothing is ready.
    pub(crate) fn pick(&mut self, entries: &Entries) -> Option<Slot> {
        let (ring, lane) = self.turn()?;
        let quantum = self.quantum;
        let it = self.at_mut(lane);
        if it.deficit <= 0 {
            it.deficit += i64::from(it.weight.max(1)).saturating_mul(quantum);
        }
        it.deficit -= 1;
        let turn_over = it.deficit <= 0;
        let slot = self.pop_first(entries, lane)?;
        let it = self.at(lane);
        let next = it.next;
        if it.ready == 0 {
            self.leave_ring(ring, lane);
        } else if turn_over && let Some(ring) = self.rings.get_mut(ring) {
            ring.current = next;
        }
        Some(slot)
    }

    fn turn(&self) -> Option<(usize, u32)> {
        let ring = self.rings.iter().position(|ring| ring.lanes > 0)?;
        Some((ring, self.rings.get(ring)?.current))
    }

    /// Takes `slot`, which must be the first of its lane, without using up the lane's turn.
    /// False when it is not the first.
    pub(crate) fn take_if_first(&mut self, entries: &Entries, slot: Slot) -> bool {
        let lane = entries.at(slot).lane;
        if self
            .first(entries, lane)
            .is_none_or(|(_, first)| first != slot)
        {
            return false;
        }
        self.pop_first(entries, lane);
        let it = self.at(lane);
        if it.ready == 0 {
            let priority = it.priority;
            if let Some(ring) = self.rings.iter().position(|ring| ring.priority == priority) {
                self.leave_ring(ring, lane);
            }
        }
        true
    }

    /// Takes any ready message with a position below `limit`; `None` when there is none. Lanes
    /// whose first message is not below it are passed over: the turn moves on to the lane found,
    /// and rings without one are noted in `walk`, so that who calls this again and again in one
    /// step walks each ring once.
    pub(crate) fn take_before(
        &mut self,
        entries: &Entries,
        limit: u64,
        walk: &mut RingWalk,
    ) -> Option<Slot> {
        for index in walk.passed..self.rings.len() {
            walk.passed = index;
            let (lanes, mut lane) = match self.rings.get(index) {
                Some(ring) if ring.lanes > 0 => (ring.lanes, ring.current),
                _ => continue,
            };
            for _ in 0..lanes {
                let next = self.at(lane).next;
                let first = self
                    .first(entries, lane)
                    .filter(|(position, _)| *position < limit);
                if let Some((_, slot)) = first {
                    if let Some(ring) = self.rings.get_mut(index) {
                        ring.current = lane;
                    }
                    self.take_if_first(entries, slot);
                    return Some(slot);
                }
                lane = next;
            }
        }
        walk.passed = self.rings.len();
        None
    }

    /// Messages of the slot's lane that go before it, counted up to `most`.
    pub(crate) fn ahead(&self, entries: &Entries, slot: Slot, most: u64) -> u64 {
        let entry = entries.at(slot);
        let it = self.at(entry.lane);
        let back = it
            .returned
            .as_ref()
            .map_or(0, |set| set.range(..entry.position).count() as u64);
        let mut ahead = 0;
        let mut walk = it.head;
        while walk != NIL && walk != slot && ahead < most {
            if entries.at(walk).position < entry.position {
                ahead += 1;
            }
            walk = entries.at(walk).next;
        }
        (ahead + back).min(most)
    }
}
