//! Appending, committing, reading and reopening.

use std::sync::Arc;

use crate::support::{commit, config, contents, flush, idle, open, record, tiny};
use bytes::Bytes;
use tanda_wal::mem_disk::MemDisk;
use tanda_wal::{AppendError, Config, DiskCall, Log, Lsn, OpenError, RECORD_BYTES_MAX};
use tanda_wal::{ReadError, ReplayError};

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

#[test]
fn appends_go_on_while_a_flush_is_out() {
    let disk = MemDisk::new(3);
    let (mut log, _) = open(&disk, &config()).unwrap();
    log.append(b"first").unwrap();
    let first_end = log.end();
    let job = log.take_flush().unwrap();
    log.append(b"second").unwrap();
    assert!(log.take_flush().is_none(), "one job at a time");
    assert!(log.in_flight_bytes() > 0 && log.pending_bytes() > 0);
    let durable = log.on_flushed(job.run()).unwrap();
    assert!(durable >= first_end && durable < log.end());
    assert_eq!(flush(&mut log).unwrap(), log.durable());
    assert!(log.durable() >= log.end());
    assert_eq!(log.pending_bytes(), 0);
}

#[test]
fn a_large_record_gets_a_segment_of_its_own() {
    let disk = MemDisk::new(4);
    let (mut log, _) = open(&disk, &config()).unwrap();
    let mut written = Vec::new();
    for (number, len) in [50, 200_000, 60, 64_000, 65_000, 61_372, 61_373, 500_000, 70]
        .into_iter()
        .enumerate()
    {
        let bytes = record(number, len);
        written.push((log.append(&bytes).unwrap(), bytes));
    }
    let large = written[1].0;
    assert_eq!(
        log.segment_of(Lsn(large.0 + 199_999)).0 - log.segment_of(large).0,
        3,
        "a position inside lies in a window of the same segment"
    );
    for committed in [false, true] {
        for (at, bytes) in &written {
            let len = u32::try_from(bytes.len()).unwrap();
            assert_eq!(log.read(*at, len).unwrap(), bytes, "committed: {committed}");
            assert_eq!(log.read(Lsn(at.0 + 20), 15).unwrap(), bytes[20..35]);
        }
        flush(&mut log).unwrap();
    }
    // Without a marker the newest part is carried to a new segment, so only contents compare.
    drop(log);
    let (log, replayed) = open(&disk, &config()).unwrap();
    let expected: Vec<&[u8]> = written.iter().map(|(_, bytes)| bytes.as_slice()).collect();
    assert_eq!(contents(&replayed), expected);
    drop(log);
    let (_, again) = open(&disk, &config()).unwrap();
    assert_eq!(contents(&again), expected);
}

#[test]
fn a_large_unproven_tail_is_carried_over() {
    let disk = MemDisk::new(5);
    let (mut log, _) = open(&disk, &config()).unwrap();
    let large = record(7, 150_000);
    let before = commit(&mut log, &large);
    drop(log);
    let (mut log, replayed) = open(&disk, &config()).unwrap();
    assert_eq!(contents(&replayed), [large.as_slice()]);
    let after = replayed[0].0;
    assert!(after > before);
    assert_eq!(log.read(after, 150_000).unwrap(), large);
    commit(&mut log, b"more");
    idle(&mut log).unwrap();
    drop(log);
    let (_, replayed) = open(&disk, &config()).unwrap();
    assert_eq!(contents(&replayed), [large.as_slice(), b"more"]);
    assert_eq!(
        replayed[0].0, after,
        "it is proven now and stays where it is"
    );
}

#[test]
fn restarting_without_writing_takes_no_space() {
    let disk = MemDisk::new(6);
    let (mut log, _) = open(&disk, &config()).unwrap();
    commit(&mut log, b"kept");
    idle(&mut log).unwrap();
    drop(log);
    let mut used = Vec::new();
    for _ in 0..10 {
        let (log, replayed) = open(&disk, &config()).unwrap();
        assert_eq!(contents(&replayed), [b"kept"]);
        used.push(disk.used_bytes());
        drop(log);
    }
    assert_eq!(used[0], used[9]);
}

#[test]
fn bad_arguments_are_refused() {
    let disk = MemDisk::new(7);
    let (mut log, _) = open(&disk, &config()).unwrap();
    let too_large = vec![0; RECORD_BYTES_MAX + 1];
    let refused = log.append(&too_large).unwrap_err();
    assert!(
        matches!(refused, AppendError::TooLarge { record_bytes } if record_bytes == too_large.len())
    );
    let at = commit(&mut log, b"record");
    assert_eq!(log.read(at, 6).unwrap(), b"record"[..]);
    let beyond = Lsn(log.end().0 + 4096);
    assert!(matches!(
        log.read(beyond, 1),
        Err(ReadError::OutOfRange { .. })
    ));
    assert!(matches!(
        log.read(at, 5000),
        Err(ReadError::OutOfRange { .. })
    ));
    assert!(matches!(
        log.read(Lsn(17), 1),
        Err(ReadError::Reclaimed { .. })
    ));
    for broken in [
        Config {
            segment_bytes: 3 << 14,
            ..config()
        },
        Config {
            segment_bytes: 4096,
            ..config()
        },
        Config {
            chunk_bytes: 5000,
            ..config()
        },
        Config {
            chunk_bytes: 1 << 20,
            ..config()
        },
        Config {
            spare_segments_max: 1,
            ..config()
        },
    ] {
        let refused = open(&MemDisk::new(1), &broken).map(drop).unwrap_err();
        assert!(matches!(refused, OpenError::Config(_)), "{refused}");
    }
}

#[test]
fn a_directory_is_opened_once_and_by_its_own_log_only() {
    let disk = MemDisk::new(8);
    let (mut log, _) = open(&disk, &config()).unwrap();
    commit(&mut log, b"mine");
    assert!(matches!(open(&disk, &config()), Err(OpenError::Locked)));
    let job = {
        log.append(b"more").unwrap();
        log.take_flush().unwrap()
    };
    drop(log);
    assert!(
        matches!(open(&disk, &config()), Err(OpenError::Locked)),
        "the job writes yet"
    );
    drop(job);
    let other = Config {
        log_id: 5,
        ..config()
    };
    assert!(matches!(
        open(&disk, &other),
        Err(OpenError::WrongLog { .. })
    ));
    let other = Config {
        shard: 5,
        ..config()
    };
    assert!(matches!(
        open(&disk, &other),
        Err(OpenError::WrongLog { .. })
    ));
    let other = tiny();
    assert!(matches!(
        open(&disk, &other),
        Err(OpenError::SegmentBytesChanged {
            found: 65536,
            configured: 16384
        })
    ));
    assert_eq!(contents(&open(&disk, &config()).unwrap().1), [b"mine"]);
}

#[test]
fn a_record_refused_at_replay_stops_the_opening_and_changes_nothing() {
    let disk = MemDisk::new(9);
    let (mut log, _) = open(&disk, &config()).unwrap();
    let at = commit(&mut log, b"poor");
    idle(&mut log).unwrap();
    drop(log);
    let writes = disk.calls(DiskCall::Write);
    let refused = Log::open(Arc::new(disk.clone()), config(), Lsn(0), &mut |_, _| {
        Err(ReplayError("unknown kind 9".into()))
    });
    let refused = refused.map(drop).unwrap_err();
    assert!(matches!(refused, OpenError::Replay { at: refused, .. } if refused == at));
    assert!(refused.to_string().contains("unknown kind 9"));
    assert_eq!(disk.calls(DiskCall::Write), writes);
}

#[test]
fn slices_of_the_cache_share_its_memory_and_outlive_eviction() {
    let disk = MemDisk::new(10);
    let (mut log, _) = open(&disk, &config()).unwrap();
    let at = commit(&mut log, b"the first record");
    let one = log.read(at, 16).unwrap();
    let other = log.read(at, 16).unwrap();
    assert_eq!(one.as_ptr(), other.as_ptr(), "no copy is made");
    for number in 0..500 {
        commit(&mut log, &record(number, 1000));
    }
    assert_eq!(one, b"the first record"[..]);
    assert_eq!(log.read_cached(at, 16), None, "evicted");
    assert_eq!(log.read(at, 16).unwrap(), one);
    assert!(log.read_cached(at, 16).is_some(), "kept after reading back");
}

#[test]
fn sequential_reads_from_disk_read_ahead() {
    let disk = MemDisk::new(11);
    let (mut log, _) = open(&disk, &config()).unwrap();
    let written: Vec<Lsn> = (0..200)
        .map(|number| commit(&mut log, &record(number, 50)))
        .collect();
    let before = disk.calls(DiskCall::Read);
    for (number, at) in written.iter().take(100).enumerate() {
        assert_eq!(log.read(*at, 50).unwrap(), record(number, 50));
    }
    // 100 batches of 4 KiB, 16 KiB at a time, a few more at the ends of segments.
    let reads = disk.calls(DiskCall::Read) - before;
    assert!(reads <= 35, "{reads} reads");
    assert!(log.stats().cached_bytes <= config().cache_bytes + config().read_cache_bytes);
}
