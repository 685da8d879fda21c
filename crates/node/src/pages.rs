//! The page file: pages of the index in slots of one file (docs/formats/pages.md).
//!
//! Owns the slots: which are free, when one may be written again, their checksums. It refuses to
//! know what a page holds.
//!
//! A slot that a snapshot may name is not written again until a snapshot that does not name it is
//! published. Pages made since the newest snapshot began can be in none, so their slots are free at
//! once. What is written is synced only for a snapshot: without one that names it a page is
//! nothing.

use core::fmt;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use tanda_engine::PageSlot;
use tanda_wal::{Disk, DiskCall, DiskError, DiskFile, read_up_to, write_all_at};

/// Its name in the shard's directory.
pub(crate) const PAGE_FILE: &str = "index.pages";

/// Length and checksum before each page.
const SLOT_HEAD_BYTES: usize = 8;
/// Slots end on blocks of the disk.
const BLOCK_BYTES: usize = 4096;
/// The file grows and shrinks by so many slots.
const GROWTH_SLOTS: u32 = 64;
/// So many pages are written before they are synced, so that no snapshot has to sync more.
const UNSYNCED_PAGES_MAX: u32 = 64;

/// Why a page could not be read.
#[derive(Debug)]
pub(crate) enum PageError {
    /// The disk failed: try again.
    Disk(DiskError),
    /// The slot's bytes are not what was written.
    Damaged(PageSlot),
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(error) => error.fmt(f),
            Self::Damaged(slot) => write!(
                f,
                "{PAGE_FILE} is damaged: the page in slot {} is not what was written",
                slot.0
            ),
        }
    }
}

/// A slot that a snapshot may still name.
#[derive(Clone, Copy, Debug)]
struct Retired {
    slot: u32,
    /// The newest snapshot begun when it was freed.
    begun: u64,
}

/// The pages of one shard.
pub(crate) struct PageFile<D: Disk> {
    disk: Arc<D>,
    log_id: u128,
    slot_bytes: usize,
    /// `None` until the first page is written.
    file: Option<Arc<D::File>>,
    /// For each slot the newest snapshot begun when its page was written; the file has them all.
    born: Vec<u64>,
    /// Free slots, the lowest first, so that the end of the file becomes free.
    free: BTreeSet<u32>,
    retired: Vec<Retired>,
    /// Pages written since the file was last given away to be synced.
    unsynced: u32,
    /// Snapshots begun so far.
    begun: u64,
    buffer: Vec<u8>,
    errors: u64,
    last_error: Option<String>,
}

/// Bytes of a slot for pages of at most `page_bytes`.
const fn slot_len(page_bytes: usize) -> usize {
    (SLOT_HEAD_BYTES + page_bytes).next_multiple_of(BLOCK_BYTES)
}

impl<D: Disk> PageFile<D> {
    /// Bytes of a slot for pages of at most `page_bytes`.
    pub(crate) const fn slot_bytes(page_bytes: usize) -> u64 {
        slot_len(page_bytes) as u64
    }

    /// Opens the file with these slots in use, all others free. `page_bytes` is the largest page,
    /// `begun` the number of the snapshot that names the slots.
    ///
    /// # Errors
    /// When the file cannot be opened, or is missing or too short although slots are in use.
    pub(crate) fn open(
        disk: Arc<D>,
        log_id: u128,
        page_bytes: usize,
        used: &BTreeSet<PageSlot>,
        begun: u64,
    ) -> Result<Self, DiskError> {
        let slot_bytes = slot_len(page_bytes);
        let end = used.last().map_or(0, |slot| slot.0.saturating_add(1));
        let file = open_file(&*disk, u64::from(end) * slot_bytes as u64)?;
        let free = (0..end).filter(|slot| !used.contains(&PageSlot(*slot)));
        Ok(Self {
            disk,
            log_id,
            slot_bytes,
            file: file.map(Arc::new),
            free: free.collect(),
            born: vec![0; end as usize],
            retired: Vec::new(),
            unsynced: 0,
            begun,
            buffer: Vec::new(),
            errors: 0,
            last_error: None,
        })
    }

    /// Writes a page into a free slot. `None` when there is no room or the disk failed.
    pub(crate) fn write(&mut self, page: &[u8]) -> Option<PageSlot> {
        match self.try_write(page) {
            Ok(slot) => Some(slot),
            Err(error) => {
                // A full disk is told of by the log's alarm.
                if !error.is_no_space() {
                    self.note(&error);
                }
                None
            }
        }
    }

    fn try_write(&mut self, page: &[u8]) -> Result<PageSlot, DiskError> {
        let file = self.file()?;
        let slot = match self.free.first() {
            Some(slot) => *slot,
            None => self.grow(&file)?,
        };
        let checksum = checksum(self.log_id, slot, page);
        let len = u32::try_from(page.len()).unwrap_or(u32::MAX);
        self.buffer.clear();
        self.buffer.extend_from_slice(&len.to_be_bytes());
        self.buffer.extend_from_slice(&checksum.to_be_bytes());
        self.buffer.extend_from_slice(page);
        debug_assert!(self.buffer.len() <= self.slot_bytes, "a page fits its slot");
        write_all_at(&*file, self.offset(slot), &self.buffer)
            .map_err(|error| DiskError::new(DiskCall::Write, PAGE_FILE, error))?;
        self.free.remove(&slot);
        self.unsynced += 1;
        if let Some(born) = self.born.get_mut(slot as usize) {
            *born = self.begun;
        }
        Ok(PageSlot(slot))
    }

    /// Makes room for more slots; returns the first of them.
    fn grow(&mut self, file: &D::File) -> Result<u32, DiskError> {
        let first = u32::try_from(self.born.len()).unwrap_or(u32::MAX);
        let full = || DiskError::new(DiskCall::Allocate, PAGE_FILE, no_space());
        let end = first.checked_add(GROWTH_SLOTS).ok_or_else(full)?;
        let bytes = self.offset(end);
        if self
            .disk
            .free_bytes()
            .is_some_and(|free| free < bytes - self.offset(first))
        {
            return Err(full());
        }
        file.allocate(bytes)
            .map_err(|error| DiskError::new(DiskCall::Allocate, PAGE_FILE, error))?;
        self.born.resize(end as usize, 0);
        self.free.extend(first..end);
        Ok(first)
    }

    fn file(&mut self) -> Result<Arc<D::File>, DiskError> {
        if let Some(file) = &self.file {
            return Ok(Arc::clone(file));
        }
        let file = self
            .disk
            .create(PAGE_FILE)
            .map_err(|error| DiskError::new(DiskCall::Create, PAGE_FILE, error))?;
        let file = Arc::new(file);
        self.file = Some(Arc::clone(&file));
        Ok(file)
    }

    /// Reads the page of a slot into `into`, replacing what is there.
    ///
    /// # Errors
    /// See [`PageError`].
    pub(crate) fn read(&mut self, slot: PageSlot, into: &mut Vec<u8>) -> Result<(), PageError> {
        let read = self.try_read(slot, into);
        if let Err(error) = &read {
            self.note(error);
        }
        read
    }

    fn try_read(&self, slot: PageSlot, into: &mut Vec<u8>) -> Result<(), PageError> {
        let file = self.file.as_deref().ok_or(PageError::Damaged(slot))?;
        read_slot(file, (self.log_id, self.slot_bytes), slot, into)
    }

    /// What reads pages on another thread: those that are on disk now and are not written over.
    pub(crate) fn reader(&self) -> PageReader<D::File> {
        PageReader {
            file: self.file.clone(),
            log_id: self.log_id,
            slot_bytes: self.slot_bytes,
        }
    }

    /// The engine needs the page of a slot no more.
    pub(crate) fn free(&mut self, slot: PageSlot) {
        let (slot, begun) = (slot.0, self.begun);
        if self.born.get(slot as usize) == Some(&begun) {
            self.free.insert(slot);
        } else {
            self.retired.push(Retired { slot, begun });
        }
    }

    /// Snapshot number `sequence` begins: it may name every page there is.
    pub(crate) const fn on_begun(&mut self, sequence: u64) {
        self.begun = sequence;
    }

    /// Snapshot number `sequence` is the one a start would use from now on: slots freed before it
    /// began are in no snapshot. Gives a free end of the file back to the disk.
    pub(crate) fn on_published(&mut self, sequence: u64) {
        let free = &mut self.free;
        self.retired.retain(|retired| {
            let is_kept = retired.begun >= sequence;
            if !is_kept {
                free.insert(retired.slot);
            }
            is_kept
        });
        self.shrink();
    }

    fn shrink(&mut self) {
        let mut end = u32::try_from(self.born.len()).unwrap_or(u32::MAX);
        while end >= GROWTH_SLOTS
            && self.free.range(end - GROWTH_SLOTS..end).count() == GROWTH_SLOTS as usize
        {
            end -= GROWTH_SLOTS;
        }
        let Some(file) = &self.file else { return };
        if end as usize == self.born.len() {
            return;
        }
        // A file that stays long takes space and harms nothing.
        if file.set_len(self.offset(end)).is_ok() {
            self.born.truncate(end as usize);
            self.free.split_off(&end);
        }
    }

    /// The file, to be synced now; `None` when there is none.
    pub(crate) fn take_to_sync(&mut self) -> Option<Arc<D::File>> {
        self.unsynced = 0;
        self.file.clone()
    }

    /// The file, if it is time to sync it although no snapshot needs it yet.
    pub(crate) fn overdue(&mut self) -> Option<Arc<D::File>> {
        (self.unsynced >= UNSYNCED_PAGES_MAX).then(|| self.take_to_sync())?
    }

    /// Pages in use, those that only a snapshot names included.
    pub(crate) fn used(&self) -> usize {
        self.born.len() - self.free.len()
    }

    /// Bytes of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.offset(u32::try_from(self.born.len()).unwrap_or(u32::MAX))
    }

    /// Failed reads and writes so far, and the newest of them.
    pub(crate) fn errors(&self) -> (u64, Option<&str>) {
        (self.errors, self.last_error.as_deref())
    }

    fn note(&mut self, error: &dyn fmt::Display) {
        self.errors += 1;
        self.last_error = Some(error.to_string());
    }

    const fn offset(&self, slot: u32) -> u64 {
        slot as u64 * self.slot_bytes as u64
    }
}

/// See [`PageFile::reader`].
pub(crate) struct PageReader<F> {
    file: Option<Arc<F>>,
    log_id: u128,
    slot_bytes: usize,
}

impl<F: DiskFile> PageReader<F> {
    /// Reads the page of a slot into `into`, replacing what is there.
    ///
    /// # Errors
    /// See [`PageError`].
    pub(crate) fn read(&self, slot: PageSlot, into: &mut Vec<u8>) -> Result<(), PageError> {
        let file = self.file.as_deref().ok_or(PageError::Damaged(slot))?;
        read_slot(file, (self.log_id, self.slot_bytes), slot, into)
    }
}

fn read_slot<F: DiskFile>(
    file: &F,
    (log_id, slot_bytes): (u128, usize),
    slot: PageSlot,
    into: &mut Vec<u8>,
) -> Result<(), PageError> {
    into.resize(slot_bytes, 0);
    let offset = u64::from(slot.0) * slot_bytes as u64;
    let filled = read_up_to(file, offset, into)
        .map_err(|error| PageError::Disk(DiskError::new(DiskCall::Read, PAGE_FILE, error)))?;
    into.truncate(filled);
    let damaged = PageError::Damaged(slot);
    let Some((head, rest)) = into.split_first_chunk::<SLOT_HEAD_BYTES>() else {
        return Err(damaged);
    };
    let [a, b, c, d, found @ ..] = *head;
    let len = u32::from_be_bytes([a, b, c, d]) as usize;
    let Some(page) = rest.get(..len) else {
        return Err(damaged);
    };
    if checksum(log_id, slot.0, page) != u32::from_be_bytes(found) {
        return Err(damaged);
    }
    into.drain(..SLOT_HEAD_BYTES);
    into.truncate(len);
    Ok(())
}

/// A page of another slot or another log does not pass for this one.
fn checksum(log_id: u128, slot: u32, page: &[u8]) -> u32 {
    let seed = crc32c::crc32c(&log_id.to_be_bytes());
    let seed = crc32c::crc32c_append(seed, &slot.to_be_bytes());
    crc32c::crc32c_append(seed, page)
}

/// The file if there is one; at least `bytes` long, and empty when nothing in it is in use.
fn open_file<D: Disk>(disk: &D, bytes: u64) -> Result<Option<D::File>, DiskError> {
    let failed = |call| move |error| DiskError::new(call, PAGE_FILE, error);
    let file = match disk.open(PAGE_FILE) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound && bytes == 0 => return Ok(None),
        Err(error) => return Err(failed(DiskCall::Open)(error)),
    };
    let found = file.len_bytes().map_err(failed(DiskCall::Len))?;
    if found < bytes {
        let problem = format!("it has {found} bytes and should have {bytes} at least");
        let error = io::Error::new(io::ErrorKind::UnexpectedEof, problem);
        return Err(failed(DiskCall::Open)(error));
    }
    file.set_len(bytes).map_err(failed(DiskCall::SetLen))?;
    Ok(Some(file))
}

fn no_space() -> io::Error {
    io::ErrorKind::StorageFull.into()
}

#[cfg(test)]
mod tests;
