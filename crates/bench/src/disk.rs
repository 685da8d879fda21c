//! A directory of the file system for the bare log: each method is one system call.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};
use tanda_wal::{Disk, DiskFile};

/// A directory that only this program uses.
#[derive(Debug)]
pub(crate) struct BenchDisk {
    path: PathBuf,
    dir: File,
}

/// One of its files.
#[derive(Debug)]
pub(crate) struct BenchFile(File);

impl BenchDisk {
    /// Makes the directory.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        Ok(Self {
            path: path.to_owned(),
            dir: File::open(path)?,
        })
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
        options.open(self.path.join(name)).map(BenchFile)
    }

    fn open(&self, name: &str) -> io::Result<BenchFile> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        options.open(self.path.join(name)).map(BenchFile)
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
        self.0.read_at(into, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn len_bytes(&self) -> io::Result<u64> {
        self.0.metadata().map(|meta| meta.len())
    }

    fn allocate(&self, len_bytes: u64) -> io::Result<()> {
        fallocate(&self.0, FallocateFlags::empty(), 0, len_bytes)?;
        Ok(())
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        self.0.set_len(len_bytes)
    }
}
