//! The rings that give each lane its turn, one per priority and width: circular lists through the
//! lanes.

use super::entries::{Entries, NIL, Slot};
use super::lanes::Lanes;
use super::long_lane::Fifo;
use crate::FrameLimit;

/// The lanes of one priority and width that have ready messages.
#[derive(Debug)]
pub(super) struct Ring {
    pub(super) priority: u8,
    pub(super) width: u8,
    /// Whose turn it is; `NIL` = empty.
    pub(super) current: u32,
    pub(super) lanes: u32,
    /// Rounds that rings of this priority have had; the one with the fewest is next. Counted while
    /// there are several.
    rounds: u64,
    /// Turns that are left in this round.
    left: u32,
}

impl Lanes {
    /// A new lane goes to the end of the round: it waits for one turn of each other at most.
    pub(super) fn join_ring(&mut self, lane: u32) {
        let it = self.at(lane);
        let (priority, width) = (it.priority, it.width);
        let index = match self.find_ring(priority, width) {
            Ok(index) => index,
            Err(index) => {
                let ring = Ring {
                    priority,
                    width,
                    current: NIL,
                    lanes: 0,
                    rounds: self.newest_round(priority),
                    left: 0,
                };
                self.rings.insert(index, ring);
                index
            }
        };
        let Some(ring) = self.rings.get_mut(index) else {
            return;
        };
        ring.lanes += 1;
        self.on_rings += 1;
        let current = ring.current;
        if current == NIL {
            ring.current = lane;
            let it = self.at_mut(lane);
            (it.prev, it.next) = (lane, lane);
            return;
        }
        let last = self.at(current).prev;
        let it = self.at_mut(lane);
        (it.prev, it.next) = (last, current);
        self.at_mut(last).next = lane;
        self.at_mut(current).prev = lane;
    }

    /// A lane without ready messages in memory has no turns any more.
    pub(super) fn leave_ring(&mut self, ring: usize, lane: u32) {
        self.at_mut(lane).front = Fifo::EMPTY;
        self.unlink(ring, lane);
    }

    /// A lane has no turns any more.
    fn unlink(&mut self, ring: usize, lane: u32) {
        let it = self.at_mut(lane);
        it.deficit = 0;
        let (prev, next) = (it.prev, it.next);
        (it.prev, it.next) = (NIL, NIL);
        self.on_rings -= 1;
        let index = ring;
        let Some(ring) = self.rings.get_mut(index) else {
            return;
        };
        ring.lanes -= 1;
        if ring.lanes == 0 {
            ring.current = NIL;
            // Priorities are few and come again.
            if ring.width != 0 {
                self.rings.remove(index);
            }
            return;
        }
        if ring.current == lane {
            ring.current = next;
        }
        self.at_mut(prev).next = next;
        self.at_mut(next).prev = prev;
    }

    /// The lane whose turn it is, for a consumer with such frames.
    pub(crate) fn turn_lane(&self, entries: &Entries, limit: FrameLimit) -> Option<u32> {
        self.turn(entries, limit).map(|(_, lane)| lane)
    }

    /// Some lane can have its turn, for a consumer with such frames.
    pub(crate) fn has_turn(&self, limit: FrameLimit) -> bool {
        if self.widths.is_empty() {
            return self.on_rings > 0;
        }
        self.rings.iter().any(|ring| self.may_turn(ring, limit))
    }

    fn may_turn(&self, ring: &Ring, limit: FrameLimit) -> bool {
        ring.lanes > 0 && self.widths.fits(ring.width, limit)
    }

    /// The ring and the lane whose turn it is, for a consumer with such frames.
    pub(super) fn turn(&self, entries: &Entries, limit: FrameLimit) -> Option<(usize, u32)> {
        let ring = if self.widths.is_empty() {
            self.rings.iter().position(|ring| ring.lanes > 0)?
        } else {
            self.ring_for(entries, limit)?
        };
        Some((ring, self.rings.get(ring)?.current))
    }

    /// Of the rings of the highest priority that a consumer may take from the one whose turn it is:
    /// they take turns by rounds, so that every lane has as many turns. Where all of them are of
    /// one fairness key, its messages go by position.
    fn ring_for(&self, entries: &Entries, limit: FrameLimit) -> Option<usize> {
        let may_turn = |ring: &&Ring| self.may_turn(ring, limit);
        let priority = self.rings.iter().find(may_turn)?.priority;
        let rings = || {
            let all = self.rings.iter().enumerate();
            all.filter(|(_, ring)| ring.priority == priority && may_turn(ring))
        };
        let key = |ring: &Ring| &self.at(ring.current).key;
        let (_, first) = rings().next()?;
        let is_one_key = rings().all(|(_, ring)| ring.lanes == 1 && key(ring) == key(first));
        let next = if is_one_key {
            rings().min_by_key(|(_, ring)| self.first(entries, ring.current).map(|it| it.0))
        } else {
            // One that nobody could take from for long does not make up for all of it.
            let least = rings()
                .map(|(_, ring)| ring.rounds)
                .max()?
                .saturating_sub(1);
            rings().min_by_key(|(_, ring)| ring.rounds.max(least))
        };
        next.map(|(index, _)| index)
    }

    /// A lane of a ring has had its turn. Counted where there may be several rings of a priority.
    pub(super) fn end_turn(&mut self, ring: usize) {
        if self.widths.is_empty() {
            return;
        }
        let Some(priority) = self.rings.get(ring).map(|ring| ring.priority) else {
            return;
        };
        let newest = self.newest_round(priority);
        if let Some(ring) = self.rings.get_mut(ring) {
            ring.left = ring.left.min(ring.lanes).saturating_sub(1);
            if ring.left == 0 {
                ring.rounds = ring.rounds.max(newest.saturating_sub(1)) + 1;
                ring.left = ring.lanes;
            }
        }
    }

    fn newest_round(&self, priority: u8) -> u64 {
        let rings = self.rings.iter().filter(|ring| ring.priority == priority);
        rings.map(|ring| ring.rounds).max().unwrap_or(0)
    }

    /// Messages that fit no frame of these sizes, wherever they are; and the first of those that
    /// are ready, if it is in memory.
    pub(crate) fn unfit(&self, entries: &Entries, limits: &[FrameLimit]) -> (u64, Option<Slot>) {
        let fits_nobody = |width: u8| limits.iter().all(|it| !self.widths.fits(width, *it));
        let all = self.widths.iter().filter(|(width, _)| fits_nobody(*width));
        let messages = all.map(|(_, messages)| messages).sum();
        let rings = self.rings.iter().filter(|it| it.lanes > 0);
        let first = rings
            .filter(|it| fits_nobody(it.width))
            .filter_map(|it| self.first(entries, it.current))
            .min();
        (messages, first.and_then(|(_, slot)| slot))
    }

    /// Whether messages of a lane fit a frame of one of these sizes.
    pub(crate) fn fits_any(&self, lane: u32, limits: &[FrameLimit]) -> bool {
        let width = self.at(lane).width;
        limits.iter().any(|it| self.widths.fits(width, *it))
    }

    /// Messages of a lane are kept from some consumers.
    pub(crate) fn is_wide(&self, lane: u32) -> bool {
        self.at(lane).width != 0
    }

    /// The lane has no turns until it is unblocked; its messages stay.
    pub(crate) fn block(&mut self, lane: u32) {
        let it = self.at(lane);
        let (on_ring, ready) = (it.is_on_ring(), it.ready);
        if it.blocked {
            return;
        }
        if on_ring && let Some(ring) = self.ring_of(lane) {
            self.unlink(ring, lane);
        }
        self.at_mut(lane).blocked = true;
        self.blocked_ready += u64::from(ready);
    }

    /// A blocked lane has its turns again; others are left as they are.
    pub(crate) fn unblock(&mut self, lane: u32) {
        let Some(it) = self.lanes.get_mut(lane as usize).filter(|it| it.blocked) else {
            return;
        };
        it.blocked = false;
        self.blocked_ready -= u64::from(it.ready);
        let stalled = it.behind.as_ref().is_some_and(|behind| behind.stalled);
        if it.ready > 0 && !stalled {
            self.join_ring(lane);
        }
    }

    /// Blocked lanes with their ready messages.
    pub(crate) fn blocked(&self) -> impl Iterator<Item = (u32, u32)> {
        let lanes = (0..).zip(self.lanes.iter()).filter(|(_, it)| it.blocked);
        lanes.map(|(lane, it)| (lane, it.ready))
    }

    /// Ready messages of a lane if it is blocked.
    pub(crate) fn blocked_in(&self, lane: u32) -> u64 {
        let lane = self.lane(lane).filter(|it| it.blocked);
        lane.map_or(0, |it| u64::from(it.ready))
    }

    /// The ring that a lane is on, or would be.
    pub(super) fn ring_of(&self, lane: u32) -> Option<usize> {
        let it = self.at(lane);
        self.find_ring(it.priority, it.width).ok()
    }

    /// Where a ring is, or would be.
    fn find_ring(&self, priority: u8, width: u8) -> Result<usize, usize> {
        let place = |ring: &Ring| {
            let by_priority = priority.cmp(&ring.priority);
            by_priority.then(ring.width.cmp(&width))
        };
        self.rings.binary_search_by(place)
    }
}
