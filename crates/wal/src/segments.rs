//! The table of segments that are on disk, and where their batches start.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::format::BLOCK_BYTES;
use crate::lsn::{Geometry, Lsn, in_memory};
use crate::slots::Slot;
use crate::tail::Window;

/// A segment on disk.
pub(crate) struct Segment<F> {
    pub(crate) window: Window,
    pub(crate) base: u64,
    /// Epoch of its batches.
    pub(crate) epoch: u64,
    /// Position after its last durable batch; after its last window where that is not known.
    pub(crate) end: u64,
    pub(crate) slot: Slot<F>,
    /// Block numbers of its batches, ascending: 4 bytes a batch, at most 0.1 % of the disk. `None`
    /// for a segment that was not read when the log was opened: a batch of it has to be looked for.
    batches: Option<Vec<u32>>,
}

impl<F> Segment<F> {
    pub(crate) fn new(geometry: Geometry, window: Window, epoch: u64, slot: Slot<F>) -> Self {
        Self {
            window,
            base: geometry.base(window.index),
            epoch,
            end: geometry.first_batch(window.index),
            slot,
            batches: Some(Vec::new()),
        }
    }

    /// A segment whose batches are not known.
    pub(crate) fn unread(geometry: Geometry, window: Window, epoch: u64, slot: Slot<F>) -> Self {
        let base = geometry.base(window.index);
        Self {
            window,
            base,
            epoch,
            end: base + u64::from(window.span) * geometry.segment_bytes(),
            slot,
            batches: None,
        }
    }

    /// Whether its batches have to be looked for.
    pub(crate) const fn is_unread(&self) -> bool {
        self.batches.is_none()
    }

    /// Whether `window` is one of its windows.
    pub(crate) fn covers(&self, window: u64) -> bool {
        self.windows().contains(&window)
    }

    /// The numbers of its windows.
    pub(crate) fn windows(&self) -> std::ops::Range<u64> {
        self.window.numbers()
    }

    /// Notes that the batch from `position` to `end` is on disk.
    pub(crate) fn push_batch(&mut self, position: u64, end: u64) {
        let block = (position - self.base) / BLOCK_BYTES;
        if let Some(batches) = &mut self.batches {
            batches.push(u32::try_from(block).unwrap_or(u32::MAX));
        }
        self.end = end;
    }

    /// Bounds of a run of whole batches: from the one that holds `at` on, at least `run_bytes`
    /// if there are that many.
    pub(crate) fn run_at(&self, at: u64, run_bytes: usize) -> Option<(u64, u64)> {
        if at < self.base || at >= self.end {
            return None;
        }
        let block = u32::try_from((at - self.base) / BLOCK_BYTES).ok()?;
        let batches = self.batches.as_ref()?;
        let after = batches.partition_point(|first| *first <= block);
        let first = batches.get(after.checked_sub(1)?)?;
        let position = self.position_of(*first);
        let mut end = self.end;
        for next in batches.get(after..)? {
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

/// All segments that hold needed data.
pub(crate) struct Segments<F> {
    /// The log's own, oldest first: those that are replayed, and before them those that are only
    /// kept because of what lies in them.
    list: VecDeque<Segment<F>>,
    /// Cold ones, by index.
    cold: BTreeMap<u64, Segment<F>>,
    shift: u32,
}

impl<F> Segments<F> {
    pub(crate) const fn new(geometry: Geometry) -> Self {
        Self {
            list: VecDeque::new(),
            cold: BTreeMap::new(),
            shift: geometry.shift(),
        }
    }

    pub(crate) fn insert_cold(&mut self, segment: Segment<F>) {
        self.cold.insert(segment.window.index.0, segment);
    }

    pub(crate) fn cold_mut(&mut self, index: u64) -> Option<&mut Segment<F>> {
        self.cold.get_mut(&index)
    }

    /// All of them, cold ones last.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Segment<F>> {
        self.list.iter().chain(self.cold.values())
    }

    /// The segment that `window` is one of.
    pub(crate) fn covering(&self, window: u64) -> Option<&Segment<F>> {
        let cold = self.cold.range(..=window).next_back();
        if let Some((_, segment)) = cold.filter(|(_, segment)| segment.covers(window)) {
            return Some(segment);
        }
        let after = self
            .list
            .partition_point(|segment| segment.window.index.0 <= window);
        self.list
            .get(after.checked_sub(1)?)
            .filter(|segment| segment.covers(window))
    }

    pub(crate) fn push(&mut self, segment: Segment<F>) {
        self.list.push_back(segment);
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len() + self.cold.len()
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        self.iter().map(|segment| segment.slot.bytes).sum()
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
        if Lsn(at).is_cold() {
            let (_, segment) = self.cold.range(..=at >> self.shift).next_back()?;
            return (segment.base <= at && at < segment.end).then_some(segment);
        }
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

    /// Takes out those segments before `start` that are `free`, and returns their files.
    pub(crate) fn remove_before(
        &mut self,
        start: u64,
        mut free: impl FnMut(&Segment<F>) -> bool,
    ) -> Vec<Slot<F>> {
        let count = self.list.partition_point(|segment| segment.base < start);
        // The log is still writing to the newest.
        let count = count.min(self.list.len().saturating_sub(1));
        let after = self.list.split_off(count);
        let mut freed = Vec::new();
        for segment in std::mem::replace(&mut self.list, VecDeque::with_capacity(after.len())) {
            if free(&segment) {
                freed.push(segment.slot);
            } else {
                self.list.push_back(segment);
            }
        }
        self.list.extend(after);
        freed
    }

    /// Takes out those cold segments that are `free`, and returns their files.
    pub(crate) fn remove_cold(
        &mut self,
        mut free: impl FnMut(&Segment<F>) -> bool,
    ) -> Vec<Slot<F>> {
        let freed = self.cold.extract_if(.., |_, segment| free(segment));
        freed.map(|(_, segment)| segment.slot).collect()
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
