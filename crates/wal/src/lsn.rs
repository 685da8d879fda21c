//! Log positions and how they map to segments.

use std::fmt;

use crate::format::BLOCK_BYTES;

/// A logical position in the log, in bytes.
///
/// Positions only grow, also across restarts; the position of a record is that of its first
/// payload byte. `Lsn(0)` is before every record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Lsn(pub u64);

impl Lsn {
    /// Whether it lies in a cold segment: a copy that is never replayed.
    #[must_use]
    pub const fn is_cold(self) -> bool {
        self.0 >> COLD_SHIFT != 0
    }
}

/// The bit of a position that says that it lies in a cold segment. The log's own positions are
/// bytes
/// written and never come near it.
pub(crate) const COLD_SHIFT: u32 = 63;

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// The number of a segment window: `lsn >> shift`.
///
/// A jumbo segment covers several windows; it is named by its first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SegmentIndex(pub u64);

impl fmt::Display for SegmentIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The size of a segment window, as a power of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Geometry {
    shift: u32,
}

impl Geometry {
    /// `segment_bytes` is a power of two (checked by `Config::validate`).
    pub(crate) const fn new(segment_bytes: u64) -> Self {
        Self {
            shift: segment_bytes.trailing_zeros(),
        }
    }

    pub(crate) const fn shift(self) -> u32 {
        self.shift
    }

    pub(crate) const fn segment_bytes(self) -> u64 {
        1 << self.shift
    }

    pub(crate) const fn index_of(self, position: u64) -> SegmentIndex {
        SegmentIndex(position >> self.shift)
    }

    /// The first position of a window; its header block lies there.
    pub(crate) const fn base(self, index: SegmentIndex) -> u64 {
        index.0 << self.shift
    }

    /// The position of the first batch of a segment.
    pub(crate) const fn first_batch(self, index: SegmentIndex) -> u64 {
        self.base(index) + BLOCK_BYTES
    }

    /// The bit of a segment's index that says that it is cold; bit 37 with segments of 64 MiB.
    pub(crate) const fn cold_bit(self) -> u64 {
        1 << (COLD_SHIFT - self.shift)
    }

    /// How many windows a file of `bytes` covers.
    pub(crate) const fn windows(self, bytes: u64) -> u64 {
        bytes.div_ceil(self.segment_bytes())
    }
}

/// Narrows a length that a caller has bounded by a file or batch size (under 4 GiB).
#[expect(
    clippy::cast_possible_truncation,
    reason = "every target has at least 32-bit usize and callers bound the value below 4 GiB"
)]
pub(crate) const fn in_memory(bytes: u64) -> usize {
    debug_assert!(bytes <= u32::MAX as u64);
    bytes as usize
}
