use tanda_wal::DiskFile;
use tanda_wal::mem_disk::{Fault, MemDisk};

use super::files::look;
use super::*;

const LOG: u128 = 5;
const SCHEDULE: Schedule = Schedule {
    log_bytes: 1000,
    messages: 100,
    segment_bytes: 50,
};
const NOW: Millis = Millis(10_000);

fn snapshots(disk: &MemDisk) -> Snapshots<MemDisk> {
    let disk = Arc::new(disk.clone());
    let look = look(&*disk, LOG).unwrap();
    let found = look.found.map(|found| {
        let published = Published {
            sequence: found.header.sequence,
            at: found.header.at,
            taken_at: Millis(found.header.taken_at_ms),
            bytes: 0,
            took_ms: 0,
        };
        (found.index, published)
    });
    Snapshots::new(disk, SCHEDULE, found)
}

/// A record that says what it belongs to.
fn records(at: u64) -> Vec<Vec<u8>> {
    (0..40)
        .map(|n| vec![u8::try_from(at % 251).unwrap(); 30_000 + n])
        .collect()
}

/// Takes a snapshot as far as the disk lets it.
fn take(snapshots: &mut Snapshots<MemDisk>, at: u64) -> Option<Published> {
    snapshots.begin(NOW, LOG, Lsn(at), 0);
    let records = records(at);
    let mut published = None;
    for (n, record) in records.iter().enumerate() {
        let done = n + 1 == records.len();
        snapshots.on_slice(&mut vec![record.clone()], Lsn(at + 10), done);
        while let Some(job) = snapshots.take_job(Lsn(at + 10), Lsn(at + 10), || None) {
            let outcome = snapshots.on_outcome(NOW, job.run());
            published = published.or(outcome);
        }
    }
    published
}

/// Position and records of the snapshot that a start would use.
fn found(disk: &MemDisk) -> Option<(u64, Vec<Vec<u8>>)> {
    let found = look(disk, LOG).unwrap().found?;
    let mut stream = found.read().unwrap();
    let mut records = Vec::new();
    while let Some(record) = stream.next_record().unwrap() {
        records.push(record.to_vec());
    }
    Some((found.header.at.0, records))
}

#[test]
fn the_newest_snapshot_is_found_with_what_it_held() {
    let disk = MemDisk::new(1);
    assert_eq!(found(&disk), None);
    let mut snapshots = snapshots(&disk);
    for at in [100, 200, 300] {
        let published = take(&mut snapshots, at).unwrap();
        assert_eq!(published.at, Lsn(at));
        assert_eq!(found(&disk), Some((at, records(at))));
    }
    assert_eq!(disk.names(), SNAPSHOT_FILES);
    assert_eq!(found(&disk.crash()), Some((300, records(300))));
}

#[test]
fn a_crash_at_any_operation_leaves_the_old_or_the_new_one() {
    for operations in 0.. {
        let disk = MemDisk::new(operations);
        let mut before = snapshots(&disk);
        take(&mut before, 100).unwrap();
        take(&mut before, 200).unwrap();
        disk.crash_after(operations);
        let published = take(&mut before, 300);
        let is_down = disk.is_down();
        let disk = disk.restart();
        let (at, what) = found(&disk).unwrap();
        assert_eq!(what, records(at));
        assert!(
            at == 300 || published.is_none() && at == 200,
            "{at} after {operations}"
        );
        let mut after = snapshots(&disk);
        take(&mut after, 400).unwrap();
        assert_eq!(found(&disk.crash()).unwrap().0, 400);
        if !is_down {
            break;
        }
    }
}

#[test]
fn a_damaged_snapshot_does_not_count() {
    let disk = MemDisk::new(1);
    let mut snapshots = snapshots(&disk);
    take(&mut snapshots, 100).unwrap();
    take(&mut snapshots, 200).unwrap();
    let written = snapshots.published().unwrap().bytes;
    for offset in (0..usize::try_from(written).unwrap()).step_by(9973) {
        disk.damage("snapshot-b", offset);
        let look = look(&disk, LOG).unwrap();
        assert_eq!(look.found.unwrap().header.at, Lsn(100));
        assert_eq!(look.invalid.first().unwrap().0, "snapshot-b");
        disk.damage("snapshot-b", offset);
    }
    assert_eq!(found(&disk).unwrap().0, 200);
    assert!(look(&disk, LOG + 1).unwrap().found.is_none());
}

#[test]
fn the_end_waits_for_what_the_snapshot_refers_to() {
    let disk = MemDisk::new(1);
    let mut snapshots = snapshots(&disk);
    snapshots.begin(NOW, LOG, Lsn(100), 0);
    snapshots.on_slice(&mut vec![b"a".to_vec()], Lsn(150), true);
    let none = || None;
    assert!(
        snapshots.take_job(Lsn(99), Lsn(150), none).is_none(),
        "not proven"
    );
    assert!(
        snapshots.take_job(Lsn(100), Lsn(149), none).is_none(),
        "not durable"
    );
    let job = snapshots.take_job(Lsn(100), Lsn(150), none).unwrap();
    assert!(
        snapshots.take_job(Lsn(100), Lsn(150), none).is_none(),
        "one at a time"
    );
    assert!(snapshots.on_outcome(NOW, job.run()).is_some());
}

#[test]
fn pages_are_synced_before_the_end_is_written() {
    let disk = MemDisk::new(1);
    let pages = Arc::new(disk.create("index.pages").unwrap());
    pages.write_at(0, b"page").unwrap();
    let mut snapshots = snapshots(&disk);
    snapshots.begin(NOW, LOG, Lsn(100), 0);
    snapshots.on_slice(&mut vec![b"a".to_vec()], Lsn(100), true);
    let job = snapshots.take_job(Lsn(100), Lsn(100), || Some(pages));
    disk.inject(DiskCall::Sync, 1, Fault::Fail(std::io::ErrorKind::Other));
    assert_eq!(snapshots.on_outcome(NOW, job.unwrap().run()), None);
    assert_eq!(found(&disk), None);
    assert!(
        !snapshots.is_due(Millis(u64::MAX), Lsn(9000), 0, 0),
        "pages may be lost"
    );
}

#[test]
fn pages_whose_early_sync_failed_are_in_no_snapshot() {
    let disk = MemDisk::new(1);
    let mut snapshots = snapshots(&disk);
    snapshots.begin(NOW, LOG, Lsn(100), 0);
    let error = std::io::ErrorKind::Other.into();
    snapshots.on_failed(NOW, &DiskError::new(DiskCall::Sync, PAGE_FILE, error));
    snapshots.on_slice(&mut vec![b"a".to_vec()], Lsn(100), true);
    let job = snapshots.take_job(Lsn(100), Lsn(100), || None);
    assert!(job.is_none(), "a later sync would not tell of it again");
    assert!(!snapshots.is_taking());
    assert!(!snapshots.is_due(Millis(u64::MAX), Lsn(9000), 0, 0));
    assert!(snapshots.hopeless().unwrap().contains(PAGE_FILE));
}

#[test]
fn it_is_written_in_aligned_pieces_and_synced_now_and_then() {
    let disk = MemDisk::new(1);
    let mut snapshots = snapshots(&disk);
    let bytes = take(&mut snapshots, 100).unwrap().bytes;
    let pieces = bytes.div_ceil(pieces::PIECE_BYTES as u64);
    assert!(pieces > 8, "{bytes}");
    assert_eq!(disk.calls(DiskCall::Write), pieces);
    assert_eq!(disk.calls(DiskCall::Sync), 1 + bytes / (1 << 20));
}

#[test]
fn a_failed_one_is_tried_again_later() {
    let disk = MemDisk::new(1);
    let mut snapshots = snapshots(&disk);
    disk.inject(DiskCall::Write, 1, Fault::Fail(std::io::ErrorKind::Other));
    assert_eq!(take(&mut snapshots, 1000), None);
    assert_eq!(snapshots.failures().0, 1);
    assert!(!snapshots.is_taking());
    assert!(!snapshots.is_due(NOW, Lsn(1000), 0, 0));
    assert!(snapshots.is_due(NOW.after_ms(RETRY_MS), Lsn(1000), 0, 0));
    assert!(take(&mut snapshots, 1000).is_some());
}

#[test]
fn one_is_due_when_a_start_would_have_much_to_do() {
    let disk = MemDisk::new(1);
    let mut snapshots = snapshots(&disk);
    assert!(!snapshots.is_due(NOW, Lsn(999), 99, 0));
    assert!(snapshots.is_due(NOW, Lsn(1000), 0, 0));
    assert!(snapshots.is_due(NOW, Lsn(0), 100, 0));
    assert!(!snapshots.is_due(NOW, Lsn(49), 0, IDLE_MS));
    assert!(snapshots.is_due(NOW, Lsn(50), 0, IDLE_MS));
    let bytes = take(&mut snapshots, 1000).unwrap().bytes;
    assert!(!snapshots.is_due(NOW, Lsn(1000 + 4 * bytes - 1), 0, 0));
    assert!(snapshots.is_due(NOW, Lsn(1000 + 4 * bytes), 0, 0));
    snapshots.want();
    assert!(snapshots.is_due(NOW, Lsn(1000), 0, 0));
}

#[test]
fn a_snapshot_that_counts_has_its_page_file_after_a_crash_anywhere() {
    for operations in 0.. {
        for seed in 0..8 {
            let disk = MemDisk::new(operations * 8 + seed);
            let mut snapshots = snapshots(&disk);
            // The names of both snapshot files are on disk, that of the page file is not.
            take(&mut snapshots, 100).unwrap();
            take(&mut snapshots, 200).unwrap();
            let pages = Arc::new(disk.create("index.pages").unwrap());
            pages.write_at(0, b"page").unwrap();
            disk.crash_after(operations);
            snapshots.begin(NOW, LOG, Lsn(300), 0);
            snapshots.on_slice(&mut records(300), Lsn(300), true);
            let mut pages = Some(pages);
            while let Some(job) = snapshots.take_job(Lsn(300), Lsn(300), || pages.take()) {
                snapshots.on_outcome(NOW, job.run());
            }
            let is_down = disk.is_down();
            let disk = disk.restart();
            let found = found(&disk).unwrap().0;
            if found == 300 {
                assert!(disk.names().contains(&"index.pages".to_owned()));
            }
            if !is_down {
                assert_eq!(found, 300);
                return;
            }
        }
    }
}
