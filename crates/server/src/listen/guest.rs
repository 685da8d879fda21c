//! Who may be turned out for somebody else.
//!
//! A connection of which nothing is known yet, or that is between two requests, costs its peer
//! nothing; when a door is full, the one that has been like that for longest goes.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use crate::tally::Place;

/// The guest is at something.
const BUSY: u64 = 0;
/// The guest was turned out.
const OUT: u64 = u64::MAX;

/// Numbers in the order in which guests began to wait; never `BUSY`, in no lifetime `OUT`.
#[derive(Debug, Default)]
pub(super) struct Turnstile(Arc<AtomicU64>);

impl Turnstile {
    /// A new connection, which waits from now on.
    pub(super) fn guest(&self, place: Place) -> Arc<Guest> {
        let turns = Arc::clone(&self.0);
        Arc::new(Guest {
            since: AtomicU64::new(next(&turns)),
            turns,
            place: Mutex::new(Some(place)),
        })
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
    /// Free again when the connection has ended, or for who takes it over.
    place: Mutex<Option<Place>>,
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

    /// Gives its place among the connections of this door up: it has another, or goes.
    pub(crate) fn leave_place(&self) -> Option<Place> {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        place.take()
    }

    fn has_place(&self) -> bool {
        let place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        place.is_some()
    }

    /// `None` also for who has no place to be taken over.
    pub(super) fn waiting_since(&self) -> Option<u64> {
        if !self.has_place() {
            return None;
        }
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
        let Guest { turns, since, .. } = &*self.0;
        since.store(next(turns), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::Tally;

    fn guest(turnstile: &Turnstile) -> Arc<Guest> {
        turnstile.guest(Tally::new(1).enter().unwrap())
    }

    #[test]
    fn who_is_busy_is_not_turned_out_and_waits_anew_afterwards() {
        let turnstile = Turnstile::default();
        let first = guest(&turnstile);
        let second = guest(&turnstile);
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
        let guest = guest(&Turnstile::default());
        assert!(guest.turn_out(guest.waiting_since().unwrap()));
        assert!(guest.begin().is_none());
        assert_eq!(guest.waiting_since(), None);
    }

    #[test]
    fn who_has_no_place_is_not_turned_out_for_it() {
        let places = Tally::new(1);
        let guest = Turnstile::default().guest(places.enter().unwrap());
        assert_eq!(places.now(), 1);
        drop(guest.leave_place());
        assert_eq!(places.now(), 0);
        assert_eq!(guest.waiting_since(), None);
        assert!(guest.begin().is_some());
    }
}
