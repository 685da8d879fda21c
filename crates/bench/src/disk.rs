//! A directory of the file system for the bare log.
//!
//! Each method is one system call, and large writes go past the page cache, as they do in the
//! server (ADR 0004): the log must not be compared with a server that writes in another way.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, OFlags, fallocate};
use tanda_wal::{Disk, DiskFile};

/// A directory that only this program uses.
#[derive(Debug)]
pub(crate) struct BenchDisk {
    path: PathBuf,
    dir: File,
}

/// One of its files.
#[derive(Debug)]
pub(crate) struct BenchFile {
    file: File,
    /// The same file past the page cache; `None` where the file system has no such thing.
    direct: Option<File>,
}

/// As in the server.
const DIRECT_BYTES_MIN: usize = 64 << 10;
const DIRECT_ALIGNMENT: usize = 4096;

impl BenchDisk {
    /// Makes the directory.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        Ok(Self {
            path: path.to_owned(),
            dir: File::open(path)?,
        })
    }

    fn with_direct(&self, name: &str, file: File) -> BenchFile {
        let flags = i32::try_from(OFlags::DIRECT.bits()).unwrap_or(0);
        let mut options = OpenOptions::new();
        options.write(true).custom_flags(flags);
        BenchFile {
            file,
            direct: options.open(self.path.join(name)).ok(),
        }
    }
}

impl Disk for BenchDisk {
    type File = BenchFile;
    type Lock = File;

    fn lock(&self) -> io::Result<File> {
        self.dir.try_clone()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<BenchFile> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let file = options.open(self.path.join(name))?;
        Ok(self.with_direct(name, file))
    }

    fn open(&self, name: &str) -> io::Result<BenchFile> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let file = options.open(self.path.join(name))?;
        Ok(self.with_direct(name, file))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.dir.sync_all()
    }

    fn free_bytes(&self) -> Option<u64> {
        None
    }
}

impl DiskFile for BenchFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(into, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        if let Some(direct) = &self.direct
            && bytes.len() >= DIRECT_BYTES_MIN
            && bytes.len().is_multiple_of(DIRECT_ALIGNMENT)
            && offset.is_multiple_of(DIRECT_ALIGNMENT as u64)
            && bytes.as_ptr().align_offset(DIRECT_ALIGNMENT) == 0
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
        self.file.metadata().map(|meta| meta.len())
    }

    fn allocate(&self, len_bytes: u64) -> io::Result<()> {
        fallocate(&self.file, FallocateFlags::empty(), 0, len_bytes)?;
        Ok(())
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        self.file.set_len(len_bytes)
    }
}
