//! A log while it is written, and what must come back of it.

use core::ops::Range;
use std::collections::BTreeSet;
use std::sync::Arc;

use tanda_wal::mem_disk::MemDisk;
use tanda_wal::{Config, Log, Lsn, OpenError};

use crate::damage::Harm;

/// Records in order, with their positions.
pub(super) type Records = Vec<(Lsn, Vec<u8>)>;

/// Longest record, in bytes: longer than a segment.
const RECORD_BYTES_MAX: usize = 20_000;

/// The smallest segments, and one spare file.
fn config() -> Config {
    Config {
        segment_bytes: 16 << 10,
        chunk_bytes: 8 << 10,
        cache_bytes: 16 << 10,
        read_cache_bytes: 8 << 10,
        read_ahead_bytes: 8 << 10,
        reserve_segments: 0,
        spare_segments_max: 2,
        ..Config::small(0x0074_616e_6461, 3)
    }
}

/// Opens the log of a disk from a position on.
pub(super) fn open(disk: &MemDisk, from: Lsn) -> Result<(Log<MemDisk>, Records), OpenError> {
    let mut records = Records::new();
    let disk = Arc::new(disk.clone());
    let mut log = Log::open(disk, config(), from, &mut |at, record| {
        records.push((at, record.to_vec()));
        Ok(())
    })?;
    log.assert_invariants();
    log.keep_segments(&BTreeSet::new())?;
    Ok((log, records))
}

/// A record that tells which one it is.
fn record(number: usize, len: usize) -> Vec<u8> {
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    let mut bytes = number.to_le_bytes().to_vec();
    let [low, ..] = number.to_le_bytes();
    bytes.resize(len.max(4), low.wrapping_mul(31) | 1);
    bytes
}

/// See the module.
pub(super) struct Written {
    disk: MemDisk,
    log: Option<Log<MemDisk>>,
    /// What the log holds, as far as it was not lost in a crash.
    records: Records,
    /// Records ever appended: each is another.
    appended: usize,
    /// Of `records`: durable ones.
    durable: usize,
    proven: Lsn,
    /// The log starts at this record's position.
    start: usize,
    from: Lsn,
}

impl Written {
    pub(super) fn new(seed: u64) -> Self {
        let mut written = Self {
            disk: MemDisk::new(seed),
            log: None,
            records: Records::new(),
            appended: 0,
            durable: 0,
            proven: Lsn(0),
            start: 0,
            from: Lsn(0),
        };
        written.reopen();
        written
    }

    /// Where the log is to be opened.
    pub(super) const fn from(&self) -> Lsn {
        self.from
    }

    pub(super) fn append(&mut self, len: u16) {
        let len = usize::from(len) % RECORD_BYTES_MAX;
        let bytes = record(self.appended, len);
        self.appended += 1;
        if let Some(at) = self.log.as_mut().and_then(|log| log.append(&bytes).ok()) {
            self.records.push((at, bytes));
        }
    }

    pub(super) fn flush(&mut self) {
        let Some(log) = self.log.as_mut() else {
            return;
        };
        while let Some(job) = log.take_flush() {
            if log.on_flushed(job.run()).is_err() {
                break;
            }
            log.assert_invariants();
        }
        let durable = log.durable();
        self.proven = log.proven();
        let is_durable = |(at, bytes): &&(Lsn, Vec<u8>)| at.0 + bytes.len() as u64 <= durable.0;
        self.durable = self.records.iter().take_while(is_durable).count();
    }

    pub(super) fn idle(&mut self) {
        if let Some(log) = self.log.as_mut() {
            log.on_idle();
        }
        self.flush();
    }

    /// The machine stops after so many disk calls of a flush.
    pub(super) fn crash(&mut self, calls: u64) {
        self.disk.crash_after(calls);
        self.flush();
        self.log = None;
        self.disk = self.disk.restart();
        self.reopen();
    }

    pub(super) fn kill(&mut self) {
        self.log = None;
        self.disk = self.disk.kill();
        self.reopen();
    }

    pub(super) fn set_start(&mut self, which: u16) {
        let (Some(log), count) = (self.log.as_mut(), self.records.len()) else {
            return;
        };
        let which = usize::from(which) % count.max(1);
        let found = self.records.get(which).map(|(at, _)| *at);
        // Only what can no longer move is spoken of from outside.
        let Some(at) = found.filter(|at| which > self.start && *at < log.proven()) else {
            return;
        };
        log.set_start(at);
        (self.start, self.from) = (which, at);
    }

    /// Opens the log of a disk that is whole.
    fn reopen(&mut self) {
        let (log, replayed) = match open(&self.disk, self.from) {
            Ok(opened) => opened,
            Err(error) => unreachable!("nothing is damaged: {error}"),
        };
        let run = self.run_of(&replayed);
        self.check_complete(&run, Harm::None);
        self.proven = log.proven();
        self.log = Some(log);
        self.records = replayed;
        self.durable = self.records.len();
        self.start = 0;
    }

    /// The files as a reader sees them now, on a disk of their own.
    pub(super) fn files(&self) -> MemDisk {
        let copy = MemDisk::new(0);
        for name in self.disk.names() {
            let content = self.disk.content(&name).unwrap_or_default();
            copy.set_content(&name, &content);
        }
        copy
    }

    /// Which of the written records these are: one after the other, unchanged.
    pub(super) fn run_of(&self, replayed: &Records) -> Range<usize> {
        let Some((_, first)) = replayed.first() else {
            return self.start..self.start;
        };
        let begin = self.records.iter().position(|(_, bytes)| bytes == first);
        let Some(begin) = begin else {
            unreachable!("a record that was never written, or lost before: {first:02x?}");
        };
        let written = self.records.iter().skip(begin);
        let mut end = begin;
        for ((at, bytes), (_, expected)) in replayed.iter().zip(written) {
            assert!(*at >= self.from, "{at} is before {}", self.from);
            assert!(bytes == expected, "record {end} is another one");
            end += 1;
        }
        assert_eq!(end - begin, replayed.len(), "more than was written");
        begin..end
    }

    /// Nothing is missing that cannot be missing after so much harm.
    pub(super) fn check_complete(&self, run: &Range<usize>, harm: Harm) {
        let needed = match harm {
            Harm::None | Harm::Names => self.durable,
            Harm::OnePlace => {
                let is_proven = |(at, _): &&(Lsn, Vec<u8>)| *at < self.proven;
                let proven = self.records.iter().take_while(is_proven).count();
                proven.min(self.durable)
            }
            Harm::Any => return,
        };
        assert!(
            run.start <= self.start && run.end >= needed.max(self.start),
            "{run:?} of {} records are back, {}..{needed} must be",
            self.records.len(),
            self.start
        );
    }

    /// What was opened can be read, added to, and opened again.
    pub(super) fn check_going_on(&self, disk: &MemDisk, mut log: Log<MemDisk>, found: &Records) {
        for (at, bytes) in found {
            let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            match log.read(*at, len) {
                Ok(read) => assert!(read == bytes, "{at} reads as something else"),
                Err(error) => unreachable!("{at} was just replayed: {error}"),
            }
        }
        let mut expected: Vec<Vec<u8>> = found.iter().map(|(_, bytes)| bytes.clone()).collect();
        for number in 0..3 {
            let bytes = record(self.appended + number, 5_000);
            assert!(log.append(&bytes).is_ok(), "a new log takes records");
            expected.push(bytes);
            while let Some(job) = log.take_flush() {
                assert!(log.on_flushed(job.run()).is_ok(), "the disk is sound");
                log.assert_invariants();
            }
        }
        drop(log);
        match open(&disk.kill(), self.from) {
            Ok((_, again)) => {
                let again = again.into_iter().map(|(_, bytes)| bytes);
                assert!(again.eq(expected), "another log than was left");
            }
            Err(error) => unreachable!("it was open before: {error}"),
        }
    }
}
