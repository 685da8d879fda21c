//! The rings that give each lane its turn, one per priority: circular lists through the lanes.

use super::entries::{Entries, NIL};
use super::lanes::Lanes;

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
        (it.head, it.tail) = (NIL, NIL);
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

    /// Panics when rings and lanes contradict each other.
    pub(crate) fn assert_invariants(&self, entries: &Entries) {
        let mut ready = 0;
        for ring in &self.rings {
            let mut lane = ring.current;
            for _ in 0..ring.lanes {
                let it = self.at(lane);
                assert!(
                    it.ready > 0,
                    "lane {lane} ({}) is on the ring without messages",
                    it.key
                );
                assert!(
                    it.held >= it.pending && it.pending >= it.ready,
                    "lane {lane} counts"
                );
                assert_eq!(self.at(it.next).prev, lane, "ring links of lane {lane}");
                self.assert_lane(entries, lane);
                ready += u64::from(it.ready);
                lane = it.next;
            }
            assert_eq!(
                lane, ring.current,
                "ring of priority {} is not closed",
                ring.priority
            );
        }
        assert_eq!(ready, self.ready, "ready messages");
        let active = self.iter().filter(|lane| lane.pending > 0).count() as u64;
        assert_eq!(active, self.active, "active lanes");
    }

    fn assert_lane(&self, entries: &Entries, lane: u32) {
        let it = self.at(lane);
        let mut count = it.returned.as_ref().map_or(0, |set| set.len());
        let (mut walk, mut last) = (it.head, None);
        while walk != NIL {
            let position = entries.at(walk).position;
            assert!(
                last.is_none_or(|last| last < position),
                "lane {lane} is out of order"
            );
            last = Some(position);
            count += 1;
            walk = entries.at(walk).next;
        }
        assert_eq!(count, it.ready as usize, "ready messages of lane {lane}");
    }
}
