//! Reading a segment batch by batch, and replaying it.

use super::chain::Live;
use crate::config::Config;
use crate::disk::{DiskCall, DiskError, DiskFile, read_up_to};
use crate::error::OpenError;
use crate::format::{BATCH_HEADER_BYTES, BadBatch, BatchHeader, Records, Seed};
use crate::log::Replay;
use crate::lsn::{Geometry, Lsn, in_memory};
use crate::segments::Segment;
use crate::slots::Slot;

/// Sequential reads of one file through a large buffer.
pub(super) struct SegmentReader<'a, F> {
    live: &'a Live<F>,
    seed: Seed,
    window: Vec<u8>,
    window_offset: u64,
    window_filled: usize,
}

impl<'a, F: DiskFile> SegmentReader<'a, F> {
    pub(super) fn new(live: &'a Live<F>, config: &Config) -> Self {
        Self {
            live,
            seed: Seed::new(config.log_id, live.header.epoch),
            window: Vec::new(),
            window_offset: 0,
            window_filled: 0,
        }
    }

    /// The header that should stand at `position`; the body is not looked at.
    pub(super) fn header(
        &mut self,
        position: u64,
    ) -> Result<Result<BatchHeader, BadBatch>, OpenError> {
        let (seed, epoch) = (self.seed, self.live.header.epoch);
        let bytes = self.bytes(position - self.live.base, BATCH_HEADER_BYTES)?;
        match BatchHeader::decode(bytes, seed, epoch, position) {
            Err(BadBatch::Version(version)) => Err(OpenError::UnknownVersion {
                file: self.live.slot.name.clone(),
                version,
            }),
            result => Ok(result),
        }
    }

    /// The batch that should stand at `position`, checked.
    pub(super) fn batch(
        &mut self,
        position: u64,
    ) -> Result<Result<(BatchHeader, Records<'_>), BadBatch>, OpenError> {
        let header = match self.header(position)? {
            Ok(header) => header,
            Err(bad) => return Ok(Err(bad)),
        };
        let offset = position - self.live.base;
        // Also bounds what is allocated: a header cannot ask for more than the file has.
        if offset + header.total_bytes() > self.live.slot.bytes {
            return Ok(Err(BadBatch::Short));
        }
        let seed = self.seed;
        let bytes = self.bytes(offset, in_memory(header.total_bytes()))?;
        Ok(header.body(seed, bytes).map(|records| (header, records)))
    }

    /// `len` bytes at `offset`, fewer at the end of the file.
    fn bytes(&mut self, offset: u64, len: usize) -> Result<&[u8], OpenError> {
        let in_window = offset
            .checked_sub(self.window_offset)
            .and_then(|skip| usize::try_from(skip).ok())
            .filter(|skip| skip + len <= self.window_filled);
        let skip = match in_window {
            Some(skip) => skip,
            None => {
                self.fill(&self.live.slot, offset, len)?;
                0
            }
        };
        let end = self.window_filled.min(skip + len);
        Ok(self.window.get(skip..end).unwrap_or_default())
    }

    fn fill(&mut self, slot: &Slot<F>, offset: u64, len: usize) -> Result<(), OpenError> {
        let wanted = len.max(WINDOW_BYTES);
        if self.window.len() < wanted {
            self.window.resize(wanted, 0);
        }
        let into = self.window.get_mut(..wanted).unwrap_or_default();
        self.window_filled = read_up_to(&*slot.file, offset, into)
            .map_err(|e| DiskError::new(DiskCall::Read, &slot.name, e))?;
        self.window_offset = offset;
        Ok(())
    }
}

const WINDOW_BYTES: usize = 1 << 20;

/// Replays the records of a segment up to `end`, which is known to be synced: anything wrong
/// before it is corruption. Returns the segment with its batches.
pub(super) fn replay_segment<F: DiskFile>(
    live: &Live<F>,
    end: u64,
    config: &Config,
    replay: &mut Replay<'_>,
) -> Result<Segment<F>, OpenError> {
    let geometry = Geometry::new(config.segment_bytes);
    let mut segment = Segment::new(geometry, live.window, live.header.epoch, live.slot.clone());
    let mut reader = SegmentReader::new(live, config);
    let mut position = geometry.first_batch(live.window.index);
    while position < end {
        let (header, records) = reader.batch(position)?.map_err(|bad| {
            let detail = format!(
                "{}, although the log was synced to byte {} of this file",
                bad.describe(),
                end - live.base
            );
            live.corrupt(position, detail)
        })?;
        for (at, record) in records {
            let at = Lsn(at);
            replay(at, record).map_err(|source| OpenError::Replay { at, source })?;
        }
        segment.push_batch(position, header.end());
        position = header.end();
    }
    if position > end {
        let detail = "the last batch reaches beyond the end of the log".to_owned();
        return Err(live.corrupt(end, detail));
    }
    Ok(segment)
}
