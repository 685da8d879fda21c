//! Damage in segments that are not replayed is seen when they are read.

use std::collections::BTreeSet;

use bytes::Bytes;
use tanda_wal::mem_disk::MemDisk;
use tanda_wal::{Log, Lsn, ReadError};

use crate::support::{commit, flush, idle, live_segments, open, open_from, record, tiny};

/// Files with the places of the records 0, 1, 2 in them.
type Files = Vec<(String, Vec<Lsn>)>;

/// A log with a kept segment and a cold one of three batches each: windows, and places by file.
fn world() -> (MemDisk, BTreeSet<u64>, Lsn, Files) {
    let disk = MemDisk::new(1);
    let (mut log, _) = open(&disk, &tiny()).unwrap();
    let kept: Vec<Lsn> = (0..3)
        .map(|number| commit(&mut log, &record(number, 30)))
        .collect();
    let mut cold = Vec::new();
    let mut writer = log.cold_writer().unwrap();
    for number in 0..3 {
        let bytes = Bytes::from(record(number, 30));
        cold.extend(writer.append(&[bytes]).unwrap());
    }
    log.add_cold(writer.finish().unwrap());
    let last = (3..7).map(|number| commit(&mut log, &record(number, 30)));
    let from = last.last().unwrap();
    idle(&mut log).unwrap();
    let windows = kept.iter().chain(&cold).map(|at| log.segment_of(*at).0);
    let windows: BTreeSet<u64> = windows.collect();
    assert_eq!(windows.len(), 2);
    let name = live_segments(&disk).remove(0).1;
    let files = vec![(name, kept), ("000001.cold".to_owned(), cold)];
    (disk, windows, from, files)
}

#[test]
fn any_flipped_byte_is_refused_or_harmless() {
    let (disk, windows, from, files) = world();
    let (mut log, _) = open_from(&disk, &tiny(), from, &windows).unwrap();
    let mut harmful = 0;
    for (name, places) in &files {
        for offset in (4096..16384).filter(|offset| offset % 4096 < 160 || offset % 97 == 0) {
            disk.damage(name, offset);
            let mut fresh = Fresh::of(&mut log, &disk, &windows, from);
            for (number, at) in places.iter().enumerate() {
                let batch = 4096 * (number + 1);
                let is_hit = (batch..batch + 98).contains(&offset);
                match fresh.log.read(*at, 30) {
                    Ok(bytes) => {
                        assert!(!is_hit, "{name} byte {offset}");
                        assert_eq!(bytes, record(number, 30));
                    }
                    Err(ReadError::Corrupt(corruption)) => {
                        assert!(is_hit, "{name} byte {offset}: {corruption}");
                        assert_eq!(corruption.file, *name);
                        assert_eq!(corruption.offset, u64::try_from(batch).unwrap());
                        harmful += 1;
                    }
                    Err(e) => panic!("{e}"),
                }
            }
            log = fresh.log;
            disk.damage(name, offset);
        }
    }
    assert_eq!(harmful, 6 * 98);
}

/// The log opened anew, so that nothing of it is in memory.
struct Fresh {
    log: Log<MemDisk>,
}

impl Fresh {
    fn of(log: &mut Log<MemDisk>, disk: &MemDisk, windows: &BTreeSet<u64>, from: Lsn) -> Self {
        let (other, _) = open(&MemDisk::new(9), &tiny()).unwrap();
        drop(std::mem::replace(log, other));
        let (log, _) = open_from(disk, &tiny(), from, windows).unwrap();
        Self { log }
    }
}

#[test]
fn a_file_that_ends_early_is_damage() {
    let (disk, windows, from, files) = world();
    for (name, places) in &files {
        for len in [4096, 8192, 12288, 12288 + 97] {
            let copy = crate::support::copy_of(&disk);
            let mut content = copy.content(name).unwrap();
            content.truncate(len);
            copy.set_content(name, &content);
            let (mut log, _) = open_from(&copy, &tiny(), from, &windows).unwrap();
            for (number, at) in places.iter().enumerate() {
                let is_there = 4096 * (number + 2) <= len;
                match log.read(*at, 30) {
                    Ok(bytes) => {
                        assert!(is_there);
                        assert_eq!(bytes, record(number, 30));
                    }
                    Err(ReadError::Corrupt(corruption)) => {
                        assert!(!is_there, "{corruption}");
                        assert_eq!(corruption.file, *name);
                    }
                    Err(e) => panic!("{e}"),
                }
            }
        }
    }
}

#[test]
fn a_record_that_looks_like_batches_is_still_read() {
    // A whole segment file as a record, once more where its blocks lie as they did in the file, and
    // then with headers that claim to be where they lie.
    let (donor, _, _, files) = world();
    let file = donor.content(&files[0].0).unwrap();
    let config = crate::support::config();
    for shift in 0..3 {
        let disk = MemDisk::new(5);
        let (mut log, _) = open(&disk, &config).unwrap();
        let mut bytes = record(1, 4096 - 68);
        if shift > 0 {
            bytes.extend_from_slice(&file);
        }
        let at = log.append(&bytes).unwrap();
        flush(&mut log).unwrap();
        let inner = inner_batch(&disk, at);
        let mut forged = record(2, 4096 - 68);
        if shift == 2 {
            forged.extend_from_slice(&inner);
        }
        forged.resize(30_000, 7);
        let second = log.append(&forged).unwrap();
        flush(&mut log).unwrap();
        while log.segment_of(log.end()) == log.segment_of(at) {
            commit(&mut log, &record(3, 20_000));
        }
        idle(&mut log).unwrap();
        let end = log.proven();
        drop(log);
        let windows = BTreeSet::from([at.0 >> 16]);
        for from in (0..20_000).step_by(777) {
            let (mut log, _) = open_from(&disk, &config, end, &windows).unwrap();
            let place = Lsn(second.0 + from);
            let from = usize::try_from(from).unwrap();
            assert_eq!(log.read(place, 9000).unwrap(), forged[from..from + 9000]);
            assert_eq!(
                log.read(at, u32::try_from(bytes.len()).unwrap()).unwrap(),
                bytes
            );
        }
    }
}

/// The bytes of the first batch of the segment that `at` lies in.
fn inner_batch(disk: &MemDisk, at: Lsn) -> Vec<u8> {
    let index = at.0 >> 16;
    let name = live_segments(disk)
        .into_iter()
        .find_map(|(found, name)| (found == index).then_some(name))
        .unwrap();
    disk.content(&name).unwrap()[4096..8192].to_vec()
}
