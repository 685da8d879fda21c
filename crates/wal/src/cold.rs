//! Cold segments: copies of what is still needed of segments that are mostly dead.
//!
//! Owns their files and the writing of them, on any thread, beside the log's own. Refuses to know
//! who needs what: it takes bytes and says where they lie now. Cold segments are never replayed;
//! what
//! nobody refers to after a restart goes. Their batches are those of the log, without claims.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{BufMut, Bytes};

use crate::config::{Config, RECORD_BYTES_MAX};
use crate::disk::{Disk, DiskCall, DiskError, DiskFile, write_all_at};
use crate::error::ColdError;
use crate::format::{
    BATCH_HEADER_BYTES, BatchHeader, Body, Claims, LENGTH_BYTES, Seed, SegmentHeader, SlotState,
    padded,
};
use crate::lsn::{Geometry, Lsn, SegmentIndex, in_memory};
use crate::slots::{Slot, number_in, sync};
use crate::tail::{Place, Window};

/// Writes cold segments. At most one exists per log; [`crate::Log::cold_writer`] makes it.
///
/// Every call blocks on the disk. It may run on another thread while the log goes on. After an
/// error
/// nothing that was appended since the last [`Self::sync`] counts: append it again.
#[must_use = "it holds the log's files until it is dropped"]
pub struct ColdWriter<D: Disk> {
    disk: Arc<D>,
    template: SegmentHeader,
    geometry: Geometry,
    seed: Seed,
    chunk_bytes: usize,
    next: Arc<ColdNumbers>,
    file: Option<ColdFile<D::File>>,
    /// Files that were filled since the last sync; synced.
    filled: Vec<Filled<D::File>>,
    batch: Batch,
    _lock: Arc<D::Lock>,
}

/// What became readable; give it to [`crate::Log::add_cold`].
#[must_use = "give it to Log::add_cold"]
pub struct ColdWritten<D: Disk> {
    pub(crate) parts: Vec<ColdPart<D::File>>,
    /// Index of the file that the writer goes on with.
    pub(crate) open: Option<u64>,
}

/// A cold segment as far as it is synced.
pub(crate) struct ColdPart<F> {
    pub(crate) window: Window,
    pub(crate) epoch: u64,
    pub(crate) end: u64,
    pub(crate) slot: Slot<F>,
}

/// Hands out windows of cold segments; shared, because a writer makes files on its own.
pub(crate) struct ColdNumbers(AtomicU64);

impl ColdNumbers {
    pub(crate) const fn new(next: u64) -> Self {
        Self(AtomicU64::new(next))
    }

    fn take(&self, count: u32) -> u64 {
        self.0.fetch_add(u64::from(count), Ordering::Relaxed)
    }
}

struct ColdFile<F> {
    window: Window,
    base: u64,
    /// Position after the last batch written, and after the last one synced.
    end: u64,
    synced: u64,
    file_end: u64,
    /// The log was told of it: what was synced before counts, whatever happens now.
    is_reported: bool,
    slot: Slot<F>,
}

struct Filled<F> {
    part: ColdPart<F>,
    was_reported: bool,
}

/// The records of the batch that is being put together, behind the place of its header.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    records: u32,
}

impl<D: Disk> ColdWriter<D> {
    pub(crate) fn new(
        (disk, lock): (Arc<D>, Arc<D::Lock>),
        config: &Config,
        epoch: u64,
        next: Arc<ColdNumbers>,
    ) -> Self {
        let geometry = Geometry::new(config.segment_bytes);
        Self {
            disk,
            template: SegmentHeader {
                log_id: config.log_id,
                shard: config.shard,
                segment_shift: geometry.shift(),
                epoch,
                file_bytes: config.segment_bytes,
                state: SlotState::Spare,
            },
            geometry,
            seed: Seed::new(config.log_id, epoch),
            chunk_bytes: config.chunk_bytes,
            next,
            file: None,
            filled: Vec::new(),
            batch: Batch::default(),
            _lock: lock,
        }
    }

    /// Writes records and says where they lie. They can be read once [`Self::sync`] has returned
    /// and its result was given to the log.
    ///
    /// # Errors
    /// See [`ColdError`]. Nothing appended since the last sync counts then.
    pub fn append(&mut self, records: &[Bytes]) -> Result<Vec<Lsn>, ColdError> {
        if let Some(large) = records.iter().find(|it| it.len() > RECORD_BYTES_MAX) {
            return Err(ColdError::TooLarge {
                record_bytes: large.len(),
            });
        }
        let written = self.write(records);
        written.map_err(|e| self.give_up(e))
    }

    /// Makes what was appended survive a crash.
    ///
    /// # Errors
    /// A disk call failed. Nothing appended since the last sync counts.
    pub fn sync(&mut self) -> Result<ColdWritten<D>, ColdError> {
        if let Some(file) = &mut self.file
            && file.synced < file.end
        {
            if let Err(e) = sync(&file.slot) {
                return Err(self.give_up(e));
            }
            file.synced = file.end;
            let filled = file.filled(self.template.epoch);
            file.is_reported = true;
            self.filled.push(filled);
        }
        let filled = std::mem::take(&mut self.filled);
        Ok(ColdWritten {
            parts: filled.into_iter().map(|it| it.part).collect(),
            open: self.file.as_ref().map(|file| file.window.index.0),
        })
    }

    /// Like [`Self::sync`], and gives back the space that the last file does not need.
    ///
    /// # Errors
    /// A disk call failed. Nothing appended since the last sync counts.
    pub fn finish(mut self) -> Result<ColdWritten<D>, ColdError> {
        self.close_file().map_err(|e| self.give_up(e))?;
        self.sync()
    }

    fn write(&mut self, records: &[Bytes]) -> Result<Vec<Lsn>, DiskError> {
        let mut places = Vec::with_capacity(records.len());
        for record in records {
            let need = LENGTH_BYTES + record.len();
            if self.batch.records > 0 && self.batch.bytes.len() + need > self.batch_bytes_max() {
                self.write_batch()?;
            }
            if self.batch.records == 0 {
                self.open_batch(need)?;
            }
            let position = self.file.as_ref().map_or(0, |file| file.end);
            let offset = self.batch.bytes.len() + LENGTH_BYTES;
            places.push(Lsn(position + offset as u64));
            let length = u32::try_from(record.len()).unwrap_or(u32::MAX);
            self.batch.bytes.put_u32_le(length);
            self.batch.bytes.put_slice(record);
            self.batch.records += 1;
        }
        if self.batch.records > 0 {
            self.write_batch()?;
        }
        Ok(places)
    }

    /// What fits one batch of small records at the current place.
    fn batch_bytes_max(&self) -> usize {
        let room = self.file.as_ref().map_or(0, |it| it.file_end - it.end);
        in_memory(room.min(self.chunk_bytes as u64))
    }

    /// Begins a batch for a record of `need` bytes, in a new file if it does not fit.
    fn open_batch(&mut self, need: usize) -> Result<(), DiskError> {
        let bytes = padded(BATCH_HEADER_BYTES + need) as u64;
        let fits = |file: &ColdFile<_>| file.end + bytes <= file.file_end;
        if !self.file.as_ref().is_some_and(fits) {
            self.close_file()?;
            self.file = Some(self.create_file(bytes)?);
        }
        self.batch.bytes.clear();
        self.batch.bytes.put_bytes(0, BATCH_HEADER_BYTES);
        Ok(())
    }

    fn write_batch(&mut self) -> Result<(), DiskError> {
        let records = std::mem::take(&mut self.batch.records);
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let bytes = &mut self.batch.bytes;
        let body = Body {
            bytes: bytes.get(BATCH_HEADER_BYTES..).unwrap_or_default(),
            records,
        };
        let place = (self.template.epoch, file.end);
        let header = BatchHeader::seal(self.seed, place, Claims::default(), body);
        if let Some(into) = bytes.first_chunk_mut::<BATCH_HEADER_BYTES>() {
            *into = header.encode(self.seed);
        }
        bytes.resize(padded(bytes.len()), 0);
        write_all_at(&*file.slot.file, file.end - file.base, bytes)
            .map_err(|e| DiskError::new(DiskCall::Write, &file.slot.name, e))?;
        file.end += bytes.len() as u64;
        Ok(())
    }

    /// Ends the current file: cut to what is in it, and synced.
    fn close_file(&mut self) -> Result<(), DiskError> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let needed = file.end - file.base;
        // Ignored: a file that stays long only takes space.
        if needed < file.slot.bytes && file.slot.file.set_len(needed).is_ok() {
            file.slot.bytes = needed;
        }
        sync(&file.slot)?;
        let filled = file.filled(self.template.epoch);
        self.filled.push(filled);
        self.file = None;
        Ok(())
    }

    /// A new file for a first batch of `batch_bytes`, durable under its final name.
    fn create_file(&self, batch_bytes: u64) -> Result<ColdFile<D::File>, DiskError> {
        let place = Place::for_batch(self.geometry, SegmentIndex(0), batch_bytes);
        let span = place.segment.span;
        let number = self.next.take(span);
        let index = SegmentIndex(self.geometry.cold_bit() | number);
        let window = Window { index, span };
        let temporary = format!("{number:06}.{TEMPORARY_SUFFIX}");
        let failed = |call| {
            let name = temporary.clone();
            move |e| DiskError::new(call, &name, e)
        };
        let file = self
            .disk
            .create(&temporary)
            .map_err(failed(DiskCall::Create))?;
        let mut slot = Slot {
            name: temporary.clone(),
            file: Arc::new(file),
            bytes: place.segment_end,
        };
        let made = self.fill_new(&mut slot, window, number);
        if made.is_err() {
            // Ignored: a file that stays is removed at the next start.
            self.disk.remove(&slot.name).ok();
        }
        made?;
        let base = self.geometry.base(index);
        let first = self.geometry.first_batch(index);
        Ok(ColdFile {
            window,
            base,
            end: first,
            synced: first,
            file_end: base + place.segment_end,
            is_reported: false,
            slot,
        })
    }

    fn fill_new(
        &self,
        slot: &mut Slot<D::File>,
        window: Window,
        number: u64,
    ) -> Result<(), DiskError> {
        slot.file
            .allocate(slot.bytes)
            .map_err(|e| DiskError::new(DiskCall::Allocate, &slot.name, e))?;
        let header = SegmentHeader {
            file_bytes: slot.bytes,
            state: SlotState::Live {
                index: window.index,
                span: window.span,
                previous_end: 0,
                start: 0,
            },
            ..self.template
        };
        write_all_at(&*slot.file, 0, &header.encode())
            .map_err(|e| DiskError::new(DiskCall::Write, &slot.name, e))?;
        sync(slot)?;
        let name = cold_name(number);
        self.disk
            .rename(&slot.name, &name)
            .map_err(|e| DiskError::new(DiskCall::Rename, &slot.name, e))?;
        slot.name = name;
        self.disk
            .sync_dir()
            .map_err(|e| DiskError::new(DiskCall::SyncDir, "", e))
    }

    /// Forgets what was not synced: its files are left, and removed if nothing in them counts.
    fn give_up(&mut self, e: DiskError) -> ColdError {
        self.batch.records = 0;
        let mut left = std::mem::take(&mut self.filled);
        if let Some(file) = self.file.take() {
            left.push(file.filled(self.template.epoch));
        }
        for filled in left.iter().filter(|it| !it.was_reported) {
            // Ignored: a file that stays goes at the next start.
            self.disk.remove(&filled.part.slot.name).ok();
        }
        if e.is_no_space() {
            ColdError::NoSpace(e)
        } else {
            ColdError::Disk(e)
        }
    }
}

impl<F> ColdFile<F> {
    fn filled(&self, epoch: u64) -> Filled<F> {
        Filled {
            part: ColdPart {
                window: self.window,
                epoch,
                end: self.end,
                slot: self.slot.clone(),
            },
            was_reported: self.is_reported,
        }
    }
}

/// The name of the cold segment file whose first window is `number` (without the cold bit).
pub(crate) fn cold_name(number: u64) -> String {
    format!("{number:06}.{SUFFIX}")
}

/// The number in a cold segment file's name, or `None` for other files.
pub(crate) fn cold_number(name: &str) -> Option<u64> {
    number_in(name, SUFFIX)
}

/// Whether this is an unfinished cold segment file.
pub(crate) fn is_temporary(name: &str) -> bool {
    number_in::<u64>(name, TEMPORARY_SUFFIX).is_some()
}

const SUFFIX: &str = "cold";
const TEMPORARY_SUFFIX: &str = "coldtmp";
