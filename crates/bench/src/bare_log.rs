//! The log of `tanda-wal` alone, on a real directory: what the server's figures stand beside.
//!
//! As in the server, one thread appends and one writes and syncs; nothing else is done with the
//! records, so the difference to the server is what all the rest of a broker costs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tanda_wal::{Config, FlushJob, FlushOutcome, Log, Lsn};

use crate::disk::BenchDisk;
use crate::error::BenchError;
use crate::meter::as_f64;
use crate::process::Process;
use crate::tally::Latencies;

/// What is appended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Bytes of one record.
    pub(crate) record_bytes: usize,
    /// Records appended and not yet durable, at most.
    pub(crate) outstanding: u64,
}

/// Fewer say nothing about a rate, however short the time.
const FLUSHES_MIN: u32 = 8;

/// What the bare log did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Throughput {
    /// Records made durable.
    pub(crate) records: u64,
    /// In this time.
    pub(crate) elapsed: Duration,
    /// With this much CPU time of this program.
    pub(crate) cpu: Option<Duration>,
}

impl Throughput {
    /// Records per second.
    pub(crate) fn per_second(&self) -> f64 {
        as_f64(self.records) / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// A log of its own, in a directory that is removed with it.
pub(crate) struct BareLog {
    log: Log<BenchDisk>,
    dir: PathBuf,
}

impl Drop for BareLog {
    fn drop(&mut self) {
        // A directory that stays behind harms no measurement.
        drop(fs::remove_dir_all(&self.dir));
    }
}

impl BareLog {
    /// Makes the directory and opens a new log in it.
    pub(crate) fn create(dir: &Path) -> Result<Self, BenchError> {
        let disk = BenchDisk::create(dir).map_err(BenchError::io("making the log's directory"))?;
        let log = Log::open(
            Arc::new(disk),
            Config::new(1, 0),
            Lsn(0),
            &mut |_, _| Ok(()),
        )
        .map_err(|e| BenchError::Log(format!("the bare log does not open: {e}")))?;
        Ok(Self {
            log,
            dir: dir.to_owned(),
        })
    }

    /// Keeps the load up for `warm_up` and then `time`; counts in the latter.
    pub(crate) fn throughput(
        &mut self,
        load: Load,
        warm_up: Duration,
        time: Duration,
    ) -> Result<Throughput, BenchError> {
        let syncer = Syncer::start();
        let record = vec![7; load.record_bytes];
        let start = Instant::now();
        let (mut appended, mut durable, mut in_flight) = (0, 0, None);
        let mut flushes = 0;
        let mut begun: Option<(Instant, u64, Option<Duration>)> = None;
        loop {
            let now = Instant::now();
            if begun.is_none() && now - start >= warm_up {
                begun = Some((now, durable, Process::own().cpu()));
                flushes = 0;
            }
            let is_over = now - start >= warm_up + time && flushes >= FLUSHES_MIN;
            if is_over && in_flight.is_none() {
                break;
            }
            while appended - durable < load.outstanding {
                self.append(&record)?;
                appended += 1;
            }
            if in_flight.is_none()
                && let Some(job) = self.log.take_flush()
            {
                in_flight = Some(appended);
                syncer.send(job)?;
            }
            // Everything allowed is appended: only the sync thread can free more.
            let outcome = syncer.receive()?;
            self.on_flushed(outcome)?;
            durable = in_flight.take().unwrap_or(durable);
            flushes += 1;
        }
        syncer.stop();
        let (at, before, cpu) = begun.unwrap_or((start, 0, None));
        Ok(Throughput {
            records: durable - before,
            elapsed: at.elapsed(),
            cpu: cpu.and_then(|cpu| Process::own().cpu()?.checked_sub(cpu)),
        })
    }

    /// Commits one record after the other for `time`, without a second thread.
    pub(crate) fn commit_latency(
        &mut self,
        record_bytes: usize,
        time: Duration,
        latencies: &mut Latencies,
    ) -> Result<(), BenchError> {
        let record = vec![7; record_bytes];
        let start = Instant::now();
        while start.elapsed() < time {
            let at = Instant::now();
            self.append(&record)?;
            if let Some(job) = self.log.take_flush() {
                let outcome = job.run();
                self.on_flushed(outcome)?;
            }
            latencies.record(at.elapsed());
        }
        Ok(())
    }

    fn append(&mut self, record: &[u8]) -> Result<(), BenchError> {
        let appended = self.log.append(record);
        appended
            .map(drop)
            .map_err(|e| BenchError::Log(format!("the bare log: {e}")))
    }

    fn on_flushed(&mut self, outcome: FlushOutcome<BenchDisk>) -> Result<(), BenchError> {
        let durable = self.log.on_flushed(outcome);
        durable
            .map(drop)
            .map_err(|e| BenchError::Log(format!("the bare log: {e}")))
    }
}

/// The thread that writes and syncs.
struct Syncer {
    jobs: SyncSender<FlushJob<BenchDisk>>,
    outcomes: Receiver<FlushOutcome<BenchDisk>>,
    thread: JoinHandle<()>,
}

impl Syncer {
    fn start() -> Self {
        let (jobs, incoming) = mpsc::sync_channel::<FlushJob<BenchDisk>>(1);
        let (outgoing, outcomes) = mpsc::sync_channel(1);
        let thread = thread::spawn(move || {
            for job in incoming {
                if outgoing.send(job.run()).is_err() {
                    break;
                }
            }
        });
        Self {
            jobs,
            outcomes,
            thread,
        }
    }

    fn send(&self, job: FlushJob<BenchDisk>) -> Result<(), BenchError> {
        self.jobs.send(job).map_err(Self::gone)
    }

    fn receive(&self) -> Result<FlushOutcome<BenchDisk>, BenchError> {
        self.outcomes.recv().map_err(Self::gone)
    }

    fn gone<E: std::fmt::Display>(error: E) -> BenchError {
        BenchError::Log(format!("the sync thread of the bare log is gone: {error}"))
    }

    fn stop(self) {
        drop(self.jobs);
        drop(self.outcomes);
        // A panic of the thread has shown itself already.
        drop(self.thread.join());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_committed_and_the_directory_goes_with_the_log() {
        let name = format!("tanda-bare-log-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        let mut log = BareLog::create(&dir).unwrap();
        let load = Load {
            record_bytes: 100,
            outstanding: 8,
        };
        let time = Duration::from_millis(20);
        let done = log.throughput(load, Duration::ZERO, time).unwrap();
        assert!(done.records > 0);
        assert_eq!(done.records % load.outstanding, 0);
        let mut commits = Latencies::new().unwrap();
        log.commit_latency(100, time, &mut commits).unwrap();
        assert!(commits.count() > 0);
        drop(log);
        assert!(!dir.exists());
    }
}
