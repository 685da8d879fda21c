//! The real disk: one directory of files, by system calls.
//!
//! No logic lives here. Every method is one call; what the results mean is the log's business.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::{FallocateFlags, OFlags, fallocate, fstatvfs};
use tanda_wal::{Disk, DiskFile};

/// A directory on a real file system.
#[derive(Debug)]
pub struct RealDisk {
    path: PathBuf,
    /// Open on the directory itself: for its lock, its fsync and its free space.
    dir: File,
}

/// The directory's lock; released when it is dropped, and by the system when the process dies.
#[derive(Debug)]
pub struct DirLock {
    _dir: File,
}

impl DirLock {
    /// Of a directory that was locked through this descriptor.
    pub(crate) const fn of(dir: File) -> Self {
        Self { _dir: dir }
    }
}

/// An open file of a [`RealDisk`].
#[derive(Debug)]
pub struct RealFile {
    file: File,
    /// The same file, written without the page cache; `None` where the file system cannot.
    direct: Option<File>,
}

/// Writes of at least this many bytes go past the page cache: copying them there, and back out
/// from there, cost half of an enqueue of 1 KiB (ADR-0004). Small ones gain nothing.
const DIRECT_BYTES_MIN: usize = 64 << 10;
/// What a write past the page cache must be a multiple of: offset, length and address.
const DIRECT_ALIGNMENT: usize = 4096;

/// Whether a write may go past the page cache.
fn is_aligned(offset: u64, bytes: &[u8]) -> bool {
    offset.is_multiple_of(DIRECT_ALIGNMENT as u64)
        && bytes.len().is_multiple_of(DIRECT_ALIGNMENT)
        && bytes.as_ptr().align_offset(DIRECT_ALIGNMENT) == 0
}

impl RealDisk {
    /// Opens the directory, and makes it (readable by its owner only) when it does not exist.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(path: &Path) -> io::Result<Self> {
        let is_new = !path.is_dir();
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        let dir = File::open(path)?;
        if is_new && let Some(parent) = path.parent() {
            sync_parent(parent)?;
        }
        Ok(Self {
            path: path.to_owned(),
            dir,
        })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn with_direct(&self, name: &str, file: File) -> RealFile {
        let flags = i32::try_from(OFlags::DIRECT.bits()).unwrap_or(0);
        let direct = OpenOptions::new()
            .write(true)
            .custom_flags(flags)
            .open(self.at(name));
        // Not every file system has it; then everything goes through the page cache.
        RealFile {
            file,
            direct: direct.ok(),
        }
    }
}

/// Names of the files in a directory.
pub(crate) fn file_names(path: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            // A name that is no UTF-8 is not one of ours.
            names.extend(entry.file_name().into_string());
        }
    }
    Ok(names)
}

/// Makes the directory's own entry survive a crash.
fn sync_parent(parent: &Path) -> io::Result<()> {
    let parent = if parent.as_os_str().is_empty() {
        Path::new(".")
    } else {
        parent
    };
    match File::open(parent) {
        Ok(dir) => dir.sync_all(),
        // A parent that may not be read cannot be synced by us; the system made the entry.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(error),
    }
}

impl Disk for RealDisk {
    type File = RealFile;
    type Lock = DirLock;

    fn lock(&self) -> io::Result<DirLock> {
        // A descriptor of its own: the lock lives as long as this one.
        let dir = File::open(&self.path)?;
        match dir.try_lock() {
            Ok(()) => Ok(DirLock { _dir: dir }),
            Err(TryLockError::WouldBlock) => Err(io::Error::new(
                io::ErrorKind::WouldBlock,
                format!(
                    "another tanda process uses the directory {}; stop it, or choose another \
                     --data-dir",
                    self.path.display()
                ),
            )),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        file_names(&self.path)
    }

    fn create(&self, name: &str) -> io::Result<RealFile> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(self.at(name))?;
        Ok(self.with_direct(name, file))
    }

    fn open(&self, name: &str) -> io::Result<RealFile> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.at(name))?;
        Ok(self.with_direct(name, file))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.at(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.at(from), self.at(to))
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.dir.sync_all()
    }

    fn free_bytes(&self) -> Option<u64> {
        let space = fstatvfs(&self.dir).ok()?;
        space.f_bavail.checked_mul(space.f_frsize)
    }
}

impl DiskFile for RealFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(into, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        if let Some(direct) = &self.direct
            && bytes.len() >= DIRECT_BYTES_MIN
            && is_aligned(offset, bytes)
        {
            match direct.write_at(bytes, offset) {
                // The disk wants more alignment than a block.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                outcome => return outcome,
            }
        }
        self.file.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn allocate(&self, len_bytes: u64) -> io::Result<()> {
        match fallocate(&self.file, FallocateFlags::empty(), 0, len_bytes) {
            Ok(()) => Ok(()),
            Err(rustix::io::Errno::OPNOTSUPP) => self.fill_with_zeros(len_bytes),
            Err(error) => Err(error.into()),
        }
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        self.file.set_len(len_bytes)
    }
}

impl RealFile {
    /// What `fallocate` does, for file systems that have no such call.
    fn fill_with_zeros(&self, len_bytes: u64) -> io::Result<()> {
        const ZEROS: &[u8] = &[0; 64 << 10];
        let mut at = self.len_bytes()?;
        while at < len_bytes {
            let left = usize::try_from(len_bytes - at).unwrap_or(ZEROS.len());
            let zeros = ZEROS.get(..left).unwrap_or(ZEROS);
            self.file.write_all_at(zeros, at)?;
            at += zeros.len() as u64;
        }
        Ok(())
    }
}
