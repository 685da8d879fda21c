use tanda_wal::mem_disk::{Fault, MemDisk};

use super::*;

const LOG: u128 = 9;
const NONE: Lsn = Lsn::ZERO;

fn open(disk: &MemDisk) -> (DeliveryNotes<MemDisk>, Vec<Vec<u8>>) {
    let (notes, found) = DeliveryNotes::open(Arc::new(disk.clone()), LOG).unwrap();
    (notes, records(&found))
}

fn records(found: &Found) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    for note in &found.notes {
        let mut rest = note.as_slice();
        while let Some((record, after)) = split_record(rest) {
            records.push(record.to_vec());
            rest = after;
        }
        assert_eq!(rest, [0; 0]);
    }
    records
}

fn record(number: u8, len: usize) -> Vec<u8> {
    vec![number; len]
}

/// Notes one record while the log is durable up to `durable` and ends at `end`.
fn note(notes: &mut DeliveryNotes<MemDisk>, record: &[u8], (durable, end): (u64, u64)) -> Lsn {
    notes.add(record);
    notes.write(Lsn(durable), Lsn(end))
}

#[test]
fn a_process_that_is_killed_leaves_its_notes() {
    let disk = MemDisk::new(1);
    let (mut notes, found) = open(&disk);
    assert!(found.is_empty());
    assert_eq!(notes.write(Lsn(5), Lsn(9)), NONE, "nothing to note");
    assert!(disk.names().is_empty());

    notes.add(&record(1, 40));
    notes.add(&record(2, 0));
    assert_eq!(notes.write(Lsn(5), Lsn(9)), NONE);
    assert_eq!(note(&mut notes, &record(3, 70), (5, 12)), NONE);
    let (_, found) = open(&disk.kill());
    assert_eq!(found, [record(1, 40), record(2, 0), record(3, 70)]);
}

#[test]
fn an_area_is_begun_anew_when_the_log_has_what_it_notes() {
    let disk = MemDisk::new(1);
    let (mut notes, _) = open(&disk);
    for number in 0..200 {
        let at = u64::from(number) * 10;
        assert_eq!(note(&mut notes, &record(number, 50), (at, at + 10)), NONE);
    }
    assert_eq!(disk.content(NOTES_FILE).unwrap().len(), HEAD_BYTES + 4 + 50);
    // The newest of a longer one stands behind it, and is none of its own.
    let (mut notes, _) = open(&disk.kill());
    notes.keep_until(NONE);
    assert_eq!(note(&mut notes, &record(7, 20), (0, 10)), NONE);
    let (_, found) = open(&disk.kill());
    assert_eq!(found, [record(7, 20)]);
}

#[test]
fn full_areas_make_deliveries_wait_for_the_log() {
    let disk = MemDisk::new(1);
    let (mut notes, _) = open(&disk);
    let large = AREA_BYTES - HEAD_BYTES - LENGTH_BYTES;
    assert_eq!(note(&mut notes, &record(1, large + 1), (0, 1)), Lsn(1));
    assert_eq!(note(&mut notes, &record(1, 100), (0, 10)), NONE);
    assert_eq!(note(&mut notes, &record(2, large), (0, 20)), NONE);
    assert_eq!(note(&mut notes, &record(3, 100), (9, 30)), Lsn(30));
    // The first area is free, the second is not.
    assert_eq!(note(&mut notes, &record(4, 100), (10, 40)), NONE);
    let (_, found) = open(&disk.kill());
    assert_eq!(found, [record(4, 100), record(2, large)]);
}

#[test]
fn what_a_start_found_stays_until_the_log_has_it() {
    let disk = MemDisk::new(1);
    let (mut notes, _) = open(&disk);
    assert_eq!(note(&mut notes, &record(1, 100), (0, 10)), NONE);
    let disk = disk.kill();
    let (mut notes, found) = open(&disk);
    assert_eq!(found, [record(1, 100)]);
    notes.keep_until(Lsn(50));
    assert_eq!(note(&mut notes, &record(2, 100), (40, 60)), Lsn(60));
    let disk = disk.kill();
    let (mut notes, found) = open(&disk);
    assert_eq!(found, [record(1, 100)]);
    notes.keep_until(Lsn(50));
    assert_eq!(note(&mut notes, &record(2, 100), (50, 60)), NONE);
    assert_eq!(open(&disk.kill()).1, [record(2, 100)]);
}

#[test]
fn a_note_that_was_torn_or_is_damaged_ends_them() {
    let disk = MemDisk::new(1);
    let (mut notes, _) = open(&disk);
    for number in 1..=3 {
        assert_eq!(note(&mut notes, &record(number, 30), (0, 10)), NONE);
    }
    let whole = disk.content(NOTES_FILE).unwrap();
    let len = HEAD_BYTES + LENGTH_BYTES + 30;
    assert_eq!(whole.len(), 3 * len);
    for cut in 0..whole.len() {
        let disk = MemDisk::new(1);
        disk.set_content(NOTES_FILE, &whole[..cut]);
        assert_eq!(open(&disk).1.len(), cut / len, "cut at {cut}");
        let mut damaged = whole.clone();
        damaged[cut] ^= 1 << (cut % 8);
        disk.set_content(NOTES_FILE, &damaged);
        assert_eq!(open(&disk).1.len(), cut / len, "damaged at {cut}");
    }
    let other = DeliveryNotes::open(Arc::new(disk.kill()), LOG + 1).unwrap();
    assert!(records(&other.1).is_empty(), "another log's");
}

#[test]
fn a_disk_that_fails_makes_deliveries_wait_for_the_log_and_a_start_fail() {
    let disk = MemDisk::new(1);
    let (mut notes, _) = open(&disk);
    disk.inject(DiskCall::Create, 1, Fault::Fail(io::ErrorKind::Other));
    assert_eq!(note(&mut notes, &record(1, 30), (0, 10)), Lsn(10));
    assert_eq!(note(&mut notes, &record(2, 30), (0, 20)), NONE);
    disk.inject(DiskCall::Write, 1, Fault::Short(7));
    disk.inject(DiskCall::Write, 2, Fault::Fail(io::ErrorKind::Other));
    assert_eq!(note(&mut notes, &record(3, 30), (0, 30)), Lsn(30));
    assert_eq!(note(&mut notes, &record(4, 30), (0, 40)), NONE);
    let (count, error) = notes.errors();
    assert_eq!(count, 2);
    assert!(
        error.unwrap().contains("write deliveries.notes"),
        "{error:?}"
    );
    disk.inject(DiskCall::Write, 1, Fault::Fail(io::ErrorKind::StorageFull));
    assert_eq!(note(&mut notes, &record(5, 30), (0, 50)), Lsn(50));
    assert_eq!(notes.errors().0, 2, "the log tells of a full disk");

    let disk = disk.kill();
    for call in [DiskCall::Open, DiskCall::Read] {
        disk.inject(call, 1, Fault::Fail(io::ErrorKind::Other));
        let opened = DeliveryNotes::open(Arc::new(disk.clone()), LOG);
        assert_eq!(opened.err().unwrap().call, call);
    }
    assert_eq!(open(&disk).1, [record(2, 30), record(4, 30)]);
}

#[test]
fn what_a_start_found_is_forgotten_once_the_log_has_it() {
    let disk = MemDisk::new(1);
    let (mut notes, _) = open(&disk);
    let large = AREA_BYTES - HEAD_BYTES - LENGTH_BYTES;
    assert_eq!(note(&mut notes, &record(1, large), (0, 10)), NONE);
    assert_eq!(note(&mut notes, &record(2, 30), (0, 20)), NONE);
    let disk = disk.kill();
    let (mut notes, found) = open(&disk);
    assert_eq!(found.len(), 2);
    notes.keep_until(Lsn(5));
    assert_eq!(notes.write(Lsn(4), Lsn(6)), NONE);
    let disk = disk.kill();
    let (mut notes, found) = open(&disk);
    assert_eq!(found.len(), 2);
    notes.keep_until(Lsn(5));
    // Nothing is to be noted.
    assert_eq!(notes.write(Lsn(5), Lsn(6)), NONE);
    let disk = disk.kill();
    let (mut notes, found) = open(&disk);
    assert!(found.is_empty());
    notes.keep_until(NONE);
    assert_eq!(note(&mut notes, &record(3, 30), (5, 9)), NONE);
    assert_eq!(open(&disk.kill()).1, [record(3, 30)]);
}
