//! Opening a node: recovery, and why it can fail.

use core::fmt;
use std::error::Error;
use std::io::ErrorKind;
use std::sync::Arc;

use tanda_engine::{Engine, Lsn, Millis, named_snapshot};
use tanda_wal::{Disk, DiskCall, DiskError, Log};

use crate::delivery_notes::DeliveryNotes;
use crate::node::Recovered;
use crate::pages::{PageError, PageFile};
use crate::reclaim::Rates;
use crate::snapshot::files::{Found, look};
use crate::snapshot::{Published, Schedule, Snapshots};
use crate::stream::{StreamError, StreamHeader};
use crate::{Node, NodeConfig};

/// How far recovery has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryProgress {
    /// Records applied so far.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Position of the newest of them.
    pub at: Lsn,
}

/// Why a node could not be opened. Nothing was thrown away; serving from this state would lose
/// messages.
#[derive(Debug)]
pub enum OpenError {
    /// The log does not hold what was written to it.
    Corrupt(tanda_wal::OpenError),
    /// A record passed its checksum but makes no sense to the engine.
    Record {
        /// Its position.
        at: Lsn,
        /// What is wrong with it.
        problem: String,
    },
    /// The snapshot that the log goes on from cannot be used.
    Snapshot {
        /// What is wrong.
        problem: String,
    },
    /// The page file cannot be used.
    Pages {
        /// What is wrong.
        problem: String,
    },
    /// The notes of deliveries cannot be used.
    Notes {
        /// What is wrong.
        problem: String,
    },
    /// A newer build wrote this log.
    NewerVersion(tanda_wal::OpenError),
    /// The log could not be used: in use by another process, a disk call failed, wrong settings.
    Log(tanda_wal::OpenError),
}

impl OpenError {
    /// What an operator can do about it.
    #[must_use]
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Corrupt(_) => {
                "copy the data directory before anything else; `tanda repair verify` shows what is \
                 damaged, `tanda repair salvage` saves what can be read; docs/recovery.md says more"
            }
            Self::Record { .. } => {
                "start the build that wrote this log, or a newer one; if that is this build, the \
                 log is damaged: copy the data directory, then `tanda repair salvage` saves what \
                 can be read; see docs/recovery.md"
            }
            Self::Snapshot { .. } | Self::Pages { .. } => {
                "copy the data directory before anything else; `tanda repair` shows what is there \
                 and saves what can be read"
            }
            Self::Notes { .. } => {
                "start the build that wrote this directory, or a newer one; or remove \
                 deliveries.notes: no message is lost, but some that were delivered last will not \
                 say so when they are delivered again"
            }
            Self::NewerVersion(_) => "start the build that wrote this log, or a newer one",
            Self::Log(_) => "correct the cause and start again; nothing was changed",
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corrupt(e) | Self::NewerVersion(e) | Self::Log(e) => e.fmt(f)?,
            Self::Record { at, problem } => write!(
                f,
                "the record at log position {:#x} cannot be applied: {problem}",
                at.0
            )?,
            Self::Snapshot { problem } | Self::Pages { problem } | Self::Notes { problem } => {
                f.write_str(problem)?
            }
        }
        write!(f, "; {}", self.help())
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Corrupt(e) | Self::NewerVersion(e) | Self::Log(e) => e.source(),
            Self::Record { .. }
            | Self::Snapshot { .. }
            | Self::Pages { .. }
            | Self::Notes { .. } => None,
        }
    }
}

impl<D: Disk> Node<D> {
    /// Recovers the node that `disk` holds; an empty directory becomes a new node.
    ///
    /// # Errors
    /// See [`OpenError`]. Do not serve, and do not create a new node in its place.
    pub fn open(disk: Arc<D>, config: NodeConfig, now: Millis) -> Result<Self, OpenError> {
        Self::open_with_progress(disk, config, now, &mut |_| ())
    }

    /// Like [`Self::open`]; tells `progress` about every 16 MiB or 65,536 records, and at the end.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_with_progress(
        disk: Arc<D>,
        config: NodeConfig,
        now: Millis,
        progress: &mut dyn FnMut(RecoveryProgress),
    ) -> Result<Self, OpenError> {
        let (rates, schedule) = (Rates::of(&config), Schedule::of(&config));
        let mut engine_config = config.engine;
        engine_config.segment_shift = config.log.segment_bytes.trailing_zeros();
        let page_bytes = tanda_engine::page_bytes(engine_config.page_messages);
        let log_id = config.log.log_id;
        let mut engine = Engine::new(engine_config);
        let mut replay = Replay::default();
        let looked = look(&*disk, log_id).map_err(disk_failed)?;
        if let Some(found) = &looked.found {
            found.sync(&*disk).map_err(disk_failed)?;
        }
        let loaded = match &looked.found {
            Some(found) => load(found, &mut engine, &mut |bytes| {
                replay.note(found.header.at, bytes, progress);
            })?,
            None => Loaded::default(),
        };
        let used = engine.pages_in_use();
        let pages = PageFile::open(
            Arc::clone(&disk),
            log_id,
            page_bytes,
            &used,
            loaded.sequence,
        );
        let mut pages = pages.map_err(pages_failed)?;
        let mut records = Records {
            engine: &mut engine,
            pages: &mut pages,
            snapshot: loaded.sequence,
            newest_named: 0,
            unread: None,
        };
        let from = tanda_wal::Lsn(loaded.at.0);
        let log = Log::open(Arc::clone(&disk), config.log, from, &mut |at, record| {
            records.apply(Lsn(at.0), record)?;
            replay.note(Lsn(at.0), record.len(), progress);
            Ok(())
        });
        let newest_named = records.newest_named;
        let mut log = log.map_err(|error| records.why(error, &looked.invalid))?;
        looked.spoil_invalid(&*disk).map_err(disk_failed)?;
        let needed = engine.segments().map(|(segment, _)| segment).collect();
        log.keep_segments(&needed).map_err(classify)?;
        progress(replay.done);
        let at = replay.done.at;
        let notes = notes_of(&disk, log_id, &mut engine)?;
        let found = looked.found.as_ref();
        let found = found.map(|found| (found.index, loaded.published(&found.header)));
        let recovered = Recovered {
            engine,
            log,
            pages,
            notes,
            snapshots: Snapshots::new(disk, schedule, found),
            log_id,
            memory_limit: config.memory_limit_bytes,
            rates,
        };
        let mut node = Self::start(recovered, now).map_err(|error| OpenError::Record {
            at,
            problem: error.problem,
        })?;
        node.name_found_snapshot(newest_named);
        Ok(node)
    }
}

/// Takes the log's records behind the snapshot that was loaded.
struct Records<'a, D: Disk> {
    engine: &'a mut Engine,
    pages: &'a mut PageFile<D>,
    /// Its number.
    snapshot: u64,
    /// The newest snapshot that a record named.
    newest_named: u64,
    /// The disk failed to read a page, which is no damage.
    unread: Option<DiskError>,
}

impl<D: Disk> Records<'_, D> {
    fn apply(&mut self, at: Lsn, record: &[u8]) -> Result<(), tanda_wal::ReplayError> {
        let named = named_snapshot(record).unwrap_or(0);
        self.newest_named = self.newest_named.max(named);
        if self.newest_named > self.snapshot {
            return Err(tanda_wal::ReplayError("its snapshot is missing".into()));
        }
        let (pages, unread) = (&mut *self.pages, &mut self.unread);
        let read = &mut |slot, into: &mut Vec<u8>| match pages.read(slot, into) {
            Ok(()) => true,
            Err(PageError::Disk(error)) => {
                *unread = Some(error);
                false
            }
            Err(PageError::Damaged(_)) => false,
        };
        let applied = self.engine.replay_with_pages(at, record, read);
        applied.map_err(refusal)
    }

    /// Why the log cannot be used.
    fn why(
        self,
        error: tanda_wal::OpenError,
        invalid: &[(&'static str, StreamError)],
    ) -> OpenError {
        if self.newest_named > self.snapshot {
            return snapshot_missing(self.newest_named, invalid);
        }
        self.unread
            .map_or_else(|| refused(error, invalid), disk_failed)
    }
}

/// What was loaded of a snapshot; all zero when there is none.
#[derive(Clone, Copy, Debug, Default)]
struct Loaded {
    sequence: u64,
    at: Lsn,
    bytes: u64,
}

impl Loaded {
    const fn published(self, header: &StreamHeader) -> Published {
        Published {
            sequence: self.sequence,
            at: self.at,
            taken_at: Millis(header.taken_at_ms),
            bytes: self.bytes,
            took_ms: 0,
        }
    }
}

/// Puts a snapshot into the engine.
fn load<D: Disk>(
    found: &Found<D>,
    engine: &mut Engine,
    note: &mut dyn FnMut(usize),
) -> Result<Loaded, OpenError> {
    let failed = |problem: String| OpenError::Snapshot {
        problem: format!("{}: {problem}", found.name()),
    };
    let unreadable = |error| match error {
        StreamError::Io(error) => disk_failed(DiskError::new(DiskCall::Read, found.name(), error)),
        error @ (StreamError::NotAStream
        | StreamError::Version(_)
        | StreamError::CutOff { .. }
        | StreamError::Damaged { .. }
        | StreamError::Trailing { .. }) => failed(error.to_string()),
    };
    let mut stream = found.read().map_err(unreadable)?;
    let header = stream.header();
    let mut loaded = Loaded {
        sequence: header.sequence,
        at: header.at,
        bytes: 0,
    };
    while let Some(record) = stream.next_record().map_err(unreadable)? {
        engine
            .replay(header.at, record)
            .map_err(|error| failed(error.problem))?;
        loaded.bytes += record.len() as u64;
        note(record.len());
    }
    Ok(loaded)
}

/// Tells the engine, which has replayed the log, what else was delivered.
fn notes_of<D: Disk>(
    disk: &Arc<D>,
    log_id: u128,
    engine: &mut Engine,
) -> Result<DeliveryNotes<D>, OpenError> {
    let opened = DeliveryNotes::open(Arc::clone(disk), log_id);
    let (notes, found) = opened.map_err(disk_failed)?;
    match found.replay(engine) {
        Ok(()) => Ok(notes),
        Err(error) => Err(OpenError::Notes {
            problem: format!("deliveries.notes makes no sense: {}", error.problem),
        }),
    }
}

/// The disk failed: nothing is wrong with what is on it, and it can be tried again.
const fn disk_failed(error: DiskError) -> OpenError {
    OpenError::Log(tanda_wal::OpenError::Disk(error))
}

fn pages_failed(error: DiskError) -> OpenError {
    let kind = error.source.kind();
    if kind == ErrorKind::NotFound || kind == ErrorKind::UnexpectedEof {
        return OpenError::Pages {
            problem: error.to_string(),
        };
    }
    disk_failed(error)
}

fn snapshot_missing(named: u64, invalid: &[(&'static str, StreamError)]) -> OpenError {
    let problem = format!("the log goes on from snapshot {named}, which is not there");
    snapshot_gone(&problem, invalid)
}

/// The log goes on from a snapshot that does not count, or has a problem of its own.
fn refused(error: tanda_wal::OpenError, invalid: &[(&'static str, StreamError)]) -> OpenError {
    if matches!(error, tanda_wal::OpenError::StartsLater { .. }) {
        return snapshot_gone(&error.to_string(), invalid);
    }
    classify(error)
}

fn snapshot_gone(problem: &str, invalid: &[(&'static str, StreamError)]) -> OpenError {
    let mut problem = problem.to_owned();
    for (name, error) in invalid {
        problem.push_str(&format!("; {name} does not count: {error}"));
    }
    OpenError::Snapshot { problem }
}

#[derive(Default)]
struct Replay {
    done: RecoveryProgress,
    told: RecoveryProgress,
}

impl Replay {
    fn note(&mut self, at: Lsn, len: usize, progress: &mut dyn FnMut(RecoveryProgress)) {
        const TELL_BYTES: u64 = 16 << 20;
        const TELL_RECORDS: u64 = 65_536;
        self.done.records += 1;
        self.done.bytes += len as u64;
        self.done.at = at;
        if self.done.bytes - self.told.bytes >= TELL_BYTES
            || self.done.records - self.told.records >= TELL_RECORDS
        {
            self.told = self.done;
            progress(self.done);
        }
    }
}

fn refusal(error: tanda_engine::ReplayError) -> tanda_wal::ReplayError {
    tanda_wal::ReplayError(error.problem.into())
}

fn classify(error: tanda_wal::OpenError) -> OpenError {
    use tanda_wal::OpenError as LogError;
    match error {
        LogError::Replay { at, source } => OpenError::Record {
            at: Lsn(at.0),
            problem: source.to_string(),
        },
        LogError::Corrupt(_)
        | LogError::MissingSegment { .. }
        | LogError::MissingKept { .. }
        | LogError::StartsLater { .. }
        | LogError::EndsEarly { .. } => OpenError::Corrupt(error),
        LogError::UnknownVersion { .. } => OpenError::NewerVersion(error),
        LogError::Config(_)
        | LogError::Locked
        | LogError::Disk(_)
        | LogError::WrongLog { .. }
        | LogError::SegmentBytesChanged { .. } => OpenError::Log(error),
    }
}
