//! The backup under way: begun, read record by record, written as `tanda backup` writes it.

use tanda_node::{BackupError, BackupSource, StreamWriter};

use super::Host;
use crate::Canary;
use crate::disk::SimDisk;
use crate::random::Random;

/// The canary of backups leaves one record in so many out.
const GAP_OF: u64 = 3;

/// How far it is.
#[derive(Default)]
pub(super) enum Backup {
    #[default]
    None,
    Asked,
    /// Nobody waits for it any more: it is dropped when it comes.
    Abandoned,
    Read(Box<Reading>),
}

pub(super) struct Reading {
    source: BackupSource<SimDisk>,
    writer: StreamWriter,
    bytes: Vec<u8>,
    records: u64,
}

/// What a step of it came to.
pub(crate) enum BackupStep {
    /// There was nothing to do.
    Nothing,
    /// It was asked for.
    Asked,
    /// It can be read.
    Ready,
    /// Some of it was read.
    Read,
    /// It is whole: the bytes of its file.
    Done(Vec<u8>),
    /// There will be none.
    Refused,
    /// It ended before its end.
    Failed(BackupError),
}

impl Host {
    /// Whoever asked for it has gone away.
    pub(crate) fn drop_backup(&mut self) {
        self.backup = match self.backup {
            Backup::Asked | Backup::Abandoned => Backup::Abandoned,
            Backup::None | Backup::Read(_) => Backup::None,
        };
    }

    /// The process is gone.
    pub(super) fn lose_backup(&mut self) {
        self.backup = Backup::None;
    }

    pub(crate) const fn is_backing_up(&self) -> bool {
        !matches!(self.backup, Backup::None)
    }

    pub(crate) fn begin_backup(&mut self) -> BackupStep {
        let Some(node) = self.node.as_mut() else {
            return BackupStep::Nothing;
        };
        match node.begin_backup() {
            Ok(()) => {
                self.backup = Backup::Asked;
                BackupStep::Asked
            }
            Err(_why) => BackupStep::Refused,
        }
    }

    /// Goes on with it.
    pub(crate) fn go_on_with_backup(&mut self, random: &mut Random) -> BackupStep {
        match core::mem::take(&mut self.backup) {
            Backup::None => BackupStep::Nothing,
            Backup::Asked => {
                let taken = self.node.as_mut().and_then(tanda_node::Node::take_backup);
                match taken {
                    None => {
                        self.backup = Backup::Asked;
                        BackupStep::Nothing
                    }
                    Some(Err(_why)) => BackupStep::Refused,
                    Some(Ok(source)) => self.begin_reading(source),
                }
            }
            Backup::Abandoned => {
                let taken = self.node.as_mut().and_then(tanda_node::Node::take_backup);
                match taken {
                    None => {
                        self.backup = Backup::Abandoned;
                        BackupStep::Nothing
                    }
                    Some(_dropped) => BackupStep::Refused,
                }
            }
            Backup::Read(mut reading) => match reading.go_on(self.canary, random) {
                Ok(true) => {
                    reading.writer.finish(&mut reading.bytes);
                    BackupStep::Done(reading.bytes)
                }
                Ok(false) => {
                    self.backup = Backup::Read(reading);
                    BackupStep::Read
                }
                Err(error) => BackupStep::Failed(error),
            },
        }
    }

    fn begin_reading(&mut self, mut source: BackupSource<SimDisk>) -> BackupStep {
        let header = match source.header() {
            Ok(header) => header,
            Err(error) => return BackupStep::Failed(error),
        };
        let mut bytes = Vec::new();
        let writer = StreamWriter::new(header, &mut bytes);
        self.backup = Backup::Read(Box::new(Reading {
            source,
            writer,
            bytes,
            records: 0,
        }));
        BackupStep::Ready
    }
}

impl Reading {
    /// Reads some records; true after the last.
    fn go_on(&mut self, canary: Canary, random: &mut Random) -> Result<bool, BackupError> {
        for _ in 0..random.length(8) {
            let Some(record) = self.source.next_record()? else {
                return Ok(true);
            };
            self.records += 1;
            if canary == Canary::BackupGaps && self.records.is_multiple_of(GAP_OF) {
                continue;
            }
            self.writer.push(&record, &mut self.bytes);
        }
        Ok(false)
    }
}
