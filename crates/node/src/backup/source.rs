//! Reading a backup: the records of a snapshot, pages and contents put into them.

use core::fmt;
use std::collections::VecDeque;
use std::sync::Arc;

use tanda_engine::{ReplayError, expand_state, inline_contents};
use tanda_wal::{Disk, LogReader, Lsn, ReadError};

use super::Guard;
use crate::pages::{PageError, PageReader};
use crate::snapshot::files::{FileReader, Opener};
use crate::stream::{StreamError, StreamHeader, StreamKind, StreamReader};

/// Why a backup ends before its end. What was read so far is of no use.
#[derive(Debug)]
pub enum BackupError {
    /// The node needed the space, or has failed.
    Cancelled,
    /// The snapshot cannot be read.
    Snapshot(StreamError),
    /// A page cannot be read.
    Page(String),
    /// A content cannot be read.
    Content(ReadError),
    /// A record of the snapshot makes no sense.
    Record(ReplayError),
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => f.write_str(
                "the broker gave the backup up: its disk got full, or its log failed; make room \
                 and try again",
            ),
            Self::Snapshot(error) => write!(f, "the snapshot cannot be read: {error}"),
            Self::Page(problem) => f.write_str(problem),
            Self::Content(error) => write!(f, "a message cannot be read: {error}"),
            Self::Record(error) => write!(f, "the snapshot makes no sense: {}", error.problem),
        }
    }
}

impl std::error::Error for BackupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Snapshot(error) => Some(error),
            Self::Content(error) => Some(error),
            Self::Cancelled | Self::Page(_) | Self::Record(_) => None,
        }
    }
}

type Snapshot<D> = StreamReader<FileReader<<D as Disk>::File>>;

/// A backup, read record by record. Every call may block on the disk; call it on any thread. While
/// it lives the node gives up nothing that it needs.
pub struct BackupSource<D: Disk> {
    opener: Opener<D>,
    snapshot: Option<Snapshot<D>>,
    pages: PageReader<D::File>,
    bodies: LogReader<D>,
    /// Records whose contents are still in the log.
    bare: VecDeque<Vec<u8>>,
    whole: VecDeque<Vec<u8>>,
    guard: Guard,
}

impl<D: Disk> BackupSource<D> {
    pub(super) fn new(
        opener: Opener<D>,
        (pages, bodies): (PageReader<D::File>, LogReader<D>),
        guard: Guard,
    ) -> Self {
        Self {
            opener,
            snapshot: None,
            pages,
            bodies,
            bare: VecDeque::new(),
            whole: VecDeque::new(),
            guard,
        }
    }

    /// What the backup says of itself.
    ///
    /// # Errors
    /// `Snapshot`.
    pub fn header(&mut self) -> Result<StreamHeader, BackupError> {
        let header = self.snapshot()?.header();
        Ok(StreamHeader {
            kind: StreamKind::Backup,
            ..header
        })
    }

    /// The next record, about 1 MiB large or with one message; `None` after the last.
    ///
    /// # Errors
    /// See [`BackupError`]: the backup is of no use then.
    pub fn next_record(&mut self) -> Result<Option<Vec<u8>>, BackupError> {
        let next = self.read_next();
        // What was read after it was cancelled may be anything.
        if self.guard.is_cancelled() {
            return Err(BackupError::Cancelled);
        }
        next
    }

    fn read_next(&mut self) -> Result<Option<Vec<u8>>, BackupError> {
        loop {
            if let Some(record) = self.whole.pop_front() {
                return Ok(Some(record));
            }
            if let Some(bare) = self.bare.pop_front() {
                self.inline(&bare)?;
            } else if !self.expand_next()? {
                return Ok(None);
            }
        }
    }

    /// Takes the next record of the snapshot; false after the last.
    fn expand_next(&mut self) -> Result<bool, BackupError> {
        self.snapshot()?;
        let Some(snapshot) = &mut self.snapshot else {
            return Ok(false);
        };
        let Some(record) = snapshot.next_record().map_err(BackupError::Snapshot)? else {
            return Ok(false);
        };
        let (pages, mut failed) = (&self.pages, None);
        let read = &mut |slot, into: &mut Vec<u8>| {
            let read = pages.read(slot, into);
            failed = read.err().map(|error: PageError| error.to_string());
            failed.is_none()
        };
        let mut bare = Vec::new();
        expand_state(record, read, &mut bare).map_err(|error| match failed {
            Some(problem) => BackupError::Page(problem),
            None => BackupError::Record(error),
        })?;
        self.bare.extend(bare);
        Ok(true)
    }

    fn inline(&mut self, bare: &[u8]) -> Result<(), BackupError> {
        let (bodies, mut failed) = (&mut self.bodies, None);
        let mut read = |at: tanda_engine::Lsn, len: u32, into: &mut Vec<u8>| match bodies
            .read(Lsn(at.0), len)
        {
            Ok(bytes) => {
                into.clear();
                into.extend_from_slice(&bytes);
                true
            }
            Err(error) => {
                failed = Some(error);
                false
            }
        };
        let mut whole = Vec::new();
        inline_contents(bare, &mut read, &mut whole).map_err(BackupError::Record)?;
        if let Some(error) = failed {
            return Err(BackupError::Content(error));
        }
        self.whole.extend(whole);
        Ok(())
    }

    fn snapshot(&mut self) -> Result<&Snapshot<D>, BackupError> {
        let snapshot = match self.snapshot.take() {
            Some(snapshot) => snapshot,
            None => self.opener.open().map_err(BackupError::Snapshot)?,
        };
        Ok(self.snapshot.insert(snapshot))
    }
}

impl<D: Disk> fmt::Debug for BackupSource<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackupSource").finish_non_exhaustive()
    }
}

impl<D: Disk> Opener<D> {
    fn open(&self) -> Result<Snapshot<D>, StreamError> {
        let file = Arc::new(self.disk.open(self.name()).map_err(StreamError::Io)?);
        let snapshot = StreamReader::open(FileReader::new(file))?;
        if snapshot.header().sequence == self.sequence {
            Ok(snapshot)
        } else {
            Err(StreamError::Damaged {
                at: 0,
                problem: "it is another snapshot",
            })
        }
    }
}
