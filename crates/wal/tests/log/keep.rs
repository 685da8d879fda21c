//! Opening from a position on, and segments that are kept before it.

use std::collections::BTreeSet;

use tanda_wal::mem_disk::MemDisk;
use tanda_wal::{Config, DiskCall, Log, Lsn, OpenError, ReadError};

use crate::support::{
    Records, commit, contents, flush, idle, live_segments, number_of, open, open_from, record, tiny,
};

/// A log of 20 records in several segments, all proven.
fn twenty() -> (MemDisk, Log<MemDisk>, Vec<Lsn>) {
    let disk = MemDisk::new(1);
    let (mut log, _) = open(&disk, &tiny()).unwrap();
    let written = (0..20)
        .map(|number| commit(&mut log, &record(number, 30)))
        .collect();
    idle(&mut log).unwrap();
    (disk, log, written)
}

/// The same, of which a start needs the last only.
fn twenty_of_which_one() -> (MemDisk, Vec<Lsn>) {
    let (disk, mut log, written) = twenty();
    log.set_start(written[19]);
    idle(&mut log).unwrap();
    (disk, written)
}

fn all_windows(disk: &MemDisk) -> BTreeSet<u64> {
    let live = live_segments(disk);
    live.into_iter().map(|(index, _)| index).collect()
}

#[test]
fn replay_begins_at_the_position_and_older_segments_stay_readable() {
    let (disk, log, written) = twenty();
    drop(log);
    let windows = all_windows(&disk);
    for from in 0..20 {
        let at = written[from];
        let copy = crate::support::copy_of(&disk);
        let (mut log, replayed) = open_from(&copy, &tiny(), at, &windows).unwrap();
        assert_eq!(number_of(&replayed[0].1), from);
        assert_eq!(replayed.len(), 20 - from);
        for (number, at) in written.iter().enumerate() {
            assert_eq!(log.read(*at, 30).unwrap(), record(number, 30));
        }
        flush(&mut log).unwrap();
        assert_eq!(log.stats().bytes_on_disk, copy.used_bytes());
        log.set_start(at);
        idle(&mut log).unwrap();
        assert_eq!(log.claimed_start().0, at.0 / 16384 * 16384);
        drop(log);
        // That stays the start, and what was kept stays.
        let (mut log, replayed) = open_from(&copy, &tiny(), Lsn(0), &windows).unwrap();
        assert!(number_of(&replayed[0].1) <= from);
        assert!(replayed[0].0.0 / 16384 == at.0 / 16384);
        assert_eq!(log.read(written[0], 30).unwrap(), record(0, 30));
    }
}

#[test]
fn a_log_opened_from_a_position_can_be_opened_from_its_start_until_it_says_otherwise() {
    let (disk, log, written) = twenty();
    let start = log.claimed_start();
    drop(log);
    for from in [19, 8, 14, 19] {
        let (mut log, replayed) =
            open_from(&disk, &tiny(), written[from], &BTreeSet::new()).unwrap();
        assert_eq!(number_of(&replayed[0].1), from);
        assert_eq!(log.claimed_start(), start);
        for at in &written {
            log.free_segment(at.0 >> 14);
        }
        idle(&mut log).unwrap();
        drop(log);
        let copy = crate::support::copy_of(&disk);
        let (_, replayed) = open_from(&copy, &tiny(), Lsn(0), &BTreeSet::new()).unwrap();
        let all: Vec<Vec<u8>> = (0..20).map(|number| record(number, 30)).collect();
        assert_eq!(contents(&replayed), all);
    }
}

#[test]
fn kept_segments_are_named_by_any_of_their_windows() {
    let disk = MemDisk::new(2);
    let (mut log, _) = open(&disk, &tiny()).unwrap();
    let large = commit(&mut log, &record(0, 100_000));
    let at = commit(&mut log, &record(1, 30));
    idle(&mut log).unwrap();
    drop(log);
    let last = (large.0 + 99_999) >> 14;
    assert!(last > large.0 >> 14);
    for window in [large.0 >> 14, last] {
        let copy = crate::support::copy_of(&disk);
        let (mut log, _) = open_from(&copy, &tiny(), at, &BTreeSet::from([window])).unwrap();
        assert_eq!(log.read(large, 100_000).unwrap(), record(0, 100_000));
        let windows = log.segment_windows(window).unwrap();
        assert!(windows.contains(&(large.0 >> 14)) && windows.contains(&last));
        // In the middle of it, too.
        let middle = Lsn(large.0 + 70_000);
        drop(log);
        let (mut log, _) = open_from(&copy, &tiny(), at, &BTreeSet::from([window])).unwrap();
        assert_eq!(
            log.read(middle, 1000).unwrap(),
            record(0, 100_000)[70_000..71_000]
        );
        log.set_start(at);
        idle(&mut log).unwrap();
        assert!(log.free_segment(window));
        assert!(!log.free_segment(window));
        assert_eq!(log.segment_windows(window), None);
        flush(&mut log).unwrap();
        assert!(copy.used_bytes() < 100_000);
    }
}

#[test]
fn what_is_not_kept_becomes_spare_and_what_is_missing_is_refused() {
    let (disk, written) = twenty_of_which_one();
    let before = disk.used_bytes();
    let from = written[19];
    let kept = written[0].0 >> 14;
    let (mut log, _) = open_from(&disk, &tiny(), from, &BTreeSet::from([kept])).unwrap();
    flush(&mut log).unwrap();
    assert!(disk.used_bytes() < before);
    assert_eq!(log.stats().bytes_on_disk, disk.used_bytes());
    assert_eq!(log.stats().spare, tiny().spare_segments_max);
    assert_eq!(log.read(written[0], 30).unwrap(), record(0, 30));
    assert!(matches!(
        log.read(written[10], 30),
        Err(ReadError::Reclaimed { .. })
    ));
    drop(log);
    let gone = written[10].0 >> 14;
    let refused = open_from(&disk, &tiny(), from, &BTreeSet::from([kept, gone]));
    let refused = refused.map(drop).unwrap_err();
    assert!(refused.to_string().contains(&format!("{gone:#x}")));
    assert!(matches!(
        refused,
        OpenError::MissingKept { index, file: None } if index == gone
    ));
    // Nothing was freed by that.
    let (mut log, _) = open_from(&disk, &tiny(), from, &BTreeSet::from([kept])).unwrap();
    assert_eq!(log.read(written[0], 30).unwrap(), record(0, 30));
}

#[test]
fn a_log_that_ends_before_the_position_is_refused() {
    let (disk, log, _) = twenty();
    let end = log.end();
    drop(log);
    let beyond = Lsn(end.0 + 1_000_000);
    let refused = open_from(&disk, &tiny(), beyond, &BTreeSet::new()).map(drop);
    assert!(matches!(
        refused,
        Err(OpenError::EndsEarly { needed, .. }) if needed == beyond
    ));
    let refused = open_from(&MemDisk::new(1), &tiny(), end, &BTreeSet::new()).map(drop);
    assert!(matches!(refused, Err(OpenError::EndsEarly { .. })));
}

#[test]
fn a_log_that_starts_behind_the_position_is_refused_and_left_alone() {
    let (disk, mut log, written) = twenty();
    log.set_start(written[12]);
    for at in &written[..12] {
        log.free_segment(at.0 >> 14);
    }
    idle(&mut log).unwrap();
    let start = log.claimed_start();
    assert!(start > written[8] && start <= written[12]);
    drop(log);
    for from in [Lsn(1), written[0], written[8], Lsn(start.0 - 1)] {
        let refused = open_from(&disk, &tiny(), from, &BTreeSet::new()).map(drop);
        assert!(
            matches!(refused, Err(OpenError::StartsLater { start: at, .. }) if at == start),
            "{from}: {refused:?}"
        );
    }
    let (_, replayed) = open_from(&disk, &tiny(), written[12], &BTreeSet::new()).unwrap();
    let expected: Vec<Vec<u8>> = (12..20).map(|number| record(number, 30)).collect();
    assert_eq!(contents(&replayed), expected);
}

#[test]
fn nothing_becomes_spare_before_the_caller_has_said_what_it_keeps() {
    let (disk, written) = twenty_of_which_one();
    let mut log = Log::open(
        std::sync::Arc::new(disk),
        tiny(),
        written[19],
        &mut |_, _| Ok(()),
    )
    .unwrap();
    for number in 20..40 {
        commit(&mut log, &record(number, 30));
    }
    for (number, at) in written.iter().enumerate() {
        assert_eq!(log.read(*at, 30).unwrap(), record(number, 30));
    }
    log.keep_segments(&BTreeSet::new()).unwrap();
    assert!(log.read(written[0], 30).is_err());
}

#[test]
fn a_start_moves_when_it_is_durable_and_frees_nothing_by_itself() {
    let (disk, mut log, written) = twenty();
    let first = log.claimed_start();
    log.set_start(written[15]);
    assert_eq!(log.claimed_start(), first);
    let old = written[2].0 >> 14;
    assert!(log.free_segment(old));
    assert!(log.segment_windows(old).is_some(), "not yet");
    assert!(log.segment_files().all(|file| file.is_replayed));
    idle(&mut log).unwrap();
    assert_eq!(log.claimed_start().0, written[15].0 / 16384 * 16384);
    assert!(matches!(
        log.read(written[2], 30),
        Err(ReadError::Reclaimed { .. })
    ));
    assert_eq!(log.segment_windows(old), None);
    let kept = log.segment_files().filter(|file| !file.is_replayed).count();
    assert!(kept >= 3, "{kept}");
    assert_eq!(log.read(written[8], 30).unwrap(), record(8, 30));
    drop(log);
    let windows = written[3..].iter().map(|at| at.0 >> 14);
    let windows: BTreeSet<u64> = windows.collect();
    let (_, replayed) = open_from(&disk, &tiny(), Lsn(0), &windows).unwrap();
    let expected: Vec<Vec<u8>> = (15..20).map(|number| record(number, 30)).collect();
    assert_eq!(contents(&replayed)[replayed.len() - 5..], expected);
    assert!(number_of(&replayed[0].1) > 11);
}

#[test]
fn draining_a_kept_segment_reads_each_byte_about_once() {
    let config = Config {
        read_cache_bytes: 16 << 10,
        ..crate::support::config()
    };
    for len in [100, 3000, 9000, 14_000, 30_000] {
        let disk = MemDisk::new(3);
        let (mut log, _) = open(&disk, &config).unwrap();
        let mut written = Records::new();
        while written.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() < 600_000 {
            let bytes = record(written.len(), len);
            written.push((log.append(&bytes).unwrap(), bytes));
            if written.len().is_multiple_of(5) {
                flush(&mut log).unwrap();
            }
        }
        flush(&mut log).unwrap();
        idle(&mut log).unwrap();
        drop(log);
        let windows = written.iter().map(|(at, _)| at.0 >> 16).collect();
        let from = written.last().unwrap().0;
        let (mut log, _) = open_from(&disk, &config, from, &windows).unwrap();
        let before = (disk.calls(DiskCall::Read), disk.bytes_read());
        for (at, bytes) in &written {
            assert_eq!(log.read(*at, u32::try_from(len).unwrap()).unwrap(), *bytes);
        }
        let bytes = disk.bytes_read() - before.1;
        let on_disk = from.0 - written[0].0.0;
        assert!(
            bytes <= on_disk * 5 / 4,
            "{bytes} bytes of {on_disk} read for records of {len} bytes"
        );
        let calls = disk.calls(DiskCall::Read) - before.0;
        assert!(calls <= 2 * on_disk.div_ceil(8 << 10), "{calls} reads");
    }
}
