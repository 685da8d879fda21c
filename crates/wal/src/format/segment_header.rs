//! The first block of a segment file: whose it is and what it holds.

use bytes::{Buf, BufMut};

use super::{BLOCK_BYTES, FORMAT_VERSION};
use crate::lsn::{SegmentIndex, in_memory};

const MAGIC: [u8; 8] = *b"TANDALOG";

/// Encoded bytes. They lie in the first 512-byte sector, which a disk writes whole or not at
/// all, so a header is either the old or the new one.
const HEADER_BYTES: usize = 96;

const _: () = assert!(HEADER_BYTES <= 512, "the header must fit one sector");

/// What a slot file holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SlotState {
    /// Nothing yet.
    Spare,
    /// A segment.
    Live {
        /// First window.
        index: SegmentIndex,
        /// Number of windows; more than one for a jumbo segment.
        span: u32,
        /// Where the log ends in the segment before this one: everything below was synced
        /// before this header was written. 0 for the first segment.
        previous_end: u64,
        /// Nothing below this position is needed any more.
        start: u64,
    },
}

/// The header of a slot file. Layout in `docs/formats/log.md`, "Segment header".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SegmentHeader {
    pub(crate) log_id: u128,
    pub(crate) shard: u32,
    pub(crate) segment_shift: u32,
    /// Of the run that wrote it; in a spare, the highest epoch that may have left batches in it.
    pub(crate) epoch: u64,
    /// Length the file was allocated with.
    pub(crate) file_bytes: u64,
    pub(crate) state: SlotState,
}

/// Why a header cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BadHeader {
    Short,
    Magic,
    Version(u16),
    Checksum,
    State,
}

impl BadHeader {
    pub(crate) const fn describe(self) -> &'static str {
        match self {
            Self::Short => "the file is shorter than its header",
            Self::Magic => "the file does not start with a segment header",
            Self::Version(_) => "a segment header of an unknown version",
            Self::Checksum => "the segment header has a wrong checksum",
            Self::State => "the segment header has an unknown state",
        }
    }
}

impl SegmentHeader {
    /// The whole first block.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(in_memory(BLOCK_BYTES));
        let (state, index, span, previous_end, start) = match self.state {
            SlotState::Spare => (SPARE, 0, 0, 0, 0),
            SlotState::Live {
                index,
                span,
                previous_end,
                start,
            } => (LIVE, index.0, span, previous_end, start),
        };
        out.put_slice(&MAGIC);
        out.put_u16_le(FORMAT_VERSION);
        out.put_u16_le(state);
        out.put_u32_le(self.shard);
        out.put_u128_le(self.log_id);
        out.put_u64_le(self.epoch);
        out.put_u64_le(self.file_bytes);
        out.put_u64_le(index);
        out.put_u32_le(span);
        out.put_u32_le(self.segment_shift);
        out.put_u64_le(previous_end);
        out.put_u64_le(start);
        out.put_bytes(0, HEADER_BYTES - 4 - out.len());
        out.put_u32_le(crc32c::crc32c(&out));
        out.resize(in_memory(BLOCK_BYTES), 0);
        out
    }

    /// Reads the header from the first bytes of a file.
    pub(crate) fn decode(block: &[u8]) -> Result<Self, BadHeader> {
        let bytes: &[u8; HEADER_BYTES] = block.first_chunk().ok_or(BadHeader::Short)?;
        let (covered, checksum) = bytes.split_at(HEADER_BYTES - 4);
        let mut rest = covered.strip_prefix(&MAGIC).ok_or(BadHeader::Magic)?;
        let version = rest.get_u16_le();
        if version != FORMAT_VERSION {
            return Err(BadHeader::Version(version));
        }
        if checksum != crc32c::crc32c(covered).to_le_bytes() {
            return Err(BadHeader::Checksum);
        }
        let state = rest.get_u16_le();
        let shard = rest.get_u32_le();
        let log_id = rest.get_u128_le();
        let epoch = rest.get_u64_le();
        let file_bytes = rest.get_u64_le();
        let index = SegmentIndex(rest.get_u64_le());
        let span = rest.get_u32_le();
        let segment_shift = rest.get_u32_le();
        let previous_end = rest.get_u64_le();
        let start = rest.get_u64_le();
        let state = match state {
            SPARE => SlotState::Spare,
            LIVE if span > 0 => SlotState::Live {
                index,
                span,
                previous_end,
                start,
            },
            _ => return Err(BadHeader::State),
        };
        Ok(Self {
            log_id,
            shard,
            segment_shift,
            epoch,
            file_bytes,
            state,
        })
    }
}

const SPARE: u16 = 1;
const LIVE: u16 = 2;
