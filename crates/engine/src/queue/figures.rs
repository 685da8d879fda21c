//! What a queue counts, when it has something to do, and what must always hold of it.

use super::Queue;
use super::entries::Place;
use super::turns::Turn;
use crate::{MessageId, Millis, QueueCounts};

impl Queue {
    /// When something here happens by itself.
    pub(crate) fn next_deadline(&self) -> Option<Millis> {
        let due = self.delayed.first().map(|(due, _)| *due);
        let lease = self.leases.next_end();
        let dedup = self.dedup.next_end(self.config.dedup_window_ms);
        let page = self.stalled.front().map(|(at, _)| *at);
        let parked = self.parking.next_deadline();
        let held = self.throttled.held.front().map(|(at, _)| *at);
        let expiry = self.expiry.next();
        let departures = self.departures.next_deadline();
        let unused = self.unused_until();
        let waits = [due, lease, dedup, page, parked, held];
        let ends = [expiry, departures, unused];
        waits.into_iter().chain(ends).flatten().min()
    }

    /// Waiting messages have something to be delivered and somebody to take it.
    pub(crate) fn can_deliver(&self) -> bool {
        let open = self.throttled.closed == 0 && self.returning == 0;
        open && self.next_turn().is_some()
    }

    /// The consumer whose turn it is, of those that can take one of the ready messages.
    pub(crate) fn next_turn(&self) -> Option<Turn> {
        self.turns.front(|limit| self.lanes.has_turn(limit))
    }

    /// Messages that are neither leased nor on their way elsewhere.
    pub(crate) fn depth(&self) -> u64 {
        self.messages() - self.in_flight() - self.departures.len() as u64
    }

    /// Messages that are leased, or whose failure is decided on.
    pub(crate) fn in_flight(&self) -> u64 {
        (self.leases.len() + self.deciding.len()) as u64
    }

    /// Messages in memory and in pages.
    pub(crate) fn messages(&self) -> u64 {
        u64::from(self.entries.len()) + self.lanes.paged()
    }

    pub(crate) fn counts(&self) -> QueueCounts {
        QueueCounts {
            depth: self.depth(),
            in_flight: self.in_flight(),
            delayed: self.delayed.len() as u64,
            behind: self.groups.waiting(),
            throttled: self.throttled(),
            ready: self.lanes.ready() + self.throttled.in_lines - self.throttled(),
            active_fairness_keys: self.lanes.active(),
            active_consumers: u32::try_from(self.consumers.len()).unwrap_or(u32::MAX),
            bytes: self.bytes,
            remembered_keys: self.dedup.len() as u64,
            unclassified: self.parking.unclassified() as u64,
            oldest_unclassified_at: self.parking.oldest().map(MessageId::enqueued_at),
            stopped: self.parking.stopped() as u64,
            late_duplicates: self.late_duplicates,
            expired: self.expired,
            departing: self.departures.len() as u64,
            dead_lettered: self.dead_lettered,
        }
    }

    /// Messages that wait for room in a bucket, in lanes or by themselves.
    const fn throttled(&self) -> u64 {
        let in_lanes = if self.throttled.closed > 0 {
            self.lanes.ready()
        } else {
            self.lanes.blocked_ready()
        };
        in_lanes + self.throttled.in_lines
    }

    /// Forgets what is left of leases that are settled.
    pub(crate) fn sweep(&mut self) {
        self.leases.sweep(&self.entries);
        self.look_at_oldest();
    }

    /// Panics when the queue's structures contradict each other.
    pub(crate) fn assert_invariants(&self) {
        self.lanes.assert_invariants(&self.entries);
        self.groups.assert_invariants(&self.entries);
        self.leases.assert_invariants(&self.entries);
        self.dedup.assert_invariants();
        self.assert_parking();
        self.assert_throttled();
        self.assert_expiry();
        let parked = self.parking.unclassified() + self.parking.stopped();
        let pending = self.lanes.ready()
            + self.delayed.len() as u64
            + self.groups.waiting()
            + parked as u64
            + self.throttled.in_lines
            + u64::from(self.aside);
        assert_eq!(
            pending,
            self.depth(),
            "{}: a message is in no place or two",
            self.identity.name
        );
        let slots = self.entries.live_slots(0, self.entries.slots());
        let departing = slots.filter(|slot| self.entries.at(*slot).place == Place::Departing);
        assert_eq!(departing.count(), self.departures.len(), "departing");
        let mut bytes = 0;
        for slot in self.entries.live_slots(0, self.entries.slots()) {
            let entry = self.entries.at(slot);
            assert!(entry.place != Place::New, "{} has no place", entry.id);
            assert!(
                entry.position < self.next_position,
                "{} is from the future",
                entry.id
            );
            bytes += u64::from(entry.len);
        }
        let pages = self.lanes.with_pages().flat_map(|(_, pages)| pages);
        bytes += pages.map(|page| page.bytes).sum::<u64>();
        assert_eq!(bytes, self.bytes, "{}: content bytes", self.identity.name);
    }
}
