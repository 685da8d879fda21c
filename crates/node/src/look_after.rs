//! What the node does for its log and its snapshots beside requests: decides little, moves things
//! between engine, log, pages and snapshots in the right order.

use tanda_engine::{Lsn, Millis, snapshot_record};
use tanda_wal::Disk;

use crate::Node;
use crate::background::{BackgroundJob, BackgroundOutcome, Outcome, Work};
use crate::node::end_of;
use crate::snapshot::Published;

/// Messages of one slice of a snapshot: well below a millisecond.
const SLICE_MESSAGES: usize = 256;

impl<D: Disk> Node<D> {
    /// The log's timers, the next slice of a snapshot, memory.
    pub(crate) fn look_after_log(&mut self) {
        self.note_emptied();
        if self.upkeep.take_idle(self.now) && !self.log.on_idle() {
            // A slow flush is still under way, and nothing may come after it.
            self.upkeep.want_marker(self.now);
        }
        self.advance_snapshot();
        self.advance_reclaim();
        self.watch_memory();
    }

    /// What takes long and can wait; run it anywhere and give the outcome to
    /// [`Self::on_background`]. At most one job is out.
    #[must_use]
    pub fn take_background(&mut self) -> Option<BackgroundJob<D>> {
        if self.failed().is_some() || self.is_background_out {
            return None;
        }
        let (proven, durable) = (Lsn(self.log.proven().0), self.durable());
        let pages = &mut self.pages;
        let snapshot = self
            .snapshots
            .take_job(proven, durable, || pages.take_to_sync());
        let work = snapshot
            .map(Work::Snapshot)
            .or_else(|| pages.overdue().map(Work::Pages))
            .or_else(|| self.engine.take_garbage().map(Work::Drop))
            .or_else(|| self.copy.take().map(Work::Copy))?;
        self.is_background_out = true;
        Some(BackgroundJob(work))
    }

    /// A background job has ended, well or not.
    pub fn on_background(&mut self, now: Millis, outcome: BackgroundOutcome<D>) {
        self.advance(now);
        self.is_background_out = false;
        match outcome.0 {
            Outcome::Snapshot(outcome) => {
                let (failures, _) = self.snapshots.failures();
                let published = self.snapshots.on_outcome(self.now, outcome);
                if self.snapshots.failures().0 != failures {
                    self.on_snapshot_failed();
                }
                if let Some(published) = published
                    && self.failed().is_none()
                {
                    self.on_published(published);
                }
            }
            Outcome::Pages(synced) => {
                if let Err(error) = synced {
                    self.snapshots.on_failed(self.now, &error);
                    self.on_snapshot_failed();
                }
            }
            Outcome::Copy(outcome) => self.on_copied(outcome),
            Outcome::Dropped => {}
        }
    }

    /// Takes a snapshot soon, whether one is due or not.
    pub const fn want_snapshot(&mut self) {
        self.snapshots.want();
    }

    /// How many snapshots failed since the start, and why the newest did.
    #[must_use]
    pub fn snapshot_failures(&self) -> (u64, Option<&str>) {
        self.snapshots.failures()
    }

    /// The snapshot that a start would use.
    #[must_use]
    pub const fn published_snapshot(&self) -> Option<Published> {
        self.snapshots.published()
    }

    /// When a snapshot is due although nothing comes.
    pub(crate) fn snapshot_deadline(&self) -> Option<Millis> {
        if self.backup.keeps_snapshot() {
            return None;
        }
        let last_record = self.upkeep.last_record_at();
        self.snapshots.idle_deadline(end_of(&self.log), last_record)
    }

    fn advance_snapshot(&mut self) {
        let end = end_of(&self.log);
        let idle_ms = self.upkeep.last_record_at().until(self.now);
        let stored = self.engine.stored();
        if !self.backup.keeps_snapshot() && self.snapshots.is_due(self.now, end, stored, idle_ms) {
            self.begin_snapshot();
        }
        if !self.snapshots.wants_slice() {
            return;
        }
        let mut slices = core::mem::take(&mut self.slices);
        let done = self.engine.capture_slice(SLICE_MESSAGES, &mut slices);
        self.snapshots.on_slice(&mut slices, end, done);
        self.slices = slices;
        if done {
            // What is captured must be proven to be on disk, which the next batch says. Behind the
            // newest record there may be a marker, which nothing proves unless it is asked for.
            if let Some(at) = self.snapshots.taken_at() {
                self.log.want_proven(tanda_wal::Lsn(at.0));
            }
            self.upkeep.want_marker(self.now);
        }
    }

    fn begin_snapshot(&mut self) {
        let (now, stored) = (self.now, self.engine.stored());
        let at = self.with_engine(|engine, journal, _| engine.begin_capture(now, journal));
        let sequence = self.snapshots.begin(now, self.log_id, at, stored);
        self.pages.on_begun(sequence);
        self.backup.on_begun(sequence);
    }

    /// A start would use this snapshot from now on.
    fn on_published(&mut self, published: Published) {
        if self.name_snapshot(published) {
            self.pages.on_published(published.sequence);
            self.reclaim.on_published(published.sequence);
            self.backup.on_published(&published);
        }
    }

    /// The start used a snapshot; the newest that the log names is `named`. If it is an older one,
    /// the log says now which counts: otherwise nobody would notice, once the beginning of the log
    /// is gone, that the snapshot is gone as well.
    pub(crate) fn name_found_snapshot(&mut self, named: u64) {
        if let Some(found) = self.snapshots.published()
            && named < found.sequence
        {
            self.name_snapshot(found);
        }
    }

    /// The log says that this snapshot counts and may lose its beginning.
    fn name_snapshot(&mut self, published: Published) -> bool {
        let record = snapshot_record(self.now, published.sequence);
        if self.log.append(&record).is_err() {
            // Poisoned: the next call that writes says so.
            return false;
        }
        self.log.set_start(tanda_wal::Lsn(published.at.0));
        self.upkeep.note_end(self.now, end_of(&self.log));
        // The segments before go once the next batch after this one says where the log starts.
        self.sweep_once_durable = Some(end_of(&self.log));
        true
    }

    /// Segments whose last message left: they go when that is on disk.
    fn note_emptied(&mut self) {
        self.engine.take_unreferenced(&mut self.unreferenced);
        let end = end_of(&self.log);
        for segment in self.unreferenced.drain(..) {
            self.emptied.insert(segment, end);
            self.sweep_once_durable.get_or_insert(end);
        }
    }

    /// Gives segments back that nothing needs any more. Effects up to `durable` are released by
    /// now: until then a delivery may point into one.
    pub(crate) fn sweep_segments(&mut self) {
        // A request since the last pass may have emptied one: what it wrote is not on disk yet.
        self.note_emptied();
        let durable = self.durable();
        // A backup that is over sweeps soon.
        if self.sweep_once_durable.is_none_or(|at| durable < at) || self.backup.keeps_all() {
            return;
        }
        self.sweep_once_durable = None;
        let mut free = Vec::new();
        for file in self.log.segment_files() {
            let mut windows = file.index..file.index + file.windows;
            let waits = |window: &u64| self.emptied.get(window).is_some_and(|at| *at > durable);
            let is_used = |window: u64| self.engine.segment_use(window).messages > 0;
            let mut blocked = windows.clone();
            if file.is_replayed
                || blocked.any(|window| self.reclaim.is_blocked(window))
                || windows.any(|window| is_used(window) || waits(&window))
            {
                continue;
            }
            free.push(file.index);
        }
        for window in free {
            self.log.free_segment(window);
            self.emptied.remove(&window);
        }
        if let Some(later) = self.emptied.values().filter(|at| **at > durable).min() {
            self.sweep_once_durable = Some(*later);
        }
        self.emptied.retain(|_, at| *at > durable);
    }

    /// Something that was kept may go: looked for with the next flush, which is asked for.
    pub(crate) fn sweep_soon(&mut self) {
        let durable = self.durable();
        self.sweep_once_durable.get_or_insert(durable);
        self.upkeep.want_marker(self.now);
    }

    /// When the log's start moves, what lies before it can go.
    pub(crate) fn note_start(&mut self) {
        let start = Lsn(self.log.claimed_start().0);
        if start != self.seen_start {
            self.seen_start = start;
            self.sweep_soon();
        }
    }

    /// Over the memory limit publishes are refused.
    fn watch_memory(&mut self) {
        if !self.memory.is_due(self.now) {
            return;
        }
        let was_full = self.memory.is_full;
        let used = self.memory_bytes();
        self.memory.note(self.now, used);
        if self.memory.is_full != was_full {
            self.note_refusal();
        }
    }

    /// How much memory whoever runs scripts takes for them: it counts as the node's.
    pub const fn note_script_memory(&mut self, bytes: u64) {
        self.memory.script_bytes = bytes;
    }

    /// Whether the memory limit is near: publishes are still taken, but better not sent.
    #[must_use]
    pub const fn memory_short(&self) -> bool {
        self.memory.is_short
    }

    /// Whether publishes are refused because the memory limit is reached.
    #[must_use]
    pub const fn memory_full(&self) -> bool {
        self.memory.is_full
    }

    /// About what the index and the log's caches hold.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.engine.memory_bytes()
            + self.log.stats().cached_bytes as u64
            + self.backlog_bytes() as u64
            + self.memory.script_bytes
    }
}
