//! What takes long and can wait: writing snapshots, syncing pages, copying old contents, giving
//! back the memory of deleted queues.
//!
//! Owns the job that goes to another thread and what came of it. One is out at a time.

use core::fmt;
use std::sync::Arc;

use tanda_engine::Garbage;
use tanda_wal::{
    ColdError, ColdWriter, ColdWritten, Disk, DiskCall, DiskError, DiskFile, LogReader, Lsn,
    ReadError,
};

use crate::pages::PAGE_FILE;
use crate::snapshot::files::Target;

/// Something to be done beside the log. Run it anywhere, then give what came of it to
/// `Node::on_background`. Dropping it leaves the node as after a crash: it takes no further
/// snapshot.
#[must_use = "run it and give the outcome to Node::on_background"]
pub struct BackgroundJob<D: Disk>(pub(crate) Work<D>);

pub(crate) enum Work<D: Disk> {
    Snapshot(SnapshotWork<D>),
    /// Syncs pages ahead of the next snapshot.
    Pages(Arc<D::File>),
    Copy(CopyWork<D>),
    /// Drops what is left of deleted queues.
    Drop(Garbage),
}

/// The next bytes of a snapshot.
pub(crate) struct SnapshotWork<D: Disk> {
    pub(crate) target: Box<Target<D>>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) step: Step<D>,
}

/// What a job does with its bytes.
pub(crate) enum Step<D: Disk> {
    /// Writes them.
    Write,
    /// Syncs the pages that the snapshot names, if there are any, then writes the bytes, which end
    /// the snapshot, and syncs it.
    Finish { pages: Option<Arc<D::File>> },
}

/// Contents to be copied into cold segments.
pub(crate) struct CopyWork<D: Disk> {
    pub(crate) writer: Box<ColdWriter<D>>,
    /// `None` = nothing more is copied: the file is closed, so that it can go when it is empty.
    pub(crate) reader: Option<Box<LogReader<D>>>,
    /// Where they lie, and how long they are.
    pub(crate) contents: Vec<(Lsn, u32)>,
}

/// What came of a [`BackgroundJob`].
#[must_use = "give it to Node::on_background"]
pub struct BackgroundOutcome<D: Disk>(pub(crate) Outcome<D>);

pub(crate) enum Outcome<D: Disk> {
    Snapshot(SnapshotOutcome<D>),
    Pages(Result<(), DiskError>),
    Copy(CopyOutcome<D>),
    Dropped,
}

pub(crate) struct SnapshotOutcome<D: Disk> {
    pub(crate) target: Box<Target<D>>,
    /// The snapshot is on disk.
    pub(crate) finished: bool,
    pub(crate) result: Result<(), DiskError>,
}

pub(crate) struct CopyOutcome<D: Disk> {
    /// `None` when it was closed.
    pub(crate) writer: Option<Box<ColdWriter<D>>>,
    pub(crate) reader: Option<Box<LogReader<D>>>,
    /// Where the copies lie, on disk.
    pub(crate) result: Result<Copied<D>, CopyError>,
}

pub(crate) type Copied<D> = (Vec<Lsn>, ColdWritten<D>);

/// Why contents could not be copied.
#[derive(Debug)]
pub(crate) enum CopyError {
    Read(ReadError),
    Write(ColdError),
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Write(error) => error.fmt(f),
        }
    }
}

impl<D: Disk> BackgroundJob<D> {
    /// Does it. May block on the disk.
    pub fn run(self) -> BackgroundOutcome<D> {
        BackgroundOutcome(match self.0 {
            Work::Snapshot(work) => Outcome::Snapshot(work.run()),
            Work::Pages(file) => Outcome::Pages(sync_pages(&*file)),
            Work::Copy(work) => Outcome::Copy(work.run()),
            Work::Drop(garbage) => {
                drop(garbage);
                Outcome::Dropped
            }
        })
    }
}

fn sync_pages<F: DiskFile>(file: &F) -> Result<(), DiskError> {
    let synced = file.sync_data();
    synced.map_err(|error| DiskError::new(DiskCall::Sync, PAGE_FILE, error))
}

impl<D: Disk> SnapshotWork<D> {
    pub(crate) fn run(mut self) -> SnapshotOutcome<D> {
        let result = self.try_run();
        SnapshotOutcome {
            finished: matches!(self.step, Step::Finish { .. }) && result.is_ok(),
            target: self.target,
            result,
        }
    }

    fn try_run(&mut self) -> Result<(), DiskError> {
        match &self.step {
            Step::Write => self.target.write(&self.bytes),
            Step::Finish { pages } => {
                if let Some(pages) = pages {
                    sync_pages(&**pages)?;
                    // The file may be new: its name must be there before a snapshot needs it.
                    self.target.sync_dir()?;
                }
                self.target.write(&self.bytes)?;
                let synced = self.target.sync();
                if synced.is_err() {
                    self.target.spoil();
                }
                synced
            }
        }
    }
}

impl<D: Disk> CopyWork<D> {
    fn run(mut self) -> CopyOutcome<D> {
        let Some(mut reader) = self.reader.take() else {
            let closed = self.writer.finish().map(|written| (Vec::new(), written));
            return CopyOutcome {
                writer: None,
                reader: None,
                result: closed.map_err(CopyError::Write),
            };
        };
        let result = self.copy(&mut reader);
        CopyOutcome {
            writer: Some(self.writer),
            reader: Some(reader),
            result,
        }
    }

    fn copy(&mut self, reader: &mut LogReader<D>) -> Result<Copied<D>, CopyError> {
        let contents = self.contents.iter().map(|(at, len)| reader.read(*at, *len));
        let contents: Result<Vec<_>, _> = contents.collect();
        let contents = contents.map_err(CopyError::Read)?;
        let places = self.writer.append(&contents).map_err(CopyError::Write)?;
        let written = self.writer.sync().map_err(CopyError::Write)?;
        Ok((places, written))
    }
}
