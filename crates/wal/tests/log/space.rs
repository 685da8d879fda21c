//! A full disk is an alarm: nothing is lost, and it ends by itself.

use tanda_wal::mem_disk::{Fault, MemDisk};
use tanda_wal::{DiskCall, Lsn, OpenError, Room};

use crate::support::{commit, config, contents, flush, idle, open, record, tiny, truncate};

#[test]
fn a_full_disk_refuses_publishes_and_lets_acks_and_reclaim_go_on() {
    let disk = MemDisk::new(1);
    disk.set_capacity(Some(8 * config().segment_bytes));
    let (mut log, _) = open(&disk, &config()).unwrap();
    assert_eq!(log.room(), Room::Ok);
    let mut written = Vec::new();
    while log.room() == Room::Ok {
        written.push(commit(&mut log, &record(written.len(), 3000)));
        assert!(written.len() < 1000, "the alarm never came");
    }
    assert!(log.stats().spare >= config().reserve_segments);
    // Acks still go through: more than the rest of the segment holds.
    for number in 0..20 {
        commit(&mut log, &record(number, 10));
    }
    assert_eq!(log.room(), Room::PublishRefused);
    // Reclaim brings space: its own flush is one of those acks.
    truncate(&mut log, written[70]);
    idle(&mut log).unwrap();
    assert_eq!(log.room(), Room::Ok);
    commit(&mut log, b"welcome");
    drop(log);
    let (_, replayed) = open(&disk, &config()).unwrap();
    assert_eq!(replayed.last().unwrap().1, b"welcome");
}

#[test]
fn a_log_without_any_space_left_waits_and_goes_on() {
    let disk = MemDisk::new(2);
    disk.set_capacity(Some(3 * tiny().segment_bytes));
    let (mut log, _) = open(&disk, &tiny()).unwrap();
    let mut written = Vec::new();
    for number in 0..20 {
        let bytes = record(number, 30);
        log.append(&bytes).unwrap();
        written.push(bytes);
        flush(&mut log).unwrap();
    }
    assert_eq!(log.room(), Room::PublishRefused);
    assert!(log.durable() < log.end());
    assert!(log.poisoned().is_none());
    assert!(log.take_flush().is_none(), "no use in trying again at once");
    let stuck = log.durable();
    assert_eq!(idle(&mut log).unwrap(), stuck);
    // What waits can be read.
    let (mut reader, at) = (log, stuck);
    let last = reader.append(&record(20, 30)).unwrap();
    assert_eq!(reader.read(last, 30).unwrap(), record(20, 30));
    written.push(record(20, 30));
    let mut log = reader;
    disk.set_capacity(None);
    assert!(idle(&mut log).unwrap() > at);
    assert!(log.durable() >= log.end());
    assert_eq!(log.room(), Room::Ok);
    drop(log);
    let (_, replayed) = open(&disk, &tiny()).unwrap();
    assert_eq!(contents(&replayed), written);
}

#[test]
fn a_large_record_waits_for_space_of_its_own() {
    let disk = MemDisk::new(3);
    let (mut log, _) = open(&disk, &config()).unwrap();
    disk.set_capacity(Some(disk.used_bytes() + 100_000));
    let large = record(1, 300_000);
    let at = log.append(&large).unwrap();
    log.append(b"after it").unwrap();
    flush(&mut log).unwrap();
    assert!(log.durable() < log.end());
    assert_eq!(log.room(), Room::PublishRefused);
    assert_eq!(log.read(at, 300_000).unwrap(), large);
    disk.set_capacity(None);
    idle(&mut log).unwrap();
    assert!(log.durable() >= log.end());
    assert_eq!(log.room(), Room::Ok);
    drop(log);
    let (_, replayed) = open(&disk, &config()).unwrap();
    assert_eq!(contents(&replayed), [large.as_slice(), b"after it"]);
}

#[test]
fn other_trouble_with_making_files_ahead_is_an_alarm_too() {
    for call in [DiskCall::Create, DiskCall::Allocate, DiskCall::Rename] {
        let disk = MemDisk::new(4);
        let (mut log, _) = open(&disk, &tiny()).unwrap();
        disk.inject(call, 1, Fault::Fail(std::io::ErrorKind::PermissionDenied));
        let mut number = 0;
        while log.room() == Room::Ok {
            commit(&mut log, &record(number, 30));
            number += 1;
            assert!(number < 10, "{call:?} made no alarm");
        }
        assert!(log.durable() >= log.end());
        idle(&mut log).unwrap();
        assert_eq!(log.room(), Room::Ok, "{call:?}");
    }
}

#[test]
fn an_open_without_space_for_anything_says_so() {
    let disk = MemDisk::new(5);
    disk.set_capacity(Some(1000));
    let Err(OpenError::Disk(e)) = open(&disk, &tiny()).map(drop) else {
        panic!("opened");
    };
    assert!(e.is_no_space(), "{e}");
    disk.set_capacity(Some(tiny().segment_bytes));
    let (log, _) = open(&disk, &tiny()).unwrap();
    assert_eq!(log.room(), Room::PublishRefused);
    drop(log);
    assert_eq!(disk.names().len(), 1);
}

#[test]
fn space_to_keep_free_counts_as_full() {
    let disk = MemDisk::new(6);
    let keeping = tanda_wal::Config {
        keep_free_bytes: 100_000,
        ..tiny()
    };
    disk.set_capacity(Some(100_000 + 2 * tiny().segment_bytes));
    let (mut log, _) = open(&disk, &keeping).unwrap();
    assert_eq!(log.room(), Room::Ok);
    let mut last = Lsn(0);
    for number in 0..3 {
        last = commit(&mut log, &record(number, 30));
    }
    commit(&mut log, &record(3, 30));
    assert_eq!(log.room(), Room::PublishRefused);
    assert!(disk.used_bytes() <= 2 * tiny().segment_bytes);
    assert!(log.durable() > last);
}
