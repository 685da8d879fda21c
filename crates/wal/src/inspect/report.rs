//! What a survey says.

use std::fmt;

use crate::error::Corruption;

/// Something that is not as it was written.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Fault {
    /// The file.
    pub file: String,
    /// Where in it, in bytes.
    pub offset: u64,
    /// How many bytes cannot be used; 0 when that is not known or a whole file is missing.
    pub bytes: u64,
    /// What is wrong.
    pub detail: String,
}

impl Fault {
    /// Of a whole file.
    pub(crate) fn of(file: &str, detail: String) -> Self {
        Self {
            file: file.to_owned(),
            offset: 0,
            bytes: 0,
            detail,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: {}", self.file, self.offset, self.detail)?;
        if self.bytes > 0 {
            write!(f, " ({} bytes cannot be used)", self.bytes)?;
        }
        Ok(())
    }
}

impl From<Corruption> for Fault {
    fn from(corruption: Corruption) -> Self {
        Self {
            file: corruption.file,
            offset: corruption.offset,
            bytes: 0,
            detail: corruption.detail,
        }
    }
}

/// What one file holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileReport {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// What it is.
    pub state: FileState,
    /// The batches in it that are whole, by position.
    pub batches: Vec<BatchReport>,
}

/// What a file is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileState {
    /// Holds nothing, to be used later.
    Spare,
    /// A segment of the log that recovery reads.
    Replayed(SegmentReport),
    /// A segment before the start of the log; bodies of messages may lie in it.
    Kept(SegmentReport),
    /// A segment that recovery once passed over, because nothing in it was proven.
    PassedOver(SegmentReport),
    /// Bodies that were copied out of other segments.
    Cold(SegmentReport),
    /// It cannot be said.
    Unknown,
}

impl FileState {
    /// The word used in reports.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Spare => "spare",
            Self::Replayed(_) => "log",
            Self::Kept(_) => "kept",
            Self::PassedOver(_) => "passed over",
            Self::Cold(_) => "cold",
            Self::Unknown => "unknown",
        }
    }

    /// The segment in it.
    #[must_use]
    pub const fn segment(&self) -> Option<&SegmentReport> {
        match self {
            Self::Replayed(it) | Self::Kept(it) | Self::PassedOver(it) | Self::Cold(it) => Some(it),
            Self::Spare | Self::Unknown => None,
        }
    }
}

/// A segment, as its header tells it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentReport {
    /// Its first window.
    pub index: u64,
    /// How many windows it has.
    pub windows: u32,
    /// The run that wrote its batches.
    pub epoch: u64,
    /// Position of its first byte.
    pub base: u64,
    /// Where the log ends in the segment before; `None` when the header is lost and its batches do
    /// not tell.
    pub previous_end: Option<u64>,
    /// Nothing below was replayed any more when it was begun.
    pub start: u64,
    /// Position after what counts of it; `None` when no file that is left tells.
    pub end: Option<u64>,
    /// The header is lost: this is what its batches tell.
    pub is_guessed: bool,
}

/// A batch that is whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BatchReport {
    /// Position of its header in the log.
    pub position: u64,
    /// Position after it.
    pub end: u64,
    /// How many records it holds.
    pub records: u32,
    /// Everything below was on disk when it was written.
    pub synced: u64,
    /// Nothing below was replayed any more.
    pub start: u64,
}
