//! The blocking half of a commit: write the batches, sync, look after the files.

use crate::disk::{Disk, DiskError};
use crate::slots::{NoSlot, Opened, Slot, Slots};
use crate::tail::SealedBatch;

/// Everything that is to be written now. At most one exists per log.
///
/// It owns the log's file handles and shares the bytes, so it may run on another thread while
/// the log takes more records. Dropping it without running it leaves the log as it would be
/// after a crash: it never becomes durable again and has to be opened anew.
#[must_use = "run it and give the outcome to Log::on_flushed"]
pub struct FlushJob<D: Disk> {
    pub(crate) slots: Box<Slots<D>>,
    pub(crate) batches: Vec<SealedBatch>,
    pub(crate) freed: Vec<Slot<D::File>>,
    pub(crate) retry_space: bool,
}

/// What came of a [`FlushJob`]; give it to `Log::on_flushed`.
#[must_use = "give it to Log::on_flushed"]
pub struct FlushOutcome<D: Disk> {
    pub(crate) slots: Box<Slots<D>>,
    /// Written and synced.
    pub(crate) written: Vec<SealedBatch>,
    /// Not begun, because the disk is full.
    pub(crate) unwritten: Vec<SealedBatch>,
    pub(crate) opened: Vec<Opened<D::File>>,
    pub(crate) ended: Ended,
}

pub(crate) enum Ended {
    Synced,
    NoSpace,
    Failed(DiskError),
}

impl<D: Disk> FlushJob<D> {
    /// Bytes that will be written.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.batches.iter().map(|batch| batch.bytes.len()).sum()
    }

    /// Writes and syncs everything. Blocks on the disk; the only part of the log that does,
    /// beside opening it and reading back evicted data.
    ///
    /// A segment is synced before the next one is written. Free files are taken back and the
    /// next segment is made after the sync, so that it does not delay what it can.
    pub fn run(mut self) -> FlushOutcome<D> {
        let mut progress = Progress {
            synced: 0,
            opened: Vec::new(),
        };
        // Freed files first: they may be the only ones to go on with.
        let may_make_spares = !self.slots.alarm() || self.retry_space || !self.freed.is_empty();
        self.slots.take_back(std::mem::take(&mut self.freed));
        let mut ended = self.write_batches(&mut progress);
        if !matches!(ended, Ended::Failed(_))
            && let Err(e) = self.look_after_spares(may_make_spares)
        {
            ended = Ended::Failed(e);
        }
        let unwritten = self.batches.split_off(progress.synced);
        FlushOutcome {
            slots: self.slots,
            written: self.batches,
            unwritten,
            opened: progress.opened,
            ended,
        }
    }

    fn look_after_spares(&mut self, may_make: bool) -> Result<(), DiskError> {
        self.slots.mark_spares()?;
        if may_make {
            self.slots.make_spares()?;
        }
        Ok(())
    }

    fn write_batches(&mut self, progress: &mut Progress<D>) -> Ended {
        for (number, batch) in self.batches.iter().enumerate() {
            if self.slots.is_next_segment(batch) {
                if let Err(e) = self.slots.sync() {
                    return Ended::Failed(e);
                }
                progress.synced = number;
                match self.slots.enter_segment(batch) {
                    Ok(opened) => progress.opened.push(opened),
                    Err(NoSlot::NoSpace(_)) => return Ended::NoSpace,
                    Err(NoSlot::Failed(e)) => return Ended::Failed(e),
                }
            }
            if let Err(e) = self.slots.write(batch) {
                return Ended::Failed(e);
            }
        }
        match self.slots.sync() {
            Ok(()) => {
                progress.synced = self.batches.len();
                Ended::Synced
            }
            Err(e) => Ended::Failed(e),
        }
    }
}

struct Progress<D: Disk> {
    /// Batches known to be on disk.
    synced: usize,
    opened: Vec<Opened<D::File>>,
}
