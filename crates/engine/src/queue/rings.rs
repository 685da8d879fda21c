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

    pub(super) fn leave_ring(&mut self, ring: usize, lane: u32) {
        let it = self.at_mut(lane);
        it.deficit = 0;
        let (prev, next) = (it.prev, it.next);
        (it.prev, it.next) = (NIL, NIL);
        it.front = Fifo::EMPTY;
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
}
