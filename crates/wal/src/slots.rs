//! The segment files: made ahead, filled, taken back.
//!
//! [`Slots`] travels with the flush job, so that files are made, written and synced in one place
//! and one thread at a time. It knows which file is written now and which are spare; it does
//! not know which segments are still needed.

use std::str::FromStr;
use std::sync::Arc;

use crate::config::Config;
use crate::disk::{Disk, DiskCall, DiskError, DiskFile, write_all_at};
use crate::format::{SegmentHeader, SlotState};
use crate::lsn::Geometry;
use crate::tail::{SealedBatch, Window};

/// An open segment file.
pub(crate) struct Slot<F> {
    pub(crate) name: String,
    pub(crate) file: Arc<F>,
    /// Its length.
    pub(crate) bytes: u64,
}

/// A segment that was begun.
pub(crate) struct Opened<F> {
    pub(crate) window: Window,
    pub(crate) slot: Slot<F>,
}

/// Why a file could not be had.
pub(crate) enum NoSlot {
    /// The disk is full; nothing is lost, it can be tried again.
    NoSpace(DiskError),
    /// Anything else.
    Failed(DiskError),
}

/// The files of one log. See the module head.
pub(crate) struct Slots<D: Disk> {
    disk: Arc<D>,
    template: SegmentHeader,
    geometry: Geometry,
    reserve: usize,
    spare_max: usize,
    keep_free_bytes: u64,
    current: Option<Current<D::File>>,
    spares: Vec<Slot<D::File>>,
    /// Spare files whose header still says that they are the segment they were.
    unmarked: Vec<Slot<D::File>>,
    next_number: u32,
    alarm: bool,
    lock: Arc<D::Lock>,
}

struct Current<F> {
    window: Window,
    base: u64,
    /// Position after the last batch written.
    end: u64,
    /// Start of the log as that batch has it.
    start: u64,
    slot: Slot<F>,
    dirty: bool,
}

/// What `Slots` starts from.
pub(crate) struct Inventory<D: Disk> {
    pub(crate) lock: Arc<D::Lock>,
    pub(crate) spares: Vec<Slot<D::File>>,
    pub(crate) next_number: u32,
    pub(crate) epoch: u64,
}

impl<D: Disk> Slots<D> {
    pub(crate) fn new(disk: Arc<D>, config: &Config, found: Inventory<D>) -> Self {
        let geometry = Geometry::new(config.segment_bytes);
        Self {
            disk,
            template: SegmentHeader {
                log_id: config.log_id,
                shard: config.shard,
                segment_shift: geometry.shift(),
                epoch: found.epoch,
                file_bytes: config.segment_bytes,
                state: SlotState::Spare,
            },
            geometry,
            reserve: config.reserve_segments,
            spare_max: config.spare_segments_max,
            keep_free_bytes: config.keep_free_bytes,
            current: None,
            spares: found.spares,
            unmarked: Vec::new(),
            next_number: found.next_number,
            alarm: false,
            lock: found.lock,
        }
    }

    /// Epoch written into headers from now on.
    pub(crate) const fn set_epoch(&mut self, epoch: u64) {
        self.template.epoch = epoch;
    }

    /// Whether the reserve cannot be kept up: the disk is full.
    pub(crate) const fn alarm(&self) -> bool {
        self.alarm
    }

    /// The lock of the directory, for who writes files beside these.
    pub(crate) fn lock(&self) -> Arc<D::Lock> {
        Arc::clone(&self.lock)
    }

    pub(crate) fn disk(&self) -> Arc<D> {
        Arc::clone(&self.disk)
    }

    pub(crate) const fn spare_count(&self) -> usize {
        self.spares.len() + self.unmarked.len()
    }

    pub(crate) fn spare_bytes(&self) -> u64 {
        let spares = self.spares.iter().chain(&self.unmarked);
        spares.map(|slot| slot.bytes).sum()
    }

    /// Whether `batch` goes to another segment than the last one did.
    pub(crate) fn is_next_segment(&self, batch: &SealedBatch) -> bool {
        self.current
            .as_ref()
            .is_none_or(|current| current.window != batch.segment)
    }

    /// A file for `window`: a spare one if there is, otherwise a new one. Its header is spare.
    pub(crate) fn take_slot(
        &mut self,
        window: Window,
        file_bytes: u64,
    ) -> Result<Slot<D::File>, NoSlot> {
        if window.span == 1
            && let Some(slot) = self.unmarked.pop().or_else(|| self.spares.pop())
        {
            return Ok(slot);
        }
        self.create_slot(file_bytes)
    }

    /// Writes and syncs the header that makes `slot` the segment at `window`, and returns it.
    pub(crate) fn begin(
        &mut self,
        slot: Slot<D::File>,
        window: Window,
        (previous_end, start): (u64, u64),
    ) -> Result<SegmentHeader, DiskError> {
        let state = SlotState::Live {
            index: window.index,
            span: window.span,
            previous_end,
            start,
        };
        self.write_header(&slot, state)?;
        let header = self.header(&slot, state);
        self.current = Some(Current {
            window,
            base: self.geometry.base(window.index),
            end: self.geometry.first_batch(window.index),
            start,
            slot,
            dirty: false,
        });
        Ok(header)
    }

    /// Goes on in the segment just begun from `end`: recovery has put batches there already.
    pub(crate) const fn resume_at(&mut self, end: u64) {
        if let Some(current) = &mut self.current {
            current.end = end;
        }
    }

    /// Syncs the segment written so far and begins the one of `batch`.
    pub(crate) fn enter_segment(&mut self, batch: &SealedBatch) -> Result<Opened<D::File>, NoSlot> {
        let window = batch.segment;
        let file_bytes = if window.span == 1 {
            self.geometry.segment_bytes()
        } else {
            batch.end() - self.geometry.base(window.index)
        };
        // The start that is on disk already, not that of `batch`: the records because of which it
        // is no longer needed may be in this very batch.
        let marks = self
            .current
            .as_ref()
            .map_or((0, 0), |current| (current.end, current.start));
        let slot = self.take_slot(window, file_bytes)?;
        let opened = Opened {
            window,
            slot: slot.clone(),
        };
        self.begin(slot, window, marks).map_err(NoSlot::Failed)?;
        Ok(opened)
    }

    /// Writes a batch of the current segment.
    pub(crate) fn write(&mut self, batch: &SealedBatch) -> Result<(), DiskError> {
        if let Some(current) = &mut self.current {
            current.dirty = true;
            write_all_at(
                &*current.slot.file,
                batch.position - current.base,
                &batch.bytes,
            )
            .map_err(|e| DiskError::new(DiskCall::Write, &current.slot.name, e))?;
            current.end = batch.end();
            current.start = batch.claims.start;
        }
        Ok(())
    }

    /// Syncs the current segment if it was written to.
    pub(crate) fn sync(&mut self) -> Result<(), DiskError> {
        if let Some(current) = &mut self.current
            && current.dirty
        {
            sync(&current.slot)?;
            current.dirty = false;
        }
        Ok(())
    }

    /// Takes back the files of segments that are no longer needed.
    pub(crate) fn take_back(&mut self, freed: Vec<Slot<D::File>>) {
        for slot in freed {
            // Cold files are not used again: their names say what they are.
            let reusable =
                slot.bytes == self.geometry.segment_bytes() && slot_number(&slot.name).is_some();
            if reusable && self.spare_count() < self.spare_max {
                self.unmarked.push(slot);
            } else {
                // A file that stays is found again at the next start, when it is removed or
                // reused; nothing depends on it.
                self.disk.remove(&slot.name).ok();
            }
        }
    }

    /// Writes spare headers into the files taken back, so that recovery need not take them for
    /// segments that may still be needed.
    pub(crate) fn mark_spares(&mut self) -> Result<(), DiskError> {
        while let Some(slot) = self.unmarked.last() {
            self.write_header(slot, SlotState::Spare)?;
            self.spares.extend(self.unmarked.pop());
        }
        Ok(())
    }

    /// Makes the next segment and the reserve; a full disk raises the alarm, success ends it.
    ///
    /// # Errors
    /// Only a failed write or sync.
    pub(crate) fn make_spares(&mut self) -> Result<(), DiskError> {
        while self.spare_count() <= self.reserve {
            match self.create_slot(self.geometry.segment_bytes()) {
                Ok(slot) => self.spares.push(slot),
                Err(NoSlot::Failed(e)) if is_fatal_ahead(e.call) => return Err(e),
                Err(NoSlot::NoSpace(_) | NoSlot::Failed(_)) => {
                    self.alarm = true;
                    return Ok(());
                }
            }
        }
        self.alarm = false;
        Ok(())
    }

    /// A new preallocated file with a spare header, durable under its final name.
    fn create_slot(&mut self, file_bytes: u64) -> Result<Slot<D::File>, NoSlot> {
        let number = self.next_number;
        let temporary = format!("{number:06}.tmp");
        self.check_free(file_bytes, &temporary)
            .map_err(NoSlot::NoSpace)?;
        self.next_number += 1;
        let named = |call| {
            let name = temporary.clone();
            move |e| DiskError::new(call, &name, e)
        };
        let file = self
            .disk
            .create(&temporary)
            .map_err(named(DiskCall::Create))
            .map_err(sort)?;
        if let Err(e) = file.allocate(file_bytes) {
            // Ignored: a temporary file that stays is removed at the next start.
            self.disk.remove(&temporary).ok();
            return Err(sort(named(DiskCall::Allocate)(e)));
        }
        let mut slot = Slot {
            name: temporary.clone(),
            file: Arc::new(file),
            bytes: file_bytes,
        };
        self.write_header(&slot, SlotState::Spare)
            .map_err(NoSlot::Failed)?;
        slot.name = slot_name(number);
        self.disk
            .rename(&temporary, &slot.name)
            .map_err(named(DiskCall::Rename))
            .map_err(sort)?;
        self.disk
            .sync_dir()
            .map_err(|e| NoSlot::Failed(DiskError::new(DiskCall::SyncDir, "", e)))?;
        Ok(slot)
    }

    fn check_free(&self, file_bytes: u64, name: &str) -> Result<(), DiskError> {
        match self.disk.free_bytes() {
            Some(free) if free < file_bytes.saturating_add(self.keep_free_bytes) => {
                let source = std::io::ErrorKind::StorageFull.into();
                Err(DiskError::new(DiskCall::Allocate, name, source))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The header of `slot` in this state and epoch.
    pub(crate) const fn header(&self, slot: &Slot<D::File>, state: SlotState) -> SegmentHeader {
        SegmentHeader {
            file_bytes: slot.bytes,
            state,
            ..self.template
        }
    }

    /// Writes and syncs it.
    pub(crate) fn write_header(
        &self,
        slot: &Slot<D::File>,
        state: SlotState,
    ) -> Result<(), DiskError> {
        write_all_at(&*slot.file, 0, &self.header(slot, state).encode())
            .map_err(|e| DiskError::new(DiskCall::Write, &slot.name, e))?;
        sync(slot)
    }
}

pub(crate) fn sync<F: DiskFile>(slot: &Slot<F>) -> Result<(), DiskError> {
    slot.file
        .sync_data()
        .map_err(|e| DiskError::new(DiskCall::Sync, &slot.name, e))
}

/// The name of slot file `number`.
pub(crate) fn slot_name(number: u32) -> String {
    format!("{number:06}.{SLOT_SUFFIX}")
}

/// The number in a slot file's name, or `None` for other files.
pub(crate) fn slot_number(name: &str) -> Option<u32> {
    number_in(name, SLOT_SUFFIX)
}

/// Whether this is an unfinished slot file.
pub(crate) fn is_temporary(name: &str) -> bool {
    number_in::<u32>(name, TEMPORARY_SUFFIX).is_some()
}

/// The number in a file's name that has this suffix, or `None` for other files.
pub(crate) fn number_in<T: FromStr>(name: &str, suffix: &str) -> Option<T> {
    let (number, found) = name.split_once('.')?;
    (found == suffix).then(|| number.parse().ok())?
}

const SLOT_SUFFIX: &str = "seg";
const TEMPORARY_SUFFIX: &str = "tmp";

fn sort(e: DiskError) -> NoSlot {
    if e.is_no_space() {
        NoSlot::NoSpace(e)
    } else {
        NoSlot::Failed(e)
    }
}

/// A failed write or sync is never taken lightly, even of a file that holds nothing yet: the
/// disk can no longer be trusted.
const fn is_fatal_ahead(call: DiskCall) -> bool {
    matches!(call, DiskCall::Write | DiskCall::Sync | DiskCall::SyncDir)
}
