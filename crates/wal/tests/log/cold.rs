//! Cold segments: written beside the log, kept as long as they are needed, never replayed.

use std::collections::BTreeSet;
use std::io::ErrorKind;

use bytes::Bytes;
use tanda_wal::mem_disk::{Fault, MemDisk};
use tanda_wal::{ColdError, DiskCall, Log, Lsn, OpenError};

use crate::support::{commit, contents, copy_of, flush, open, open_from, record, tiny};

fn records(numbers: std::ops::Range<usize>, len: usize) -> Vec<Bytes> {
    numbers.map(|it| record(it, len).into()).collect()
}

/// Writes the records into cold segments and ends them.
fn write_cold(log: &mut Log<MemDisk>, records: &[Bytes]) -> Vec<Lsn> {
    let mut writer = log.cold_writer().unwrap();
    let places = writer.append(records).unwrap();
    log.add_cold(writer.finish().unwrap());
    places
}

fn windows_of(log: &Log<MemDisk>, places: &[Lsn]) -> BTreeSet<u64> {
    places.iter().map(|at| log.segment_of(*at).0).collect()
}

fn cold_files(disk: &MemDisk) -> Vec<String> {
    let names = disk.names().into_iter();
    names.filter(|name| name.ends_with(".cold")).collect()
}

#[test]
fn copies_are_read_also_after_a_restart_and_never_replayed() {
    for len in [0, 30, 3000, 9000, 14_000, 50_000] {
        let disk = MemDisk::new(1);
        let (mut log, _) = open(&disk, &tiny()).unwrap();
        commit(&mut log, b"in the log");
        let all = records(0..20, len);
        let places = write_cold(&mut log, &all);
        assert!(places.iter().all(|at| at.is_cold()));
        assert!(places.windows(2).all(|pair| pair[0] < pair[1]));
        let len = u32::try_from(all[0].len()).unwrap();
        for (at, bytes) in places.iter().zip(&all) {
            assert_eq!(log.read(*at, len).unwrap(), bytes);
        }
        let windows = windows_of(&log, &places);
        let cold = log.segment_files().filter(|file| file.is_cold);
        let cold: BTreeSet<u64> = cold
            .flat_map(|it| it.index..it.index + it.windows)
            .collect();
        assert!(windows.is_subset(&cold), "{windows:?} in {cold:?}");
        assert_eq!(log.stats().bytes_on_disk, disk.used_bytes());
        drop(log);
        let disk = disk.crash();
        let (mut log, replayed) = open_from(&disk, &tiny(), Lsn(0), &windows).unwrap();
        assert_eq!(contents(&replayed), [b"in the log"]);
        for (at, bytes) in places.iter().zip(&all).rev() {
            assert_eq!(log.read(*at, len).unwrap(), bytes);
        }
        // What comes next has other places.
        let more = write_cold(&mut log, &all);
        assert!(more[0] > *places.last().unwrap());
    }
}

#[test]
fn a_writer_goes_on_in_its_file_and_the_file_stays_until_it_does_not() {
    let disk = MemDisk::new(2);
    let (mut log, _) = open(&disk, &tiny()).unwrap();
    let mut writer = log.cold_writer().unwrap();
    assert!(log.cold_writer().is_none(), "one at a time");
    let first = writer.append(&records(0..1, 30)).unwrap()[0];
    assert!(log.read(first, 30).is_err(), "not synced, not known");
    let written = writer.sync().unwrap();
    log.add_cold(written);
    let window = log.segment_of(first).0;
    // Freed while the writer is at it, and then another copy comes.
    assert!(log.free_segment(window));
    flush(&mut log).unwrap();
    let second = writer.append(&records(1..2, 30)).unwrap()[0];
    assert_eq!(log.segment_of(second).0, window);
    let written = writer.finish().unwrap();
    log.add_cold(written);
    flush(&mut log).unwrap();
    assert_eq!(log.read(second, 30).unwrap(), record(1, 30));
    assert_eq!(log.read(first, 30).unwrap(), record(0, 30));
    assert_eq!(cold_files(&disk).len(), 1);
    assert!(log.free_segment(window));
    assert_eq!(log.segment_windows(window), None);
    flush(&mut log).unwrap();
    assert_eq!(cold_files(&disk).len(), 0);
    // Freed while the writer is at it, and nothing comes.
    let mut writer = log.cold_writer().unwrap();
    let third = writer.append(&records(2..3, 30)).unwrap()[0];
    log.add_cold(writer.sync().unwrap());
    assert!(log.free_segment(log.segment_of(third).0));
    drop(writer);
    drop(log.cold_writer().unwrap());
    flush(&mut log).unwrap();
    assert_eq!(cold_files(&disk).len(), 0);
    assert_eq!(log.stats().bytes_on_disk, disk.used_bytes());
}

#[test]
fn what_is_not_needed_goes_at_the_start_and_what_is_missing_is_refused() {
    let disk = MemDisk::new(3);
    let (mut log, _) = open(&disk, &tiny()).unwrap();
    let kept = write_cold(&mut log, &records(0..3, 30));
    let gone = write_cold(&mut log, &records(3..6, 30));
    let needed = windows_of(&log, &kept);
    let missing = windows_of(&log, &gone);
    drop(log);
    disk.set_content("000009.coldtmp", b"half made");
    let (mut log, _) = open_from(&disk, &tiny(), Lsn(0), &needed).unwrap();
    flush(&mut log).unwrap();
    assert_eq!(cold_files(&disk).len(), 1);
    assert_eq!(disk.content("000009.coldtmp"), None);
    assert_eq!(log.read(kept[0], 30).unwrap(), record(0, 30));
    drop(log);
    let refused = open_from(&disk, &tiny(), Lsn(0), &missing).map(drop);
    let Err(OpenError::MissingKept { file, .. }) = refused else {
        panic!("opened without a segment");
    };
    assert!(file.unwrap().ends_with(".cold"));
    // Cold segments alone are not a new log.
    let copy = MemDisk::new(0);
    let name = cold_files(&disk).remove(0);
    copy.set_content(&name, &disk.content(&name).unwrap());
    assert!(matches!(
        open(&copy, &tiny()).map(drop),
        Err(OpenError::EndsEarly { .. })
    ));
    // Under another name it is not what it says it is.
    let copy = copy_of(&disk);
    copy.set_content("000077.cold", &disk.content(&name).unwrap());
    assert!(matches!(
        open(&copy, &tiny()).map(drop),
        Err(OpenError::Corrupt(_))
    ));
    tanda_wal::Disk::remove(&copy, "000077.cold").unwrap();
    copy.set_content("000077.seg", &disk.content(&name).unwrap());
    assert!(matches!(
        open(&copy, &tiny()).map(drop),
        Err(OpenError::Corrupt(_))
    ));
}

#[test]
fn a_failed_call_leaves_nothing_behind_and_can_be_tried_again() {
    for call in [
        DiskCall::Create,
        DiskCall::Allocate,
        DiskCall::Write,
        DiskCall::Sync,
        DiskCall::Rename,
        DiskCall::SyncDir,
    ] {
        for nth in 1..4 {
            let disk = MemDisk::new(4);
            let (mut log, _) = open(&disk, &tiny()).unwrap();
            let mut writer = log.cold_writer().unwrap();
            let first = writer.append(&records(0..1, 30)).unwrap()[0];
            log.add_cold(writer.sync().unwrap());
            disk.inject(call, nth, Fault::Fail(ErrorKind::StorageFull));
            let mut written = Vec::new();
            // As often as it takes.
            let places = loop {
                let places = writer.append(&records(1..9, 3000));
                let synced = places.and_then(|places| Ok((places, writer.sync()?)));
                match synced {
                    Ok((places, synced)) => {
                        written.push(synced);
                        break places;
                    }
                    Err(ColdError::NoSpace(e)) => assert_eq!(e.call, call),
                    Err(e) => panic!("{e}"),
                }
            };
            for synced in written {
                log.add_cold(synced);
            }
            let windows = windows_of(&log, &places);
            let mut expected = windows;
            expected.insert(log.segment_of(first).0);
            assert_eq!(cold_files(&disk).len(), expected.len(), "{call:?} {nth}");
            for (number, at) in (1..9).zip(&places) {
                assert_eq!(log.read(*at, 3000).unwrap(), record(number, 3000));
            }
            assert_eq!(log.read(first, 30).unwrap(), record(0, 30));
            assert!(log.poisoned().is_none(), "the log goes on");
        }
    }
}
