//! What must hold of rings and lanes at any time. For tests and the simulator.

use super::entries::{Entries, NIL, Slot};
use super::lanes::{Lane, Lanes};

impl Lanes {
    /// Panics when rings and lanes contradict each other.
    pub(crate) fn assert_invariants(&self, entries: &Entries) {
        let mut on_rings = 0;
        for ring in &self.rings {
            let mut lane = ring.current;
            for _ in 0..ring.lanes {
                let it = self.at(lane);
                let of = (ring.priority, ring.width);
                assert_eq!((it.priority, it.width), of, "ring of lane {lane}");
                assert_eq!(self.at(it.next).prev, lane, "ring links of lane {lane}");
                on_rings += 1;
                lane = it.next;
            }
            let priority = ring.priority;
            assert_eq!(lane, ring.current, "ring of priority {priority} is open");
        }
        assert_eq!(on_rings, self.on_rings, "lanes on rings");
        let (mut ready, mut paged) = (0, 0);
        for (lane, it) in (0..).zip(self.lanes.iter()) {
            it.assert_counts(lane);
            it.assert_order(entries, lane);
            ready += u64::from(it.ready);
            let behind = it.behind.as_ref();
            paged += behind.map_or(0, |behind| u64::from(behind.paged));
        }
        assert_eq!(ready, self.ready, "ready messages");
        let blocked = self.blocked().map(|(_, ready)| u64::from(ready));
        assert_eq!(blocked.sum::<u64>(), self.blocked_ready, "blocked messages");
        assert_eq!(paged, self.paged, "messages in pages");
        let active = self.iter().filter(|lane| lane.pending > 0).count() as u64;
        assert_eq!(active, self.active, "active lanes");
        for (width, messages) in self.widths.iter() {
            let lanes = self.lanes.iter().filter(|it| it.width == width);
            let held = lanes.map(|it| u64::from(it.held)).sum::<u64>();
            assert_eq!(held, messages, "messages of width {width}");
        }
        for lane in self.iter().filter(|it| it.width != 0) {
            assert!(lane.behind.is_none(), "a lane of unfit messages is long");
            let of_width = self.widths.iter().find(|it| it.0 == lane.width);
            assert!(of_width.is_some(), "a lane of a width that is gone");
        }
        self.assert_notes(entries);
    }
}

impl Lane {
    fn assert_counts(&self, lane: u32) {
        let stalled = self.behind.as_ref().is_some_and(|behind| behind.stalled);
        let key = &self.key;
        assert_eq!(
            self.is_on_ring(),
            self.ready > 0 && !stalled && !self.blocked,
            "lane {lane} ({key}) on a ring with {} messages",
            self.ready
        );
        let counts = (self.held, self.pending, self.ready);
        assert!(
            self.held >= self.pending && self.pending >= self.ready,
            "lane {lane} counts {counts:?}"
        );
    }

    /// Front, pages and back follow each other; the others are counted.
    fn assert_order(&self, entries: &Entries, lane: u32) {
        let mut last = None;
        let mut follow = |first: u64, end: u64| {
            let ordered = last.is_none_or(|last| last < first) && first <= end;
            assert!(ordered, "lane {lane} is out of order at {first}");
            last = Some(end);
        };
        let positions = |head: Slot| {
            let next = |slot: &Slot| Some(entries.at(*slot).next).filter(|next| *next != NIL);
            let slots = core::iter::successors((head != NIL).then_some(head), next);
            slots.map(|slot| entries.at(slot).position)
        };
        let mut count = 0;
        for position in positions(self.front.head) {
            follow(position, position);
            count += 1;
        }
        if let Some(behind) = &self.behind {
            let there = behind.paged > 0 || (self.front.head != NIL && behind.back_len > 0);
            assert!(there, "lane {lane} is long without reason");
            let paged = behind.pages.iter().map(|page| page.count).sum::<u32>();
            assert_eq!(paged, behind.paged, "pages of lane {lane}");
            for page in &behind.pages {
                follow(page.first, page.last);
            }
            let mut back = 0;
            for position in positions(behind.back.head) {
                follow(position, position);
                back += 1;
            }
            assert_eq!(back, behind.back_len, "back of lane {lane}");
            count += back + paged;
        }
        let returned = self.returned.as_ref().map_or(0, |set| set.len());
        assert_eq!(
            count as usize + returned,
            self.ready as usize,
            "ready messages of lane {lane}"
        );
    }
}
