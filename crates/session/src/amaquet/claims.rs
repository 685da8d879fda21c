//! What all connections of the door use together: counted here, and given back when the claim is
//! dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters over all connections of the door.
#[derive(Debug, Default)]
pub struct AmaquetShared {
    active: AtomicU64,
    payload_bytes: AtomicU64,
}

impl AmaquetShared {
    /// Commands that are not answered.
    #[must_use]
    pub fn active(&self) -> u64 {
        self.active.load(Ordering::Relaxed)
    }

    /// Bytes of payloads that are declared, or in commands that are not answered.
    #[must_use]
    pub fn payload_bytes(&self) -> u64 {
        self.payload_bytes.load(Ordering::Relaxed)
    }

    /// Counts a command; `None` when there are `max` of them.
    pub(super) fn begin(self: &Arc<Self>, max: usize) -> Option<Claim> {
        Claim::new(self, |shared| &shared.active, 1, max as u64)
    }

    /// Counts a payload; `None` when all would be more than `max` bytes.
    pub(super) fn reserve(self: &Arc<Self>, bytes: u32, max: u64) -> Option<Claim> {
        Claim::new(self, |shared| &shared.payload_bytes, bytes.into(), max)
    }
}

/// Something that is counted until this is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    shared: Arc<AmaquetShared>,
    counter: fn(&AmaquetShared) -> &AtomicU64,
    amount: u64,
}

impl Claim {
    fn new(
        shared: &Arc<AmaquetShared>,
        counter: fn(&AmaquetShared) -> &AtomicU64,
        amount: u64,
        max: u64,
    ) -> Option<Self> {
        let add = |used: u64| used.checked_add(amount).filter(|sum| *sum <= max);
        let updated = counter(shared).fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        updated.ok().map(|_| Self {
            shared: Arc::clone(shared),
            counter,
            amount,
        })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        (self.counter)(&self.shared).fetch_sub(self.amount, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_claimed_is_given_back() {
        let shared = Arc::new(AmaquetShared::default());
        let first = shared.begin(2);
        let second = shared.begin(2);
        assert!(first.is_some() && second.is_some());
        assert!(shared.begin(2).is_none());
        drop(first);
        assert_eq!(shared.active(), 1);
        assert!(shared.begin(2).is_some());

        let payload = shared.reserve(10, 12);
        assert!(payload.is_some());
        assert!(shared.reserve(3, 12).is_none());
        assert!(shared.reserve(u32::MAX, u64::MAX).is_some());
        assert_eq!(shared.payload_bytes(), 10);
    }
}
