//! Snapshots: when one is taken, how far it has come, when it counts
//! (docs/formats/record-stream.md).
//!
//! Owns the state of the one that is being taken, and what is known of the last one. It refuses to
//! know the engine and the log: positions come in, jobs go out.

pub(crate) mod files;
mod pieces;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use tanda_engine::{Lsn, Millis};
use tanda_wal::{Disk, DiskCall, DiskError};

use crate::NodeConfig;
use crate::background::{SnapshotOutcome, SnapshotWork, Step};
use crate::pages::PAGE_FILE;
use crate::stream::{StreamHeader, StreamKind, StreamWriter};
use files::{Opener, SNAPSHOT_FILES, Target};
use pieces::Pieces;

/// Slices stop while so much waits to be written: taking them goes no faster than the disk, so it
/// takes no more of the shard's thread.
const PENDING_BYTES_MAX: usize = 512 << 10;
/// After a snapshot that failed.
const RETRY_MS: u64 = 5_000;
/// A log that is idle gets a snapshot when it has grown by a segment, after this long.
const IDLE_MS: u64 = 1_000;
/// Log per byte of snapshot at least: so a large one costs a quarter of what is written anyway.
const LOG_PER_SNAPSHOT: u64 = 4;

/// When snapshots are taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    /// Log between two.
    pub(crate) log_bytes: u64,
    /// Messages stored between two: a start keeps these in memory.
    pub(crate) messages: u64,
    pub(crate) segment_bytes: u64,
}

impl Schedule {
    pub(crate) const fn of(config: &NodeConfig) -> Self {
        Self {
            log_bytes: config.snapshot_bytes,
            messages: config.snapshot_messages,
            segment_bytes: config.log.segment_bytes,
        }
    }
}

/// A snapshot that a start would use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// Its number.
    pub sequence: u64,
    /// The log position as of which it holds the state.
    pub at: Lsn,
    /// When it was begun.
    pub taken_at: Millis,
    /// Its size.
    pub bytes: u64,
    /// From its beginning until it was on disk; 0 for one of an earlier run.
    pub took_ms: u64,
}

/// See the module.
pub(crate) struct Snapshots<D: Disk> {
    disk: Arc<D>,
    schedule: Schedule,
    /// Number of the newest one begun.
    sequence: u64,
    published: Option<Published>,
    /// Place of its file; the next one goes to the other.
    published_index: usize,
    taking: Option<Taking<D>>,
    retry_at: Millis,
    /// Somebody asked for one, whether it is due or not.
    wanted: bool,
    /// Messages stored when the last one began.
    messages_then: u64,
    /// A sync of the pages failed: the system may have dropped what was not synced, so nothing that
    /// names pages may be published before the pages are written again, which a start does.
    pages_lost: bool,
    failures: u64,
    last_error: Option<String>,
}

/// The one under way.
struct Taking<D: Disk> {
    header: StreamHeader,
    began: Millis,
    /// `None` once its end is among the bytes that wait.
    writer: Option<StreamWriter>,
    pending: Pieces,
    /// `None` while a job is out.
    target: Option<Box<Target<D>>>,
    /// The log's end when the last slice was taken.
    captured: Option<Lsn>,
    failed: bool,
}

impl<D: Disk> Snapshots<D> {
    /// `found` is what a start used, with its place.
    pub(crate) fn new(disk: Arc<D>, schedule: Schedule, found: Option<(usize, Published)>) -> Self {
        Self {
            disk,
            schedule,
            sequence: found.map_or(0, |(_, published)| published.sequence),
            published: found.map(|(_, published)| published),
            published_index: found.map_or(SNAPSHOT_FILES.len() - 1, |(index, _)| index),
            taking: None,
            retry_at: Millis(0),
            wanted: false,
            messages_then: 0,
            pages_lost: false,
            failures: 0,
            last_error: None,
        }
    }

    pub(crate) const fn published(&self) -> Option<Published> {
        self.published
    }

    pub(crate) const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The position of the one under way.
    pub(crate) fn taken_at(&self) -> Option<Lsn> {
        self.taking.as_ref().map(|taking| taking.header.at)
    }

    pub(crate) const fn is_taking(&self) -> bool {
        self.taking.is_some()
    }

    /// How many failed, and why the newest did.
    pub(crate) fn failures(&self) -> (u64, Option<&str>) {
        (self.failures, self.last_error.as_deref())
    }

    /// Why there will be none before the next start, if so.
    pub(crate) fn hopeless(&self) -> Option<&str> {
        self.pages_lost
            .then(|| self.last_error.as_deref().unwrap_or_default())
    }

    /// The way to the one that is published.
    pub(crate) fn opener(&self) -> Opener<D> {
        Opener {
            disk: Arc::clone(&self.disk),
            index: self.published_index,
            sequence: self.published.map_or(0, |published| published.sequence),
        }
    }

    /// Takes one as soon as may be.
    pub(crate) const fn want(&mut self) {
        self.wanted = true;
    }

    /// Whether one is to be begun now: the log ends at `end`, so many messages were stored so far,
    /// and the last record came `idle_ms` ago.
    pub(crate) fn is_due(&self, now: Millis, end: Lsn, stored: u64, idle_ms: u64) -> bool {
        if self.taking.is_some() || now < self.retry_at || self.pages_lost {
            return false;
        }
        let grown = self.grown(end);
        let enough = self.published.map_or(0, |p| p.bytes * LOG_PER_SNAPSHOT);
        self.wanted
            || grown >= self.schedule.log_bytes.max(enough)
            || stored.saturating_sub(self.messages_then) >= self.schedule.messages
            || (grown >= self.schedule.segment_bytes && idle_ms >= IDLE_MS)
    }

    /// When a log that stays as it is gets one; `since` is when its last record came.
    pub(crate) fn idle_deadline(&self, end: Lsn, since: Millis) -> Option<Millis> {
        let is_waiting = self.taking.is_none()
            && !self.pages_lost
            && (self.wanted || self.grown(end) >= self.schedule.segment_bytes);
        is_waiting.then(|| self.retry_at.max(since.after_ms(IDLE_MS)))
    }

    fn grown(&self, end: Lsn) -> u64 {
        let at = self.published.map_or(0, |published| published.at.0);
        end.0.saturating_sub(at)
    }

    /// Begins one of the state as of `at`; returns its number.
    pub(crate) fn begin(&mut self, now: Millis, log_id: u128, at: Lsn, stored: u64) -> u64 {
        self.sequence += 1;
        self.wanted = false;
        self.messages_then = stored;
        let header = StreamHeader {
            kind: StreamKind::Snapshot,
            sequence: self.sequence,
            taken_at_ms: now.0,
            log_id,
            at,
        };
        let mut pending = Pieces::default();
        let mut writer = None;
        pending.extend(|out| writer = Some(StreamWriter::new(header, out)));
        let other = usize::from(self.published_index == 0);
        self.taking = Some(Taking {
            header,
            began: now,
            writer,
            pending,
            target: Some(Box::new(Target::new(Arc::clone(&self.disk), other))),
            captured: None,
            failed: false,
        });
        self.sequence
    }

    /// Whether the next slice is to be taken now.
    pub(crate) fn wants_slice(&self) -> bool {
        self.taking.as_ref().is_some_and(|taking| {
            taking.captured.is_none() && taking.pending.bytes() < PENDING_BYTES_MAX
        })
    }

    /// Takes a slice; `end` is the log's end, `done` says that it was the last.
    pub(crate) fn on_slice(&mut self, records: &mut Vec<Vec<u8>>, end: Lsn, done: bool) {
        let Some(taking) = &mut self.taking else {
            records.clear();
            return;
        };
        for record in records.drain(..) {
            if let Some(writer) = taking.writer.as_mut().filter(|_| !taking.failed) {
                taking.pending.extend(|out| writer.push(&record, out));
            }
        }
        if done {
            taking.captured = Some(end);
            if taking.failed {
                self.taking = None;
            }
        }
    }

    /// What is to be done in the background now. The end of a snapshot is written when everything
    /// below its position is `proven` and the log is `durable` up to where it was captured.
    pub(crate) fn take_job(
        &mut self,
        proven: Lsn,
        durable: Lsn,
        pages: impl FnOnce() -> Option<Arc<D::File>>,
    ) -> Option<SnapshotWork<D>> {
        let taking = self.taking.as_mut()?;
        if taking.failed || taking.target.is_none() {
            return None;
        }
        let may_end =
            proven >= taking.header.at && taking.captured.is_some_and(|end| durable >= end);
        if may_end && let Some(writer) = taking.writer.take() {
            taking.pending.extend(|out| writer.finish(out));
        }
        let (bytes, step) = match taking.pending.pop() {
            Some(piece) => (piece, Step::Write),
            None if may_end => {
                let pages = pages();
                (taking.pending.take_rest(), Step::Finish { pages })
            }
            None => return None,
        };
        Some(SnapshotWork {
            target: taking.target.take()?,
            bytes,
            step,
        })
    }

    /// A job failed: there is nothing to be had of the snapshot under way, if there is one.
    pub(crate) fn on_failed(&mut self, now: Millis, error: &DiskError) {
        self.failures += 1;
        self.pages_lost |= error.call == DiskCall::Sync && error.file == PAGE_FILE;
        self.last_error = Some(error.to_string());
        self.retry_at = now.after_ms(RETRY_MS);
        // The engine goes on with its slices until it has gone over everything.
        if let Some(taking) = &mut self.taking {
            taking.failed = true;
            taking.pending = Pieces::default();
        }
        self.taking.take_if(|taking| taking.captured.is_some());
    }

    /// A job came back. The snapshot that is published by it, if it was the last of one.
    pub(crate) fn on_outcome(
        &mut self,
        now: Millis,
        outcome: SnapshotOutcome<D>,
    ) -> Option<Published> {
        if let Err(error) = outcome.result {
            self.on_failed(now, &error);
            return None;
        }
        let taking = self.taking.as_mut()?;
        if !outcome.finished {
            taking.target = Some(outcome.target);
            return None;
        }
        let published = Published {
            sequence: taking.header.sequence,
            at: taking.header.at,
            taken_at: taking.began,
            bytes: outcome.target.written,
            took_ms: taking.began.until(now),
        };
        self.published = Some(published);
        self.published_index = outcome.target.index;
        self.taking = None;
        Some(published)
    }
}
