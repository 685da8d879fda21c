//! The log: its state, appending, and the figures it shows.
//!
//! Opening is in `recover`, committing in `commit`, reading in `read`.

mod commit;
mod keep;
mod read;
mod reader;
mod search;

pub use keep::SegmentFile;
pub use reader::LogReader;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::cache::{ReadCache, WriteCache};
use crate::cold::ColdNumbers;
use crate::config::{Config, RECORD_BYTES_MAX};
use crate::disk::Disk;
use crate::error::{AppendError, OpenError, Poisoned, ReplayError};
use crate::format::{Claims, Seed};
use crate::lsn::{Geometry, Lsn, SegmentIndex};
use crate::recover;
use crate::segments::Segments;
use crate::slots::{Slot, Slots};
use crate::tail::{Place, Tail};

/// One shard's log. See the crate's head for the flow.
pub struct Log<D: Disk> {
    pub(crate) config: Config,
    pub(crate) geometry: Geometry,
    tail: Tail,
    cache: WriteCache,
    read_cache: ReadCache,
    segments: Segments<D::File>,
    /// `None` while a flush job is out.
    slots: Option<Box<Slots<D>>>,
    /// Files to be handed back with the next job.
    freed: Vec<Slot<D::File>>,
    frees: Frees,
    cold: Cold,
    disk: Arc<D>,
    lock: Arc<D::Lock>,
    durable: u64,
    in_flight_bytes: usize,
    marks: Marks,
    space: Space,
    poison: Option<Poisoned>,
}

/// How far the durable log speaks of itself.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    /// A durable claim says that everything below is synced: a damage there is corruption.
    proven: u64,
    /// End of the newest durable batch that holds records.
    records_end: u64,
    /// Somebody waits until `proven` has come so far, records or not.
    wanted: u64,
    /// What a durable claim says is no longer needed.
    start_claimed: u64,
    /// Write a marker with the next flush if nothing else is written.
    marker_due: bool,
}

/// Which segments may go.
#[derive(Debug, Default)]
struct Frees {
    /// These windows.
    windows: BTreeSet<u64>,
    /// Something has changed since this was last looked at.
    is_due: bool,
}

/// What the log knows of the writing of cold segments.
struct Cold {
    numbers: Arc<ColdNumbers>,
    /// The cold segment that is still written to.
    open: Option<u64>,
}

/// Disk space as of the last flush.
#[derive(Clone, Copy, Debug, Default)]
struct Space {
    alarm: bool,
    /// A batch is waiting for a file that could not be made.
    stalled: bool,
    retry: bool,
    spare_count: usize,
    spare_bytes: u64,
}

/// What recovery hands over.
pub(crate) struct Recovered<D: Disk> {
    pub(crate) slots: Slots<D>,
    pub(crate) segments: Segments<D::File>,
    pub(crate) epoch: u64,
    pub(crate) place: Place,
    /// What the files already claim.
    pub(crate) claims: Claims,
    /// End of the newest batch that holds records.
    pub(crate) records_end: u64,
    /// The first number that no cold segment has.
    pub(crate) next_cold: u64,
}

/// Takes each record at recovery: its position and its bytes.
pub type Replay<'a> = dyn FnMut(Lsn, &[u8]) -> Result<(), ReplayError> + 'a;

/// Whether publishes can be taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// Yes.
    Ok,
    /// The disk is full: refuse what adds data; acks and reclaim still go on in the reserve.
    PublishRefused,
}

/// Figures of a log.
#[derive(Clone, Debug)]
pub struct LogStats {
    /// Segments that hold needed data: replayed, kept and cold ones.
    pub segments: usize,
    /// Bytes of all files, spare ones included, as far as they are durable.
    pub bytes_on_disk: u64,
    /// Free files ready for use.
    pub spare: usize,
    /// Bytes of batches in memory: written ones kept for reading, and read back ones.
    pub cached_bytes: usize,
    /// Appended and not yet durable.
    pub undurable_bytes: usize,
    /// See [`Log::durable`].
    pub durable: Lsn,
    /// Why the log has stopped, if it has.
    pub poisoned: Option<Poisoned>,
}

impl<D: Disk> Log<D> {
    /// Opens the log in the directory of `disk`; an empty directory becomes a new log.
    ///
    /// Calls `replay` for every valid record from `from` on (0 for all), but none that lies before
    /// the segment that the log claims to start with ([`Self::claimed_start`]), in order, with its
    /// position and bytes. Then a new epoch is begun in a new segment, to which a tail that was
    /// not proven to be synced has been copied: what was replayed is durable when this returns,
    /// and nothing else of the old tail can come back. The log goes on to claim the start that it
    /// had; [`Self::set_start`] moves it to `from`.
    ///
    /// Records above [`Self::proven`] may get new positions; `replay` sees the new ones.
    ///
    /// Segments before the start and cold ones are held, unread, until [`Self::keep_segments`] says
    /// which of them are needed; the caller must call it, once, before anything else.
    ///
    /// # Errors
    /// See [`OpenError`]. Nothing unreadable is ever taken for empty.
    pub fn open(
        disk: Arc<D>,
        config: Config,
        from: Lsn,
        replay: &mut Replay<'_>,
    ) -> Result<Self, OpenError> {
        config.validate().map_err(OpenError::Config)?;
        let recovered = recover::open(disk, &config, from, replay)?;
        Ok(Self::from_recovered(config, recovered))
    }

    fn from_recovered(config: Config, recovered: Recovered<D>) -> Self {
        let geometry = Geometry::new(config.segment_bytes);
        let Recovered {
            slots,
            segments,
            epoch,
            place,
            claims,
            records_end,
            next_cold,
        } = recovered;
        let durable = place.position;
        let seed = Seed::new(config.log_id, epoch);
        let chunks_max = config.cache_bytes / config.chunk_bytes + CHUNKS_BEYOND_CACHE;
        let tail_claims = Claims {
            synced: durable,
            start: claims.start,
        };
        Self {
            tail: Tail::new(
                geometry,
                (seed, epoch),
                (config.chunk_bytes, chunks_max),
                tail_claims,
                place,
            ),
            cache: WriteCache::new(config.cache_bytes),
            read_cache: ReadCache::new(config.read_cache_bytes),
            segments,
            space: Space {
                alarm: slots.alarm(),
                stalled: false,
                retry: false,
                spare_count: slots.spare_count(),
                spare_bytes: slots.spare_bytes(),
            },
            disk: slots.disk(),
            lock: slots.lock(),
            slots: Some(Box::new(slots)),
            freed: Vec::new(),
            frees: Frees::default(),
            cold: Cold {
                numbers: Arc::new(ColdNumbers::new(next_cold)),
                open: None,
            },
            durable,
            in_flight_bytes: 0,
            marks: Marks {
                proven: claims.synced,
                wanted: 0,
                records_end,
                start_claimed: claims.start,
                marker_due: false,
            },
            poison: None,
            geometry,
            config,
        }
    }

    /// Adds a record and returns its position. Memory only; never waits.
    ///
    /// The record is durable once [`Self::durable`] has reached what [`Self::end`] is right after
    /// this call. Empty records are allowed. The caller bounds what is pending
    /// ([`Self::pending_bytes`]).
    ///
    /// Cost: one copy of the record, and its checksum when the batch is sealed.
    ///
    /// # Errors
    /// `TooLarge` (nothing happened), `Poisoned` (open the log again).
    #[inline]
    pub fn append(&mut self, record: &[u8]) -> Result<Lsn, AppendError> {
        if record.len() > RECORD_BYTES_MAX {
            return Err(AppendError::TooLarge {
                record_bytes: record.len(),
            });
        }
        if let Some(poison) = &self.poison {
            return Err(AppendError::Poisoned(poison.clone()));
        }
        Ok(Lsn(self.tail.append(record)))
    }

    /// The position after the newest record.
    #[must_use]
    pub fn end(&self) -> Lsn {
        Lsn(self.tail.end())
    }

    /// Everything below this position survives a crash. Never moves back; stops when poisoned.
    #[must_use]
    pub const fn durable(&self) -> Lsn {
        Lsn(self.durable)
    }

    /// Everything below this position is also known to be durable by what the disk itself says,
    /// so that damage there is seen as corruption and positions there never change. Follows
    /// [`Self::durable`] by one commit, or by an idle marker. (Whoever later refers to positions
    /// from outside the log, as a snapshot does, may only refer to positions below this.)
    #[must_use]
    pub const fn proven(&self) -> Lsn {
        Lsn(self.marks.proven)
    }

    /// Bytes waiting for the next [`Self::take_flush`].
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.tail.pending_bytes()
    }

    /// Bytes in the flush job that is out; 0 when none is.
    #[must_use]
    pub const fn in_flight_bytes(&self) -> usize {
        self.in_flight_bytes
    }

    /// The segment window that a position lies in.
    #[must_use]
    pub const fn segment_of(&self, at: Lsn) -> SegmentIndex {
        self.geometry.index_of(at.0)
    }

    /// The oldest position that can be read.
    #[must_use]
    pub fn oldest(&self) -> Lsn {
        Lsn(self.segments.oldest().unwrap_or(self.durable))
    }

    /// Whether publishes can be taken.
    #[must_use]
    pub const fn room(&self) -> Room {
        if self.space.alarm || self.space.stalled {
            Room::PublishRefused
        } else {
            Room::Ok
        }
    }

    /// Why the log has stopped, if it has.
    #[must_use]
    pub const fn poisoned(&self) -> Option<&Poisoned> {
        self.poison.as_ref()
    }

    /// Figures for operators.
    #[must_use]
    pub fn stats(&self) -> LogStats {
        LogStats {
            segments: self.segments.len(),
            bytes_on_disk: self.segments.file_bytes() + self.space.spare_bytes,
            spare: self.space.spare_count,
            cached_bytes: self.cache.bytes() + self.read_cache.bytes(),
            undurable_bytes: self.tail.pending_bytes() + self.in_flight_bytes,
            durable: self.durable(),
            poisoned: self.poison.clone(),
        }
    }

    /// Checks what must always hold.
    ///
    /// # Panics
    /// When it does not: a bug in this crate.
    pub fn assert_invariants(&self) {
        let end = self.tail.end();
        assert!(
            self.marks.proven <= self.durable,
            "proven {} beyond durable {}",
            self.marks.proven,
            self.durable
        );
        let is_pending = self.in_flight_bytes > 0 || self.tail.pending_bytes() > 0;
        assert!(
            is_pending || self.durable >= end || self.poison.is_some(),
            "nothing pending but durable {} is below the end {end}",
            self.durable
        );
        assert!(
            self.marks.start_claimed <= self.tail.claims.start,
            "start {} claimed but {} wanted",
            self.marks.start_claimed,
            self.tail.claims.start
        );
    }
}

/// Chunks kept for reuse beyond those that fill the cache: one open, one in flight and its
/// double, and one that a reader is slow to let go.
const CHUNKS_BEYOND_CACHE: usize = 4;
