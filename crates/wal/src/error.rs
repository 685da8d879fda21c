//! What can go wrong, one type per operation.

use std::fmt;
use std::sync::Arc;

use crate::config::{ConfigError, RECORD_BYTES_MAX};
use crate::disk::DiskError;
use crate::lsn::Lsn;

/// A write or sync failed; nothing after it is confirmed until the log is opened again.
#[derive(Clone, Debug)]
pub struct Poisoned {
    /// The call that failed.
    pub cause: Arc<DiskError>,
}

impl fmt::Display for Poisoned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the log stopped after a failed disk call ({}); restart the shard once the disk is \
             sound",
            self.cause
        )
    }
}

impl std::error::Error for Poisoned {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// Why a record was not taken.
#[derive(Clone, Debug)]
pub enum AppendError {
    /// The record is longer than [`RECORD_BYTES_MAX`].
    TooLarge {
        /// Its length.
        record_bytes: usize,
    },
    /// The log stopped earlier.
    Poisoned(Poisoned),
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { record_bytes } => write!(
                f,
                "a record of {record_bytes} bytes is more than the {RECORD_BYTES_MAX} a log takes"
            ),
            Self::Poisoned(poisoned) => poisoned.fmt(f),
        }
    }
}

impl std::error::Error for AppendError {}

/// Why a cold copy could not be written. It can be tried again.
#[derive(Debug)]
pub enum ColdError {
    /// A record is longer than [`RECORD_BYTES_MAX`].
    TooLarge {
        /// Its length.
        record_bytes: usize,
    },
    /// The disk is full.
    NoSpace(DiskError),
    /// Another disk call failed.
    Disk(DiskError),
}

impl fmt::Display for ColdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { record_bytes } => write!(
                f,
                "a record of {record_bytes} bytes is more than the {RECORD_BYTES_MAX} a segment \
                 takes"
            ),
            Self::NoSpace(e) | Self::Disk(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for ColdError {}

/// Why bytes could not be read.
#[derive(Debug)]
pub enum ReadError {
    /// No record of the log covers these bytes; the caller's position is wrong.
    OutOfRange {
        /// Where it tried to read.
        at: Lsn,
        /// How much.
        len: u32,
    },
    /// The segment was given up.
    Reclaimed {
        /// Where it tried to read.
        at: Lsn,
        /// The oldest position there is.
        oldest: Lsn,
    },
    /// The disk failed.
    Disk(DiskError),
    /// The bytes on disk are not what was written.
    Corrupt(Corruption),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange { at, len } => {
                write!(f, "no record covers {len} bytes at log position {at}")
            }
            Self::Reclaimed { at, oldest } => {
                write!(f, "log position {at} is gone; the oldest is {oldest}")
            }
            Self::Disk(e) => e.fmt(f),
            Self::Corrupt(corruption) => corruption.fmt(f),
        }
    }
}

impl std::error::Error for ReadError {}

/// Bytes on disk that are not what was written there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Corruption {
    /// The file.
    pub file: String,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// What is wrong, and how it is known.
    pub detail: String,
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is corrupt at byte {}: {}; change nothing there, see {}",
            self.file,
            self.offset,
            self.detail,
            Self::HELP
        )
    }
}

impl std::error::Error for Corruption {}

impl Corruption {
    /// What shows the damage and saves what can be read, and the page that says what to do.
    pub const HELP: &'static str = "`tanda repair` and docs/recovery.md";
}

/// The caller could not take a record at replay.
#[derive(Debug)]
pub struct ReplayError(pub Box<dyn std::error::Error + Send + Sync>);

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for ReplayError {}

/// Why a log could not be opened. Nothing of it was thrown away.
#[derive(Debug)]
pub enum OpenError {
    /// A setting is out of range.
    Config(ConfigError),
    /// Another process has this directory open.
    Locked,
    /// A disk call failed, `NotFound` and "disk full" included.
    Disk(DiskError),
    /// A file does not hold what was written to it.
    Corrupt(Corruption),
    /// The segment that ended at `before` is not there.
    MissingSegment {
        /// The position up to which the log must reach in the missing segment.
        before: Lsn,
        /// The file that says so.
        named_by: String,
    },
    /// A segment that the caller still needs something of is not there.
    MissingKept {
        /// Its index (the window that was asked for).
        index: u64,
        /// Its file; the files of segments that are not cold can have any number.
        file: Option<String>,
    },
    /// The log starts behind the position that it was to be replayed from: what lies before was
    /// given up for a newer one.
    StartsLater {
        /// Where it starts.
        start: Lsn,
        /// Where it was to be replayed from.
        from: Lsn,
    },
    /// The log ends before a position that was known to be synced.
    EndsEarly {
        /// Where the log is known to be synced to.
        end: Lsn,
        /// What it was known to be synced to when that was written down elsewhere.
        needed: Lsn,
    },
    /// A newer build wrote this file.
    UnknownVersion {
        /// The file.
        file: String,
        /// Its version.
        version: u16,
    },
    /// The file belongs to another log or shard.
    WrongLog {
        /// The file.
        file: String,
        /// Log id and shard in it.
        found: (u128, u32),
        /// Log id and shard of this log.
        expected: (u128, u32),
    },
    /// `segment_bytes` may not change in the life of a log.
    SegmentBytesChanged {
        /// What the files were made with.
        found: u64,
        /// What was configured.
        configured: u64,
    },
    /// The caller refused a record.
    Replay {
        /// The record's position.
        at: Lsn,
        /// What the caller said.
        source: ReplayError,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(e) => e.fmt(f),
            Self::Locked => f.write_str("another process has this log open"),
            Self::Disk(e) => e.fmt(f),
            Self::Corrupt(corruption) => corruption.fmt(f),
            Self::MissingSegment { before, named_by } => write!(
                f,
                "the segment that ends at {before} is missing, although {named_by} follows it; \
                 bring the file back, or see {}",
                Corruption::HELP
            ),
            Self::MissingKept { index, file } => write!(
                f,
                "segment {index:#x} ({}) holds bodies of messages and is missing; bring the file \
                 back, or see {}",
                file.as_deref().unwrap_or("a .seg file"),
                Corruption::HELP
            ),
            Self::StartsLater { start, from } => write!(
                f,
                "the log starts at {start}: what lies between {from}, where it was to be read \
                 from, and there was given up for a newer snapshot"
            ),
            Self::EndsEarly { end, needed } => write!(
                f,
                "the log ends at {end}, although it was synced up to {needed}: its newest files \
                 are missing or from an older copy; bring them back, or see {}",
                Corruption::HELP
            ),
            Self::UnknownVersion { file, version } => write!(
                f,
                "{file} has format version {version}, which this build does not know; use the \
                 build that wrote it, or a newer one"
            ),
            Self::WrongLog {
                file,
                found,
                expected,
            } => write!(
                f,
                "{file} belongs to log {:032x} shard {}, not to log {:032x} shard {}; move it away",
                found.0, found.1, expected.0, expected.1
            ),
            Self::SegmentBytesChanged { found, configured } => write!(
                f,
                "the log was made with segments of {found} bytes and cannot be opened with \
                 {configured}"
            ),
            Self::Replay { at, source } => {
                write!(f, "the record at {at} could not be applied: {source}")
            }
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Config(e) => Some(e),
            Self::Disk(e) => Some(e),
            Self::Corrupt(e) => Some(e),
            Self::Replay { source, .. } => Some(source),
            Self::Locked
            | Self::MissingSegment { .. }
            | Self::MissingKept { .. }
            | Self::StartsLater { .. }
            | Self::EndsEarly { .. }
            | Self::UnknownVersion { .. }
            | Self::WrongLog { .. }
            | Self::SegmentBytesChanged { .. } => None,
        }
    }
}

impl From<DiskError> for OpenError {
    fn from(e: DiskError) -> Self {
        Self::Disk(e)
    }
}

impl From<Corruption> for OpenError {
    fn from(corruption: Corruption) -> Self {
        Self::Corrupt(corruption)
    }
}
