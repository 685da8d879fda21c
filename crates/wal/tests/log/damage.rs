//! Damaged files: a torn tail is cut, everything else is refused, wrong data never comes out.

use tanda_wal::mem_disk::MemDisk;
use tanda_wal::{Corruption, OpenError};

use crate::support::{
    Records, commit, contents, copy_of, flush, idle, live_segments, newest_segment, open, record,
    tiny,
};

/// Bytes of a batch that mean something: header and records without the padding.
const SMALL_BATCH_BYTES: usize = 64 + 4 + 30;

/// Three batches of one record in the newest segment.
fn small_log() -> (MemDisk, Vec<Vec<u8>>) {
    let disk = MemDisk::new(1);
    let (mut log, _) = open(&disk, &tiny()).unwrap();
    let written: Vec<Vec<u8>> = (0..2).map(|number| record(number, 30)).collect();
    for bytes in &written {
        commit(&mut log, bytes);
    }
    idle(&mut log).unwrap();
    (disk.kill(), written)
}

fn open_with(
    disk: &MemDisk,
    name: &str,
    change: impl FnOnce(&mut Vec<u8>),
) -> Result<Records, OpenError> {
    let copy = copy_of(disk);
    let mut content = copy.content(name).unwrap();
    change(&mut content);
    copy.set_content(name, &content);
    open(&copy, &tiny()).map(|(_, records)| records)
}

fn corruption(result: Result<Records, OpenError>) -> Corruption {
    match result {
        Err(OpenError::Corrupt(corruption)) => corruption,
        Err(other) => panic!("another error: {other}"),
        Ok(records) => panic!("opened with {} records", records.len()),
    }
}

#[test]
fn any_flipped_byte_of_proven_data_is_refused() {
    let (disk, written) = small_log();
    let name = newest_segment(&disk);
    let batches = [4096, 8192];
    for offset in 0..16384 {
        let result = open_with(&disk, &name, |content| content[offset] ^= 0x21);
        let is_header = offset < 96;
        let is_batch = batches
            .iter()
            .any(|start| (*start..start + SMALL_BATCH_BYTES).contains(&offset));
        match result {
            Ok(records) => {
                assert!(!is_header && !is_batch, "byte {offset} was taken");
                assert_eq!(contents(&records), written, "byte {offset}");
            }
            Err(OpenError::Corrupt(corruption)) => {
                assert!(is_header || is_batch, "byte {offset}: {corruption}");
                assert_eq!(corruption.file, name);
                let batch = u64::try_from(offset / 4096 * 4096).unwrap();
                assert_eq!(corruption.offset, batch);
            }
            Err(OpenError::UnknownVersion { .. }) => assert!((8..10).contains(&offset)),
            Err(other) => panic!("byte {offset}: {other}"),
        }
    }
}

#[test]
fn a_flipped_byte_of_the_unproven_tail_cuts_the_tail() {
    let disk = MemDisk::new(2);
    let (mut log, _) = open(&disk, &tiny()).unwrap();
    let written: Vec<Vec<u8>> = (0..3).map(|number| record(number, 30)).collect();
    for bytes in &written {
        commit(&mut log, bytes);
    }
    drop(log);
    let name = newest_segment(&disk);
    // The third batch is the newest: nothing says that it had been synced.
    for offset in 12288..12288 + SMALL_BATCH_BYTES {
        let result = open_with(&disk, &name, |content| content[offset] ^= 0x80);
        assert_eq!(contents(&result.unwrap()), written[..2], "byte {offset}");
    }
    for offset in 4096..4096 + SMALL_BATCH_BYTES {
        let result = open_with(&disk, &name, |content| content[offset] ^= 0x80);
        let corruption = corruption(result);
        assert_eq!(corruption.offset, 4096, "{corruption}");
        assert!(corruption.to_string().contains("docs/recovery.md"));
    }
    // The second is proven by the third.
    let result = open_with(&disk, &name, |content| content[8192 + 70] ^= 1);
    let corruption = corruption(result);
    assert_eq!(corruption.offset, 8192);
    assert!(corruption.detail.contains("at byte 12288"), "{corruption}");
}

#[test]
fn a_hole_among_unsynced_batches_is_a_torn_tail() {
    let disk = MemDisk::new(3);
    let (mut log, _) = open(&disk, &tiny()).unwrap();
    commit(&mut log, b"synced");
    // Three batches of one flush: none of them claims that another is synced.
    for number in 0..3 {
        log.append(&record(number, 3900)).unwrap();
        log.append(&record(10 + number, 4000)).unwrap();
    }
    flush(&mut log).unwrap();
    drop(log);
    let live = live_segments(&disk);
    let (_, name) = live.first().unwrap();
    let records = open_with(&disk, name, |content| content[8192 + 70] ^= 1);
    // The segment after it says that this one was synced to its end.
    assert_eq!(corruption(records).offset, 8192);

    let disk = MemDisk::new(4);
    let (mut log, _) = open(&disk, &tiny()).unwrap();
    commit(&mut log, b"synced");
    log.append(&record(1, 3900)).unwrap();
    log.append(&record(2, 4100)).unwrap();
    log.append(&record(3, 100)).unwrap();
    flush(&mut log).unwrap();
    drop(log);
    assert_eq!(live_segments(&disk).len(), 2);
    let name = newest_segment(&disk);
    let records = open_with(&disk, &name, |content| content[4096 + 70] ^= 1).unwrap();
    assert_eq!(contents(&records), [b"synced".to_vec(), record(1, 3900)]);
}

#[test]
fn a_cut_file_is_refused_at_any_length() {
    let (disk, _) = small_log();
    let name = newest_segment(&disk);
    for len in (0..16384).rev() {
        let result = open_with(&disk, &name, |content| content.truncate(len));
        let corruption = corruption(result);
        assert_eq!(corruption.file, name);
        let expected = if len < 96 { 0 } else { len };
        assert_eq!(corruption.offset, u64::try_from(expected).unwrap());
    }
}

/// A log of several segments, the older ones full.
fn longer_log() -> (MemDisk, Vec<Vec<u8>>) {
    let disk = MemDisk::new(5);
    let (mut log, _) = open(&disk, &tiny()).unwrap();
    let written: Vec<Vec<u8>> = (0..14).map(|number| record(number, 30)).collect();
    for bytes in &written {
        commit(&mut log, bytes);
    }
    idle(&mut log).unwrap();
    (disk.kill(), written)
}

#[test]
fn damage_in_older_segments_is_refused() {
    let (disk, written) = longer_log();
    let live = live_segments(&disk);
    assert!(live.len() >= 4);
    for (_, name) in &live[..live.len() - 1] {
        for offset in (0..96).chain(4096..4096 + SMALL_BATCH_BYTES) {
            let result = open_with(&disk, name, |content| content[offset] ^= 4);
            assert!(result.is_err(), "{name} byte {offset}");
        }
        let result = open_with(&disk, name, |content| content.truncate(12288 + 97));
        assert_eq!(corruption(result).offset, 12288);
    }
    let unharmed = open_with(&disk, &live[0].1, |_| {}).unwrap();
    assert_eq!(contents(&unharmed), written);
}

#[test]
fn a_missing_or_doubled_segment_is_refused() {
    let (disk, _) = longer_log();
    let live = live_segments(&disk);
    for (number, (_, name)) in live.iter().enumerate().take(live.len() - 1) {
        let copy = MemDisk::new(0);
        for other in disk.names().iter().filter(|other| *other != name) {
            copy.set_content(other, &disk.content(other).unwrap());
        }
        let missing = open(&copy, &tiny()).map(drop).unwrap_err();
        let OpenError::MissingSegment { named_by, .. } = missing else {
            panic!("{missing}");
        };
        assert_eq!(named_by, live[number + 1].1);
    }
    let copy = copy_of(&disk);
    copy.set_content("000099.seg", &disk.content(&live[1].1).unwrap());
    assert!(matches!(open(&copy, &tiny()), Err(OpenError::Corrupt(_))));
    // Only spare files of a log in use: not a new log.
    let copy = MemDisk::new(0);
    let is_live = |name: &String| live.iter().any(|(_, other)| other == name);
    for name in disk.names().iter().filter(|name| !is_live(name)) {
        copy.set_content(name, &disk.content(name).unwrap());
    }
    assert!(!copy.names().is_empty());
    assert!(matches!(
        open(&copy, &tiny()),
        Err(OpenError::MissingSegment { .. })
    ));
}

#[test]
fn other_files_are_left_alone_and_unfinished_ones_removed() {
    let (disk, written) = small_log();
    disk.set_content("notes.txt", b"hello");
    disk.set_content("000077.tmp", b"");
    let (_, records) = open(&disk, &tiny()).unwrap();
    assert_eq!(contents(&records), written);
    assert_eq!(disk.content("notes.txt").unwrap(), b"hello");
    assert_eq!(disk.content("000077.tmp"), None);
}

#[test]
fn arbitrary_bytes_in_files_never_panic() {
    let (disk, written) = longer_log();
    let live = live_segments(&disk);
    for seed in 0..400 {
        let mut draw = crate::support::Draw::new(seed);
        let (_, name) = &live[draw.size(live.len())];
        let result = open_with(&disk, name, |content| {
            for _ in 0..=draw.below(3) {
                let at = draw.size(content.len());
                let len = draw.size(64);
                for byte in content.iter_mut().skip(at).take(len) {
                    *byte = u8::try_from(draw.below(256)).unwrap();
                }
            }
        });
        if let Ok(records) = result {
            assert!(
                written.starts_with(
                    &contents(&records)
                        .into_iter()
                        .map(<[u8]>::to_vec)
                        .collect::<Vec<_>>()
                )
            );
        }
    }
}

#[test]
fn damage_under_an_open_log_is_seen_when_read_back() {
    let disk = MemDisk::new(6);
    let (mut log, _) = open(&disk, &tiny()).unwrap();
    let at = commit(&mut log, &record(0, 30));
    for number in 1..20 {
        commit(&mut log, &record(number, 30));
    }
    let (_, name) = live_segments(&disk).first().cloned().unwrap();
    disk.damage(&name, 4096 + 80);
    let refused = log.read(at, 30).unwrap_err();
    let tanda_wal::ReadError::Corrupt(corruption) = refused else {
        panic!("{refused}");
    };
    assert_eq!((corruption.file, corruption.offset), (name, 4096));
}
