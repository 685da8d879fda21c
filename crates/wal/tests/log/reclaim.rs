//! Giving segments up and using their files again.

use tanda_wal::mem_disk::MemDisk;
use tanda_wal::{DiskCall, Log, Lsn, ReadError};

use crate::support::{
    Records, commit, config, contents, flush, idle, open, record, tiny, truncate,
};

fn truncate_all(log: &mut Log<MemDisk>) {
    let end = log.end();
    truncate(log, end);
}

#[test]
fn truncated_segments_are_freed_once_that_is_durable() {
    let disk = MemDisk::new(1);
    let (mut log, _) = open(&disk, &tiny()).unwrap();
    let written: Vec<Lsn> = (0..20)
        .map(|number| commit(&mut log, &record(number, 30)))
        .collect();
    let segments = log.stats().segments;
    let oldest = log.oldest();
    truncate(&mut log, written[10]);
    assert_eq!(log.oldest(), oldest, "nothing on disk says so yet");
    assert_eq!(log.stats().segments, segments);
    idle(&mut log).unwrap();
    assert!(log.oldest() > oldest && log.oldest() <= written[10]);
    assert!(log.stats().segments < segments);
    assert!(log.stats().spare <= tiny().spare_segments_max);
    assert!(matches!(
        log.read(written[0], 30),
        Err(ReadError::Reclaimed { .. })
    ));
    assert_eq!(log.read(written[10], 30).unwrap(), record(10, 30));
    drop(log);
    let (log, replayed) = open(&disk, &tiny()).unwrap();
    let first = crate::support::number_of(&replayed[0].1);
    assert!(first <= 10 && first > 5, "starts at {first}");
    let expected: Vec<Vec<u8>> = (first..20).map(|number| record(number, 30)).collect();
    assert_eq!(contents(&replayed), expected);
    assert_eq!(log.segment_of(log.oldest()), log.segment_of(replayed[0].0));
}

#[test]
fn nothing_is_given_up_before_the_records_that_justify_it() {
    let mut seen = [0, 0];
    for seed in 0..20 {
        for operations in 0..12 {
            let disk = MemDisk::new(seed);
            let (mut log, _) = open(&disk, &tiny()).unwrap();
            // Two full segments, so that the next batch begins a third.
            let written: Vec<Lsn> = (0..6)
                .map(|number| commit(&mut log, &record(number, 30)))
                .collect();
            log.append(b"the first three are done").unwrap();
            truncate(&mut log, written[3]);
            let job = log.take_flush().unwrap();
            disk.crash_after(operations);
            log.on_flushed(job.run()).ok();
            drop(log);
            let disk = disk.restart();
            let (_, replayed) = open(&disk, &tiny()).unwrap();
            let first = crate::support::number_of(&replayed[0].1);
            let is_known = replayed.len() == 7 - first;
            assert!(
                is_known || first == 0,
                "seed {seed}, {operations}: from {first}"
            );
            seen[usize::from(first > 0)] += 1;
        }
    }
    assert!(seen[0] > 20 && seen[1] > 20, "{seen:?}");
}

#[test]
fn a_busy_log_uses_its_files_again() {
    let disk = MemDisk::new(2);
    let (mut log, _) = open(&disk, &config()).unwrap();
    let mut newest = Records::new();
    for number in 0..3000 {
        let bytes = record(number, 200);
        newest.push((log.append(&bytes).unwrap(), bytes));
        if number % 20 == 19 {
            flush(&mut log).unwrap();
            let keep_from = newest.len().saturating_sub(100);
            newest.drain(..keep_from);
            truncate(&mut log, newest[0].0);
        }
    }
    let made = disk.calls(DiskCall::Create);
    assert!(made <= 6, "{made} files were made");
    assert!(log.stats().segments <= 3);
    assert!(disk.used_bytes() <= 7 * config().segment_bytes);
    assert_eq!(log.stats().bytes_on_disk, disk.used_bytes());
    idle(&mut log).unwrap();
    drop(log);
    let (_, replayed) = open(&disk, &config()).unwrap();
    assert!(replayed.len() >= 100);
    assert_eq!(replayed[replayed.len() - 100..], newest);
}

#[test]
fn everything_can_be_truncated() {
    let disk = MemDisk::new(3);
    let (mut log, _) = open(&disk, &tiny()).unwrap();
    for number in 0..20 {
        commit(&mut log, &record(number, 30));
    }
    truncate_all(&mut log);
    idle(&mut log).unwrap();
    assert_eq!(log.stats().segments, 1, "the one in use stays");
    let surplus = log.stats().spare;
    assert_eq!(surplus, tiny().spare_segments_max);
    drop(log);
    let (mut log, replayed) = open(&disk, &tiny()).unwrap();
    assert!(replayed.len() < 4);
    truncate_all(&mut log);
    commit(&mut log, b"new");
    idle(&mut log).unwrap();
    drop(log);
    let (mut log, replayed) = open(&disk, &tiny()).unwrap();
    assert_eq!(contents(&replayed), [b"new"]);
    // Again and again, with nothing but what is needed staying behind.
    for number in 0..30 {
        truncate_all(&mut log);
        commit(&mut log, &record(number, 10));
        idle(&mut log).unwrap();
        drop(log);
        let (next, replayed) = open(&disk, &tiny()).unwrap();
        assert_eq!(replayed.last().unwrap().1, record(number, 10));
        assert!(replayed.len() <= 3, "{} records", replayed.len());
        log = next;
    }
    assert!(disk.used_bytes() <= 6 * tiny().segment_bytes);
}

#[test]
fn a_large_record_gives_its_space_back() {
    let disk = MemDisk::new(4);
    let (mut log, _) = open(&disk, &tiny()).unwrap();
    commit(&mut log, &record(0, 1 << 20));
    let at = commit(&mut log, b"small");
    assert!(disk.used_bytes() > 1 << 20);
    truncate(&mut log, at);
    idle(&mut log).unwrap();
    assert!(disk.used_bytes() <= 5 * tiny().segment_bytes);
    drop(log);
    let (_, replayed) = open(&disk, &tiny()).unwrap();
    assert_eq!(contents(&replayed), [b"small"]);
}

#[test]
fn old_batches_in_a_reused_file_stay_dead() {
    // Equal batches everywhere, so that old ones lie exactly where new ones would.
    for seed in 0..60 {
        let disk = MemDisk::new(seed);
        let (mut log, _) = open(&disk, &tiny()).unwrap();
        for number in 0..30 {
            let at = commit(&mut log, &record(number, 30));
            truncate(&mut log, at);
        }
        // A new segment's first batch in a reused file, not synced.
        log.append(&record(30, 30)).unwrap();
        let job = log.take_flush().unwrap();
        disk.inject(
            DiskCall::Sync,
            1,
            tanda_wal::mem_disk::Fault::Fail(std::io::ErrorKind::Other),
        );
        assert!(log.on_flushed(job.run()).is_err());
        let disk = disk.crash();
        let (_, replayed) = open(&disk, &tiny()).unwrap();
        let numbers: Vec<usize> = replayed
            .iter()
            .map(|(_, record)| crate::support::number_of(record))
            .collect();
        let first = numbers[0];
        assert!(first >= 24, "seed {seed}: {numbers:?}");
        let expected: Vec<usize> = (first..first + numbers.len()).collect();
        assert_eq!(numbers, expected, "seed {seed}");
        assert!(*numbers.last().unwrap() >= 29, "seed {seed}: {numbers:?}");
    }
}
