//! Reading one file to its end, whatever is in the way.

use super::report::{BatchReport, Fault};
use crate::disk::{DiskFile, read_up_to};
use crate::format::{BATCH_HEADER_BYTES, BLOCK_BYTES, BadBatch, BatchHeader, Seed};
use crate::lsn::in_memory;

/// How much is read at once.
const WINDOW_BYTES: usize = 1 << 20;

/// Where a file's batches belong.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) log_id: u128,
    pub(super) epoch: u64,
    pub(super) base: u64,
}

impl Place {
    pub(super) fn seed(self) -> Seed {
        Seed::new(self.log_id, self.epoch)
    }
}

/// A file with a buffer. Blocks that the disk cannot read count as zeros, and are told.
pub(super) struct Reader<'a, F> {
    file: &'a F,
    bytes: u64,
    window: Vec<u8>,
    offset: u64,
    /// Offsets of blocks that the disk refuses, with what it said.
    pub(super) refused: Vec<(u64, String)>,
}

impl<'a, F: DiskFile> Reader<'a, F> {
    pub(super) fn new(file: &'a F, bytes: u64) -> Self {
        Self {
            file,
            bytes,
            window: Vec::new(),
            offset: 0,
            refused: Vec::new(),
        }
    }

    pub(super) const fn len_bytes(&self) -> u64 {
        self.bytes
    }

    /// `len` bytes at `offset`, fewer at the end of the file.
    pub(super) fn bytes(&mut self, offset: u64, len: usize) -> &[u8] {
        let there = self.bytes.saturating_sub(offset).min(len as u64);
        let len = in_memory(there);
        let is_in = offset >= self.offset
            && offset + there <= self.offset + self.window.len() as u64
            && !self.window.is_empty();
        if !is_in {
            self.fill(offset, len.max(WINDOW_BYTES));
        }
        let skip = in_memory(offset - self.offset);
        let end = self.window.len().min(skip + len);
        self.window.get(skip..end).unwrap_or_default()
    }

    fn fill(&mut self, offset: u64, wanted: usize) {
        let wanted = in_memory(self.bytes.saturating_sub(offset).min(wanted as u64));
        self.window.clear();
        self.window.resize(wanted, 0);
        self.offset = offset;
        match read_up_to(self.file, offset, &mut self.window) {
            Ok(filled) => self.window.truncate(filled),
            Err(_) => self.fill_by_blocks(),
        }
    }

    /// One bad sector must not hide what lies around it.
    fn fill_by_blocks(&mut self) {
        let mut at = self.offset;
        for block in self.window.chunks_mut(in_memory(BLOCK_BYTES)) {
            if let Err(error) = read_up_to(self.file, at, block) {
                block.fill(0);
                if self.refused.last().is_none_or(|(last, _)| *last < at) {
                    self.refused.push((at, error.to_string()));
                }
            }
            at += BLOCK_BYTES;
        }
    }

    /// The batch that should stand at `offset`, checked.
    pub(super) fn batch(&mut self, place: Place, offset: u64) -> Result<BatchReport, Bad> {
        let position = place.base + offset;
        let seed = place.seed();
        let bytes = self.bytes(offset, BATCH_HEADER_BYTES);
        let header =
            BatchHeader::decode(bytes, seed, place.epoch, position).map_err(|bad| Bad {
                bad,
                end: None,
                synced: 0,
            })?;
        let known = |bad| Bad {
            bad,
            end: Some(offset + header.total_bytes()),
            synced: header.claims.synced,
        };
        if offset + header.total_bytes() > self.bytes {
            return Err(known(BadBatch::Short));
        }
        let bytes = self.bytes(offset, in_memory(header.total_bytes()));
        header.body(seed, bytes).map_err(known)?;
        Ok(BatchReport {
            position,
            end: header.end(),
            records: header.records,
            synced: header.claims.synced,
            start: header.claims.start,
        })
    }
}

/// A batch that is not whole.
pub(super) struct Bad {
    pub(super) bad: BadBatch,
    /// Where the next one starts, if its header is whole.
    pub(super) end: Option<u64>,
    /// What its header claims, 0 without one.
    synced: u64,
}

/// Bytes between whole batches.
pub(super) struct Gap {
    /// Offsets in the file.
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) detail: String,
}

/// What was found in a segment's file.
#[derive(Default)]
pub(super) struct Content {
    pub(super) batches: Vec<BatchReport>,
    /// Between whole batches and before the first. What lies behind the last is none: nothing says
    /// that there was anything.
    pub(super) gaps: Vec<Gap>,
    /// The highest claim of what was synced, also of batches that are not whole otherwise.
    pub(super) synced: u64,
}

/// Finds all whole batches of a file.
pub(super) fn read<F: DiskFile>(reader: &mut Reader<'_, F>, place: Place) -> Content {
    let mut content = Content::default();
    let mut offset = BLOCK_BYTES;
    let mut gap: Option<Gap> = None;
    while offset < reader.bytes {
        match reader.batch(place, offset) {
            Ok(batch) => {
                content.gaps.extend(gap.take());
                content.synced = content.synced.max(batch.synced);
                content.batches.push(batch);
                offset = batch.end - place.base;
            }
            Err(bad) => {
                content.synced = content.synced.max(bad.synced);
                let next = bad.end.unwrap_or(offset + BLOCK_BYTES);
                let next = next.min(reader.bytes).max(offset + BLOCK_BYTES);
                let open = gap.get_or_insert_with(|| Gap {
                    from: offset,
                    to: offset,
                    detail: bad.bad.describe().to_owned(),
                });
                open.to = next;
                offset = next;
            }
        }
    }
    content
}

/// Without a header, the batches tell where they belong: the newest run, and in it the highest
/// place.
pub(super) fn guess<F: DiskFile>(
    reader: &mut Reader<'_, F>,
    log_id: u128,
    segment_bytes: u64,
) -> Option<Place> {
    let mut found: Option<Place> = None;
    let mut offset = BLOCK_BYTES;
    while offset < reader.bytes {
        let bytes = reader.bytes(offset, BATCH_HEADER_BYTES);
        let number = |at: usize| {
            let bytes = bytes.get(at..at + 8)?;
            Some(u64::from_le_bytes(*bytes.first_chunk()?))
        };
        if let (Some(epoch), Some(position)) = (number(8), number(16))
            && let Some(base) = position.checked_sub(offset)
            && base % segment_bytes == 0
            && BatchHeader::decode(bytes, Seed::new(log_id, epoch), epoch, position).is_ok()
            && found.is_none_or(|best| (best.epoch, best.base) < (epoch, base))
        {
            found = Some(Place {
                log_id,
                epoch,
                base,
            });
        }
        offset += BLOCK_BYTES;
    }
    found
}

/// The faults of blocks that the disk refused.
pub(super) fn refused(name: &str, refused: &[(u64, String)]) -> Vec<Fault> {
    let fault = |(offset, error): &(u64, String)| Fault {
        file: name.to_owned(),
        offset: *offset,
        bytes: BLOCK_BYTES,
        detail: format!("the disk cannot read it ({error})"),
    };
    refused.iter().map(fault).collect()
}
