//! The settings of one log.

use crate::format::BLOCK_BYTES;
use crate::lsn::in_memory;

/// The largest record: 256 MiB of body and 1 KiB for what the caller puts around it.
pub const RECORD_BYTES_MAX: usize = (256 << 20) + 1024;

/// Settings of one log; `Config::new` gives the defaults.
#[derive(Clone, Debug)]
pub struct Config {
    /// Random identity of this log, drawn once by the caller and kept with the data directory.
    /// Files of another log are refused.
    pub log_id: u128,
    /// The shard this log belongs to; checked like `log_id`.
    pub shard: u32,
    /// Size of a segment window and file: a power of two, 16 KiB to 1 GiB. Fixed for the life of
    /// a log, because positions are cut into windows of this size.
    pub segment_bytes: u64,
    /// Size of a write buffer and so the largest batch of small records: a multiple of 4096, at
    /// most `segment_bytes`.
    pub chunk_bytes: usize,
    /// How much of the newest written data stays in memory for reads.
    pub cache_bytes: usize,
    /// How much read-back data stays in memory (at least one batch always does).
    pub read_cache_bytes: usize,
    /// How far a read-back reads ahead over small batches.
    pub read_ahead_bytes: usize,
    /// Preallocated segments kept back so that acks and reclaim go on when the disk is full.
    pub reserve_segments: usize,
    /// Free segment files kept for reuse; more are removed. At least `reserve_segments + 1`.
    pub spare_segments_max: usize,
    /// A new file that would leave less than this free on the disk counts as "disk full".
    pub keep_free_bytes: u64,
}

impl Config {
    /// The defaults for a log of this identity: 64 MiB segments, 1 MiB chunks, 64 MiB of cache.
    #[must_use]
    pub const fn new(log_id: u128, shard: u32) -> Self {
        Self {
            log_id,
            shard,
            segment_bytes: 64 << 20,
            chunk_bytes: 1 << 20,
            cache_bytes: 64 << 20,
            read_cache_bytes: 8 << 20,
            read_ahead_bytes: 256 << 10,
            reserve_segments: 1,
            spare_segments_max: 4,
            keep_free_bytes: 0,
        }
    }

    /// The smallest sensible settings, for tests and the simulator: 64 KiB segments.
    #[must_use]
    pub const fn small(log_id: u128, shard: u32) -> Self {
        Self {
            segment_bytes: 64 << 10,
            chunk_bytes: 16 << 10,
            cache_bytes: 64 << 10,
            read_cache_bytes: 32 << 10,
            read_ahead_bytes: 16 << 10,
            ..Self::new(log_id, shard)
        }
    }

    /// Checks the relations between the settings.
    ///
    /// # Errors
    /// The first rule that does not hold.
    pub const fn validate(&self) -> Result<(), ConfigError> {
        if !self.segment_bytes.is_power_of_two()
            || self.segment_bytes < SEGMENT_BYTES_MIN
            || self.segment_bytes > SEGMENT_BYTES_MAX
        {
            return Err(ConfigError::SegmentBytes(self.segment_bytes));
        }
        if self.chunk_bytes == 0
            || !self.chunk_bytes.is_multiple_of(in_memory(BLOCK_BYTES))
            || self.chunk_bytes as u64 > self.segment_bytes
        {
            return Err(ConfigError::ChunkBytes(self.chunk_bytes));
        }
        if self.spare_segments_max <= self.reserve_segments {
            return Err(ConfigError::SpareSegments {
                spare_segments_max: self.spare_segments_max,
                reserve_segments: self.reserve_segments,
            });
        }
        Ok(())
    }
}

/// A setting out of its range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigError {
    /// `segment_bytes` is not a power of two from 16 KiB to 1 GiB.
    SegmentBytes(u64),
    /// `chunk_bytes` is not a multiple of 4096 between 4096 and `segment_bytes`.
    ChunkBytes(usize),
    /// `spare_segments_max` must exceed `reserve_segments`.
    SpareSegments {
        /// The configured maximum.
        spare_segments_max: usize,
        /// The configured reserve.
        reserve_segments: usize,
    },
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::SegmentBytes(bytes) => write!(
                f,
                "segment_bytes is {bytes}; use a power of two from {SEGMENT_BYTES_MIN} to \
                 {SEGMENT_BYTES_MAX}"
            ),
            Self::ChunkBytes(bytes) => write!(
                f,
                "chunk_bytes is {bytes}; use a multiple of {BLOCK_BYTES}, at most segment_bytes"
            ),
            Self::SpareSegments {
                spare_segments_max,
                reserve_segments,
            } => write!(
                f,
                "spare_segments_max is {spare_segments_max}; it must be more than \
                 reserve_segments, which is {reserve_segments}"
            ),
        }
    }
}

impl std::error::Error for ConfigError {}

const SEGMENT_BYTES_MIN: u64 = 16 << 10;
/// Offsets of batches inside a segment are kept as 32-bit block numbers, and a whole batch must
/// fit in memory.
const SEGMENT_BYTES_MAX: u64 = 1 << 30;
