//! Crashes at any point, drawn from seeds.
//!
//! Invariants: what was durable survives, in order; what is recovered is a prefix of what was
//! appended; positions in what was proven do not change; nothing else ever comes out.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use tanda_wal::mem_disk::{Fault, MemDisk};
use tanda_wal::{Config, DiskCall, FlushJob, Log, Lsn};

use crate::support::{Draw, Records, config, number_of, open, record, tiny, truncate};

#[test]
fn what_was_durable_survives_any_crash() {
    for seed in 0..1000 {
        if let Err(broken) = Run::new(seed).play() {
            panic!("seed {seed}: {broken}");
        }
    }
}

#[test]
fn the_check_notices_a_disk_that_does_not_sync() {
    let noticed = (0..200).any(|seed| {
        let run = Run::new(seed);
        run.disk.set_lying(true);
        run.play().is_err()
    });
    assert!(noticed);
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let bytes_after = |seed| {
        let mut run = Run::new(seed);
        run.play_lives().unwrap();
        let disk = run.disk;
        let names = disk.names();
        let files = names.iter().map(|name| disk.content(name));
        (names.clone(), files.collect::<Vec<_>>(), disk.calls_total())
    };
    for seed in 0..10 {
        assert!(bytes_after(seed) == bytes_after(seed), "seed {seed}");
    }
}

/// One life after another on one disk.
struct Run {
    draw: Draw,
    disk: MemDisk,
    config: Config,
    life: usize,
    /// All records ever appended and not lost, by number.
    records: Vec<Vec<u8>>,
    /// Records below this number were durable.
    confirmed: usize,
    /// Records below this number may be gone.
    needed_from: usize,
    /// Where the records are, in this life, as far as it knows.
    positions: BTreeMap<usize, Lsn>,
    /// Below this, positions must not change.
    proven: Lsn,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let config = match draw.below(3) {
            0 => config(),
            1 => tiny(),
            _ => Config {
                chunk_bytes: 4096,
                reserve_segments: 1,
                ..tiny()
            },
        };
        Self {
            draw,
            disk: MemDisk::new(seed),
            config,
            life: 0,
            records: Vec::new(),
            confirmed: 0,
            needed_from: 0,
            positions: BTreeMap::new(),
            proven: Lsn(0),
        }
    }

    fn play(mut self) -> Result<(), String> {
        self.play_lives()
    }

    fn play_lives(&mut self) -> Result<(), String> {
        for _ in 0..6 {
            let log = self.begin_life()?;
            self.live(log)?;
            self.end_life();
            self.life += 1;
        }
        self.begin_life().map(drop)
    }

    /// Opens the log, with crashes on the way, and checks what it replays.
    fn begin_life(&mut self) -> Result<Log<MemDisk>, String> {
        while self.draw.below(3) == 0 {
            self.disk.crash_after(self.draw.below(60));
            let opened = open(&self.disk, &self.config);
            if let Err(e) = &opened
                && !self.disk.is_down()
            {
                return Err(format!("open: {e}"));
            }
            if let Ok((log, replayed)) = opened {
                self.check(&replayed)?;
                self.proven = log.proven();
            }
            self.end_life();
        }
        let (log, replayed) = open(&self.disk, &self.config).map_err(|e| format!("open: {e}"))?;
        self.check(&replayed)?;
        self.proven = log.proven();
        if log.durable() < log.end() {
            return Err("something replayed is not durable".to_owned());
        }
        Ok(log)
    }

    fn check(&mut self, replayed: &Records) -> Result<(), String> {
        let first = replayed
            .first()
            .map_or(self.confirmed, |(_, record)| number_of(record));
        let end = first + replayed.len();
        let is_complete = first <= self.needed_from.max(self.confirmed.min(first))
            && (first <= self.needed_from || replayed.is_empty())
            && end >= self.confirmed
            && end <= self.records.len();
        if !is_complete || (replayed.is_empty() && self.needed_from < self.confirmed) {
            return Err(format!(
                "{first}..{end} replayed, {}..{} needed, {} appended",
                self.needed_from,
                self.confirmed,
                self.records.len()
            ));
        }
        for (number, (at, bytes)) in (first..).zip(replayed) {
            if *bytes != self.records[number] {
                return Err(format!("record {number} is another one"));
            }
            if let Some(before) = self.positions.get(&number)
                && *before < self.proven
                && before != at
            {
                return Err(format!("record {number} moved from {before} to {at}"));
            }
        }
        let is_ascending = replayed.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if !is_ascending {
            return Err("positions are not ascending".to_owned());
        }
        self.positions = (first..).zip(replayed.iter().map(|(at, _)| *at)).collect();
        self.records.truncate(end);
        self.confirmed = end;
        Ok(())
    }

    /// Works with the log until something stops it.
    fn live(&mut self, mut log: Log<MemDisk>) -> Result<(), String> {
        if self.draw.below(3) == 0 {
            self.disk.crash_after(self.draw.below(200));
        }
        let mut job: Option<FlushJob<MemDisk>> = None;
        for _ in 0..self.draw.below(80) {
            match self.draw.below(20) {
                0..=8 => self.append(&mut log)?,
                9..=11 => job = job.or_else(|| log.take_flush()),
                12..=14 => {
                    if let Some(job) = job.take().or_else(|| log.take_flush())
                        && log.on_flushed(job.run()).is_err()
                    {
                        return Ok(());
                    }
                    self.note_durable(&log);
                }
                15 => _ = log.on_idle(),
                16 => self.truncate(&mut log),
                17 | 18 => self.read(&mut log)?,
                _ => self.trouble(),
            }
            log.assert_invariants();
        }
        Ok(())
    }

    fn append(&mut self, log: &mut Log<MemDisk>) -> Result<(), String> {
        let len = match self.draw.below(40) {
            0 => 40_000 + self.draw.size(60_000),
            1..=4 => self.draw.size(15_000),
            _ => self.draw.size(300),
        };
        let number = self.records.len();
        let mut bytes = record(number, len);
        bytes.extend_from_slice(&self.life.to_le_bytes());
        let at = log.append(&bytes).map_err(|e| format!("append: {e}"))?;
        self.positions.insert(number, at);
        self.records.push(bytes);
        Ok(())
    }

    fn note_durable(&mut self, log: &Log<MemDisk>) {
        while let Some(at) = self.positions.get(&self.confirmed)
            && at.0 + self.records[self.confirmed].len() as u64 <= log.durable().0
        {
            self.confirmed += 1;
        }
        self.proven = log.proven();
    }

    fn truncate(&mut self, log: &mut Log<MemDisk>) {
        let among = self.confirmed - self.needed_from;
        let number = self.needed_from + self.draw.size(among + 1);
        let at = self.positions.get(&number);
        truncate(log, at.copied().unwrap_or_else(|| log.durable()));
        self.needed_from = number;
    }

    fn read(&mut self, log: &mut Log<MemDisk>) -> Result<(), String> {
        let among = self.records.len() - self.needed_from;
        if among == 0 {
            return Ok(());
        }
        let number = self.needed_from + self.draw.size(among);
        let bytes = &self.records[number];
        let at = self.positions[&number];
        let from = self.draw.size(bytes.len());
        let len = self.draw.size(bytes.len() - from + 1);
        let place = Lsn(at.0 + from as u64);
        match log.read(place, u32::try_from(len).unwrap()) {
            Ok(read) if read == bytes[from..from + len] => Ok(()),
            Ok(_) => Err(format!("record {number} reads as another one")),
            Err(_) if self.disk.is_down() => Ok(()),
            Err(e) => Err(format!("reading record {number}: {e}")),
        }
    }

    fn trouble(&mut self) {
        let nth = 1 + self.draw.below(6);
        match self.draw.below(8) {
            0 => self
                .disk
                .inject(DiskCall::Sync, nth, Fault::Fail(ErrorKind::Other)),
            1 => self
                .disk
                .inject(DiskCall::Write, nth, Fault::Fail(ErrorKind::Other)),
            2 => self
                .disk
                .inject(DiskCall::SyncDir, nth, Fault::Fail(ErrorKind::Other)),
            3 | 4 => self.disk.inject(DiskCall::Write, nth, Fault::Short(700)),
            5 => {
                let more = self.draw.below(3 * self.config.segment_bytes);
                self.disk.set_capacity(Some(self.disk.used_bytes() + more));
            }
            _ => self.disk.set_capacity(None),
        }
    }

    fn end_life(&mut self) {
        self.disk = if self.draw.below(3) == 0 && !self.disk.is_down() {
            self.disk.kill()
        } else {
            self.disk.crash()
        };
        self.disk.set_capacity(None);
    }
}
