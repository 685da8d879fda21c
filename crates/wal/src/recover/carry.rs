//! Taking the unproven tail into the first segment of the new epoch.
//!
//! What can be read of the tail now may be in the page cache only, and not on disk even after
//! another sync (an earlier sync may have failed). And behind a torn batch there may be whole ones
//! that would seem to follow once the hole is filled. Copying under a new epoch ends both.

use super::chain::Live;
use super::reader::SegmentReader;
use super::{OldLog, no_slot};
use crate::config::Config;
use crate::disk::{Disk, DiskCall, DiskError, DiskFile, write_all_at};
use crate::error::OpenError;
use crate::format::{BatchHeader, Body, Claims, Seed, SlotState};
use crate::lsn::{Geometry, SegmentIndex, in_memory};
use crate::slots::{Slot, Slots, sync};
use crate::tail::Place;

/// Where the log goes on.
pub(super) struct Move {
    pub(super) geometry: Geometry,
    pub(super) index: SegmentIndex,
    pub(super) epoch: u64,
    pub(super) claims: Claims,
}

/// The new segment.
pub(super) struct Carried<F> {
    pub(super) live: Live<F>,
    /// Where the next batch goes.
    pub(super) place: Place,
    /// Whether anything was copied.
    pub(super) carried: bool,
}

/// Makes the new segment, with the tail in it, and makes it count.
///
/// In this order, each step synced: a spare header that uses up the epoch, so that another
/// attempt takes a higher one; the batches; the header that makes the file part of the log.
pub(super) fn carry<D: Disk>(
    slots: &mut Slots<D>,
    config: &Config,
    old: &OldLog<D::File>,
    to: &Move,
) -> Result<Carried<D::File>, OpenError> {
    let scan = &old.scan;
    let tail_bytes = if scan.has_unproven_records {
        scan.end - scan.proven
    } else {
        0
    };
    let mut place = Place::for_batch(to.geometry, to.index, tail_bytes);
    let file_bytes = place.segment_end - to.geometry.base(to.index);
    let slot = slots
        .take_slot(place.segment, file_bytes)
        .map_err(no_slot)?;
    if tail_bytes > 0 {
        slots.write_header(&slot, SlotState::Spare)?;
        place.position = copy_batches(&slot, config, old, (to, place.position))?;
        sync(&slot)?;
    }
    let marks = (to.claims.synced, to.claims.start);
    Ok(Carried {
        live: Live {
            window: place.segment,
            base: to.geometry.base(to.index),
            previous_end: to.claims.synced,
            start: to.claims.start,
            header: slots.begin(slot.clone(), place.segment, marks)?,
            slot,
        },
        place,
        carried: tail_bytes > 0,
    })
}

/// Copies the unproven batches with new headers, from position `at` on; returns the position
/// after the last.
fn copy_batches<F: DiskFile>(
    slot: &Slot<F>,
    config: &Config,
    old: &OldLog<F>,
    (to, at): (&Move, u64),
) -> Result<u64, OpenError> {
    let mut reader = SegmentReader::new(&old.newest, config);
    let seed = Seed::new(config.log_id, to.epoch);
    let base = to.geometry.base(to.index);
    let mut position = at;
    let mut bytes = Vec::new();
    for from in &old.scan.unproven {
        let (header, records) = reader.batch(*from)?.map_err(|bad| {
            // It was valid a moment ago.
            old.newest.corrupt(*from, bad.describe().to_owned())
        })?;
        let body = Body {
            bytes: records.as_bytes(),
            records: header.records,
        };
        let copy = BatchHeader::seal(seed, (to.epoch, position), to.claims, body);
        bytes.clear();
        bytes.extend_from_slice(&copy.encode(seed));
        bytes.extend_from_slice(body.bytes);
        bytes.resize(in_memory(copy.total_bytes()), 0);
        write_all_at(&*slot.file, position - base, &bytes)
            .map_err(|e| DiskError::new(DiskCall::Write, &slot.name, e))?;
        position = copy.end();
    }
    Ok(position)
}
