//! Leased messages and when their leases end.

use std::collections::BTreeSet;

use ahash::RandomState;

use super::entries::{Entries, Place, Slot};
use crate::steady::{Line, SteadyMap};
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

/// Chunks of the line that one step sweeps: more than one step settles.
const SWEEP_CHUNKS: usize = 4;

/// A lease without a timeout.
pub(crate) const NEVER: Millis = Millis(u64::MAX);

/// All leases of a queue, by message id, and their ends.
///
/// Ends mostly come in order (one timeout per queue), so they are a line; the others (extensions)
/// go to a set. Entries of settled leases are skipped in the line when they come up, and swept, a
/// bit at a time, while they are most of it.
#[derive(Debug)]
pub(crate) struct Leases {
    by_id: SteadyMap<MessageId, Lease>,
    ends: Line<(Millis, Slot)>,
    odd_ends: BTreeSet<(Millis, Slot)>,
}

impl Leases {
    pub(crate) fn new(hasher: RandomState) -> Self {
        Self {
            by_id: SteadyMap::new(hasher),
            ends: Line::new(),
            odd_ends: BTreeSet::new(),
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
        if let Some(before) = self.by_id.insert(id, lease) {
            self.forget_odd(&before);
        }
        if lease.expires_at == NEVER {
            return;
        }
        let end = (lease.expires_at, lease.slot);
        if self.ends.back().is_none_or(|last| last.0 <= end.0) {
            self.ends.push_back(end);
        } else {
            self.odd_ends.insert(end);
        }
    }

    pub(crate) fn remove(&mut self, id: MessageId) -> Option<Lease> {
        let gone = self.by_id.remove(&id)?;
        self.forget_odd(&gone);
        Some(gone)
    }

    fn forget_odd(&mut self, lease: &Lease) {
        if !self.odd_ends.is_empty() {
            self.odd_ends.remove(&(lease.expires_at, lease.slot));
        }
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

    /// Drops ends of settled leases from the front, and some of those behind it while they are most
    /// of the line.
    pub(crate) fn sweep(&mut self, entries: &Entries) {
        while let Some(end) = self.ends.front() {
            if self.is_live(entries, *end) {
                break;
            }
            self.ends.pop_front();
        }
        if self.ends.len() > 2 * self.by_id.len() + 1024 {
            let mut ends = core::mem::take(&mut self.ends);
            for _ in 0..SWEEP_CHUNKS {
                ends.sweep_some(|end| self.is_live(entries, *end));
            }
            self.ends = ends;
        }
    }

    /// When the next lease ends. Call after [`Leases::sweep`].
    pub(crate) fn next_end(&self) -> Option<Millis> {
        let odd = self.odd_ends.first().map(|end| end.0);
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
                self.odd_ends.pop_first()
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
                || self.ends.iter().any(|it| *it == end)
                || self.odd_ends.contains(&end);
            assert!(armed, "the lease of {} has no end", entry.id);
        }
        assert_eq!(leased, self.len(), "leases without a message");
    }
}
