//! Helpers shared by the tests of the log.

use std::sync::Arc;

use tanda_wal::mem_disk::MemDisk;
use tanda_wal::{Config, Log, Lsn, OpenError, Poisoned};

/// Records in order, with their positions.
pub(crate) type Records = Vec<(Lsn, Vec<u8>)>;

/// The configuration of most tests: 64 KiB segments, 16 KiB chunks.
pub(crate) fn config() -> Config {
    Config::small(0x0074_616e_6461, 3)
}

/// Opens the log and collects what it replays.
pub(crate) fn open(disk: &MemDisk, config: &Config) -> Result<(Log<MemDisk>, Records), OpenError> {
    let mut records = Records::new();
    let log = Log::open(Arc::new(disk.clone()), config.clone(), &mut |at, record| {
        records.push((at, record.to_vec()));
        Ok(())
    })?;
    log.assert_invariants();
    Ok((log, records))
}

/// Runs flush jobs until there is nothing more to do.
pub(crate) fn flush(log: &mut Log<MemDisk>) -> Result<Lsn, Poisoned> {
    while let Some(job) = log.take_flush() {
        log.on_flushed(job.run())?;
        log.assert_invariants();
    }
    Ok(log.durable())
}

/// Lets the log write its marker.
pub(crate) fn idle(log: &mut Log<MemDisk>) -> Result<Lsn, Poisoned> {
    log.on_idle();
    flush(log)
}

/// Record contents without positions.
pub(crate) fn contents(records: &Records) -> Vec<&[u8]> {
    records
        .iter()
        .map(|(_, record)| record.as_slice())
        .collect()
}

/// A record whose bytes tell which one it is.
pub(crate) fn record(number: usize, len: usize) -> Vec<u8> {
    let mut bytes = format!("record {number} ").into_bytes();
    while bytes.len() < len {
        bytes.push(u8::try_from((bytes.len() * 31 + number * 17) % 251).unwrap());
    }
    bytes.truncate(len.max(4));
    bytes
}

/// A small generator of numbers, for tests that draw from a seed.
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1)
    }

    pub(crate) const fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    pub(crate) fn size(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(u64::try_from(bound).unwrap())).unwrap()
    }
}
