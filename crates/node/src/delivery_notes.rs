//! The newest deliveries of fast queues, where the end of the process does not lose them
//! (docs/formats/deliveries.md).
//!
//! A delivery of a fast queue leaves before the record of it is on disk. Were the process killed
//! then, nothing would say that the message was out. So that record is also written here before the
//! delivery leaves, in one write per call of the engine, into the page cache: what a process wrote
//! outlives it. Nothing is ever synced; a power loss may take it.
//!
//! The file has two areas of fixed size. Notes follow one another in one of them, and it is begun
//! anew when the log has all that it notes on disk. When both are full of notes that it has not,
//! there is no note: the delivery waits for the log instead.

use std::io;
use std::sync::Arc;

use tanda_engine::{Engine, Lsn, ReplayError};
use tanda_wal::{Disk, DiskCall, DiskError, read_up_to, write_all_at};

/// Its name in the shard's directory.
const NOTES_FILE: &str = "deliveries.notes";

/// Bytes of an area. A flush that takes a millisecond sees a few notes of less than 100 bytes.
const AREA_BYTES: usize = 256 << 10;

/// Checksum, length, generation.
const HEAD_BYTES: usize = 16;
/// Length before each record.
const LENGTH_BYTES: usize = 4;

/// Part of each checksum: another layout does not pass for this one.
const VERSION: u8 = 1;

/// One half of the file.
#[derive(Clone, Copy, Debug, Default)]
struct Area {
    /// Where the next note goes.
    end: usize,
    /// Its notes are not needed once the log is durable up to here.
    needed_until: Lsn,
    /// The same for all of its notes, and higher than that of all that stood there before.
    generation: u64,
}

/// See the module head.
pub(crate) struct DeliveryNotes<D: Disk> {
    disk: Arc<D>,
    log_id: u128,
    /// `None` until the first note.
    file: Option<D::File>,
    areas: [Area; 2],
    /// The one that notes go to.
    current: usize,
    /// What a start found is taken out of the file once the log is durable up to here.
    found_until: Option<Lsn>,
    /// Room for a head, then the records noted in the call of the engine under way; empty when
    /// there are none.
    note: Vec<u8>,
    errors: u64,
    last_error: Option<String>,
}

/// What was read at a start.
pub(crate) struct Found {
    /// The notes, one after the other, without their heads.
    notes: Vec<Vec<u8>>,
}

impl Found {
    /// Tells the engine, which has replayed the log.
    ///
    /// # Errors
    /// A note is whole and makes no sense.
    pub(crate) fn replay(&self, engine: &mut Engine) -> Result<(), ReplayError> {
        for note in &self.notes {
            let mut rest = note.as_slice();
            while let Some((record, after)) = split_record(rest) {
                engine.replay_noted(record)?;
                rest = after;
            }
        }
        Ok(())
    }
}

impl<D: Disk> DeliveryNotes<D> {
    /// Reads what the process before this one has left. Its notes are kept until
    /// [`Self::keep_until`] says for how long.
    ///
    /// # Errors
    /// When the file is there and cannot be read.
    pub(crate) fn open(disk: Arc<D>, log_id: u128) -> Result<(Self, Found), DiskError> {
        let mut notes = Self {
            disk,
            log_id,
            file: None,
            areas: [Area::default(); 2],
            current: 0,
            found_until: None,
            note: Vec::new(),
            errors: 0,
            last_error: None,
        };
        let mut found = Found { notes: Vec::new() };
        let failed = |call| move |error| DiskError::new(call, NOTES_FILE, error);
        let file = match notes.disk.open(NOTES_FILE) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((notes, found)),
            Err(error) => return Err(failed(DiskCall::Open)(error)),
        };
        let mut bytes = vec![0; AREA_BYTES];
        for (number, area) in notes.areas.iter_mut().enumerate() {
            bytes.resize(AREA_BYTES, 0);
            let filled =
                read_up_to(&file, base_of(number), &mut bytes).map_err(failed(DiskCall::Read))?;
            bytes.truncate(filled);
            area.generation = read_area((log_id, number), &bytes, &mut found.notes);
        }
        notes.file = Some(file);
        Ok((notes, found))
    }

    /// What was found is in the log, on disk once that is durable up to `end`.
    pub(crate) const fn keep_until(&mut self, end: Lsn) {
        let [first, second] = &mut self.areas;
        (first.end, second.end) = (AREA_BYTES, AREA_BYTES);
        (first.needed_until, second.needed_until) = (end, end);
        self.found_until = if self.file.is_some() { Some(end) } else { None };
    }

    /// Another start would take what this one has found for news: of messages that stand where
    /// those stood that the log has lost.
    fn forget_found(&mut self) {
        self.found_until = None;
        let Some(file) = self.file.take() else {
            return;
        };
        for area in 0..self.areas.len() {
            if let Err(error) = write_all_at(&file, base_of(area), &[0; HEAD_BYTES]) {
                self.note_error(&DiskError::new(DiskCall::Write, NOTES_FILE, error));
            }
        }
        self.file = Some(file);
    }

    /// A full disk is told of by the log's alarm.
    fn note_error(&mut self, error: &DiskError) {
        if !error.is_no_space() {
            self.errors += 1;
            self.last_error = Some(error.to_string());
        }
    }

    /// Adds a record to the next note.
    pub(crate) fn add(&mut self, record: &[u8]) {
        if self.note.is_empty() {
            self.note.resize(HEAD_BYTES, 0);
        }
        let len = u32::try_from(record.len()).unwrap_or(u32::MAX);
        self.note.extend_from_slice(&len.to_be_bytes());
        self.note.extend_from_slice(record);
    }

    /// Writes what was added; the log ends at `end` and is durable up to `durable`. Returns the
    /// log position that the deliveries wait for: none when they are noted.
    #[must_use]
    pub(crate) fn write(&mut self, durable: Lsn, end: Lsn) -> Lsn {
        if self.found_until.is_some_and(|until| until <= durable) {
            self.forget_found();
        }
        if self.note.is_empty() {
            return Lsn::ZERO;
        }
        let mut note = core::mem::take(&mut self.note);
        let written = self.try_write(&mut note, durable, end);
        note.clear();
        self.note = note;
        match written {
            Ok(true) => Lsn::ZERO,
            Ok(false) => end,
            Err(error) => {
                self.note_error(&error);
                end
            }
        }
    }

    /// False when there is no room.
    fn try_write(&mut self, note: &mut [u8], durable: Lsn, end: Lsn) -> Result<bool, DiskError> {
        let Some((number, at, generation)) = self.place(note.len(), durable) else {
            return Ok(false);
        };
        seal(note, (self.log_id, number, at), generation);
        let file = match self.file.take() {
            Some(file) => file,
            None => self
                .disk
                .create(NOTES_FILE)
                .map_err(|error| DiskError::new(DiskCall::Create, NOTES_FILE, error))?,
        };
        let written = write_all_at(&file, base_of(number) + at as u64, note);
        self.file = Some(file);
        written.map_err(|error| DiskError::new(DiskCall::Write, NOTES_FILE, error))?;
        self.current = number;
        if let Some(area) = self.areas.get_mut(number) {
            *area = Area {
                end: at + note.len(),
                needed_until: end,
                generation,
            };
        }
        Ok(true)
    }

    /// Where a note of `len` bytes goes: the area, the offset in it, and its generation.
    fn place(&self, len: usize, durable: Lsn) -> Option<(usize, usize, u64)> {
        if len > AREA_BYTES {
            return None;
        }
        let next = self.areas.iter().map(|area| area.generation).max()? + 1;
        let area = self.areas.get(self.current)?;
        if area.needed_until <= durable {
            return Some((self.current, 0, next));
        }
        if area.end + len <= AREA_BYTES {
            return Some((self.current, area.end, area.generation));
        }
        let other = 1 - self.current;
        let is_free = self.areas.get(other)?.needed_until <= durable;
        is_free.then_some((other, 0, next))
    }

    /// Failed writes so far, and the newest of them.
    pub(crate) fn errors(&self) -> (u64, Option<&str>) {
        (self.errors, self.last_error.as_deref())
    }
}

const fn base_of(area: usize) -> u64 {
    (area * AREA_BYTES) as u64
}

/// Fills in the head of a note.
fn seal(note: &mut [u8], place: (u128, usize, usize), generation: u64) {
    let len = u32::try_from(note.len() - HEAD_BYTES).unwrap_or(u32::MAX);
    let Some((checksum, rest)) = note.split_first_chunk_mut::<4>() else {
        return;
    };
    if let Some((head, _)) = rest.split_first_chunk_mut::<{ HEAD_BYTES - 4 }>() {
        let (first, second) = head.split_at_mut(4);
        first.copy_from_slice(&len.to_be_bytes());
        second.copy_from_slice(&generation.to_be_bytes());
    }
    *checksum = checksum_of(place, rest).to_be_bytes();
}

/// Adds the notes of an area to `notes`; returns their generation, 0 when there are none. What
/// follows them was torn, or stood there before: it is not needed.
fn read_area((log_id, number): (u128, usize), area: &[u8], notes: &mut Vec<Vec<u8>>) -> u64 {
    let mut at = 0;
    let mut newest = 0;
    while let Some((generation, note)) = read_note((log_id, number, at), area) {
        if newest != 0 && generation != newest {
            break;
        }
        newest = generation;
        at += HEAD_BYTES + note.len();
        notes.push(note.to_vec());
    }
    newest
}

/// The note at a place, and its generation.
fn read_note(place: (u128, usize, usize), area: &[u8]) -> Option<(u64, &[u8])> {
    let (checksum, rest) = area.get(place.2..)?.split_first_chunk::<4>()?;
    let (head, notes) = rest.split_first_chunk::<{ HEAD_BYTES - 4 }>()?;
    let [a, b, c, d, generation @ ..] = *head;
    let note = notes.get(..u32::from_be_bytes([a, b, c, d]) as usize)?;
    let sealed = rest.get(..head.len() + note.len())?;
    let is_whole = checksum_of(place, sealed) == u32::from_be_bytes(*checksum);
    is_whole.then(|| (u64::from_be_bytes(generation), note))
}

/// A note of another log, area or place does not pass for this one.
fn checksum_of((log_id, area, at): (u128, usize, usize), bytes: &[u8]) -> u32 {
    let seed = crc32c::crc32c(&log_id.to_be_bytes());
    let seed = crc32c::crc32c_append(seed, &[VERSION]);
    let seed = crc32c::crc32c_append(seed, &(base_of(area) + at as u64).to_be_bytes());
    crc32c::crc32c_append(seed, bytes)
}

/// The first record of a note, and what follows it.
fn split_record(note: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = note.split_first_chunk::<LENGTH_BYTES>()?;
    rest.split_at_checked(u32::from_be_bytes(*len) as usize)
}

#[cfg(test)]
mod tests;
