//! What the log needs of a disk: one directory of files.
//!
//! The traits map one to one on system calls, so that the real implementation holds no logic:
//! `read_at` = pread, `write_at` = pwrite, `sync_data` = fdatasync, `allocate` = fallocate,
//! `set_len` = ftruncate, `sync_dir` = fsync of the directory, `lock` = flock, `free_bytes` =
//! statvfs. [`io::Error`] is used as a value: its kind decides (`StorageFull` and `QuotaExceeded`
//! are "disk full"; `Interrupted` is retried here).

use std::fmt;
use std::io;

/// One directory. Names are plain file names inside it.
pub trait Disk: Send + Sync + 'static {
    /// An open file; closed when dropped.
    type File: DiskFile;
    /// Held while a log is open; releases the lock when dropped.
    type Lock: Send + Sync + 'static;

    /// Takes the exclusive lock of the directory.
    ///
    /// # Errors
    /// `WouldBlock` when another process holds it.
    fn lock(&self) -> io::Result<Self::Lock>;

    /// Names of all files in the directory, in any order.
    ///
    /// # Errors
    /// What the system says.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Creates a new, empty file for reading and writing.
    ///
    /// # Errors
    /// `AlreadyExists`, or what the system says.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Opens an existing file for reading and writing.
    ///
    /// # Errors
    /// `NotFound`, or what the system says.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Removes a file; open handles keep working.
    ///
    /// # Errors
    /// What the system says.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Renames a file, replacing `to` if it exists.
    ///
    /// # Errors
    /// What the system says.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Makes creations, renames and removals so far survive a crash.
    ///
    /// # Errors
    /// What the system says.
    fn sync_dir(&self) -> io::Result<()>;

    /// Bytes that can still be allocated, or `None` when the system does not say.
    fn free_bytes(&self) -> Option<u64>;
}

/// One open file. Calls take `&self`: positions are explicit, so a reader and the sync thread may
/// share a handle.
pub trait DiskFile: Send + Sync + 'static {
    /// Reads up to `into.len()` bytes at `offset`; 0 at or beyond the end.
    ///
    /// # Errors
    /// What the system says.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;

    /// Writes up to `bytes.len()` bytes at `offset` and says how many (a short write is allowed).
    ///
    /// # Errors
    /// What the system says.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize>;

    /// Makes the data written so far, and the file's length, survive a crash.
    ///
    /// # Errors
    /// What the system says. After an error nothing is known about the data.
    fn sync_data(&self) -> io::Result<()>;

    /// The file's length in bytes.
    ///
    /// # Errors
    /// What the system says.
    fn len_bytes(&self) -> io::Result<u64>;

    /// Extends the file to `len_bytes` with the space reserved; it reads as zeros.
    ///
    /// # Errors
    /// `StorageFull` when the space is not there.
    fn allocate(&self, len_bytes: u64) -> io::Result<()>;

    /// Cuts the file to `len_bytes` and gives the space back.
    ///
    /// # Errors
    /// What the system says.
    fn set_len(&self, len_bytes: u64) -> io::Result<()>;
}

/// The calls a log makes, to name them in errors, counters and injected faults.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DiskCall {
    /// [`Disk::lock`]
    Lock,
    /// [`Disk::list`]
    List,
    /// [`Disk::create`]
    Create,
    /// [`Disk::open`]
    Open,
    /// [`Disk::remove`]
    Remove,
    /// [`Disk::rename`]
    Rename,
    /// [`Disk::sync_dir`]
    SyncDir,
    /// [`DiskFile::read_at`]
    Read,
    /// [`DiskFile::write_at`]
    Write,
    /// [`DiskFile::sync_data`]
    Sync,
    /// [`DiskFile::len_bytes`]
    Len,
    /// [`DiskFile::allocate`]
    Allocate,
    /// [`DiskFile::set_len`]
    SetLen,
}

impl DiskCall {
    /// The word used in error texts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::List => "list",
            Self::Create => "create",
            Self::Open => "open",
            Self::Remove => "remove",
            Self::Rename => "rename",
            Self::SyncDir => "sync directory",
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Len => "stat",
            Self::Allocate => "allocate",
            Self::SetLen => "truncate",
        }
    }
}

/// A disk call that failed.
#[derive(Debug)]
pub struct DiskError {
    /// The call.
    pub call: DiskCall,
    /// The file it was made on; empty for calls on the directory.
    pub file: String,
    /// What the system said.
    pub source: io::Error,
}

impl DiskError {
    /// The call failed on this file; empty for calls on the directory.
    #[must_use]
    pub fn new(call: DiskCall, file: &str, source: io::Error) -> Self {
        Self {
            call,
            file: file.to_owned(),
            source,
        }
    }

    /// Whether the disk (or the user's quota) is full.
    #[must_use]
    pub fn is_no_space(&self) -> bool {
        let kind = self.source.kind();
        kind == io::ErrorKind::StorageFull || kind == io::ErrorKind::QuotaExceeded
    }
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.file.is_empty() {
            write!(f, "{}: {}", self.call.name(), self.source)
        } else {
            write!(f, "{} {}: {}", self.call.name(), self.file, self.source)
        }
    }
}

impl std::error::Error for DiskError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Writes all of `bytes`, going on after short and interrupted writes.
///
/// # Errors
/// What the system says; `WriteZero` when it takes nothing.
pub fn write_all_at<F: DiskFile>(file: &F, offset: u64, bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    let mut at = offset;
    while !rest.is_empty() {
        match file.write_at(at, rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                rest = rest.get(count..).unwrap_or_default();
                at += count as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Reads until `into` is full or the file ends; says how much was read.
///
/// # Errors
/// What the system says.
pub fn read_up_to<F: DiskFile>(file: &F, offset: u64, into: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(offset + filled as u64, rest) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}
