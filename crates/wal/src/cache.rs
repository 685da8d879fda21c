//! What of the log is in memory: its own newest batches, and some that were read back.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};

use crate::format::BATCH_HEADER_BYTES;
use crate::lsn::in_memory;
use crate::tail::SealedBatch;

/// The log's own batches, from the oldest kept to the newest handed out for writing.
pub(crate) struct WriteCache {
    batches: VecDeque<SealedBatch>,
    bytes: usize,
    bytes_max: usize,
}

impl WriteCache {
    pub(crate) const fn new(bytes_max: usize) -> Self {
        Self {
            batches: VecDeque::new(),
            bytes: 0,
            bytes_max,
        }
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a batch, unless it is here already because its first flush found no space.
    pub(crate) fn push(&mut self, batch: &SealedBatch) {
        let is_newer = self
            .batches
            .back()
            .is_none_or(|newest| newest.position < batch.position);
        if is_newer {
            self.bytes += batch.bytes.len();
            self.batches.push_back(batch.clone());
        }
    }

    pub(crate) fn find(&self, at: u64, len: u32) -> Option<Found> {
        find_in(&self.batches, at, len)
    }

    /// Lets the oldest batches go until the rest fits, but none that is not durable.
    pub(crate) fn evict(&mut self, durable: u64) {
        while self.bytes > self.bytes_max {
            match self.batches.front() {
                Some(oldest) if oldest.end() <= durable => self.pop(),
                Some(_) | None => return,
            }
        }
    }

    /// Lets go of everything below `start`.
    pub(crate) fn drop_before(&mut self, start: u64) {
        while let Some(oldest) = self.batches.front()
            && oldest.end() <= start
        {
            self.pop();
        }
    }

    fn pop(&mut self) {
        if let Some(batch) = self.batches.pop_front() {
            self.bytes -= batch.bytes.len();
        }
    }
}

/// A batch in memory that holds the bytes that were asked for.
pub(crate) struct Found {
    /// Position of its first byte.
    pub(crate) position: u64,
    pub(crate) batch: Bytes,
}

impl Found {
    /// `batch` stands at `position`; `None` when it does not hold all of the bytes as records.
    fn new(position: u64, batch: &Bytes, at: u64, len: u32) -> Option<Self> {
        let from = usize::try_from(at.checked_sub(position)?).ok()?;
        let to = from.checked_add(len as usize)?;
        (from >= BATCH_HEADER_BYTES && to <= batch.len()).then(|| Self {
            position,
            batch: batch.clone(),
        })
    }

    /// The bytes that were asked for.
    pub(crate) fn into_range(self, at: u64, len: u32) -> Bytes {
        let mut bytes = self.batch;
        // Bounded by `new`, so neither of the two can exceed the batch.
        let from = in_memory(at - self.position).min(bytes.len());
        bytes.advance(from);
        bytes.truncate(len as usize);
        bytes
    }
}

/// The one of these batches (in order) that holds the bytes at `at`.
pub(crate) fn find_in(batches: &VecDeque<SealedBatch>, at: u64, len: u32) -> Option<Found> {
    let after = batches.partition_point(|batch| batch.position <= at);
    let batch = batches.get(after.checked_sub(1)?)?;
    Found::new(batch.position, &batch.bytes, at, len)
}

/// Verified batches read back in one go.
pub(crate) struct Run {
    pub(crate) position: u64,
    pub(crate) end: u64,
    /// Position and bytes of each batch, in order; never empty.
    pub(crate) batches: Vec<(u64, Bytes)>,
}

impl Run {
    pub(crate) fn find(&self, at: u64, len: u32) -> Option<Found> {
        let after = self
            .batches
            .partition_point(|(position, _)| *position <= at);
        let (position, batch) = self.batches.get(after.checked_sub(1)?)?;
        Found::new(*position, batch, at, len)
    }

    fn bytes(&self) -> usize {
        self.batches.iter().map(|(_, bytes)| bytes.len()).sum()
    }
}

/// The runs read back last, newest first.
pub(crate) struct ReadCache {
    runs: VecDeque<Run>,
    bytes: usize,
    bytes_max: usize,
}

impl ReadCache {
    pub(crate) const fn new(bytes_max: usize) -> Self {
        Self {
            runs: VecDeque::new(),
            bytes: 0,
            bytes_max,
        }
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The batch that holds the bytes at `at`; its run becomes the newest.
    pub(crate) fn find(&mut self, at: u64, len: u32) -> Option<Found> {
        let place = self
            .runs
            .iter()
            .position(|run| run.position <= at && at < run.end)?;
        if place > 0
            && let Some(run) = self.runs.remove(place)
        {
            self.runs.push_front(run);
        }
        self.runs.front()?.find(at, len)
    }

    /// Adds a run; older ones go, but the new one always stays.
    pub(crate) fn insert(&mut self, run: Run) {
        self.bytes += run.bytes();
        self.runs.push_front(run);
        while self.runs.len() > 1 && (self.bytes > self.bytes_max || self.runs.len() > RUNS_MAX) {
            if let Some(oldest) = self.runs.pop_back() {
                self.bytes -= oldest.bytes();
            }
        }
    }
}

/// Runs are found by a linear search.
const RUNS_MAX: usize = 64;
