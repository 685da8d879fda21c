//! What is still readable of a damaged directory, as records of a new log.
//!
//! Owns the order: the newest snapshot that is whole, if there is one, then every batch of the log
//! that is whole, applied leniently; the state that comes of it is written with all contents
//! inside. Refuses to write to the damaged directory, and to decide whether what comes out is
//! enough.

use core::fmt;
use std::collections::BTreeSet;
use std::sync::Arc;

use tanda_engine::{
    ContentRead, Engine, EngineConfig, Inlined, Journal, Lsn, Millis, PageSlot, ReplayError,
    inline_contents, named_snapshot, page_bytes,
};
use tanda_wal::inspect::{Fault, Survey};
use tanda_wal::{Disk, DiskError, DiskFile};

use crate::pages::{PAGE_FILE, PageFile};
use crate::snapshot::files::{Found, look};
use crate::{NodeConfig, Restore, RestoreError};

/// Messages captured at once.
const SLICE_MESSAGES: usize = 4096;

/// What was rescued, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// Messages in the new log, and bytes of their contents.
    pub messages: u64,
    /// See `messages`.
    pub bytes: u64,
    /// Messages that are known of, but whose contents cannot be read.
    pub lost_contents: u64,
    /// Messages that were listed in pages that cannot be read.
    pub lost_pages: u64,
    /// Records that made no sense without those that are lost, with file and offset.
    pub skipped: Vec<Fault>,
    /// Queues whose own record is lost: their messages are in queues of these names now.
    pub lost_queues: Vec<String>,
    /// What cannot be read.
    pub faults: Vec<Fault>,
    /// The log position of the snapshot that was used.
    pub snapshot_at: Option<Lsn>,
}

/// Why nothing was rescued.
#[derive(Debug)]
pub enum SalvageError {
    /// The damaged directory cannot even be listed.
    Disk(DiskError),
    /// What was read makes no sense together.
    State(String),
    /// The new log cannot be written.
    Write(RestoreError),
}

impl Salvaged {
    /// Whether nothing is wrong and nothing is lost.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.lost_contents == 0
            && self.lost_pages == 0
            && self.skipped.is_empty()
            && self.lost_queues.is_empty()
            && self.faults.is_empty()
    }
}

impl fmt::Display for SalvageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(error) => error.fmt(f),
            Self::State(problem) => write!(
                f,
                "what can be read makes no sense to this build: {problem}"
            ),
            Self::Write(error) => write!(f, "the new directory cannot be written: {error}"),
        }
    }
}

impl std::error::Error for SalvageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Disk(error) => Some(error),
            Self::Write(error) => Some(error),
            Self::State(_) => None,
        }
    }
}

/// Reads what is readable in `from`, which is only read, and writes it as a new log into `to`.
/// `log_id` is what the damaged data directory says, if that can be read; `config` is for the new
/// log.
///
/// Messages that were acked come back if the record of it is lost.
///
/// # Errors
/// See [`SalvageError`]; `to` is of no use then.
pub fn salvage<D: Disk, T: Disk>(
    from: &Arc<D>,
    log_id: Option<u128>,
    (to, config): (Arc<T>, NodeConfig),
) -> Result<Salvaged, SalvageError> {
    let survey = Survey::of(&**from, log_id).map_err(SalvageError::Disk)?;
    let mut log = Restore::begin(to, config.log).map_err(SalvageError::Write)?;
    let salvaged = read_all(from, &survey, config.engine, &mut |record| log.push(record))?;
    log.finish().map_err(SalvageError::Write)?;
    Ok(salvaged)
}

/// Like [`salvage`] without writing anything: says what would come of it. Everything is read, also
/// the contents of all messages.
///
/// # Errors
/// See [`SalvageError`].
pub fn examine<D: Disk>(
    from: &Arc<D>,
    survey: &Survey<D>,
    config: EngineConfig,
) -> Result<Salvaged, SalvageError> {
    read_all(from, survey, config, &mut |_| Ok(()))
}

/// Takes the records of what is left.
type Sink<'a> = dyn FnMut(&[u8]) -> Result<(), RestoreError> + 'a;

fn read_all<D: Disk>(
    from: &Arc<D>,
    survey: &Survey<D>,
    mut config: EngineConfig,
    sink: &mut Sink<'_>,
) -> Result<Salvaged, SalvageError> {
    let mut salvaged = Salvaged {
        faults: survey.faults().to_vec(),
        ..Salvaged::default()
    };
    config.segment_shift = survey.segment_bytes().trailing_zeros();
    let page_bytes = page_bytes(config.page_messages);
    let mut pages = open_pages(from, survey.log_id(), page_bytes);
    let mut engine = Engine::new(config);
    let mut rescue = Rescue {
        engine: &mut engine,
        pages: pages.as_mut(),
        page_slot_bytes: PageFile::<D>::slot_bytes(page_bytes),
        salvaged: &mut salvaged,
    };
    let kept_too = rescue.snapshot(from, survey);
    rescue.log(survey, kept_too);
    salvaged.lost_queues = engine.name_lost_queues();
    let newest = engine.newest_time();
    engine
        .start(newest, &mut Nowhere::default())
        .map_err(|error| SalvageError::State(error.problem))?;
    write(&mut engine, survey, (sink, newest), &mut salvaged)?;
    Ok(salvaged)
}

/// The state so far.
struct Rescue<'a, D: Disk> {
    engine: &'a mut Engine,
    pages: Option<&'a mut PageFile<D>>,
    page_slot_bytes: u64,
    salvaged: &'a mut Salvaged,
}

impl<D: Disk> Rescue<'_, D> {
    /// Loads the newest snapshot that is whole. True when the log must be read from before its
    /// start on: what stands in for that part is lost or older.
    fn snapshot(&mut self, from: &Arc<D>, survey: &Survey<D>) -> bool {
        let look = match look(&**from, survey.log_id()) {
            Ok(look) => look,
            Err(error) => {
                let file = error.file.clone();
                self.fault(&file, 0, error.to_string());
                return true;
            }
        };
        // The records say which snapshot a start needs. One that is half written is none.
        let mut needed = 0;
        survey.replay(false, &mut |_, record| {
            needed = needed.max(named_snapshot(record).unwrap_or(0));
        });
        let there = look.found.as_ref().map_or(0, |found| found.header.sequence);
        if there < needed {
            let detail = format!("the log goes on from snapshot {needed}, which is not there");
            self.fault("", 0, detail);
            for (name, error) in &look.invalid {
                self.fault(name, 0, error.to_string());
            }
        }
        if let Some(found) = look.found {
            let name = found.name();
            if let Err(error) = self.load(&found, name) {
                self.fault(name, 0, error);
                return true;
            }
            self.salvaged.snapshot_at = Some(found.header.at);
        }
        there < needed
    }

    fn load(&mut self, found: &Found<D>, name: &str) -> Result<(), String> {
        let mut stream = found.read().map_err(|error| error.to_string())?;
        let mut number = 0;
        while let Some(record) = stream.next_record().map_err(|error| error.to_string())? {
            number += 1;
            if let Err(error) = self.apply(Lsn::ZERO, record) {
                let detail = format!("record {number}: {}", error.problem);
                self.skip(name, 0, detail);
            }
        }
        Ok(())
    }

    /// Applies the whole batches of the log, from the snapshot on.
    fn log(&mut self, survey: &Survey<D>, kept_too: bool) {
        let from = self.salvaged.snapshot_at.unwrap_or(Lsn::ZERO);
        survey.replay(kept_too, &mut |at, record| {
            let at = Lsn(at.0);
            if at < from {
                return;
            }
            if let Err(error) = self.apply(at, record) {
                let place = survey.place_of(tanda_wal::Lsn(at.0));
                let (file, offset) = place.unwrap_or_default();
                self.skip(file, offset, error.problem);
            }
        });
    }

    fn apply(&mut self, at: Lsn, record: &[u8]) -> Result<(), ReplayError> {
        let (pages, faults) = (&mut self.pages, &mut self.salvaged.faults);
        let read = &mut |slot: PageSlot, into: &mut Vec<u8>| {
            let Some(pages) = pages else {
                return false;
            };
            let Err(error) = pages.read(slot, into) else {
                return true;
            };
            let offset = u64::from(slot.0) * self.page_slot_bytes;
            faults.push(fault(PAGE_FILE, offset, error.to_string()));
            false
        };
        self.salvaged.lost_pages += self.engine.replay_lenient(at, record, read)?;
        Ok(())
    }

    fn fault(&mut self, file: &str, offset: u64, detail: String) {
        self.salvaged.faults.push(fault(file, offset, detail));
    }

    fn skip(&mut self, file: &str, offset: u64, detail: String) {
        self.salvaged.skipped.push(fault(file, offset, detail));
    }
}

fn fault(file: &str, offset: u64, detail: String) -> Fault {
    Fault {
        file: file.to_owned(),
        offset,
        bytes: 0,
        detail,
    }
}

/// All slots of the page file, if there is one that can be opened.
fn open_pages<D: Disk>(disk: &Arc<D>, log_id: u128, page_bytes: usize) -> Option<PageFile<D>> {
    let bytes = disk.open(PAGE_FILE).ok()?.len_bytes().ok()?;
    let slots = bytes / PageFile::<D>::slot_bytes(page_bytes);
    let used: BTreeSet<PageSlot> = (0..u32::try_from(slots).ok()?).map(PageSlot).collect();
    PageFile::open(Arc::clone(disk), log_id, page_bytes, &used, 0).ok()
}

/// Writes the state with all contents inside.
fn write<D: Disk>(
    engine: &mut Engine,
    survey: &Survey<D>,
    (sink, newest): (&mut Sink<'_>, Millis),
    salvaged: &mut Salvaged,
) -> Result<(), SalvageError> {
    let mut bodies = survey.reader();
    let mut read = |at: Lsn, len: u32, into: &mut Vec<u8>| {
        let found = bodies.read(tanda_wal::Lsn(at.0), len);
        found.inspect(|bytes| (*bytes).clone_into(into)).is_some()
    };
    engine.begin_capture(newest, &Nowhere::default());
    let (mut records, mut inlined) = (Vec::new(), Vec::new());
    loop {
        let is_complete = engine.capture_slice(SLICE_MESSAGES, &mut records);
        for record in records.drain(..) {
            let Inlined {
                messages,
                bytes,
                lost,
            } = inline_contents(&record, &mut read, &mut inlined)
                .map_err(|error| SalvageError::State(error.problem))?;
            salvaged.messages += messages;
            salvaged.bytes += bytes;
            salvaged.lost_contents += lost;
            for record in inlined.drain(..) {
                sink(&record).map_err(SalvageError::Write)?;
            }
        }
        if is_complete {
            return Ok(());
        }
    }
}

/// Where the records go that the start of the engine writes: the capture has what they say.
#[derive(Debug, Default)]
struct Nowhere {
    end: u64,
}

impl Journal for Nowhere {
    fn append(&mut self, record: &[u8]) -> Lsn {
        let at = self.end;
        self.end += record.len() as u64 + 1;
        Lsn(at)
    }

    fn end(&self) -> Lsn {
        Lsn(self.end)
    }

    fn read_content(&mut self, _at: Lsn, _len: u32, _into: &mut Vec<u8>) -> ContentRead {
        ContentRead::Unavailable
    }

    fn write_page(&mut self, _page: &[u8]) -> Option<PageSlot> {
        None
    }

    fn read_page(&mut self, _slot: PageSlot, _into: &mut Vec<u8>) -> bool {
        false
    }

    fn free_page(&mut self, _slot: PageSlot) {}
}
