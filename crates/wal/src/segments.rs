//! The table of segments that are on disk, and where their batches start.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::format::BLOCK_BYTES;
use crate::lsn::{Geometry, in_memory};
use crate::slots::Slot;
use crate::tail::Window;

/// A segment on disk.
pub(crate) struct Segment<F> {
    pub(crate) window: Window,
    pub(crate) base: u64,
    /// Epoch of its batches.
    pub(crate) epoch: u64,
    /// Position after its last durable batch.
    pub(crate) end: u64,
    pub(crate) slot: Slot<F>,
    /// Block numbers of its batches, ascending: 4 bytes a batch, at most 0.1 % of the disk.
    batches: Vec<u32>,
}

impl<F> Segment<F> {
    pub(crate) fn new(geometry: Geometry, window: Window, epoch: u64, slot: Slot<F>) -> Self {
        Self {
            window,
            base: geometry.base(window.index),
            epoch,
            end: geometry.first_batch(window.index),
            slot,
            batches: Vec::new(),
        }
    }

    /// Notes that the batch from `position` to `end` is on disk.
    pub(crate) fn push_batch(&mut self, position: u64, end: u64) {
        let block = (position - self.base) / BLOCK_BYTES;
        self.batches.push(u32::try_from(block).unwrap_or(u32::MAX));
        self.end = end;
    }

    /// Bounds of a run of whole batches: from the one that holds `at` on, at least `run_bytes`
    /// if there are that many.
    pub(crate) fn run_at(&self, at: u64, run_bytes: usize) -> Option<(u64, u64)> {
        if at < self.base || at >= self.end {
            return None;
        }
        let block = u32::try_from((at - self.base) / BLOCK_BYTES).ok()?;
        let after = self.batches.partition_point(|first| *first <= block);
        let first = self.batches.get(after.checked_sub(1)?)?;
        let position = self.position_of(*first);
        let mut end = self.end;
        for next in self.batches.get(after..)? {
            let next = self.position_of(*next);
            if next > at && in_memory(next - position) >= run_bytes {
                end = next;
                break;
            }
        }
        Some((position, end))
    }

    fn position_of(&self, block: u32) -> u64 {
        self.base + u64::from(block) * BLOCK_BYTES
    }
}

/// All segments that hold needed data, oldest first.
pub(crate) struct Segments<F> {
    list: VecDeque<Segment<F>>,
}

impl<F> Segments<F> {
    pub(crate) const fn new() -> Self {
        Self {
            list: VecDeque::new(),
        }
    }

    pub(crate) fn push(&mut self, segment: Segment<F>) {
        self.list.push_back(segment);
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        self.list.iter().map(|segment| segment.slot.bytes).sum()
    }

    pub(crate) fn last_mut(&mut self) -> Option<&mut Segment<F>> {
        self.list.back_mut()
    }

    /// Base of the oldest segment.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.list.front().map(|segment| segment.base)
    }

    /// The segment whose data covers `at`.
    pub(crate) fn find(&self, at: u64) -> Option<&Segment<F>> {
        let after = self.list.partition_point(|segment| segment.base <= at);
        self.list
            .get(after.checked_sub(1)?)
            .filter(|segment| at < segment.end)
    }

    /// Base of the newest segment such that nothing at or above `needed` lies before it. The
    /// newest segment of all is never passed: the log is still writing to it.
    pub(crate) fn start_for(&self, needed: u64) -> u64 {
        let mut start = 0;
        for (segment, next) in self.list.iter().zip(self.list.iter().skip(1)) {
            start = segment.base.max(start);
            if segment.end > needed {
                return start;
            }
            start = next.base;
        }
        start
    }

    /// Takes out all segments before `start` and returns their files.
    pub(crate) fn remove_before(&mut self, start: u64) -> Vec<Slot<F>> {
        let count = self.list.partition_point(|segment| segment.base < start);
        let count = count.min(self.list.len().saturating_sub(1));
        self.list
            .drain(..count)
            .map(|segment| segment.slot)
            .collect()
    }
}

impl<F> Clone for Slot<F> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            file: Arc::clone(&self.file),
            bytes: self.bytes,
        }
    }
}
