//! The rings that give each lane its turn, one per priority: circular lists through the lanes.

use super::entries::NIL;
use super::lanes::Lanes;
use super::long_lane::Fifo;

/// The lanes of one priority that have ready messages.
#[derive(Debug)]
pub(super) struct Ring {
    pub(super) priority: u8,
    /// Whose turn it is; `NIL` = empty.
    pub(super) current: u32,
    pub(super) lanes: u32,
}

impl Lanes {
    /// A new lane goes to the end of the round: it waits for one turn of each other at most.
    pub(super) fn join_ring(&mut self, lane: u32) {
        let priority = self.at(lane).priority;
        let index = match self
            .rings
            .binary_search_by(|ring| priority.cmp(&ring.priority))
        {
            Ok(index) => index,
            Err(index) => {
                self.rings.insert(
                    index,
                    Ring {
                        priority,
                        current: NIL,
                        lanes: 0,
                    },
                );
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
        let Some(ring) = self.rings.get_mut(ring) else {
            return;
        };
        ring.lanes -= 1;
        if ring.lanes == 0 {
            ring.current = NIL;
            return;
        }
        if ring.current == lane {
            ring.current = next;
        }
        self.at_mut(prev).next = next;
        self.at_mut(next).prev = prev;
    }

    /// The lane whose turn it is.
    pub(crate) fn turn_lane(&self) -> Option<u32> {
        self.turn().map(|(_, lane)| lane)
    }

    /// The lane has no turns until it is unblocked; its messages stay.
    pub(crate) fn block(&mut self, lane: u32) {
        let it = self.at(lane);
        let (on_ring, priority, ready) = (it.is_on_ring(), it.priority, it.ready);
        if it.blocked {
            return;
        }
        if on_ring && let Some(ring) = self.ring_of(priority) {
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

    /// The ring of a priority.
    pub(super) fn ring_of(&self, priority: u8) -> Option<usize> {
        self.rings.iter().position(|ring| ring.priority == priority)
    }
}
