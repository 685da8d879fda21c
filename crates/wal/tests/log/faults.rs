//! Disk calls that fail or fall short, one by one.

use std::io::ErrorKind;

use tanda_wal::mem_disk::{Fault, MemDisk};
use tanda_wal::{AppendError, DiskCall, OpenError};

use crate::support::{commit, config, contents, flush, open, record, tiny, truncate};

#[test]
fn a_failed_write_or_sync_poisons_until_the_log_is_opened_again() {
    for call in [DiskCall::Write, DiskCall::Sync] {
        for power_fails in [false, true] {
            let disk = MemDisk::new(1);
            let (mut log, _) = open(&disk, &config()).unwrap();
            commit(&mut log, b"safe");
            let durable = log.durable();
            disk.inject(call, 1, Fault::Fail(ErrorKind::Other));
            log.append(b"doubtful").unwrap();
            let job = log.take_flush().unwrap();
            let poisoned = log.on_flushed(job.run()).unwrap_err();
            assert_eq!(poisoned.cause.call, call);
            assert!(log.poisoned().is_some() && log.stats().poisoned.is_some());
            let refused = log.append(b"late").unwrap_err();
            assert!(matches!(refused, AppendError::Poisoned(_)));
            assert!(log.take_flush().is_none());
            log.on_idle();
            assert!(log.take_flush().is_none());
            assert_eq!(log.durable(), durable);
            assert!(matches!(open(&disk, &config()), Err(OpenError::Locked)));
            let disk = if power_fails {
                disk.crash()
            } else {
                disk.kill()
            };
            let (mut log, replayed) = open(&disk, &config()).unwrap();
            let replayed = contents(&replayed);
            assert_eq!(replayed[0], b"safe");
            assert!(replayed[1..].is_empty() || replayed[1..] == [b"doubtful"]);
            commit(&mut log, b"on it goes");
        }
    }
}

#[test]
fn what_a_restart_finds_after_a_failed_sync_is_made_durable() {
    // The page cache still has the record, the disk does not, and syncing again would not help.
    let disk = MemDisk::new(2);
    let (mut log, _) = open(&disk, &config()).unwrap();
    commit(&mut log, b"safe");
    disk.inject(DiskCall::Sync, 1, Fault::Fail(ErrorKind::Other));
    log.append(b"in the page cache").unwrap();
    let job = log.take_flush().unwrap();
    assert!(log.on_flushed(job.run()).is_err());
    drop(log);
    let disk = disk.kill();
    let (log, replayed) = open(&disk, &config()).unwrap();
    let expected: [&[u8]; 2] = [b"safe", b"in the page cache"];
    assert_eq!(contents(&replayed), expected);
    drop(log);
    for _ in 0..8 {
        let disk = disk.crash();
        let (_, replayed) = open(&disk, &config()).unwrap();
        assert_eq!(contents(&replayed), expected);
    }
}

#[test]
fn short_and_interrupted_calls_are_continued() {
    let disk = MemDisk::new(3);
    let (mut log, _) = open(&disk, &config()).unwrap();
    for (number, len) in [1, 511, 4096, 9000].into_iter().enumerate() {
        disk.inject(DiskCall::Write, 1, Fault::Short(len));
        disk.inject(DiskCall::Write, 2, Fault::Fail(ErrorKind::Interrupted));
        commit(&mut log, &record(number, 10_000));
    }
    drop(log);
    for nth in 1..12 {
        disk.inject(DiskCall::Read, 2 * nth, Fault::Short(100));
        disk.inject(
            DiskCall::Read,
            2 * nth + 1,
            Fault::Fail(ErrorKind::Interrupted),
        );
    }
    let (_, replayed) = open(&disk, &config()).unwrap();
    let expected: Vec<Vec<u8>> = (0..4).map(|number| record(number, 10_000)).collect();
    assert_eq!(contents(&replayed), expected);
}

/// A log with several segments, freed ones and a tail that is not proven.
fn prepared() -> MemDisk {
    let disk = MemDisk::new(4);
    let (mut log, _) = open(&disk, &tiny()).unwrap();
    let mut middle = None;
    for number in 0..14 {
        let at = commit(&mut log, &record(number, 30));
        if number == 7 {
            middle = Some(at);
        }
    }
    truncate(&mut log, middle.unwrap());
    commit(&mut log, &record(14, 30));
    commit(&mut log, &record(15, 30));
    disk.kill()
}

#[test]
fn an_open_that_fails_anywhere_loses_nothing() {
    let calls = [
        DiskCall::Lock,
        DiskCall::List,
        DiskCall::Create,
        DiskCall::Open,
        DiskCall::Remove,
        DiskCall::Rename,
        DiskCall::SyncDir,
        DiskCall::Read,
        DiskCall::Write,
        DiskCall::Sync,
        DiskCall::Len,
        DiskCall::Allocate,
        DiskCall::SetLen,
    ];
    let mut failures = 0;
    for call in calls {
        for nth in 1.. {
            let disk = prepared();
            let before = disk.calls(call);
            disk.inject(call, nth, Fault::Fail(ErrorKind::PermissionDenied));
            let first = open(&disk, &tiny()).map(drop);
            if disk.calls(call) < before + nth {
                break;
            }
            if let Err(e) = first {
                let OpenError::Disk(e) = e else {
                    panic!("{call:?} {nth}: {e}");
                };
                assert_eq!(e.call, call, "{e}");
                failures += 1;
            }
            let disk = if nth % 2 == 0 {
                disk.crash()
            } else {
                disk.kill()
            };
            let (_, replayed) = open(&disk, &tiny()).unwrap();
            let last = contents(&replayed);
            let expected: Vec<Vec<u8>> = (7..16).map(|number| record(number, 30)).collect();
            assert_eq!(last[last.len() - 9..], expected, "{call:?} {nth}");
        }
    }
    assert!(failures > 20, "only {failures} calls failed");
}

#[test]
fn a_first_open_that_fails_anywhere_can_be_repeated() {
    for operations in 0.. {
        let disk = MemDisk::new(5 + operations);
        disk.crash_after(operations);
        let first = open(&disk, &tiny()).map(drop);
        let was_down = disk.is_down();
        assert!(was_down || first.is_ok());
        let disk = disk.restart();
        let (mut log, replayed) = open(&disk, &tiny()).unwrap();
        assert!(replayed.is_empty());
        commit(&mut log, b"works");
        if !was_down {
            assert!(operations > 10);
            break;
        }
    }
}

#[test]
fn failures_while_rolling_over_to_a_new_segment_lose_nothing_confirmed() {
    for call in [DiskCall::Write, DiskCall::Sync, DiskCall::SyncDir] {
        for nth in 1..40 {
            let disk = MemDisk::new(nth);
            let (mut log, _) = open(&disk, &tiny()).unwrap();
            disk.inject(call, nth, Fault::Fail(ErrorKind::Other));
            let mut confirmed = 0;
            let mut appended = 0;
            while appended < 12 && log.append(&record(appended, 1500)).is_ok() {
                appended += 1;
                if flush(&mut log).is_ok() {
                    confirmed = appended;
                }
            }
            drop(log);
            let disk = disk.crash();
            let (_, replayed) = open(&disk, &tiny()).unwrap();
            assert!(
                (confirmed..=appended).contains(&replayed.len()),
                "{call:?} {nth}: {} of {confirmed} to {appended}",
                replayed.len()
            );
            for (number, (_, bytes)) in replayed.iter().enumerate() {
                assert_eq!(*bytes, record(number, 1500));
            }
        }
    }
}
