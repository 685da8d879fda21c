//! Committing: flush jobs out, outcomes in, and what becomes free by it.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Log, Space};
use crate::disk::{Disk, DiskError};
use crate::error::Poisoned;
use crate::flush::{Ended, FlushJob, FlushOutcome};
use crate::lsn::Lsn;
use crate::segments::Segment;
use crate::slots::Opened;
use crate::tail::SealedBatch;

impl<D: Disk> Log<D> {
    /// Seals what is pending and hands it out to be written; `None` when there is nothing to do,
    /// a job is out already, the disk is still full, or the log is poisoned.
    ///
    /// Call it again after each [`Self::on_flushed`], and after appends when no job is out.
    #[must_use]
    pub fn take_flush(&mut self) -> Option<FlushJob<D>> {
        if self.poison.is_some() || self.slots.is_none() {
            return None;
        }
        let retry = self.space.retry;
        if self.space.stalled && !retry && self.freed.is_empty() {
            return None;
        }
        self.tail.seal();
        if self.marks.marker_due && self.tail.sealed().is_empty() {
            self.tail.seal_marker();
        }
        self.marks.marker_due = false;
        if self.tail.sealed().is_empty() && self.freed.is_empty() && !retry {
            return None;
        }
        self.space.retry = false;
        let batches: Vec<SealedBatch> = self.tail.take_sealed().into();
        for batch in &batches {
            self.cache.push(batch);
        }
        let job = FlushJob {
            slots: self.slots.take()?,
            batches,
            freed: std::mem::take(&mut self.freed),
            retry_space: retry,
        };
        self.in_flight_bytes = job.bytes();
        Some(job)
    }

    /// Takes note of what a flush did and returns the new durable position.
    ///
    /// # Errors
    /// A write or sync failed, now or earlier: the durable position stays where it was.
    pub fn on_flushed(&mut self, outcome: FlushOutcome<D>) -> Result<Lsn, Poisoned> {
        self.in_flight_bytes = 0;
        let FlushOutcome {
            slots,
            written,
            unwritten,
            opened,
            ended,
        } = outcome;
        let stalled = match ended {
            Ended::Failed(cause) => {
                // Kept for the lock only: no job is handed out any more.
                self.slots = Some(slots);
                return Err(self.poison(cause));
            }
            Ended::NoSpace => true,
            Ended::Synced => false,
        };
        self.space = Space {
            alarm: slots.alarm(),
            stalled,
            retry: self.space.retry,
            spare_count: slots.spare_count(),
            spare_bytes: slots.spare_bytes(),
        };
        self.note_written(&written, opened.into());
        self.tail.put_back(unwritten);
        self.slots = Some(slots);
        self.collect_free();
        self.cache.evict(self.durable);
        Ok(self.durable())
    }

    /// To be called when nothing was appended for a while (a few hundred milliseconds) and from
    /// time to time while [`Self::room`] is refused.
    ///
    /// Lets the log write a marker that proves the newest records to be synced and tells what is
    /// no longer needed, and lets it look for disk space again. Call [`Self::take_flush`] after it.
    /// False while something is being written that will leave more to prove: call it again.
    pub fn on_idle(&mut self) -> bool {
        if self.space.alarm || self.space.stalled {
            self.space.retry = true;
        }
        let is_idle = self.slots.is_some() && self.tail.pending_bytes() == 0;
        let is_behind = self.marks.records_end.max(self.marks.wanted) > self.marks.proven
            || self.tail.claims.start > self.marks.start_claimed;
        self.marks.marker_due = is_idle && is_behind;
        is_idle || !is_behind || self.poison.is_some()
    }

    /// Somebody waits until [`Self::proven`] has reached `at`, which is not beyond [`Self::end`],
    /// although no record may lie below it: [`Self::on_idle`] sees to it.
    pub fn want_proven(&mut self, at: Lsn) {
        self.marks.wanted = self.marks.wanted.max(at.0);
    }

    fn note_written(&mut self, written: &[SealedBatch], mut opened: VecDeque<Opened<D::File>>) {
        for batch in written {
            let is_known = self
                .segments
                .last_mut()
                .is_some_and(|segment| segment.window == batch.segment);
            if !is_known && let Some(Opened { window, slot }) = opened.pop_front() {
                let epoch = self.tail.epoch();
                let segment = Segment::new(self.geometry, window, epoch, slot);
                self.segments.push(segment);
            }
            if let Some(segment) = self.segments.last_mut() {
                segment.push_batch(batch.position, batch.end());
            }
            self.durable = batch.end();
            self.marks.proven = self.marks.proven.max(batch.claims.synced);
            if self.marks.start_claimed < batch.claims.start {
                self.marks.start_claimed = batch.claims.start;
                self.frees.is_due = true;
            }
            if batch.records > 0 {
                self.marks.records_end = batch.end();
            }
        }
        self.tail.claims.synced = self.durable;
    }

    fn poison(&mut self, cause: DiskError) -> Poisoned {
        let poisoned = Poisoned {
            cause: Arc::new(cause),
        };
        self.poison = Some(poisoned.clone());
        poisoned
    }
}
