//! One test for each kind of disk call: it fails at each of its occurrences in turn, in a run that
//! makes a log, fills segments, frees some, reads and opens it again. Whatever fails: the error
//! names the call, confirmed records are found by the next start, and what was never appended is
//! not.

use std::io::ErrorKind;

use tanda_wal::mem_disk::{Fault, MemDisk};
use tanda_wal::{DiskCall, Log, Lsn, OpenError, ReadError};

use crate::support::{Records, contents, number_of, open, record, tiny, truncate};

const RECORDS: usize = 14;
const RECORD_BYTES: usize = 2500;
/// Records before this one are given up on the way.
const NEEDED: usize = 5;

/// What is known of the records of a run.
#[derive(Default)]
struct Ledger {
    /// Positions of those appended, in order.
    appended: Vec<Lsn>,
    /// So many of them are confirmed.
    confirmed: usize,
}

/// A call that is to fail, and how.
#[derive(Clone, Copy)]
struct Plan {
    call: DiskCall,
    fault: Fault,
}

impl Plan {
    /// An error of a disk call in this run: the one that was asked for.
    fn check(self, call: DiskCall, text: &str) {
        assert_eq!(call, self.call, "{text}");
        assert!(text.contains(call.name()), "{text} does not name the call");
    }
}

/// Runs the script with the fault at the `nth` call; false when there are fewer.
fn run(plan: Plan, nth: u64, is_power_lost: bool) -> bool {
    let disk = MemDisk::new(nth);
    // Its making was interrupted.
    disk.set_content("000099.tmp", b"");
    disk.inject(plan.call, nth, plan.fault);
    let mut ledger = Ledger::default();
    if let Some((log, _)) = try_to_open(&disk, plan, &ledger) {
        write(log, plan, &mut ledger);
        // A start that fails leaves everything for the next one.
        let disk = disk.clone();
        if let Some((log, records)) = try_to_open(&disk, plan, &ledger) {
            // What was not proven has other positions now.
            let places = records.iter().map(|(at, bytes)| (number_of(bytes), *at));
            read_all(log, plan, places.filter(|(number, _)| *number >= NEEDED));
        }
    }
    let struck = disk.calls(plan.call) >= nth;
    let disk = if is_power_lost {
        disk.crash()
    } else {
        disk.kill()
    };
    let (mut log, records) = open(&disk, &tiny()).expect("the fault is over");
    check(&records, &ledger);
    let at = log.append(b"on it goes").unwrap();
    flush(&mut log, plan).expect("the fault is over");
    assert_eq!(log.read(at, 10).unwrap(), b"on it goes".as_slice());
    struck
}

fn try_to_open(disk: &MemDisk, plan: Plan, ledger: &Ledger) -> Option<(Log<MemDisk>, Records)> {
    match open(disk, &tiny()) {
        Ok((log, records)) => {
            check(&records, ledger);
            Some((log, records))
        }
        Err(OpenError::Disk(error)) => {
            plan.check(error.call, &error.to_string());
            None
        }
        Err(other) => panic!("{:?}: {other}", plan.call),
    }
}

/// Appends and confirms until something fails; reads in between.
fn write(mut log: Log<MemDisk>, plan: Plan, ledger: &mut Ledger) {
    for number in 0..RECORDS {
        ledger
            .appended
            .push(log.append(&record(number, RECORD_BYTES)).unwrap());
        if flush(&mut log, plan).is_none() {
            // Nothing more is taken, nothing more is confirmed, and what is durable can be read.
            let durable = log.durable();
            assert!(log.append(b"more").is_err() && log.take_flush().is_none());
            assert_eq!(log.durable(), durable);
            break;
        }
        if log.durable() >= log.end() {
            ledger.confirmed = number + 1;
        }
        if number == RECORDS / 2 {
            truncate(&mut log, ledger.appended[NEEDED]);
        }
    }
    let places = (0..ledger.confirmed).map(|number| (number, ledger.appended[number]));
    read_all(log, plan, places.skip(NEEDED));
}

/// Writes what is pending; `None` when that failed.
fn flush(log: &mut Log<MemDisk>, plan: Plan) -> Option<Lsn> {
    while let Some(job) = log.take_flush() {
        if let Err(poisoned) = log.on_flushed(job.run()) {
            plan.check(poisoned.cause.call, &poisoned.to_string());
            return None;
        }
        log.assert_invariants();
    }
    Some(log.durable())
}

/// Confirmed records can be read; a read that the disk refuses says so and can be repeated.
fn read_all(mut log: Log<MemDisk>, plan: Plan, places: impl Iterator<Item = (usize, Lsn)>) {
    let len = u32::try_from(RECORD_BYTES).unwrap();
    for (number, at) in places {
        let bytes = log.read(at, len).or_else(|error| match error {
            ReadError::Disk(error) => {
                plan.check(error.call, &error.to_string());
                log.read(at, len)
            }
            other @ (ReadError::OutOfRange { .. }
            | ReadError::Reclaimed { .. }
            | ReadError::Corrupt(_)) => Err(other),
        });
        assert_eq!(bytes.unwrap(), record(number, RECORD_BYTES), "{number}");
    }
}

/// All confirmed records that are needed, in order, and of the others only such as were appended.
fn check(records: &Records, ledger: &Ledger) {
    let found = contents(records);
    let number = |bytes: &&[u8]| number_of(bytes);
    let numbers: Vec<usize> = found.iter().map(number).collect();
    let first = numbers.first().copied().unwrap_or(NEEDED);
    let expected: Vec<usize> = (first..first + numbers.len()).collect();
    assert_eq!(numbers, expected, "not in order, or with a gap");
    assert!(first <= NEEDED);
    let end = first + numbers.len();
    assert!(
        ledger.confirmed <= NEEDED || end >= ledger.confirmed,
        "{} were confirmed and {end} found",
        ledger.confirmed
    );
    assert!(end <= ledger.appended.len().max(first), "invented");
    for (number, bytes) in numbers.iter().zip(found) {
        assert_eq!(bytes, record(*number, RECORD_BYTES));
    }
}

/// Every occurrence of the call, with the process killed and with power lost afterwards.
fn everywhere(call: DiskCall, fault: Fault, at_least: u64) {
    let plan = Plan { call, fault };
    let mut nth = 1;
    while run(plan, nth, nth % 2 == 0) {
        assert!(run(plan, nth, nth % 2 == 1));
        nth += 1;
    }
    assert!(nth > at_least, "only {} calls of {call:?}", nth - 1);
}

const EIO: Fault = Fault::Fail(ErrorKind::Other);
const FULL: Fault = Fault::Fail(ErrorKind::StorageFull);

#[test]
fn a_lock_that_fails() {
    everywhere(DiskCall::Lock, EIO, 2);
}

#[test]
fn a_list_that_fails() {
    everywhere(DiskCall::List, EIO, 2);
}

#[test]
fn a_create_that_fails() {
    everywhere(
        DiskCall::Create,
        Fault::Fail(ErrorKind::PermissionDenied),
        3,
    );
}

#[test]
fn a_create_without_space() {
    everywhere(DiskCall::Create, FULL, 3);
}

#[test]
fn an_open_that_fails() {
    everywhere(DiskCall::Open, Fault::Fail(ErrorKind::PermissionDenied), 3);
}

#[test]
fn an_allocation_without_space() {
    everywhere(DiskCall::Allocate, FULL, 3);
}

#[test]
fn an_allocation_that_fails() {
    everywhere(DiskCall::Allocate, EIO, 3);
}

#[test]
fn a_read_that_fails() {
    everywhere(DiskCall::Read, EIO, 6);
}

#[test]
fn a_read_that_falls_short() {
    everywhere(DiskCall::Read, Fault::Short(700), 6);
}

#[test]
fn a_write_that_fails() {
    everywhere(DiskCall::Write, EIO, 20);
}

#[test]
fn a_write_without_space() {
    everywhere(DiskCall::Write, FULL, 20);
}

#[test]
fn a_write_that_falls_short() {
    everywhere(DiskCall::Write, Fault::Short(1000), 20);
}

#[test]
fn a_sync_that_fails() {
    everywhere(DiskCall::Sync, EIO, 20);
}

#[test]
fn a_sync_of_the_directory_that_fails() {
    everywhere(DiskCall::SyncDir, EIO, 4);
}

#[test]
fn a_rename_that_fails() {
    everywhere(DiskCall::Rename, EIO, 3);
}

#[test]
fn a_removal_that_fails() {
    everywhere(DiskCall::Remove, EIO, 1);
}

#[test]
fn a_length_that_cannot_be_read() {
    everywhere(DiskCall::Len, EIO, 3);
}

#[test]
fn a_cut_that_fails() {
    everywhere(DiskCall::SetLen, EIO, 1);
}
