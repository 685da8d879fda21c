//! Which files are there, and what their headers say.

use std::sync::Arc;

use crate::cold;
use crate::config::Config;
use crate::disk::{Disk, DiskCall, DiskError, DiskFile, read_up_to};
use crate::error::{Corruption, OpenError};
use crate::format::{BLOCK_BYTES, BadHeader, SegmentHeader, SlotState};
use crate::lsn::{Geometry, in_memory};
use crate::slots::{Slot, is_temporary, slot_number};

/// A slot file with a valid header of this log.
pub(super) struct Found<F> {
    pub(super) slot: Slot<F>,
    pub(super) header: SegmentHeader,
}

/// All slot files.
pub(super) struct Files<F> {
    pub(super) files: Vec<Found<F>>,
    /// Cold segments.
    pub(super) cold: Vec<Found<F>>,
    pub(super) next_number: u32,
    /// The highest epoch that any header names; 0 for none.
    pub(super) epoch_max: u64,
}

/// Reads the directory; removes files whose making was interrupted, ignores foreign ones.
pub(super) fn read<D: Disk>(disk: &D, config: &Config) -> Result<Files<D::File>, OpenError> {
    let mut names = disk
        .list()
        .map_err(|e| DiskError::new(DiskCall::List, "", e))?;
    names.sort();
    let mut files = Files {
        files: Vec::new(),
        cold: Vec::new(),
        next_number: 1,
        epoch_max: 0,
    };
    for name in names {
        if is_temporary(&name) || cold::is_temporary(&name) {
            disk.remove(&name)
                .map_err(|e| DiskError::new(DiskCall::Remove, &name, e))?;
        } else if let Some(number) = slot_number(&name) {
            let found = read_file(disk, name, config)?;
            check_place(&found, None, config)?;
            files.next_number = files.next_number.max(number.saturating_add(1));
            files.epoch_max = files.epoch_max.max(found.header.epoch);
            files.files.push(found);
        } else if let Some(number) = cold::cold_number(&name) {
            let found = read_file(disk, name, config)?;
            check_place(&found, Some(number), config)?;
            files.epoch_max = files.epoch_max.max(found.header.epoch);
            files.cold.push(found);
        }
    }
    // A process that was killed may have left names that are not on disk yet: without this, a file
    // that is put to use now could lose its name in a crash.
    disk.sync_dir()
        .map_err(|e| DiskError::new(DiskCall::SyncDir, "", e))?;
    Ok(files)
}

/// A cold file has the segment of its name; the log's own files have no cold ones.
fn check_place<F>(
    found: &Found<F>,
    cold_number: Option<u64>,
    config: &Config,
) -> Result<(), OpenError> {
    let bit = Geometry::new(config.segment_bytes).cold_bit();
    let is_right = match (found.header.state, cold_number) {
        (SlotState::Spare, number) => number.is_none(),
        (SlotState::Live { index, .. }, None) => index.0 < bit,
        (SlotState::Live { index, .. }, Some(number)) => number < bit && index.0 == bit | number,
    };
    if is_right {
        return Ok(());
    }
    Err(OpenError::Corrupt(Corruption {
        file: found.slot.name.clone(),
        offset: 0,
        detail: "the segment header does not belong in a file of this name".to_owned(),
    }))
}

fn read_file<D: Disk>(
    disk: &D,
    name: String,
    config: &Config,
) -> Result<Found<D::File>, OpenError> {
    let failed = |call, e| OpenError::Disk(DiskError::new(call, &name, e));
    let file = disk.open(&name).map_err(|e| failed(DiskCall::Open, e))?;
    let bytes = file.len_bytes().map_err(|e| failed(DiskCall::Len, e))?;
    let mut block = vec![0; in_memory(BLOCK_BYTES)];
    let filled = read_up_to(&file, 0, &mut block).map_err(|e| failed(DiskCall::Read, e))?;
    block.truncate(filled);
    let header = SegmentHeader::decode(&block).map_err(|bad| match bad {
        BadHeader::Version(version) => OpenError::UnknownVersion {
            file: name.clone(),
            version,
        },
        BadHeader::Short | BadHeader::Magic | BadHeader::Checksum | BadHeader::State => {
            OpenError::Corrupt(Corruption {
                file: name.clone(),
                offset: 0,
                detail: bad.describe().to_owned(),
            })
        }
    })?;
    check_identity(&header, &name, config)?;
    let slot = Slot {
        name,
        file: Arc::new(file),
        bytes,
    };
    Ok(Found { slot, header })
}

fn check_identity(header: &SegmentHeader, name: &str, config: &Config) -> Result<(), OpenError> {
    let expected = (config.log_id, config.shard);
    if (header.log_id, header.shard) != expected {
        return Err(OpenError::WrongLog {
            file: name.to_owned(),
            found: (header.log_id, header.shard),
            expected,
        });
    }
    if header.segment_shift != Geometry::new(config.segment_bytes).shift() {
        return Err(OpenError::SegmentBytesChanged {
            found: 1_u64.checked_shl(header.segment_shift).unwrap_or(0),
            configured: config.segment_bytes,
        });
    }
    Ok(())
}
