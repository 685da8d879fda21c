//! Reading old parts of the log from another thread, while the log goes on.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{Log, search};
use crate::cache::ReadCache;
use crate::disk::Disk;
use crate::error::ReadError;
use crate::format::Seed;
use crate::lsn::Lsn;
use crate::segments::Segment;

/// Memory for what was read last.
const CACHE_BYTES: usize = 8 << 20;

/// The segments that the log had when this was made. Make it when what is to be read is on disk,
/// and
/// free none of its segments meanwhile: what was freed may be written over, and is then refused as
/// damaged.
pub struct LogReader<D: Disk> {
    /// By the position of their first byte.
    segments: BTreeMap<u64, Segment<D::File>>,
    log_id: u128,
    read_ahead_bytes: usize,
    cache: ReadCache,
}

impl<D: Disk> Log<D> {
    /// What reads the present segments, on any thread.
    #[must_use]
    pub fn reader(&self) -> LogReader<D> {
        // Without the tables of batches, which go on growing: batches are looked for.
        let segments = self.segments.iter().map(|segment| {
            let slot = segment.slot.clone();
            let copy = Segment::unread(self.geometry, segment.window, segment.epoch, slot);
            (copy.base, copy)
        });
        LogReader {
            segments: segments.collect(),
            log_id: self.config.log_id,
            read_ahead_bytes: self.config.read_ahead_bytes,
            cache: ReadCache::new(CACHE_BYTES),
        }
    }
}

impl<D: Disk> LogReader<D> {
    /// `len` bytes at `at`, all inside one record that was durable when this was made. Blocks on
    /// the
    /// disk.
    ///
    /// # Errors
    /// See [`ReadError`]; `Reclaimed` when the log did not have the segment.
    pub fn read(&mut self, at: Lsn, len: u32) -> Result<Bytes, ReadError> {
        if let Some(found) = self.cache.find(at.0, len) {
            return Ok(found.into_range(at.0, len));
        }
        let before = self.segments.range(..=at.0).next_back();
        let segment = before.map(|(_, segment)| segment);
        let Some(segment) = segment.filter(|segment| at.0 < segment.end) else {
            let oldest = Lsn(self.segments.keys().next().copied().unwrap_or(0));
            return Err(ReadError::Reclaimed { at, oldest });
        };
        let seed = Seed::new(self.log_id, segment.epoch);
        let run = search::read_run(segment, seed, (at.0, len), self.read_ahead_bytes)?;
        let found = run.find(at.0, len);
        self.cache.insert(run);
        let found = found.ok_or(ReadError::OutOfRange { at, len })?;
        Ok(found.into_range(at.0, len))
    }
}
