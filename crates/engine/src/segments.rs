//! How many things still need each segment of the log.

use std::collections::VecDeque;

use crate::Lsn;

/// Counts, per segment, the messages stored there that are still in a queue and the deduplication
/// keys remembered from there.
#[derive(Debug)]
pub(crate) struct SegmentRefs {
    shift: u32,
    /// Segment number of the first count.
    base: u64,
    counts: VecDeque<u64>,
}

impl SegmentRefs {
    pub(crate) const fn new(shift: u32) -> Self {
        Self {
            shift,
            base: 0,
            counts: VecDeque::new(),
        }
    }

    pub(crate) fn add(&mut self, at: Lsn) {
        let segment = at.0 >> self.shift;
        if self.counts.is_empty() {
            self.base = segment;
        }
        while segment < self.base {
            self.base -= 1;
            self.counts.push_front(0);
        }
        let index = usize::try_from(segment - self.base).unwrap_or(usize::MAX);
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(index) {
            *count += 1;
        }
    }

    pub(crate) fn remove(&mut self, at: Lsn) {
        let index = (at.0 >> self.shift).checked_sub(self.base);
        let index = index.and_then(|index| usize::try_from(index).ok());
        let count = index.and_then(|index| self.counts.get_mut(index));
        assert!(
            count.as_ref().is_some_and(|count| **count > 0),
            "segment of {at:?} is not in use"
        );
        if let Some(count) = count {
            *count -= 1;
        }
        while self.counts.front() == Some(&0) {
            self.counts.pop_front();
            self.base += 1;
        }
    }

    /// The start of the oldest segment that is needed, or `end`'s when none is.
    pub(crate) fn floor(&self, end: Lsn) -> Lsn {
        let segment = if self.counts.is_empty() {
            end.0 >> self.shift
        } else {
            self.base
        };
        Lsn(segment << self.shift)
    }

    /// Everything that is counted.
    pub(crate) fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}
