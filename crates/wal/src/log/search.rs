//! Reading a segment of which no table of batches was made: the batch is looked for.
//!
//! From the block of the first byte asked for backwards, to a header that is whole, stands at its
//! own
//! position and says that its batch holds the bytes. A batch may hold a copy of another one's
//! header
//! in a record: its position is not that of the copy. And whatever header is taken, the bytes
//! returned are those at the position asked for, and a checksum over them matches.

use bytes::Bytes;

use crate::cache::Run;
use crate::disk::{DiskCall, DiskError, DiskFile, read_up_to};
use crate::error::{Corruption, ReadError};
use crate::format::{BATCH_HEADER_BYTES, BLOCK_BYTES, BadBatch, BatchHeader, Seed};
use crate::lsn::in_memory;
use crate::segments::Segment;

/// Reads and checks the batch that holds `len` bytes at `at`, and some after it.
///
/// Reading on from where a run ended takes one read and no search.
pub(super) fn read_run<F: DiskFile>(
    segment: &Segment<F>,
    seed: Seed,
    (at, len): (u64, u32),
    run_bytes: usize,
) -> Result<Run, ReadError> {
    let search = Search {
        segment,
        seed,
        at,
        end: at + u64::from(len),
        run_bytes,
    };
    let first = segment.base + BLOCK_BYTES;
    let mut block = at - at % BLOCK_BYTES;
    let mut damaged: Option<(u64, BadBatch)> = None;
    let mut headers = Headers::default();
    while block >= first {
        // The first look is the read itself: it is nearly always the right place.
        let is_candidate = block + BLOCK_BYTES > at || headers.may_cover(&search, block, first)?;
        if is_candidate {
            match search.try_batch(block)? {
                Tried::Run(run) => return Ok(run),
                Tried::Bad(bad) => damaged = damaged.or(Some((block, bad))),
                Tried::Elsewhere => {}
            }
        }
        block -= BLOCK_BYTES;
    }
    let (position, detail) = match damaged {
        Some((position, bad)) => (position, bad.describe().to_owned()),
        None => {
            let block = at - at % BLOCK_BYTES;
            (
                block,
                format!("no batch holds the {len} bytes from {at:#x} on"),
            )
        }
    };
    Err(ReadError::Corrupt(Corruption {
        file: segment.slot.name.clone(),
        offset: position - segment.base,
        detail,
    }))
}

struct Search<'a, F> {
    segment: &'a Segment<F>,
    seed: Seed,
    at: u64,
    end: u64,
    run_bytes: usize,
}

enum Tried {
    Run(Run),
    /// A batch that should hold the bytes, and is damaged.
    Bad(BadBatch),
    Elsewhere,
}

impl<F: DiskFile> Search<'_, F> {
    fn header(&self, bytes: &[u8], position: u64) -> Result<BatchHeader, BadBatch> {
        BatchHeader::decode(bytes, self.seed, self.segment.epoch, position)
    }

    /// Whether the records of a batch with this header hold the bytes, and the file the batch.
    fn holds(&self, header: &BatchHeader) -> bool {
        let records = header.position + BATCH_HEADER_BYTES as u64;
        let in_file = header.end() - self.segment.base <= self.segment.slot.bytes;
        in_file && records <= self.at && self.end <= records + u64::from(header.body_bytes)
    }

    /// Reads the batch at `position` and those behind it, if it holds the bytes.
    fn try_batch(&self, position: u64) -> Result<Tried, ReadError> {
        let mut bytes = Vec::new();
        self.read_on(
            position,
            &mut bytes,
            self.run_bytes.max(in_memory(BLOCK_BYTES)),
        )?;
        let Ok(header) = self.header(&bytes, position) else {
            return Ok(Tried::Elsewhere);
        };
        if !self.holds(&header) {
            return Ok(Tried::Elsewhere);
        }
        self.read_on(position, &mut bytes, in_memory(header.total_bytes()))?;
        if let Err(bad) = header.body(self.seed, &bytes) {
            return Ok(Tried::Bad(bad));
        }
        let mut ends = vec![header.end()];
        let mut end = header.end();
        while end - position < self.run_bytes as u64 {
            let Some(next) = self.next_batch(position, end, &mut bytes)? else {
                break;
            };
            end = next;
            ends.push(end);
        }
        let bytes = Bytes::from(bytes);
        let mut from = position;
        let batches = ends.into_iter().map(|end| {
            let range = in_memory(from - position)..in_memory(end - position).min(bytes.len());
            (std::mem::replace(&mut from, end), bytes.slice(range))
        });
        Ok(Tried::Run(Run {
            position,
            batches: batches.collect(),
            end,
        }))
    }

    /// Checks the batch at `end` in the run that `bytes` are from `position` on, and says where it
    /// ends. One that was cut off by the read is completed, unless it is long: it would be read
    /// again next, and a drain is to read each byte about once.
    fn next_batch(
        &self,
        position: u64,
        end: u64,
        bytes: &mut Vec<u8>,
    ) -> Result<Option<u64>, ReadError> {
        let skip = in_memory(end - position);
        let rest = bytes.get(skip..).unwrap_or_default();
        // A bad batch matters to whoever asks for it, not to the one before.
        let Ok(header) = self.header(rest, end) else {
            return Ok(None);
        };
        let total = in_memory(header.total_bytes());
        let in_file = header.end() - self.segment.base <= self.segment.slot.bytes;
        if !in_file || header.end() > self.segment.end || total > self.run_bytes.saturating_mul(2) {
            return Ok(None);
        }
        self.read_on(position, bytes, skip + total)?;
        let rest = bytes.get(skip..).unwrap_or_default();
        Ok(header.body(self.seed, rest).is_ok().then(|| header.end()))
    }

    /// Reads on until there are `wanted` bytes from `position` on, or the file ends.
    fn read_on(&self, position: u64, bytes: &mut Vec<u8>, wanted: usize) -> Result<(), ReadError> {
        let have = bytes.len();
        if have < wanted {
            let offset = position - self.segment.base;
            let in_file = self.segment.slot.bytes.saturating_sub(offset);
            bytes.resize(in_memory(in_file.min(wanted as u64)).max(have), 0);
            let into = bytes.get_mut(have..).unwrap_or_default();
            let filled = self.read(offset + have as u64, into)?;
            bytes.truncate(have + filled);
        }
        Ok(())
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<usize, ReadError> {
        let slot = &self.segment.slot;
        read_up_to(&*slot.file, offset, into)
            .map_err(|e| ReadError::Disk(DiskError::new(DiskCall::Read, &slot.name, e)))
    }
}

/// The blocks before the one asked for, read in growing pieces from the back.
#[derive(Default)]
struct Headers {
    bytes: Vec<u8>,
    position: u64,
}

impl Headers {
    /// Whether the header of a batch that holds the bytes stands at `block`.
    fn may_cover<F: DiskFile>(
        &mut self,
        search: &Search<'_, F>,
        block: u64,
        first: u64,
    ) -> Result<bool, ReadError> {
        if self.bytes.is_empty() || block < self.position {
            let wanted = (self.bytes.len() as u64 * 2).clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX);
            let end = block + BLOCK_BYTES;
            self.position = end.saturating_sub(wanted).max(first);
            self.bytes.resize(in_memory(end - self.position), 0);
            let offset = self.position - search.segment.base;
            let filled = search.read(offset, &mut self.bytes)?;
            if let Some(rest) = self.bytes.get_mut(filled..) {
                rest.fill(0);
            }
        }
        let bytes = self.bytes.get(in_memory(block - self.position)..);
        let header = search.header(bytes.unwrap_or_default(), block);
        Ok(header.is_ok_and(|header| search.holds(&header)))
    }
}

const PIECE_BYTES_MIN: u64 = 64 << 10;
const PIECE_BYTES_MAX: u64 = 1 << 20;
