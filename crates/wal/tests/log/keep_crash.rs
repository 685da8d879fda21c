//! Snapshots, kept segments and cold copies under crashes at any point, drawn from seeds.
//!
//! A small broker keeps messages in the log: it stores and settles them by records, takes
//! snapshots,
//! moves the start of the log on, copies messages into cold segments and frees what nothing needs.
//! After any crash the newest snapshot and the records from its position on give the same messages
//! again, and each can be read.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::sync::Arc;

use bytes::Bytes;
use tanda_wal::mem_disk::{Fault, MemDisk};
use tanda_wal::{ColdWriter, Config, DiskCall, Log, Lsn};

use crate::support::{Draw, config, number_of, record, tiny};

#[test]
fn no_message_is_lost_by_any_crash() {
    for seed in 0..1000 {
        if let Err(broken) = World::new(seed, Rules::default()).play() {
            panic!("seed {seed}: {broken}");
        }
    }
}

#[test]
fn the_check_notices_a_segment_freed_before_its_records_are_durable() {
    notices(Rules {
        waits_for_durable: false,
        ..Rules::default()
    });
}

#[test]
fn the_check_notices_a_segment_freed_before_the_snapshot_knows_of_the_copies() {
    notices(Rules {
        waits_for_snapshot: false,
        ..Rules::default()
    });
}

#[test]
fn the_check_notices_a_disk_that_does_not_sync() {
    let noticed = (0..400).any(|seed| {
        let world = World::new(seed, Rules::default());
        world.disk.set_lying(true);
        world.play().is_err()
    });
    assert!(noticed);
}

fn notices(rules: Rules) {
    let noticed = (0..4000).any(|seed| World::new(seed, rules).play().is_err());
    assert!(noticed);
}

/// What the broker waits for before it frees a segment.
#[derive(Clone, Copy)]
struct Rules {
    waits_for_durable: bool,
    waits_for_snapshot: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            waits_for_durable: true,
            waits_for_snapshot: true,
        }
    }
}

/// Messages and where they lie.
type Messages = BTreeMap<usize, Lsn>;

#[derive(Clone, Default)]
struct Snapshot {
    number: usize,
    from: Lsn,
    messages: Messages,
}

/// Why a window that no message lies in may not go yet.
enum Wait {
    Durable(Lsn),
    SnapshotAfter(usize),
}

struct World {
    draw: Draw,
    disk: MemDisk,
    config: Config,
    rules: Rules,
    /// Lengths of all messages ever stored.
    lens: Vec<usize>,
    /// Stored, and the log was durable behind that.
    stored: BTreeSet<usize>,
    /// Settled, durable or not; and those for which it is known to be durable.
    settling: BTreeSet<usize>,
    settled: BTreeSet<usize>,
    published: Snapshot,
    snapshots: usize,
}

/// One life.
struct Broker {
    log: Log<MemDisk>,
    writer: Option<ColdWriter<MemDisk>>,
    messages: Messages,
    /// Ends of records that are not durable yet.
    storing: Vec<(usize, Lsn)>,
    settling: Vec<(usize, Lsn)>,
    waits: Vec<(u64, Wait)>,
    capture: Option<Snapshot>,
}

impl World {
    fn new(seed: u64, rules: Rules) -> Self {
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
            rules,
            lens: Vec::new(),
            stored: BTreeSet::new(),
            settling: BTreeSet::new(),
            settled: BTreeSet::new(),
            published: Snapshot::default(),
            snapshots: 0,
        }
    }

    fn play(mut self) -> Result<(), String> {
        for _ in 0..6 {
            let mut broker = self.begin_life()?;
            if self.draw.below(3) > 0 {
                self.disk.crash_after(self.draw.below(400));
            }
            for _ in 0..self.draw.below(150) {
                if !self.step(&mut broker)? {
                    break;
                }
                broker.log.assert_invariants();
            }
            drop(broker);
            self.end_life();
        }
        self.begin_life().map(drop)
    }

    fn begin_life(&mut self) -> Result<Broker, String> {
        while self.draw.below(4) == 0 {
            self.disk.crash_after(self.draw.below(60));
            let opened = self.open();
            if let Err(e) = opened
                && !self.disk.is_down()
            {
                return Err(e);
            }
            self.end_life();
        }
        self.open()
    }

    fn open(&mut self) -> Result<Broker, String> {
        let mut messages = self.published.messages.clone();
        let log = Log::open(
            Arc::new(self.disk.clone()),
            self.config.clone(),
            self.published.from,
            &mut |at, bytes| {
                let number = number_of(&bytes[1..]);
                if bytes[0] == b'S' {
                    messages.insert(number, at);
                } else {
                    messages.remove(&number);
                }
                Ok(())
            },
        );
        let mut log = log.map_err(|e| format!("open: {e}"))?;
        if log.claimed_start() > self.published.from && self.published.from > Lsn(0) {
            return Err(format!(
                "the log starts at {}, the snapshot at {}",
                log.claimed_start(),
                self.published.from
            ));
        }
        let windows = windows_of(&log, &messages);
        log.keep_segments(&windows)
            .map_err(|e| format!("keep: {e}"))?;
        let missing = self
            .stored
            .iter()
            .find(|number| !self.settling.contains(number) && !messages.contains_key(number));
        if let Some(number) = missing {
            return Err(format!("message {number} is lost"));
        }
        if let Some(number) = messages.keys().find(|number| self.settled.contains(number)) {
            return Err(format!("message {number} is back"));
        }
        let mut broker = Broker {
            log,
            writer: None,
            messages,
            storing: Vec::new(),
            settling: Vec::new(),
            waits: Vec::new(),
            capture: None,
        };
        for number in broker.messages.keys().copied().collect::<Vec<_>>() {
            self.read(&mut broker, number)?;
        }
        // All of that is durable.
        self.stored = broker.messages.keys().copied().collect();
        self.settled = (0..self.lens.len())
            .filter(|number| !self.stored.contains(number))
            .collect();
        self.settling = self.settled.clone();
        Ok(broker)
    }

    /// One action; `false` when this life is over.
    fn step(&mut self, broker: &mut Broker) -> Result<bool, String> {
        match self.draw.below(24) {
            0..=6 => self.store(broker)?,
            7..=10 => self.settle(broker)?,
            11..=15 => return Ok(self.flush(broker)),
            16 => _ = broker.log.on_idle(),
            17 => self.begin_capture(broker),
            18..=20 => self.copy(broker)?,
            21 | 22 => {
                if let Some(number) = self.any(broker) {
                    self.read(broker, number)?;
                }
            }
            _ => self.trouble(),
        }
        Ok(true)
    }

    fn store(&mut self, broker: &mut Broker) -> Result<(), String> {
        let len = match self.draw.below(40) {
            0 => 40_000 + self.draw.size(60_000),
            1..=8 => self.draw.size(9_000),
            _ => self.draw.size(300),
        };
        let number = self.lens.len();
        let bytes = message(number, len);
        self.lens.push(len);
        let at = broker.log.append(&bytes).map_err(|e| e.to_string())?;
        broker.messages.insert(number, at);
        broker.storing.push((number, broker.log.end()));
        Ok(())
    }

    fn settle(&mut self, broker: &mut Broker) -> Result<(), String> {
        let Some(number) = self.any(broker) else {
            return Ok(());
        };
        let mut bytes = vec![b'D'];
        bytes.extend(record(number, 4));
        broker.log.append(&bytes).map_err(|e| e.to_string())?;
        let end = broker.log.end();
        self.settling.insert(number);
        broker.settling.push((number, end));
        let at = broker.messages.remove(&number).unwrap();
        let window = broker.log.segment_of(at).0;
        broker.waits.push((window, Wait::Durable(end)));
        Ok(())
    }

    fn flush(&mut self, broker: &mut Broker) -> bool {
        if let Some(job) = broker.log.take_flush()
            && broker.log.on_flushed(job.run()).is_err()
        {
            return false;
        }
        let durable = broker.log.durable();
        broker.storing.retain(|(number, end)| {
            if *end <= durable {
                self.stored.insert(*number);
            }
            *end > durable
        });
        broker.settling.retain(|(number, end)| {
            if *end <= durable {
                self.settled.insert(*number);
            }
            *end > durable
        });
        if let Some(capture) = &broker.capture
            && broker.log.proven() >= capture.from
        {
            self.published = broker.capture.take().unwrap();
            broker.log.set_start(self.published.from);
        }
        self.free(broker);
        true
    }

    fn free(&self, broker: &mut Broker) {
        let durable = broker.log.durable();
        broker.waits.retain(|(_, wait)| match wait {
            Wait::Durable(end) => self.rules.waits_for_durable && *end > durable,
            Wait::SnapshotAfter(number) => {
                self.rules.waits_for_snapshot && self.published.number <= *number
            }
        });
        let mut needed = windows_of(&broker.log, &broker.messages);
        needed.extend(broker.waits.iter().map(|(window, _)| *window));
        let files: Vec<_> = broker.log.segment_files().collect();
        for file in files.iter().filter(|file| !file.is_replayed) {
            let mut windows = needed.range(file.index..file.index + file.windows);
            if windows.next().is_none() {
                assert!(broker.log.free_segment(file.index));
            }
        }
    }

    fn begin_capture(&mut self, broker: &mut Broker) {
        self.snapshots += 1;
        broker.capture = Some(Snapshot {
            number: self.snapshots,
            from: broker.log.end(),
            messages: broker.messages.clone(),
        });
    }

    /// Copies a few messages into a cold segment.
    fn copy(&mut self, broker: &mut Broker) -> Result<(), String> {
        let mut chosen = BTreeSet::new();
        for _ in 0..=self.draw.below(6) {
            chosen.extend(self.any(broker));
        }
        let mut bytes = Vec::new();
        for number in &chosen {
            bytes.push(Bytes::from(self.read(broker, *number)?));
        }
        let is_last = self.draw.below(5) == 0;
        let Some(mut writer) = broker.writer.take().or_else(|| broker.log.cold_writer()) else {
            return Err("two writers".to_owned());
        };
        let Ok(places) = writer.append(&bytes) else {
            broker.writer = Some(writer);
            return Ok(());
        };
        let written = if is_last {
            writer.finish()
        } else {
            let written = writer.sync();
            broker.writer = Some(writer);
            written
        };
        let Ok(written) = written else {
            return Ok(());
        };
        broker.log.add_cold(written);
        for (number, at) in chosen.into_iter().zip(places) {
            let before = broker.messages.insert(number, at).unwrap();
            let window = broker.log.segment_of(before).0;
            let wait = Wait::SnapshotAfter(self.snapshots);
            broker.waits.push((window, wait));
            if self.draw.below(2) == 0 {
                self.read(broker, number)?;
            }
        }
        Ok(())
    }

    fn read(&self, broker: &mut Broker, number: usize) -> Result<Vec<u8>, String> {
        let at = broker.messages[&number];
        let expected = message(number, self.lens[number]);
        let len = u32::try_from(expected.len()).unwrap();
        match broker.log.read(at, len) {
            Ok(read) if read == expected => Ok(expected),
            Ok(_) => Err(format!("message {number} reads as another one")),
            Err(_) if self.disk.is_down() => Ok(expected),
            Err(e) => Err(format!("reading message {number}: {e}")),
        }
    }

    fn any(&mut self, broker: &Broker) -> Option<usize> {
        // Mostly the newest, so that some stay for long.
        let count = broker.messages.len();
        let skip = self
            .draw
            .size(count.max(1))
            .max(self.draw.size(count.max(1)));
        broker.messages.keys().nth(skip).copied()
    }

    fn trouble(&mut self) {
        let nth = 1 + self.draw.below(6);
        match self.draw.below(10) {
            0 => self
                .disk
                .inject(DiskCall::Sync, nth, Fault::Fail(ErrorKind::Other)),
            1 => self
                .disk
                .inject(DiskCall::Write, nth, Fault::Fail(ErrorKind::Other)),
            2 => self
                .disk
                .inject(DiskCall::Rename, nth, Fault::Fail(ErrorKind::Other)),
            3 => self.disk.inject(DiskCall::Write, nth, Fault::Short(700)),
            4 => {
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

fn message(number: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![b'S'];
    bytes.extend(record(number, len));
    bytes
}

fn windows_of(log: &Log<MemDisk>, messages: &Messages) -> BTreeSet<u64> {
    messages.values().map(|at| log.segment_of(*at).0).collect()
}
