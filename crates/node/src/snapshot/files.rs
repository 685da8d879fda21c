//! The two snapshot files: which one counts, and writing over the other.

use std::io::{self, Read};
use std::sync::Arc;

use tanda_wal::{Disk, DiskCall, DiskError, DiskFile, write_all_at};

use crate::stream::{StreamError, StreamHeader, StreamKind, StreamReader};

/// Their names in the shard's directory, written in turn.
pub(crate) const SNAPSHOT_FILES: [&str; 2] = ["snapshot-a", "snapshot-b"];

/// A file has room for a snapshot half again as large as its last, so that a full disk does not
/// stop the snapshots that give space back.
const ROOM_BYTES_MIN: u64 = 1 << 20;

/// So much is written before it is synced: a disk that can be written past the page cache has it
/// by then, and no sync has more to write than this on one that cannot.
const UNSYNCED_BYTES_MAX: u64 = 1 << 20;

/// Bytes at addresses that are a multiple of this can go past the page cache.
const ALIGNMENT: usize = 4096;

/// The snapshot that a start uses.
pub(crate) struct Found<D: Disk> {
    /// Its place in [`SNAPSHOT_FILES`].
    pub(crate) index: usize,
    pub(crate) header: StreamHeader,
    file: Arc<D::File>,
}

impl<D: Disk> Found<D> {
    /// Its file's name.
    pub(crate) fn name(&self) -> &'static str {
        name_of(self.index)
    }

    /// Puts it on disk. A process that was killed may have written it whole and not synced it; the
    /// log is about to go on from it.
    pub(crate) fn sync(&self, disk: &D) -> Result<(), DiskError> {
        self.file
            .sync_data()
            .map_err(|error| DiskError::new(DiskCall::Sync, self.name(), error))?;
        disk.sync_dir()
            .map_err(|error| DiskError::new(DiskCall::SyncDir, "", error))
    }

    /// Reads it from its beginning.
    pub(crate) fn read(&self) -> Result<StreamReader<FileReader<D::File>>, StreamError> {
        StreamReader::open(FileReader::new(Arc::clone(&self.file)))
    }
}

fn name_of(index: usize) -> &'static str {
    let [first, second] = SNAPSHOT_FILES;
    if index == 0 { first } else { second }
}

/// The way to a snapshot that counts, for another thread.
pub(crate) struct Opener<D: Disk> {
    pub(crate) disk: Arc<D>,
    pub(crate) index: usize,
    pub(crate) sequence: u64,
}

impl<D: Disk> Opener<D> {
    pub(crate) fn name(&self) -> &'static str {
        name_of(self.index)
    }
}

/// What the two files hold.
pub(crate) struct Look<D: Disk> {
    /// The newest valid one.
    pub(crate) found: Option<Found<D>>,
    /// Why the others do not count: after a crash one of them may be half written.
    pub(crate) invalid: Vec<(&'static str, StreamError)>,
}

impl<D: Disk> Look<D> {
    /// Sees to it that what does not count never will, even if what was unreadable of it can be
    /// read again one day: this start gives back segments and pages that it may name.
    ///
    /// # Errors
    /// The first file that cannot be written.
    pub(crate) fn spoil_invalid(&self, disk: &D) -> Result<(), DiskError> {
        for (name, _) in &self.invalid {
            let failed = |call| move |error| DiskError::new(call, name, error);
            let file = disk.open(name).map_err(failed(DiskCall::Open))?;
            if file.len_bytes().map_err(failed(DiskCall::Len))? == 0 {
                continue;
            }
            spoil(&file).map_err(failed(DiskCall::Write))?;
            file.sync_data().map_err(failed(DiskCall::Sync))?;
        }
        Ok(())
    }
}

/// Makes a snapshot invalid, whatever else is in the file.
fn spoil<F: DiskFile>(file: &F) -> io::Result<()> {
    write_all_at(file, 0, &[0; 64])
}

/// Looks for the newest valid snapshot of this log. Each is read whole.
///
/// # Errors
/// When a file is there and cannot be read; damage is no error here.
pub(crate) fn look<D: Disk>(disk: &D, log_id: u128) -> Result<Look<D>, DiskError> {
    let mut look = Look {
        found: None,
        invalid: Vec::new(),
    };
    for (index, name) in SNAPSHOT_FILES.into_iter().enumerate() {
        let file = match disk.open(name) {
            Ok(file) => Arc::new(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(DiskError::new(DiskCall::Open, name, error)),
        };
        match verify(&file, log_id) {
            Ok(header) => {
                let newest = look.found.as_ref().map(|found| found.header.sequence);
                if newest.is_none_or(|newest| newest < header.sequence) {
                    look.found = Some(Found {
                        index,
                        header,
                        file,
                    });
                }
            }
            Err(StreamError::Io(error)) => {
                return Err(DiskError::new(DiskCall::Read, name, error));
            }
            Err(error) => look.invalid.push((name, error)),
        }
    }
    Ok(look)
}

fn verify<F: DiskFile>(file: &Arc<F>, log_id: u128) -> Result<StreamHeader, StreamError> {
    let mut stream = StreamReader::open(FileReader::new(Arc::clone(file)))?;
    let header = stream.header();
    let of_another = StreamError::Damaged {
        at: 0,
        problem: "it is no snapshot of this log",
    };
    if header.kind != StreamKind::Snapshot || header.log_id != log_id {
        return Err(of_another);
    }
    while stream.next_record()?.is_some() {}
    Ok(header)
}

/// A file read from its beginning.
#[derive(Debug)]
pub(crate) struct FileReader<F> {
    file: Arc<F>,
    at: u64,
    buffer: Vec<u8>,
    taken: usize,
}

impl<F> FileReader<F> {
    pub(crate) const fn new(file: Arc<F>) -> Self {
        Self {
            file,
            at: 0,
            buffer: Vec::new(),
            taken: 0,
        }
    }
}

/// Bytes of one read.
const READ_BYTES: usize = 256 << 10;

impl<F: DiskFile> Read for FileReader<F> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.taken >= self.buffer.len() {
            self.buffer.resize(READ_BYTES, 0);
            let count = self.file.read_at(self.at, &mut self.buffer);
            self.buffer.truncate(*count.as_ref().unwrap_or(&0));
            self.at += count? as u64;
            self.taken = 0;
        }
        let rest = self.buffer.get(self.taken..).unwrap_or_default();
        let count = rest.len().min(into.len());
        if let (Some(to), Some(from)) = (into.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        self.taken += count;
        Ok(count)
    }
}

/// The snapshot file being written. It travels with the background job.
pub(crate) struct Target<D: Disk> {
    disk: Arc<D>,
    pub(crate) index: usize,
    file: Option<Arc<D::File>>,
    allocated: u64,
    pub(crate) written: u64,
    /// Up to here everything is synced.
    synced: u64,
    /// Where bytes to be written are laid so that they are aligned.
    aligned: Vec<u8>,
}

impl<D: Disk> Target<D> {
    pub(crate) const fn new(disk: Arc<D>, index: usize) -> Self {
        Self {
            disk,
            index,
            file: None,
            allocated: 0,
            written: 0,
            synced: 0,
            aligned: Vec::new(),
        }
    }

    fn name(&self) -> &'static str {
        name_of(self.index)
    }

    /// Writes the next bytes, and syncs when enough were written.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        let file = self.file()?;
        let end = self.written + bytes.len() as u64;
        if end > self.allocated {
            let room = (end + end / 2).max(ROOM_BYTES_MIN);
            // Space that is there for this snapshot is enough.
            let allocated = file.allocate(room).map(|()| room);
            let allocated = allocated.or_else(|_| file.allocate(end).map(|()| end));
            self.allocated = allocated
                .map_err(|error| DiskError::new(DiskCall::Allocate, self.name(), error))?;
        }
        let at = self.written;
        let written = write_all_at(&*file, at, self.align(bytes));
        written.map_err(|error| DiskError::new(DiskCall::Write, self.name(), error))?;
        self.written = end;
        if end - self.synced >= UNSYNCED_BYTES_MAX {
            self.sync_data()?;
        }
        Ok(())
    }

    /// The same bytes, at an aligned address.
    fn align(&mut self, bytes: &[u8]) -> &[u8] {
        self.aligned.clear();
        self.aligned.reserve(bytes.len() + ALIGNMENT - 1);
        let skip = self.aligned.as_ptr().align_offset(ALIGNMENT);
        let skip = skip.min(ALIGNMENT - 1);
        self.aligned.resize(skip, 0);
        self.aligned.extend_from_slice(bytes);
        self.aligned.get(skip..).unwrap_or_default()
    }

    /// What was written, and the file's name, are on disk when this returns.
    pub(crate) fn sync(&mut self) -> Result<(), DiskError> {
        self.sync_data()?;
        self.sync_dir()
    }

    /// What was written is on disk when this returns.
    fn sync_data(&mut self) -> Result<(), DiskError> {
        let file = self.file()?;
        file.sync_data()
            .map_err(|error| DiskError::new(DiskCall::Sync, self.name(), error))?;
        self.synced = self.written;
        Ok(())
    }

    /// The names of files made so far are on disk when this returns.
    pub(crate) fn sync_dir(&self) -> Result<(), DiskError> {
        self.disk
            .sync_dir()
            .map_err(|error| DiskError::new(DiskCall::SyncDir, "", error))
    }

    /// Makes a snapshot that could not be synced invalid. It can be read although it is not on
    /// disk,
    /// and no later sync would put it there: a start after a kill must not take it.
    pub(crate) fn spoil(&mut self) {
        if let Ok(file) = self.file()
            && spoil(&*file).is_err()
        {
            // A disk that does not even write leaves nothing to be done.
            self.file = None;
        }
    }

    fn file(&mut self) -> Result<Arc<D::File>, DiskError> {
        if let Some(file) = &self.file {
            return Ok(Arc::clone(file));
        }
        let name = self.name();
        let file = match self.disk.open(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self
                .disk
                .create(name)
                .map_err(|error| DiskError::new(DiskCall::Create, name, error))?,
            opened => opened.map_err(|error| DiskError::new(DiskCall::Open, name, error))?,
        };
        self.allocated = file
            .len_bytes()
            .map_err(|error| DiskError::new(DiskCall::Len, name, error))?;
        let file = Arc::new(file);
        self.file = Some(Arc::clone(&file));
        Ok(file)
    }
}
