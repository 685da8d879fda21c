//! Who may be turned out for somebody else.
//!
//! A connection of which nothing is known yet, or that is between two requests, costs its peer
//! nothing; when a door is full, the one that has been like that for longest goes.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// The guest is at something.
const BUSY: u64 = 0;
/// The guest was turned out.
const OUT: u64 = u64::MAX;

/// Numbers in the order in which guests began to wait; never `BUSY`, in no lifetime `OUT`.
#[derive(Debug, Default)]
pub(super) struct Turnstile(Arc<AtomicU64>);

impl Turnstile {
    /// A new connection, which waits from now on.
    pub(super) fn guest(&self) -> Arc<Guest> {
        let turns = Arc::clone(&self.0);
        let since = AtomicU64::new(next(&turns));
        Arc::new(Guest { turns, since })
    }
}

fn next(turns: &AtomicU64) -> u64 {
    turns.fetch_add(1, Ordering::Relaxed) + 1
}

/// Whether a connection waits for its peer, and since which turn.
#[derive(Debug)]
pub(crate) struct Guest {
    turns: Arc<AtomicU64>,
    /// `BUSY`, `OUT`, or the turn at which waiting began.
    since: AtomicU64,
}

/// While this lives the guest is not turned out.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Guest>);

impl Guest {
    /// The connection is worth its place from now on; `None` when it is about to end for another.
    pub(crate) fn begin(self: &Arc<Self>) -> Option<Busy> {
        let busy = |since: u64| (since != OUT).then_some(BUSY);
        self.since
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, busy)
            .ok()
            .map(|_before| Busy(Arc::clone(self)))
    }

    pub(super) fn waiting_since(&self) -> Option<u64> {
        let since = self.since.load(Ordering::Relaxed);
        (since != BUSY && since != OUT).then_some(since)
    }

    /// False when the guest has begun something since it was asked.
    pub(super) fn turn_out(&self, since: u64) -> bool {
        self.since
            .compare_exchange(since, OUT, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let Guest { turns, since } = &*self.0;
        since.store(next(turns), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_busy_is_not_turned_out_and_waits_anew_afterwards() {
        let turnstile = Turnstile::default();
        let first = turnstile.guest();
        let second = turnstile.guest();
        assert!(first.waiting_since() < second.waiting_since());
        let asked = first.waiting_since().unwrap();
        let busy = first.begin().unwrap();
        assert_eq!(first.waiting_since(), None);
        assert!(!first.turn_out(asked));
        drop(busy);
        assert!(first.waiting_since() > second.waiting_since());
    }

    #[test]
    fn who_was_turned_out_begins_nothing() {
        let guest = Turnstile::default().guest();
        assert!(guest.turn_out(guest.waiting_since().unwrap()));
        assert!(guest.begin().is_none());
        assert_eq!(guest.waiting_since(), None);
    }
}
