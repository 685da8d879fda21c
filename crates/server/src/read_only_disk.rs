//! A directory that is looked at and never changed.

use std::{
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use tanda_wal::{Disk, DiskFile};

use crate::disk::{DirLock, file_names};

/// A directory on a real file system, opened for reading: whatever would change it is refused.
#[derive(Debug)]
pub struct ReadOnlyDisk {
    path: PathBuf,
}

/// An open file of a [`ReadOnlyDisk`].
#[derive(Debug)]
pub struct ReadOnlyFile(File);

impl ReadOnlyDisk {
    /// The directory, which must exist.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(path: &Path) -> io::Result<Self> {
        fs::read_dir(path)?;
        let path = path.to_owned();
        Ok(Self { path })
    }
}

fn refused() -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        "the directory is only read",
    )
}

impl Disk for ReadOnlyDisk {
    type File = ReadOnlyFile;
    type Lock = DirLock;

    fn lock(&self) -> io::Result<DirLock> {
        let dir = File::open(&self.path)?;
        match dir.try_lock() {
            Ok(()) => Ok(DirLock::of(dir)),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        file_names(&self.path)
    }

    fn create(&self, _name: &str) -> io::Result<ReadOnlyFile> {
        Err(refused())
    }

    fn open(&self, name: &str) -> io::Result<ReadOnlyFile> {
        File::open(self.path.join(name)).map(ReadOnlyFile)
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        Err(refused())
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        Err(refused())
    }

    fn sync_dir(&self) -> io::Result<()> {
        Ok(())
    }

    fn free_bytes(&self) -> Option<u64> {
        None
    }
}

impl DiskFile for ReadOnlyFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(into, offset)
    }

    fn write_at(&self, _offset: u64, _bytes: &[u8]) -> io::Result<usize> {
        Err(refused())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn allocate(&self, _len_bytes: u64) -> io::Result<()> {
        Err(refused())
    }

    fn set_len(&self, _len_bytes: u64) -> io::Result<()> {
        Err(refused())
    }
}
