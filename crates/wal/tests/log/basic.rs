//! Appending, committing, reading and reopening.

use crate::support::{config, flush, idle, open, record};
use bytes::Bytes;
use tanda_wal::Lsn;
use tanda_wal::mem_disk::MemDisk;

#[test]
fn records_come_back_after_reopening() {
    let disk = MemDisk::new(1);
    let (mut log, replayed) = open(&disk, &config()).unwrap();
    assert!(replayed.is_empty());
    let first = log.append(b"one").unwrap();
    let second = log.append(b"").unwrap();
    let third = log.append(b"three").unwrap();
    assert!(first < second && second < third);
    assert!(log.durable() < log.end());
    flush(&mut log).unwrap();
    assert!(log.durable() >= log.end());
    idle(&mut log).unwrap();
    drop(log);

    let (log, replayed) = open(&disk, &config()).unwrap();
    let expected = vec![
        (first, b"one".to_vec()),
        (second, Vec::new()),
        (third, b"three".to_vec()),
    ];
    assert_eq!(replayed, expected);
    assert!(log.durable() >= log.end());
    assert!(log.end() > third);
}

#[test]
fn a_chunk_holds_the_neighbours_of_what_was_asked_for() {
    let disk = MemDisk::new(3);
    let (mut log, _) = open(&disk, &config()).unwrap();
    let mut written = Vec::new();
    let mut asked = 0;
    for number in 0..300 {
        let bytes = record(number, 100 + number % 300);
        written.push((log.append(&bytes).unwrap(), bytes));
        if number % 37 == 0 {
            flush(&mut log).unwrap();
        }
    }
    let mut held = (Lsn(0), Bytes::new());
    for (at, bytes) in &written {
        let len = bytes.len();
        let lies_in = |held: &(Lsn, Bytes)| {
            let from = usize::try_from(at.0.checked_sub(held.0.0)?).ok()?;
            held.1.get(from..from + len).map(<[u8]>::to_vec)
        };
        if lies_in(&held).is_none() {
            held = log.read_chunk(*at, u32::try_from(len).unwrap()).unwrap();
            asked += 1;
        }
        assert_eq!(lies_in(&held).as_ref(), Some(bytes), "record at {at}");
    }
    // The records of the batch that is still open are copied one by one.
    assert!(asked < 60, "asked {asked} times");
}

#[test]
fn many_records_cross_segments_and_can_be_read_everywhere() {
    let disk = MemDisk::new(2);
    let (mut log, _) = open(&disk, &config()).unwrap();
    let mut written = Vec::new();
    for number in 0..2000 {
        let bytes = record(number, number % 700);
        let at = log.append(&bytes).unwrap();
        written.push((at, bytes));
        if number % 37 == 0 {
            flush(&mut log).unwrap();
        }
    }
    assert!(log.stats().segments > 5);
    assert!(log.stats().cached_bytes <= config().cache_bytes + (64 << 10));
    for (at, bytes) in &written {
        let len = u32::try_from(bytes.len()).unwrap();
        assert_eq!(log.read(*at, len).unwrap(), bytes, "record at {at}");
    }
    flush(&mut log).unwrap();
    idle(&mut log).unwrap();
    drop(log);
    let (mut log, replayed) = open(&disk, &config()).unwrap();
    assert_eq!(replayed, written);
    for (at, bytes) in written.iter().rev() {
        let len = u32::try_from(bytes.len()).unwrap();
        assert_eq!(log.read(*at, len).unwrap(), bytes, "record at {at}");
    }
}
