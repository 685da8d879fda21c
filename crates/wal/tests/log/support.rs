//! Helpers shared by the tests of the log.

use std::collections::BTreeSet;
use std::sync::Arc;

use tanda_wal::mem_disk::MemDisk;
use tanda_wal::{Config, Log, Lsn, OpenError, Poisoned};

/// Records in order, with their positions.
pub(crate) type Records = Vec<(Lsn, Vec<u8>)>;

/// The configuration of most tests: 64 KiB segments, 16 KiB chunks.
pub(crate) fn config() -> Config {
    Config::small(0x0074_616e_6461, 3)
}

/// The smallest segments, 16 KiB, and one spare file.
pub(crate) fn tiny() -> Config {
    Config {
        segment_bytes: 16 << 10,
        chunk_bytes: 8 << 10,
        cache_bytes: 16 << 10,
        read_cache_bytes: 8 << 10,
        read_ahead_bytes: 8 << 10,
        reserve_segments: 0,
        spare_segments_max: 2,
        ..config()
    }
}

/// Opens the log and collects what it replays.
pub(crate) fn open(disk: &MemDisk, config: &Config) -> Result<(Log<MemDisk>, Records), OpenError> {
    open_from(disk, config, Lsn(0), &BTreeSet::new())
}

/// Opens the log from a position on and keeps these segments.
pub(crate) fn open_from(
    disk: &MemDisk,
    config: &Config,
    from: Lsn,
    needed: &BTreeSet<u64>,
) -> Result<(Log<MemDisk>, Records), OpenError> {
    let mut records = Records::new();
    let disk = Arc::new(disk.clone());
    let mut log = Log::open(disk, config.clone(), from, &mut |at, record| {
        records.push((at, record.to_vec()));
        Ok(())
    })?;
    log.assert_invariants();
    log.keep_segments(needed)?;
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

/// Appends and commits one record.
pub(crate) fn commit(log: &mut Log<MemDisk>, record: &[u8]) -> Lsn {
    let at = log.append(record).unwrap();
    flush(log).unwrap();
    at
}

/// Record contents without positions.
/// Nothing below `at` is needed any more: the log starts at it, and whole segments before go.
pub(crate) fn truncate(log: &mut Log<MemDisk>, at: Lsn) {
    log.set_start(at);
    let first = log.segment_of(at).0;
    let files = log.segment_files();
    let before = files.filter(|it| !it.is_cold && it.index + it.windows <= first);
    for window in before.map(|it| it.index).collect::<Vec<_>>() {
        log.free_segment(window);
    }
}

pub(crate) fn contents(records: &Records) -> Vec<&[u8]> {
    let contents = records.iter().map(|(_, record)| record.as_slice());
    contents.collect()
}

/// A record of at least 4 bytes that tell which one it is.
pub(crate) fn record(number: usize, len: usize) -> Vec<u8> {
    let mut bytes = u32::try_from(number).unwrap().to_le_bytes().to_vec();
    while bytes.len() < len {
        bytes.push(u8::try_from((bytes.len() * 31 + number * 17) % 251).unwrap());
    }
    bytes
}

/// The number in a record.
pub(crate) fn number_of(record: &[u8]) -> usize {
    let number = u32::from_le_bytes(record[..4].try_into().unwrap());
    usize::try_from(number).unwrap()
}

/// The name of the newest slot file that is not spare.
pub(crate) fn newest_segment(disk: &MemDisk) -> String {
    let mut live = live_segments(disk);
    live.pop().unwrap().1
}

/// Index and name of all files whose header says that they are segments, by index.
pub(crate) fn live_segments(disk: &MemDisk) -> Vec<(u64, String)> {
    let mut live = Vec::new();
    for name in disk.names() {
        let content = disk.content(&name).unwrap();
        if content[10] == 2 {
            let index = u64::from_le_bytes(content[48..56].try_into().unwrap());
            live.push((index, name));
        }
    }
    live.sort();
    live
}

/// A new disk with the same files, all synced.
pub(crate) fn copy_of(disk: &MemDisk) -> MemDisk {
    let copy = MemDisk::new(0);
    for name in disk.names() {
        copy.set_content(&name, &disk.content(&name).unwrap());
    }
    copy
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
