//! The bytes on disk: segment headers and batches. Written down in `docs/formats/log.md`.

mod batch;
mod segment_header;

pub(crate) use batch::{
    BATCH_HEADER_BYTES, BadBatch, BatchHeader, Body, Claims, LENGTH_BYTES, Records, Seed, padded,
};
pub(crate) use segment_header::{BadHeader, SegmentHeader, SlotState};

/// Alignment of headers and batches.
///
/// 4096 and not 512: a batch then never shares a page or a physical sector with one that is
/// already synced, so a torn write cannot damage it, and the kernel never has to read a block
/// of a recycled file before overwriting it.
pub(crate) const BLOCK_BYTES: u64 = 4096;

/// Version of both headers.
pub(crate) const FORMAT_VERSION: u16 = 1;
