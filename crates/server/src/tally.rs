//! Counts what is inside, up to a maximum.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

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

#[cfg(test)]
mod tests {
    use super::*;

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
