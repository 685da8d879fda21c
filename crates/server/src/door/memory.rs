//! A bound on what all connections hold together.
//!
//! Counted is what peers can make the broker hold before anything is accepted, and what they leave
//! unread: read and not decoded, parts of unfinished requests, answers and deliveries not written.
//! Each connection has bounds of its own; this one holds when there are thousands of them.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use tokio::time::Instant;

use crate::tally::Refusals;

/// A connection that holds less is never ended for the sake of memory.
const SMALL_BYTES: usize = 64 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct Memory {
    bytes_max: usize,
    held: AtomicUsize,
    /// Connections that hold more than [`SMALL_BYTES`].
    large: AtomicUsize,
    ended: Mutex<Refusals>,
}

/// What one connection holds of it.
#[derive(Debug)]
pub(super) struct Share {
    memory: Arc<Memory>,
    held: usize,
}

impl Memory {
    pub(crate) fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self {
            bytes_max,
            held: AtomicUsize::new(0),
            large: AtomicUsize::new(0),
            ended: Mutex::default(),
        })
    }

    /// Half of what each of the large ones could have. When all together hold too much, at least
    /// one is above it; one that is below may go on, so that whoever fills the memory does not
    /// push others out.
    fn share_bytes(&self) -> usize {
        let large = self.large.load(Ordering::Relaxed).max(1);
        (self.bytes_max / 2 / large).max(SMALL_BYTES)
    }
}

impl Share {
    pub(super) const fn new(memory: Arc<Memory>) -> Self {
        Self { memory, held: 0 }
    }

    /// Notes what the connection holds now. False when all hold too much together and this one is
    /// among those that must give theirs up.
    pub(super) fn note(&mut self, held: usize) -> bool {
        let before = std::mem::replace(&mut self.held, held);
        let memory = &*self.memory;
        if held > before {
            memory.held.fetch_add(held - before, Ordering::Relaxed);
        } else if held < before {
            memory.held.fetch_sub(before - held, Ordering::Relaxed);
        }
        match (before > SMALL_BYTES, held > SMALL_BYTES) {
            (false, true) => memory.large.fetch_add(1, Ordering::Relaxed),
            (true, false) => memory.large.fetch_sub(1, Ordering::Relaxed),
            (true, true) | (false, false) => 0,
        };
        memory.held.load(Ordering::Relaxed) <= memory.bytes_max || held <= memory.share_bytes()
    }

    /// Tells the operator that connections are ended.
    pub(super) fn tell(&self) {
        let mut ended = self.memory.ended.lock();
        let ended = ended
            .as_mut()
            .unwrap_or_else(|poisoned| PoisonError::get_mut(poisoned));
        if let Some(ended) = ended.note(Instant::now()) {
            let bytes_max = self.memory.bytes_max;
            tracing::warn!(
                ended,
                bytes_max,
                "ended connections: all together hold more than limits.connections_memory"
            );
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.note(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn who_holds_most_gives_it_up_and_others_go_on() {
        let memory = Memory::new(10 * MIB);
        let mut shares: Vec<Share> = (0..3).map(|_| Share::new(Arc::clone(&memory))).collect();
        assert!(shares[0].note(9 * MIB));
        assert!(shares[1].note(MIB));
        // Over the limit, but this one holds less than its share, and small ones always may.
        assert!(shares[1].note(2 * MIB));
        assert!(shares[2].note(SMALL_BYTES));
        assert!(!shares[0].note(9 * MIB));
        assert!(shares[0].note(0));
        assert!(shares[1].note(9 * MIB));
        shares.clear();
        assert_eq!(memory.held.load(Ordering::Relaxed), 0);
        assert_eq!(memory.large.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn many_that_fill_it_together_are_all_above_their_share() {
        let memory = Memory::new(10 * MIB);
        let mut shares: Vec<Share> = (0..20).map(|_| Share::new(Arc::clone(&memory))).collect();
        let kept = shares
            .iter_mut()
            .filter_map(|share| share.note(MIB).then_some(()));
        // From the eleventh on: each holds a MiB, and half of ten MiB over eleven is less.
        assert_eq!(kept.count(), 10);
    }
}
