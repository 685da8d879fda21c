//! Leased messages and when their leases end.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use ahash::RandomState;
use hashbrown::HashMap;

use super::entries::{Entries, Place, Slot};
use crate::{MessageId, Millis};

/// Who holds a message and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) slot: Slot,
    /// The consumer's number; 0 = from before a restart.
    pub(crate) consumer: u64,
    /// When it began.
    pub(crate) since: Millis,
    /// When it ends; `Millis(u64::MAX)` = with its connection.
    pub(crate) expires_at: Millis,
    /// A message of a fast queue from before a restart, whose lease, if any, is not known: it is
    /// held back for the reclaim grace, then delivered without having failed.
    pub(crate) reclaim: bool,
}

/// A lease without a timeout.
pub(crate) const NEVER: Millis = Millis(u64::MAX);

/// All leases of a queue, by message id, and their ends.
///
/// Ends mostly come in order (one timeout per queue), so they are a FIFO; the others (extensions)
/// go to a heap. Entries of settled leases are skipped when they come up, and swept when they are
/// most of the FIFO.
#[derive(Debug)]
pub(crate) struct Leases {
    by_id: HashMap<MessageId, Lease, RandomState>,
    ends: VecDeque<(Millis, Slot)>,
    odd_ends: BinaryHeap<Reverse<(Millis, Slot)>>,
}

impl Leases {
    pub(crate) fn new(hasher: RandomState) -> Self {
        Self {
            by_id: HashMap::with_hasher(hasher),
            ends: VecDeque::new(),
            odd_ends: BinaryHeap::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn find(&self, id: MessageId) -> Option<Lease> {
        self.by_id.get(&id).copied()
    }

    /// Adds or replaces the lease of message `id`.
    pub(crate) fn insert(&mut self, id: MessageId, lease: Lease) {
        self.by_id.insert(id, lease);
        if lease.expires_at == NEVER {
            return;
        }
        let end = (lease.expires_at, lease.slot);
        if self.ends.back().is_none_or(|last| last.0 <= end.0) {
            self.ends.push_back(end);
        } else {
            self.odd_ends.push(Reverse(end));
        }
    }

    pub(crate) fn remove(&mut self, id: MessageId) -> Option<Lease> {
        self.by_id.remove(&id)
    }

    fn is_live(&self, entries: &Entries, end: (Millis, Slot)) -> bool {
        let (at, slot) = end;
        let Some(entry) = entries.live(slot) else {
            return false;
        };
        entry.place == Place::Leased
            && self
                .by_id
                .get(&entry.id)
                .is_some_and(|l| l.expires_at == at && l.slot == slot)
    }

    /// Drops ends of settled leases from the front; bounded work per settled lease.
    pub(crate) fn sweep(&mut self, entries: &Entries) {
        while let Some(end) = self.ends.front() {
            if self.is_live(entries, *end) {
                break;
            }
            self.ends.pop_front();
        }
        while let Some(Reverse(end)) = self.odd_ends.peek() {
            if self.is_live(entries, *end) {
                break;
            }
            self.odd_ends.pop();
        }
        let bound = 2 * self.by_id.len() + 1024;
        if self.ends.len() > bound {
            let ends = core::mem::take(&mut self.ends);
            self.ends = ends
                .into_iter()
                .filter(|end| self.is_live(entries, *end))
                .collect();
        }
        if self.odd_ends.len() > bound {
            let ends = core::mem::take(&mut self.odd_ends);
            self.odd_ends = ends
                .into_iter()
                .filter(|e| self.is_live(entries, e.0))
                .collect();
        }
        if self.by_id.is_empty() {
            self.give_back();
        }
    }

    /// A burst of leases gives its memory back once all are settled.
    fn give_back(&mut self) {
        const KEPT: usize = 4096;
        self.by_id.shrink_to(KEPT);
        self.ends.shrink_to(KEPT);
        self.odd_ends.shrink_to(KEPT);
    }

    /// When the next lease ends. Call after [`Leases::sweep`].
    pub(crate) fn next_end(&self) -> Option<Millis> {
        let odd = self.odd_ends.peek().map(|end| end.0.0);
        let even = self.ends.front().map(|end| end.0);
        match (odd, even) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// A message whose lease has ended; its lease is still there. Ends of settled leases are
    /// skipped.
    pub(crate) fn pop_ended(&mut self, entries: &Entries, now: Millis) -> Option<Slot> {
        loop {
            let next = self.next_end().filter(|at| *at <= now)?;
            let end = if self.ends.front().is_some_and(|end| end.0 == next) {
                self.ends.pop_front()
            } else {
                self.odd_ends.pop().map(|end| end.0)
            }?;
            if self.is_live(entries, end) {
                return Some(end.1);
            }
        }
    }

    /// Panics when a lease contradicts its message.
    pub(crate) fn assert_invariants(&self, entries: &Entries) {
        let mut leased = 0;
        for slot in entries.live_slots(0, entries.slots()) {
            let entry = entries.at(slot);
            let lease = self.find(entry.id).filter(|lease| lease.slot == slot);
            assert_eq!(
                lease.is_some(),
                entry.place == Place::Leased,
                "lease of {}",
                entry.id
            );
            let Some(lease) = lease else { continue };
            leased += 1;
            let end = (lease.expires_at, slot);
            let armed = end.0 == NEVER
                || self.ends.contains(&end)
                || self.odd_ends.iter().any(|e| e.0 == end);
            assert!(armed, "the lease of {} has no end", entry.id);
        }
        assert_eq!(leased, self.len(), "leases without a message");
    }
}
