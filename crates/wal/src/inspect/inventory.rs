//! Opening all files of a log, whatever state they are in.

use std::sync::Arc;

use super::report::Fault;
use crate::cold;
use crate::disk::{Disk, DiskCall, DiskError, DiskFile, read_up_to};
use crate::format::{BLOCK_BYTES, BadHeader, SegmentHeader};
use crate::lsn::in_memory;
use crate::slots::slot_number;

/// A file with its header.
pub(super) struct Raw<F> {
    pub(super) name: String,
    pub(super) bytes: u64,
    /// `None` when it cannot be opened, or a newer build wrote it.
    pub(super) file: Option<Arc<F>>,
    /// `None` when it is damaged.
    pub(super) header: Option<SegmentHeader>,
    pub(super) is_cold: bool,
}

/// The files of the log, by name; what else lies there is none of its.
pub(super) fn open_all<D: Disk>(
    disk: &D,
    faults: &mut Vec<Fault>,
) -> Result<Vec<Raw<D::File>>, DiskError> {
    let mut names = disk
        .list()
        .map_err(|e| DiskError::new(DiskCall::List, "", e))?;
    names.sort();
    let mut found = Vec::new();
    for name in names {
        let is_cold = cold::cold_number(&name).is_some();
        if !is_cold && slot_number(&name).is_none() {
            continue;
        }
        let mut raw = Raw {
            name,
            bytes: 0,
            file: None,
            header: None,
            is_cold,
        };
        if let Err(detail) = open(disk, &mut raw) {
            faults.push(Fault::of(&raw.name, detail));
        }
        found.push(raw);
    }
    Ok(found)
}

fn open<D: Disk>(disk: &D, raw: &mut Raw<D::File>) -> Result<(), String> {
    let file = disk
        .open(&raw.name)
        .map_err(|error| format!("it cannot be opened ({error})"))?;
    raw.bytes = file
        .len_bytes()
        .map_err(|error| format!("its length cannot be read ({error})"))?;
    let file = raw.file.insert(Arc::new(file));
    let mut block = vec![0; in_memory(BLOCK_BYTES)];
    let filled = read_up_to(&**file, 0, &mut block)
        .map_err(|error| format!("the disk cannot read the segment header ({error})"))?;
    block.truncate(filled);
    match SegmentHeader::decode(&block) {
        Ok(header) => raw.header = Some(header),
        Err(bad @ BadHeader::Version(version)) => {
            // The version lies before the checksum: it may be the damage.
            return Err(format!("{}, {version}", bad.describe()));
        }
        Err(bad) => return Err(bad.describe().to_owned()),
    }
    Ok(())
}
