//! Appending, committing, reading and reopening.

use crate::support::{config, flush, idle, open, record};
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
