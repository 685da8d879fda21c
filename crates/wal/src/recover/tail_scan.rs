//! Where the log ends: a torn tail is told from corruption here.

use super::chain::Live;
use super::reader::SegmentReader;
use crate::config::Config;
use crate::disk::DiskFile;
use crate::error::OpenError;
use crate::format::{BLOCK_BYTES, BadBatch};
use crate::lsn::Geometry;

/// What the newest segment holds.
pub(super) struct TailScan {
    /// Position after the last batch of the unbroken run from the segment's start.
    pub(super) end: u64,
    /// Everything below was synced, as some batch claims; a batch boundary, at least the first.
    pub(super) proven: u64,
    /// Positions of the batches from `proven` to `end`.
    pub(super) unproven: Vec<u64>,
    /// Whether those hold any records.
    pub(super) has_unproven_records: bool,
    /// Nothing below is needed, as some batch claims.
    pub(super) start: u64,
}

/// One valid batch.
struct Seen {
    position: u64,
    end: u64,
    records: u32,
    start: u64,
}

/// Reads all of the newest segment, also what lies behind the first bad batch.
pub(super) fn scan<F: DiskFile>(newest: &Live<F>, config: &Config) -> Result<TailScan, OpenError> {
    let first = Geometry::new(config.segment_bytes).first_batch(newest.window.index);
    check_length(newest)?;
    let file_end = newest.base + newest.header.file_bytes;
    let mut reader = SegmentReader::new(newest, config);
    let mut seen = Vec::new();
    let mut end = first;
    let mut claimed = first;
    let mut bad = None;
    while end < file_end {
        match reader.batch(end)? {
            Ok((header, _)) => {
                seen.push(Seen {
                    position: end,
                    end: header.end(),
                    records: header.records,
                    start: header.claims.start,
                });
                claimed = claimed.max(header.claims.synced);
                end = header.end();
            }
            Err(reason) => {
                bad = Some(reason);
                break;
            }
        }
    }
    if let Some(bad) = bad {
        claimed = claimed.max(scan_on(newest, &mut reader, end, bad)?);
    }
    conclude(newest, &seen, end, claimed)
}

/// A segment is allocated whole before it is used; only older ones are ever cut.
fn check_length<F>(newest: &Live<F>) -> Result<(), OpenError> {
    if newest.slot.bytes < newest.header.file_bytes {
        let detail = format!(
            "the file has {} bytes instead of {}",
            newest.slot.bytes, newest.header.file_bytes
        );
        return Err(newest.corrupt(newest.base + newest.slot.bytes, detail));
    }
    Ok(())
}

/// Looks behind the bad batch at `hole` for one that was written after `hole` had been synced.
/// Returns the highest claim found.
fn scan_on<F: DiskFile>(
    newest: &Live<F>,
    reader: &mut SegmentReader<'_, F>,
    hole: u64,
    bad: BadBatch,
) -> Result<u64, OpenError> {
    let file_end = newest.base + newest.header.file_bytes;
    let mut claimed = 0;
    let mut position = hole + BLOCK_BYTES;
    while position < file_end {
        if let Ok(header) = reader.header(position)? {
            let synced = header.claims.synced;
            if synced > hole {
                let detail = format!(
                    "{}, although a later batch (at byte {}) says that the log was synced to byte \
                     {} of this file",
                    bad.describe(),
                    position - newest.base,
                    synced.saturating_sub(newest.base),
                );
                return Err(newest.corrupt(hole, detail));
            }
            claimed = claimed.max(synced);
        }
        position += BLOCK_BYTES;
    }
    Ok(claimed)
}

fn conclude<F>(
    newest: &Live<F>,
    seen: &[Seen],
    end: u64,
    proven: u64,
) -> Result<TailScan, OpenError> {
    let split = seen.partition_point(|batch| batch.position < proven);
    let (before, after) = seen.split_at_checked(split).unwrap_or((seen, &[]));
    let boundary = before.last().map_or(proven, |batch| batch.end);
    if boundary != proven || proven > end {
        let detail = format!(
            "a batch says that the log was synced to byte {} of this file, where no batch ends",
            proven - newest.base
        );
        return Err(newest.corrupt(boundary, detail));
    }
    let start = seen.iter().map(|batch| batch.start).max();
    Ok(TailScan {
        end,
        proven,
        unproven: after.iter().map(|batch| batch.position).collect(),
        has_unproven_records: after.iter().any(|batch| batch.records > 0),
        start: newest.start.max(start.unwrap_or(0)),
    })
}
