//! Counts what is inside, up to a maximum, and what was turned away.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

/// A number of places.
#[derive(Debug)]
pub(crate) struct Tally {
    now: AtomicUsize,
    max: usize,
}

/// A taken place; free again when dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<Tally>);

impl Tally {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        let now = AtomicUsize::new(0);
        Arc::new(Self { now, max })
    }

    /// Takes a place; `None` when all are taken.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Place> {
        let place = |now: usize| (now < self.max).then_some(now + 1);
        let entered = self
            .now
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, place);
        entered.ok().map(|_before| Place(Arc::clone(self)))
    }

    pub(crate) fn now(&self) -> usize {
        self.now.load(Ordering::Relaxed)
    }

    pub(crate) const fn max(&self) -> usize {
        self.max
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Refused connections, told of at most once a second so that they cannot flood the log.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    told_at: Option<Instant>,
    untold: u64,
}

impl Refusals {
    /// Notes one. When it is time to tell: how many there were since the last time.
    pub(crate) fn note(&mut self, now: Instant) -> Option<u64> {
        self.untold += 1;
        let recent = |at: Instant| now.duration_since(at) < Duration::from_secs(1);
        if self.told_at.is_some_and(recent) {
            return None;
        }
        self.told_at = Some(now);
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_of_once_a_second() {
        let mut refusals = Refusals::default();
        let start = Instant::now();
        assert_eq!(refusals.note(start), Some(1));
        for ms in 0..1000 {
            assert_eq!(refusals.note(start + Duration::from_millis(ms)), None);
        }
        assert_eq!(refusals.note(start + Duration::from_secs(1)), Some(1001));
    }

    #[test]
    fn places_come_back() {
        let tally = Tally::new(2);
        let first = tally.enter().unwrap();
        let second = tally.enter().unwrap();
        assert!(tally.enter().is_none());
        drop(first);
        let third = tally.enter().unwrap();
        assert_eq!(tally.now(), 2);
        drop((second, third));
        assert_eq!(tally.now(), 0);
    }
}
