//! Crashes in the middle of recovery, in the situations that need more than luck to come about.

use std::io::ErrorKind;

use tanda_wal::mem_disk::{Fault, MemDisk};
use tanda_wal::{Config, DiskCall};

use crate::support::{Draw, commit, config, contents, flush, open, record, tiny, truncate};

#[test]
fn a_crash_at_any_step_of_recovery_loses_nothing() {
    for seed in 0..40 {
        for operations in 0.. {
            let (disk, confirmed) = with_torn_tail(seed);
            disk.crash_after(operations);
            let opened = open(&disk, &tiny());
            let was_down = disk.is_down();
            let seen = opened.map(|(_, replayed)| replayed.len()).unwrap_or(0);
            let disk = disk.restart();
            let (_, replayed) = open(&disk, &tiny()).unwrap();
            let count = replayed.len();
            assert!(
                count >= confirmed && count >= seen,
                "seed {seed}, crash after {operations}: {count} of {confirmed}, {seen} seen before"
            );
            for (number, (_, bytes)) in replayed.iter().enumerate() {
                assert_eq!(*bytes, record(number, 900));
            }
            if !was_down {
                break;
            }
        }
    }
}

/// A disk after a crash in the middle of writing, and how many records were durable.
fn with_torn_tail(seed: u64) -> (MemDisk, usize) {
    let disk = MemDisk::new(seed);
    let (mut log, _) = open(&disk, &tiny()).unwrap();
    let mut draw = Draw::new(seed);
    let confirmed = 4 + draw.size(8);
    for number in 0..confirmed {
        commit(&mut log, &record(number, 900));
    }
    for number in 0..=draw.size(12) {
        log.append(&record(confirmed + number, 900)).unwrap();
    }
    let job = log.take_flush().unwrap();
    disk.crash_after(draw.below(4));
    // Whether it fails or not, the log is gone.
    log.on_flushed(job.run()).ok();
    drop(log);
    let disk = if draw.below(4) == 0 && !disk.is_down() {
        disk.kill()
    } else {
        disk.restart()
    };
    (disk, confirmed)
}

#[test]
fn a_half_made_copy_does_not_come_alive_behind_newer_batches() {
    // The first attempt copies three batches, the second finds only some of them on disk. What is
    // written after those has the size of the others, whose copies still lie behind it.
    let one_batch_each = Config {
        chunk_bytes: 4096,
        ..config()
    };
    let mut shorter = 0;
    for seed in 0..30 {
        for operations in 0.. {
            let disk = MemDisk::new(seed);
            let (mut log, _) = open(&disk, &one_batch_each).unwrap();
            commit(&mut log, &record(0, 3900));
            for number in 1..4 {
                log.append(&record(number, 3900)).unwrap();
            }
            disk.inject(DiskCall::Sync, 1, Fault::Fail(ErrorKind::Other));
            let job = log.take_flush().unwrap();
            assert!(log.on_flushed(job.run()).is_err());
            drop(log);
            let disk = disk.kill();
            disk.crash_after(operations);
            let is_open = open(&disk, &one_batch_each).map(drop).is_ok();
            if !disk.is_down() {
                assert!(is_open);
                break;
            }
            let disk = disk.restart();
            let (mut log, found) = open(&disk, &one_batch_each).unwrap();
            commit(&mut log, &record(9, 3900));
            drop(log);
            shorter += usize::from(found.len() < 4);
            let mut expected = contents(&found);
            let newer = record(9, 3900);
            expected.push(&newer);
            let (_, replayed) = open(&disk.kill(), &one_batch_each).unwrap();
            assert_eq!(contents(&replayed), expected, "seed {seed}, {operations}");
        }
    }
    assert!(shorter > 50, "{shorter}");
}

#[test]
fn a_start_that_may_yet_be_lost_overwrites_nothing() {
    let mut both = [0, 0];
    for seed in 0..20 {
        for operations in 0.. {
            let disk = MemDisk::new(seed);
            let (mut log, _) = open(&disk, &tiny()).unwrap();
            let mut written = Vec::new();
            for number in 0..7 {
                written.push(commit(&mut log, &record(number, 30)));
            }
            // The batch that gives up the first segments is in the page cache only.
            log.append(&record(7, 30)).unwrap();
            truncate(&mut log, written[6]);
            disk.inject(DiskCall::Sync, 1, Fault::Fail(ErrorKind::Other));
            let job = log.take_flush().unwrap();
            assert!(log.on_flushed(job.run()).is_err());
            drop(log);
            let disk = disk.kill();
            disk.crash_after(operations);
            let is_open = open(&disk, &tiny()).map(drop).is_ok();
            let was_down = disk.is_down();
            assert!(was_down || is_open);
            let (_, replayed) = open(&disk.restart(), &tiny()).unwrap();
            let all: Vec<Vec<u8>> = (0..8).map(|number| record(number, 30)).collect();
            let replayed = contents(&replayed);
            assert!(
                replayed == all[..7] || replayed == all[6..],
                "seed {seed}, {operations}: {} records",
                replayed.len()
            );
            both[usize::from(replayed.len() == 2)] += 1;
            if !was_down {
                break;
            }
        }
    }
    assert!(both[0] > 20 && both[1] > 20, "{both:?}");
}

#[test]
fn a_takeover_that_may_yet_be_lost_overwrites_nothing() {
    // The first attempt makes a new segment but cannot sync it, the second sees it all the same.
    for older in [0, 3, 5] {
        for nth in 1..8 {
            for seed in 0..4 {
                for operations in 0.. {
                    let disk = MemDisk::new(seed);
                    let (mut log, _) = open(&disk, &tiny()).unwrap();
                    for number in 0..=older {
                        commit(&mut log, &record(number, 30));
                    }
                    drop(log);
                    disk.inject(DiskCall::Sync, nth, Fault::Fail(ErrorKind::Other));
                    open(&disk, &tiny()).map(drop).ok();
                    let disk = disk.kill();
                    disk.crash_after(operations);
                    open(&disk, &tiny()).map(drop).ok();
                    let was_down = disk.is_down();
                    let (mut log, replayed) = open(&disk.restart(), &tiny())
                        .unwrap_or_else(|e| panic!("{older} {nth} {seed} {operations}: {e}"));
                    let all: Vec<Vec<u8>> = (0..=older).map(|number| record(number, 30)).collect();
                    assert_eq!(
                        contents(&replayed),
                        all,
                        "{older} {nth} {seed} {operations}"
                    );
                    log.append(b"more").unwrap();
                    flush(&mut log).unwrap();
                    if !was_down {
                        break;
                    }
                }
            }
        }
    }
}
