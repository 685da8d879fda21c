//! An operator who backs up the running broker, restores what he got, and looks at it.

use std::collections::BTreeSet;
use std::sync::Arc;

use tanda_engine::Millis;
use tanda_node::{Node, Restore, StreamReader};
use tanda_wal::mem_disk::MemDisk;

use crate::Canary;
use crate::disk::SimDisk;
use crate::failure::{Check, Violation, ensure};
use crate::host::BackupStep;
use crate::invariants::one_moment::{self, Span};
use crate::invariants::{amqp, recovers};

use super::World;
use super::emptied::empty;
use super::restored::Drain;

/// Of the steps of an operator, one in so many begins a backup.
const BEGIN_OF: u64 = 10;
/// .. and one in so many of those with a backup under way gives it up.
const DROP_OF: u64 = 60;
/// Simulated time until a backup at rest can be read.
const READY_MS_MAX: u64 = 60_000;

impl World {
    /// Begins a backup, or goes on with it. Zero when there was nothing to do.
    pub(super) fn back_up(&mut self) -> Result<usize, Violation> {
        if !self.backups {
            return Ok(0);
        }
        if self.host.is_backing_up() {
            if self.process.one_in(DROP_OF) {
                self.host.drop_backup();
                return Ok(1);
            }
            return self.go_on_with_backup();
        }
        if !self.process.one_in(BEGIN_OF) {
            return Ok(0);
        }
        self.begin_backup();
        Ok(1)
    }

    fn begin_backup(&mut self) {
        let tick = self.history.tick();
        let step = self.host.begin_backup();
        self.trace.event(self.now, "backup", 0, &[]);
        if matches!(step, BackupStep::Asked) {
            self.backup_asked = self.history.amqp.clone();
            self.backup_span = Span {
                asked: tick,
                ready: tick,
            };
        }
    }

    fn go_on_with_backup(&mut self) -> Result<usize, Violation> {
        match self.host.go_on_with_backup(&mut self.process) {
            BackupStep::Nothing => return Ok(0),
            BackupStep::Ready => self.backup_span.ready = self.history.tick(),
            BackupStep::Asked | BackupStep::Read | BackupStep::Refused => {}
            BackupStep::Failed(error) => {
                self.trace.note(self.now, || format!("  {error}"));
                // The disk may have failed the reader, or got full, or turned a bit.
                let is_explained = self.plan.has_disk_faults();
                ensure(is_explained, recovers::NAME, || {
                    format!("a backup failed without a fault: {error}")
                })?;
            }
            BackupStep::Done(bytes) => {
                self.trace.event(self.now, "backed up", 0, &bytes);
                self.backups_done += 1;
                self.try_backup(&bytes)?;
            }
        }
        Ok(1)
    }

    /// One backup more, while nothing else happens: it comes, whatever was before.
    pub(super) fn back_up_at_rest(&mut self) -> Check {
        self.begin_backup();
        ensure(self.host.is_backing_up(), recovers::NAME, || {
            "a broker at rest refuses a backup".to_owned()
        })?;
        self.end_backup()
    }

    /// Waits for the end of the one under way, if there is one.
    pub(super) fn end_backup(&mut self) -> Check {
        let until = self.now.after_ms(READY_MS_MAX);
        while self.host.is_backing_up() {
            self.calm()?;
            if self.go_on_with_backup()? == 0 {
                self.wait()?;
            }
            ensure(self.now < until, recovers::NAME, || {
                "a backup of a broker at rest does not come".to_owned()
            })?;
        }
        // The node sees at its next look that it was read.
        self.now = self.now.after_ms(1_000);
        self.calm()
    }

    /// Restores it to a new disk, maybe after a try that was interrupted, and empties what came.
    fn try_backup(&mut self, bytes: &[u8]) -> Check {
        let cut = self.looks.index(bytes.len());
        let part = bytes.get(..cut).unwrap_or_default();
        ensure(records_of(part).is_err(), one_moment::NAME, || {
            format!("{cut} of {} bytes pass for the whole", bytes.len())
        })?;
        let records = records_of(bytes).map_err(|what| Violation {
            invariant: one_moment::NAME,
            what: format!("a backup cannot be read: {what}"),
        })?;
        if self.looks.one_in(3) {
            let interrupted = MemDisk::new(self.looks.draw());
            interrupted.crash_after(self.looks.below(40));
            // Whatever is left of it has another name, and nobody opens it.
            drop(self.restore(&interrupted, &records));
        }
        let disk = MemDisk::new(self.looks.draw());
        self.restore(&disk, &records).map_err(|what| Violation {
            invariant: one_moment::NAME,
            what: format!("a backup cannot be restored: {what}"),
        })?;
        // Its power goes at once: all of it must be on disk.
        let mut drain = Drain {
            history: &self.history,
            node: self.open_restored(&disk.crash())?,
            now: Millis(0),
            found: BTreeSet::new(),
        };
        drain.now = drain.node.clock_floor().max(self.now).after_ms(1);
        drain.run()?;
        let found = drain.found;
        one_moment::when_restored(&self.history, self.backup_span, &found)?;
        self.empty_restored(&disk)
    }

    /// AMQP's queues, as they come out of a broker of their own.
    fn empty_restored(&self, disk: &MemDisk) -> Check {
        if !self.history.amqp.is_there() {
            return Ok(());
        }
        let mut node = self.open_restored(&disk.crash())?;
        let now = node.clock_floor().max(self.now).after_ms(1);
        let emptied = empty(&mut node, now)?;
        amqp::one_moment::when_opened(&self.backup_asked, &self.history.amqp, &emptied)
    }

    fn restore(&self, disk: &MemDisk, records: &[Vec<u8>]) -> Result<(), String> {
        let disk = Arc::new(SimDisk::new(disk.clone(), Canary::None));
        let config = self.host.config.log.clone();
        let mut log = Restore::begin(disk, config).map_err(|error| error.to_string())?;
        for record in records {
            log.push(record).map_err(|error| error.to_string())?;
        }
        log.finish().map_err(|error| error.to_string())
    }

    fn open_restored(&self, disk: &MemDisk) -> Result<Node<SimDisk>, Violation> {
        self.host
            .open_copy(disk, self.now)
            .map_err(|error| Violation {
                invariant: one_moment::NAME,
                what: format!("a restored directory does not open: {error}"),
            })
    }
}

/// The records of a backup's file, if it is whole.
fn records_of(bytes: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let mut reader = StreamReader::open(bytes).map_err(|error| error.to_string())?;
    let mut records = Vec::new();
    while let Some(record) = reader.next_record().map_err(|error| error.to_string())? {
        records.push(record.to_vec());
    }
    Ok(records)
}
