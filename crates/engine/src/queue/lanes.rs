//! Fairness: one lane per fairness key and priority, and the rings that give each its turn.
//!
//! A lane's ready messages go in position order: a FIFO of those that came in order (a long one is
//! mostly pages, see [`super::long_lane`]), and a small ordered set of those that came back. Rings
//! are deficit round robin in messages: a turn adds
//! `weight * quantum`, a delivery costs 1, an emptied lane leaves its ring and loses its deficit.
//! Every step is O(1) in the number of keys.

use std::collections::BTreeMap;

use super::Weighs;
use super::entries::{Entries, NIL, Slot};
use super::long_lane::{Behind, Fifo};
use super::oldest::Oldest;
use super::rings::Ring;
use super::widths::Widths;
use crate::steady::{Chunks, SteadyTable};
use crate::{EngineConfig, FrameLimit};

/// One fairness key at one priority.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(super) front: Fifo,
    /// Only a long lane has anything behind its front.
    pub(super) behind: Option<Box<Behind>>,
    /// What is left of its turn.
    pub(crate) deficit: i64,
    /// That of the newest message enqueued under the key.
    pub(crate) weight: u32,
    /// Ready messages, wherever in the lane they are.
    pub(super) ready: u32,
    /// Its neighbours on the ring; `NIL` = it is on none.
    pub(super) prev: u32,
    pub(super) next: u32,
    /// Messages that came back to an old position.
    #[expect(
        clippy::box_collection,
        reason = "rarely there, and a lane is to stay small"
    )]
    pub(super) returned: Option<Box<BTreeMap<u64, Slot>>>,
    pub(crate) key: Box<str>,
    /// Pending messages: ready, delayed, behind, throttled.
    pub(crate) pending: u32,
    /// Messages that belong to this lane, wherever they are.
    pub(super) held: u32,
    pub(crate) priority: u8,
    /// Which frames its messages do not fit, see [`super::widths`].
    pub(super) width: u8,
    /// It has no turns until something unblocks it.
    pub(crate) blocked: bool,
}

impl Lane {
    /// Memory that the lane takes, but for its messages and pages.
    const fn memory_bytes(&self) -> usize {
        // The lane itself and its place in the table with the usual room to spare.
        size_of::<Self>() + 2 * size_of::<u32>() + self.key.len()
    }

    /// It has turns.
    pub(super) const fn is_on_ring(&self) -> bool {
        self.next != NIL
    }

    /// It has turns, or will have them when it is unblocked.
    pub(super) const fn has_first(&self) -> bool {
        self.is_on_ring() || self.blocked
    }

    /// Its first page could not be read, and it has no turns until that is tried again.
    pub(super) fn is_stalled(&self) -> bool {
        self.behind.as_ref().is_some_and(|behind| behind.stalled)
    }

    /// Messages that came back to a position before this one.
    pub(super) fn returned_before(&self, position: u64) -> u64 {
        let set = self.returned.as_ref();
        set.map_or(0, |set| set.range(..position).count() as u64)
    }
}

/// All lanes of a queue.
#[derive(Debug)]
pub(crate) struct Lanes {
    pub(super) lanes: Chunks<Lane>,
    free: Vec<u32>,
    table: SteadyTable<u32>,
    hasher: ahash::RandomState,
    /// Highest priority first, then by width.
    pub(super) rings: Vec<Ring>,
    pub(super) widths: Widths,
    pub(super) ready: u64,
    pub(super) quantum: i64,
    /// A larger weight counts as this.
    pub(super) weight_max: u32,
    /// Lanes with pending messages.
    pub(super) active: u64,
    /// Lanes on rings.
    pub(super) on_rings: u32,
    /// Ready messages of blocked lanes.
    pub(super) blocked_ready: u64,
    pub(super) page_messages: u32,
    /// A lane is long from this many messages on; `u32::MAX` where none is to be.
    pub(super) lane_hot: u32,
    /// With so many in memory, lanes are long from a page on.
    pub(super) queue_hot: u64,
    /// Lanes whose back is long enough for a page.
    pub(super) full: Vec<u32>,
    /// Messages in pages.
    pub(super) paged: u64,
    pub(super) page_ref_bytes: usize,
    /// Where something asks for the oldest message.
    pub(super) oldest: Option<Oldest>,
    memory_bytes: usize,
    /// The lane that got a message last.
    held_last: u32,
}

impl Lanes {
    pub(crate) fn new(hasher: ahash::RandomState, config: &EngineConfig) -> Self {
        Self {
            lanes: Chunks::new(),
            free: Vec::new(),
            table: SteadyTable::new(),
            hasher,
            rings: Vec::new(),
            widths: Widths::default(),
            ready: 0,
            quantum: i64::from(config.quantum.max(1)),
            weight_max: config.limits.weight_max,
            active: 0,
            on_rings: 0,
            blocked_ready: 0,
            page_messages: config.page_messages.max(1),
            lane_hot: u32::MAX,
            queue_hot: config.queue_hot,
            full: Vec::new(),
            paged: 0,
            page_ref_bytes: 0,
            oldest: None,
            memory_bytes: 0,
            held_last: NIL,
        }
    }

    /// What the queue asks of its lanes.
    pub(crate) fn set_rules(&mut self, entries: &Entries, lane_hot: u32, asks_for_oldest: bool) {
        self.lane_hot = lane_hot;
        self.oldest = None;
        if asks_for_oldest {
            self.note_all(entries);
        }
    }

    /// A lane becomes long from this many messages on.
    pub(super) fn hot(&self) -> u32 {
        let in_memory = self.ready.saturating_sub(self.paged);
        if self.lane_hot == u32::MAX || in_memory < self.queue_hot {
            self.lane_hot
        } else {
            self.lane_hot.min(self.page_messages)
        }
    }

    /// Rough memory of all lanes but for their messages.
    pub(crate) const fn memory_bytes(&self) -> usize {
        self.memory_bytes + self.page_ref_bytes
    }

    pub(super) fn lane(&self, lane: u32) -> Option<&Lane> {
        self.lanes.get(lane as usize)
    }

    /// Ready messages.
    pub(crate) const fn ready(&self) -> u64 {
        self.ready
    }

    /// Those of them that are in blocked lanes.
    pub(crate) const fn blocked_ready(&self) -> u64 {
        self.blocked_ready
    }

    /// Messages per weight unit in one turn.
    pub(crate) const fn quantum(&self) -> i64 {
        self.quantum
    }

    /// Lanes with pending messages.
    pub(crate) const fn active(&self) -> u64 {
        self.active
    }

    /// Lanes that take turns with `lane`.
    pub(crate) fn ring_lanes(&self, lane: u32) -> u32 {
        let priority = self.at(lane).priority;
        let rings = self.rings.iter().filter(|ring| ring.priority == priority);
        rings.map(|ring| ring.lanes).sum()
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

    /// At most `budget` lanes from index `next` on, and the index to go on at, if there are more.
    pub(crate) fn some(
        &self,
        next: u32,
        budget: u32,
    ) -> (impl Iterator<Item = &Lane>, Option<u32>) {
        let end = next.saturating_add(budget);
        let some = (next..end).map_while(|lane| self.lane(lane));
        let more = ((end as usize) < self.lanes.len()).then_some(end);
        (some.filter(|lane| lane.held > 0), more)
    }

    /// In replay: what a lane's key weighs.
    pub(crate) fn set_weight(&mut self, lane: u32, weight: u32) {
        self.at_mut(lane).weight = weight.max(1);
    }

    /// The lane of `key`, with one more message that belongs to it.
    pub(crate) fn hold(&mut self, key: &str, priority: u8, (weight, weighs): (u32, Weighs)) -> u32 {
        let lanes = &self.lanes;
        // Empty keys are not compared as bytes: they have no address, and glibc's vector memcmp
        // then spends a microcode assist on the masked load (a quarter of an enqueue, 2026-11).
        let same = |lane: &u32| {
            lanes.get(*lane as usize).is_some_and(|l| {
                let is_empty = key.is_empty() && l.key.is_empty();
                (l.priority, l.width) == (priority, 0) && (is_empty || &*l.key == key)
            })
        };
        // Most messages are of the same key as the one before.
        let last = self.held_last;
        let is_last = lanes.get(last as usize).is_some_and(|it| it.held > 0) && same(&last);
        let lane = if is_last {
            last
        } else {
            let hash = self.hasher.hash_one((key, priority));
            match self.table.find(hash, same) {
                Some(lane) => *lane,
                None => self.add(key, (priority, 0), hash),
            }
        };
        self.held_last = lane;
        let it = self.at_mut(lane);
        it.held += 1;
        if weighs == Weighs::Key || it.held == 1 {
            it.weight = weight;
        }
        lane
    }

    /// The lane of `key`, with `count` more messages that belong to it.
    pub(super) fn hold_many(
        &mut self,
        key: &str,
        priority: u8,
        weight: (u32, Weighs),
        count: u32,
    ) -> u32 {
        let lane = self.hold(key, priority, weight);
        let it = self.at_mut(lane);
        it.held = it.held - 1 + count;
        lane
    }

    fn add(&mut self, key: &str, (priority, width): (u8, u8), hash: u64) -> u32 {
        let fresh = Lane {
            front: Fifo::EMPTY,
            behind: None,
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
            width,
            blocked: false,
        };
        self.widths.add_lane(width);
        self.memory_bytes += fresh.memory_bytes();
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

    /// A message of a lane, which is not in its place, did not fit a frame of this size: it belongs
    /// to the lane that is returned.
    pub(crate) fn widen(&mut self, lane: u32, limit: FrameLimit) -> u32 {
        let it = self.at(lane);
        let (key, priority, weight) = (it.key.clone(), it.priority, it.weight);
        let before = it.width;
        let width = self.widths.over(before, limit);
        if width == before {
            return lane;
        }
        let hash = self.hasher.hash_one((&*key, priority));
        let lanes = &self.lanes;
        let found = self.table.find(hash, |other| {
            let other = lanes.get(*other as usize);
            other.is_some_and(|it| (it.priority, it.width) == (priority, width) && it.key == key)
        });
        let wider = match found.copied() {
            Some(wider) => wider,
            None => self.add(&key, (priority, width), hash),
        };
        let it = self.at_mut(wider);
        it.held += 1;
        it.weight = weight;
        self.widths.add_message(width);
        self.release(lane);
        wider
    }

    /// A message of the lane is gone for good; the last one takes the lane with it.
    pub(crate) fn release(&mut self, lane: u32) {
        let it = self.at_mut(lane);
        it.held -= 1;
        let width = it.width;
        if width != 0 {
            self.widths.remove_message(width);
        }
        let it = self.at_mut(lane);
        if it.held > 0 {
            return;
        }
        assert!(
            it.ready == 0 && it.pending == 0,
            "lane {lane} is released with messages in it"
        );
        if width != 0 {
            self.widths.remove_lane(width);
        }
        let it = self.at_mut(lane);
        let memory_bytes = it.memory_bytes();
        let (key, priority) = (core::mem::take(&mut it.key), it.priority);
        self.memory_bytes -= memory_bytes;
        let hash = self.hasher.hash_one((&*key, priority));
        self.table.remove(hash, |other| *other == lane);
        self.free.push(lane);
        if self.free.len() == self.lanes.len() {
            self.lanes = Chunks::new();
            self.free = Vec::new();
            self.table = SteadyTable::new();
            self.full = Vec::new();
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
}
