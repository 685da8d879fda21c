//! Backups while the node goes on: a snapshot of its own, and nothing that it names is given up
//! until whoever reads it is done.
//!
//! Owns how far the backup is that is under way. It refuses to know snapshots, pages and the log;
//! [`Node`] asks it before it gives something up.

mod source;

use core::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tanda_engine::Millis;
use tanda_wal::Disk;

use crate::Node;
use crate::snapshot::Published;
pub use source::{BackupError, BackupSource};

/// While a backup is read, how often it is looked whether it is done.
const LOOK_MS: u64 = 500;

/// Why no backup can be made now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackupRefused {
    /// One is under way.
    Busy,
    /// The snapshot that it needs could not be written.
    Snapshot(String),
    /// The disk is full: a backup keeps what could be given back.
    NoSpace,
    /// The node has failed.
    Failed,
}

impl fmt::Display for BackupRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str("another backup is under way"),
            Self::Snapshot(problem) => write!(f, "its snapshot could not be written: {problem}"),
            Self::NoSpace => f.write_str("the disk is full"),
            Self::Failed => f.write_str("the log has failed"),
        }
    }
}

/// The backup under way.
#[derive(Debug, Default)]
pub(crate) enum Backup {
    #[default]
    None,
    /// A snapshot is to be begun.
    Wanted,
    /// This one is being taken. What it names stays from now on: also what leaves before it counts.
    Taking(u64),
    /// It counts.
    Ready,
    /// It is read; see [`Guard`].
    Read(Arc<AtomicBool>, Millis),
    /// There will be none.
    Refused(BackupRefused),
}

/// What it holds stays while this lives, unless the node took it back.
pub(crate) struct Guard(Arc<AtomicBool>);

impl Guard {
    /// The node could not keep it any longer.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Backup {
    /// Nothing may be given up that a snapshot names.
    pub(crate) const fn keeps_all(&self) -> bool {
        matches!(self, Self::Taking(_) | Self::Ready | Self::Read(..))
    }

    /// Another snapshot would end in giving up the one that is read.
    pub(crate) const fn keeps_snapshot(&self) -> bool {
        matches!(self, Self::Ready | Self::Read(..))
    }

    pub(crate) fn on_begun(&mut self, sequence: u64) {
        if matches!(self, Self::Wanted) {
            *self = Self::Taking(sequence);
        }
    }

    pub(crate) fn on_published(&mut self, published: &Published) {
        if matches!(self, Self::Taking(sequence) if *sequence == published.sequence) {
            *self = Self::Ready;
        }
    }

    pub(crate) const fn next_deadline(&self) -> Option<Millis> {
        match self {
            Self::Read(_, look_at) => Some(*look_at),
            Self::None | Self::Wanted | Self::Taking(_) | Self::Ready | Self::Refused(_) => None,
        }
    }

    /// Gives up what is kept for the backup; true when something was. A source that is read learns
    /// of it.
    fn refuse(&mut self, why: BackupRefused) -> bool {
        let kept = self.keeps_all();
        match self {
            Self::Read(cancelled, _) => {
                cancelled.store(true, Ordering::Release);
                *self = Self::None;
            }
            Self::Wanted | Self::Taking(_) | Self::Ready => *self = Self::Refused(why),
            Self::None | Self::Refused(_) => {}
        }
        kept
    }

    /// True when whoever read it is done.
    fn take_done(&mut self, now: Millis) -> bool {
        let Self::Read(guard, look_at) = self else {
            return false;
        };
        if *look_at <= now {
            *look_at = now.after_ms(LOOK_MS);
        }
        let is_done = Arc::strong_count(guard) == 1;
        if is_done {
            *self = Self::None;
        }
        is_done
    }
}

impl<D: Disk> Node<D> {
    /// Begins a backup of everything that is confirmed by now. [`Self::take_backup`] gives it once
    /// a
    /// snapshot of its own is on disk; call it after [`Self::on_background`] and [`Self::run`].
    ///
    /// Until it has been read, or its source is dropped, nothing that it needs is given up: the log
    /// grows meanwhile, and no other snapshot is taken. When the disk gets full the backup is given
    /// up instead.
    ///
    /// # Errors
    /// See [`BackupRefused`].
    pub fn begin_backup(&mut self) -> Result<(), BackupRefused> {
        match &self.backup {
            Backup::None | Backup::Refused(_) => {}
            Backup::Wanted | Backup::Taking(_) | Backup::Ready | Backup::Read(..) => {
                return Err(BackupRefused::Busy);
            }
        }
        if self.failed().is_some() {
            return Err(BackupRefused::Failed);
        }
        if self.storage_full() {
            return Err(BackupRefused::NoSpace);
        }
        if let Some(problem) = self.snapshots.hopeless() {
            return Err(BackupRefused::Snapshot(problem.to_owned()));
        }
        self.backup = Backup::Wanted;
        self.snapshots.want();
        Ok(())
    }

    /// The backup that was begun, to be read on another thread; `None` while it is not ready, and
    /// when none was begun. An error ends it.
    ///
    /// # Errors
    /// See [`BackupRefused`].
    pub fn take_backup(&mut self) -> Option<Result<BackupSource<D>, BackupRefused>> {
        match core::mem::take(&mut self.backup) {
            Backup::None => None,
            Backup::Refused(why) => Some(Err(why)),
            Backup::Ready => {
                let guard = Arc::new(AtomicBool::new(false));
                self.backup = Backup::Read(Arc::clone(&guard), self.now.after_ms(LOOK_MS));
                let bodies = self.log.reader();
                let snapshot = self.snapshots.opener();
                Some(Ok(BackupSource::new(
                    snapshot,
                    (self.pages.reader(), bodies),
                    Guard(guard),
                )))
            }
            other @ (Backup::Wanted | Backup::Taking(_) | Backup::Read(..)) => {
                self.backup = other;
                None
            }
        }
    }

    /// Looks after the backup under way.
    pub(crate) fn watch_backup(&mut self) {
        let mut is_over = self.backup.take_done(self.now);
        if self.failed().is_some() {
            is_over |= self.backup.refuse(BackupRefused::Failed);
        } else if self.storage_full() {
            is_over |= self.backup.refuse(BackupRefused::NoSpace);
        }
        if is_over {
            self.sweep_soon();
        }
    }

    /// The snapshot under way failed.
    pub(crate) fn on_snapshot_failed(&mut self) {
        if matches!(self.backup, Backup::Taking(_)) {
            let (_, problem) = self.snapshots.failures();
            let problem = problem.unwrap_or_default().to_owned();
            if self.backup.refuse(BackupRefused::Snapshot(problem)) {
                self.sweep_soon();
            }
        }
    }
}
