//! The growing end of the log: the open batch, the sealed ones behind it, and their buffers.
//!
//! A chunk is one buffer that takes several batches in a row. A sealed batch is split off it
//! without copying; when every batch of a chunk is gone from the cache and from readers, the
//! chunk's memory is used again, so a busy log allocates nothing and touches no fresh pages.

use std::collections::VecDeque;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::format::{
    BATCH_HEADER_BYTES, BLOCK_BYTES, BatchHeader, Body, Claims, LENGTH_BYTES, Seed, padded,
};
use crate::lsn::{Geometry, SegmentIndex, in_memory};

/// A batch ready to be written; clones share the bytes.
#[derive(Clone, Debug)]
pub(crate) struct SealedBatch {
    pub(crate) position: u64,
    /// Header, records and padding: whole blocks.
    pub(crate) bytes: Bytes,
    pub(crate) records: u32,
    pub(crate) claims: Claims,
    pub(crate) segment: Window,
}

impl SealedBatch {
    pub(crate) const fn end(&self) -> u64 {
        self.position + self.bytes.len() as u64
    }
}

/// The windows of one segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Window {
    pub(crate) index: SegmentIndex,
    pub(crate) span: u32,
}

impl Window {
    /// The numbers of its windows.
    pub(crate) fn numbers(self) -> std::ops::Range<u64> {
        self.index.0..self.index.0 + u64::from(self.span)
    }
}

/// Where the next batch goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) segment: Window,
    /// Position of the next batch; whole blocks.
    pub(crate) position: u64,
    /// End of the segment's file, as a position.
    pub(crate) segment_end: u64,
}

/// The growing end of the log. See the module head.
pub(crate) struct Tail {
    geometry: Geometry,
    seed: Seed,
    epoch: u64,
    chunk_bytes: usize,
    /// Claims of the next batch to be sealed.
    pub(crate) claims: Claims,
    /// The open batch, starting with the place of its header, and room behind it.
    chunk: BytesMut,
    /// Record bytes that the open batch still takes; 0 when no batch is open.
    room: usize,
    records: u32,
    /// Position of the open batch, or of the next one.
    place: Place,
    /// Position after the newest record.
    sealed_end: u64,
    sealed: VecDeque<SealedBatch>,
    sealed_bytes: usize,
    chunks: ChunkPool,
}

impl Tail {
    pub(crate) fn new(
        geometry: Geometry,
        (seed, epoch): (Seed, u64),
        chunks: (usize, usize),
        claims: Claims,
        place: Place,
    ) -> Self {
        let (chunk_bytes, chunks_max) = chunks;
        Self {
            geometry,
            seed,
            epoch,
            chunk_bytes,
            claims,
            chunk: BytesMut::new(),
            room: 0,
            records: 0,
            place,
            sealed_end: place.position,
            sealed: VecDeque::new(),
            sealed_bytes: 0,
            chunks: ChunkPool {
                retired: VecDeque::new(),
                retired_max: chunks_max,
                standby: None,
                dedicated: true,
            },
        }
    }

    /// Adds a record of at most `RECORD_BYTES_MAX` bytes and returns its position.
    ///
    /// Copies the record once. A full batch is sealed on the way.
    #[inline]
    pub(crate) fn append(&mut self, record: &[u8]) -> u64 {
        let need = LENGTH_BYTES + record.len();
        if need > self.room {
            self.open_batch(need);
        }
        let at = self.place.position + self.chunk.len() as u64 + LENGTH_BYTES as u64;
        self.chunk.put_u32_le(length_of(record));
        self.chunk.put_slice(record);
        self.room -= need;
        self.records += 1;
        at
    }

    /// Position after the newest record.
    pub(crate) fn end(&self) -> u64 {
        if self.chunk.is_empty() {
            self.sealed_end
        } else {
            self.place.position + self.chunk.len() as u64
        }
    }

    /// Bytes of the open batch and of the sealed ones not yet taken.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.chunk.len() + self.sealed_bytes
    }

    /// Closes the open batch, if there is one.
    pub(crate) fn seal(&mut self) {
        if !self.chunk.is_empty() {
            self.sealed_end = self.end();
            self.close_batch();
        }
    }

    /// Adds a batch without records that carries the current claims.
    pub(crate) fn seal_marker(&mut self) {
        self.open_batch(LENGTH_BYTES);
        self.close_batch();
    }

    /// Takes all sealed batches, oldest first.
    pub(crate) fn take_sealed(&mut self) -> VecDeque<SealedBatch> {
        self.sealed_bytes = 0;
        std::mem::take(&mut self.sealed)
    }

    /// Gives back batches that could not be written yet.
    pub(crate) fn put_back(&mut self, batches: Vec<SealedBatch>) {
        for batch in batches.into_iter().rev() {
            self.sealed_bytes += batch.bytes.len();
            self.sealed.push_front(batch);
        }
    }

    pub(crate) const fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(crate) const fn sealed(&self) -> &VecDeque<SealedBatch> {
        &self.sealed
    }

    /// The position and bytes of the open batch; empty when none is open.
    pub(crate) fn open(&self) -> (u64, &[u8]) {
        (self.place.position, &self.chunk)
    }

    /// Slow path: seals what is open and opens a batch that takes `need` bytes of records.
    #[cold]
    fn open_batch(&mut self, need: usize) {
        self.seal();
        let total = BATCH_HEADER_BYTES + need;
        if self.place.position + padded(total) as u64 > self.place.segment_end {
            self.enter_segment(padded(total) as u64);
        }
        if whole_blocks(self.chunk.capacity()) < total {
            self.chunks
                .replace(&mut self.chunk, padded(total), self.chunk_bytes);
        }
        let segment_room = in_memory(self.place.segment_end - self.place.position);
        let capacity = whole_blocks(self.chunk.capacity()).min(segment_room);
        self.chunk.put_bytes(0, BATCH_HEADER_BYTES);
        self.room = capacity - BATCH_HEADER_BYTES;
    }

    fn enter_segment(&mut self, batch_bytes: u64) {
        let Window { index, span } = self.place.segment;
        let next = SegmentIndex(index.0 + u64::from(span));
        self.place = Place::for_batch(self.geometry, next, batch_bytes);
    }

    fn close_batch(&mut self) {
        let used = self.chunk.len();
        let batch_bytes = padded(used);
        self.chunk.put_bytes(0, batch_bytes - used);
        let mut batch = self.chunk.split();
        if let Some((header, body)) = batch.split_first_chunk_mut::<BATCH_HEADER_BYTES>() {
            let body = Body {
                bytes: body.get(..used - BATCH_HEADER_BYTES).unwrap_or_default(),
                records: self.records,
            };
            let place = (self.epoch, self.place.position);
            *header = BatchHeader::seal(self.seed, place, self.claims, body).encode(self.seed);
        }
        self.sealed_bytes += batch_bytes;
        self.sealed.push_back(SealedBatch {
            position: self.place.position,
            bytes: batch.freeze(),
            records: self.records,
            claims: self.claims,
            segment: self.place.segment,
        });
        self.place.position += batch_bytes as u64;
        self.records = 0;
        self.room = 0;
    }
}

impl Place {
    /// The start of segment `index`, made for a first batch of `batch_bytes`.
    pub(crate) fn for_batch(geometry: Geometry, index: SegmentIndex, batch_bytes: u64) -> Self {
        let position = geometry.first_batch(index);
        let file_bytes = BLOCK_BYTES + batch_bytes;
        let windows = geometry.windows(file_bytes);
        let file_bytes = if windows > 1 {
            file_bytes
        } else {
            geometry.segment_bytes()
        };
        Self {
            segment: Window {
                index,
                span: u32::try_from(windows).unwrap_or(u32::MAX),
            },
            position,
            segment_end: geometry.base(index) + file_bytes,
        }
    }
}

/// Buffers for chunks.
struct ChunkPool {
    /// Ends of used-up chunks, oldest first: reusable once their batches are dropped.
    retired: VecDeque<BytesMut>,
    retired_max: usize,
    /// A chunk put aside while a record larger than a chunk has a buffer of its own.
    standby: Option<BytesMut>,
    /// The buffer in use was made for one large record (or is the empty one at the start): it is
    /// not kept for reuse.
    dedicated: bool,
}

impl ChunkPool {
    /// Puts a buffer with at least `need` bytes of room in place of `chunk`, which is empty.
    fn replace(&mut self, chunk: &mut BytesMut, need: usize, chunk_bytes: usize) {
        let old = std::mem::take(chunk);
        if self.dedicated {
            drop(old);
        } else if need > chunk_bytes {
            self.standby = Some(old);
        } else {
            self.retire(old);
        }
        self.dedicated = need > chunk_bytes;
        *chunk = if self.dedicated {
            aligned(need)
        } else {
            match self.standby.take() {
                Some(standby) if whole_blocks(standby.capacity()) >= need => standby,
                Some(standby) => {
                    self.retire(standby);
                    self.reuse(chunk_bytes)
                }
                None => self.reuse(chunk_bytes),
            }
        };
    }

    fn retire(&mut self, chunk: BytesMut) {
        if self.retired.len() >= self.retired_max {
            // The oldest is still pinned by a reader: let its memory go with that reader.
            self.retired.pop_front();
        }
        self.retired.push_back(chunk);
    }

    fn reuse(&mut self, chunk_bytes: usize) -> BytesMut {
        for slot in 0..self.retired.len().min(REUSE_TRIES) {
            if let Some(chunk) = self.retired.get_mut(slot)
                && chunk.try_reclaim(chunk_bytes + ALIGNMENT_ROOM)
                && let Some(mut chunk) = self.retired.remove(slot)
            {
                align(&mut chunk);
                return chunk;
            }
        }
        aligned(chunk_bytes)
    }
}

/// Bytes that a buffer needs beyond its blocks so that its first block can be aligned.
const ALIGNMENT_ROOM: usize = in_memory(BLOCK_BYTES) - 1;

/// An empty buffer whose blocks lie at multiples of their size in memory, so that a disk may write
/// them without copying them first.
fn aligned(bytes: usize) -> BytesMut {
    let mut chunk = BytesMut::with_capacity(bytes + ALIGNMENT_ROOM);
    align(&mut chunk);
    chunk
}

/// Moves the start of an empty buffer up to the next multiple of a block.
fn align(chunk: &mut BytesMut) {
    let skip = chunk.as_ptr().align_offset(in_memory(BLOCK_BYTES));
    if skip <= ALIGNMENT_ROOM {
        chunk.put_bytes(0, skip);
        chunk.advance(skip);
    }
}

/// How many of the oldest chunks are asked for their memory before a new one is made; a few,
/// because a slow reader may hold on to the very oldest.
const REUSE_TRIES: usize = 4;

const fn whole_blocks(bytes: usize) -> usize {
    bytes - bytes % in_memory(BLOCK_BYTES)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "records are bounded by RECORD_BYTES_MAX, far below 4 GiB"
)]
const fn length_of(record: &[u8]) -> u32 {
    record.len() as u32
}

const _: () = assert!(crate::config::RECORD_BYTES_MAX < u32::MAX as usize / 2);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    const CHUNK_BYTES: usize = 16 << 10;

    fn tail() -> Tail {
        let geometry = Geometry::new(Config::small(1, 0).segment_bytes);
        let place = Place::for_batch(geometry, SegmentIndex(1), 0);
        let seed = (Seed::new(1, 1), 1);
        Tail::new(geometry, seed, (CHUNK_BYTES, 3), Claims::default(), place)
    }

    /// Fills one chunk and returns its batches.
    fn fill(tail: &mut Tail) -> VecDeque<SealedBatch> {
        for _ in 0..4 {
            tail.append(&[7; 4000]);
            tail.seal();
        }
        tail.take_sealed()
    }

    #[test]
    fn a_chunk_is_used_again_when_its_batches_are_gone() {
        let mut tail = tail();
        let first = fill(&mut tail);
        let addresses: Vec<_> = first.iter().map(|batch| batch.bytes.as_ptr()).collect();
        let second = fill(&mut tail);
        assert_ne!(second[0].bytes.as_ptr(), addresses[0], "still held");
        let held = first[2].bytes.slice(100..200);
        drop(first);
        assert_ne!(
            fill(&mut tail)[0].bytes.as_ptr(),
            addresses[0],
            "a slice holds it"
        );
        assert_eq!(held, [7; 100][..]);
        drop(held);
        assert_eq!(fill(&mut tail)[0].bytes.as_ptr(), addresses[0]);
    }

    #[test]
    fn batches_are_aligned_in_memory() {
        let mut tail = tail();
        let mut held = Vec::new();
        for round in 0..40_usize {
            tail.append(&vec![5; round * 1000 % 7000]);
            if round % 9 == 0 {
                tail.append(&vec![6; 3 * CHUNK_BYTES]);
            }
            tail.seal();
            for batch in tail.take_sealed() {
                assert_eq!(batch.bytes.as_ptr().align_offset(4096), 0, "round {round}");
                held.push(batch);
            }
            if round % 11 == 0 {
                held.clear();
            }
        }
    }

    #[test]
    fn a_large_record_leaves_the_chunk_for_the_small_ones() {
        let mut tail = tail();
        tail.append(&[1; 100]);
        tail.seal();
        let chunk = tail.take_sealed()[0].bytes.as_ptr();
        tail.append(&vec![2; 3 * CHUNK_BYTES]);
        tail.append(&[3; 5000]);
        tail.seal();
        let batches = tail.take_sealed();
        assert_eq!(batches.len(), 2);
        assert_eq!(batches[1].bytes.as_ptr() as usize, chunk as usize + 4096);
        assert_eq!(tail.chunks.retired.len(), 0);
        assert!(!tail.chunks.dedicated);
    }

    #[test]
    fn batches_fill_segments_to_the_last_block_and_never_beyond() {
        let mut tail = tail();
        let mut previous: Option<SealedBatch> = None;
        for len in (0..2000).map(|number| number * 7919 % 40_000) {
            tail.append(&vec![4; len]);
            if len % 3 == 0 {
                tail.seal();
            }
            for batch in tail.take_sealed() {
                let base = batch.segment.index.0 << 16;
                assert!(batch.position >= base + BLOCK_BYTES);
                assert!(batch.end() <= base + (1 << 16));
                assert_eq!(batch.position % BLOCK_BYTES, 0);
                if let Some(previous) = previous.filter(|other| other.segment == batch.segment) {
                    assert_eq!(previous.end(), batch.position);
                }
                previous = Some(batch);
            }
        }
    }
}
