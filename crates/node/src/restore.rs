//! A log from the records of a backup.
//!
//! Owns writing them into a directory that holds no log yet. It refuses to know where they come
//! from, and what they mean: opening the node says whether they make sense.

use core::fmt;
use std::sync::Arc;

use tanda_wal::{Disk, Log};

/// Records wait in memory up to this many bytes; then they are written.
const PENDING_BYTES_MAX: usize = 8 << 20;

/// Why records could not be put into a log.
#[derive(Debug)]
pub enum RestoreError {
    /// The directory holds a log with records.
    NotEmpty,
    /// The log could not be opened.
    Open(tanda_wal::OpenError),
    /// A record is larger than a log takes.
    Record(tanda_wal::AppendError),
    /// The disk failed.
    Failed(tanda_wal::Poisoned),
    /// The disk is full.
    NoSpace,
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotEmpty => f.write_str("the directory holds a log already; name a new one"),
            Self::Open(error) => error.fmt(f),
            Self::Record(error) => error.fmt(f),
            Self::Failed(error) => error.fmt(f),
            Self::NoSpace => f.write_str("the disk is full"),
        }
    }
}

impl std::error::Error for RestoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Open(error) => Some(error),
            Self::Record(error) => Some(error),
            Self::Failed(error) => Some(error),
            Self::NotEmpty | Self::NoSpace => None,
        }
    }
}

/// A new log that takes records and nothing else.
pub struct Restore<D: Disk> {
    log: Log<D>,
}

impl<D: Disk> Restore<D> {
    /// Begins a log in the directory of `disk`.
    ///
    /// # Errors
    /// `NotEmpty`, or `Open`.
    pub fn begin(disk: Arc<D>, config: tanda_wal::Config) -> Result<Self, RestoreError> {
        let mut records = 0_u64;
        let log = Log::open(disk, config, tanda_wal::Lsn(0), &mut |_, _| {
            records += 1;
            Ok(())
        })
        .map_err(RestoreError::Open)?;
        if records > 0 {
            return Err(RestoreError::NotEmpty);
        }
        Ok(Self { log })
    }

    /// Adds a record; writes what has gathered when it is much.
    ///
    /// # Errors
    /// `Record`, `Failed`, `NoSpace`: the directory is of no use then.
    pub fn push(&mut self, record: &[u8]) -> Result<(), RestoreError> {
        self.log.append(record).map_err(RestoreError::Record)?;
        if self.log.pending_bytes() >= PENDING_BYTES_MAX {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the rest, and what says that all of it is on disk.
    ///
    /// # Errors
    /// `Failed`, `NoSpace`.
    pub fn finish(mut self) -> Result<(), RestoreError> {
        self.flush()?;
        self.log.on_idle();
        self.flush()
    }

    fn flush(&mut self) -> Result<(), RestoreError> {
        let end = self.log.end();
        while let Some(job) = self.log.take_flush() {
            let before = self.log.durable();
            self.log
                .on_flushed(job.run())
                .map_err(RestoreError::Failed)?;
            if self.log.durable() >= end {
                return Ok(());
            }
            if self.log.durable() == before {
                return Err(RestoreError::NoSpace);
            }
        }
        Ok(())
    }
}
