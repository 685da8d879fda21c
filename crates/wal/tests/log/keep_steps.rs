//! A crash at every single disk call of what moves the start, keeps, copies and frees.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use tanda_wal::mem_disk::MemDisk;
use tanda_wal::{Log, Lsn};

use crate::support::{commit, flush, idle, number_of, open, open_from, record, tiny};

/// What stands written down outside the log.
struct Snapshot {
    from: Lsn,
    /// Messages before that position that are still needed.
    messages: BTreeMap<usize, Lsn>,
}

impl Snapshot {
    fn windows(&self) -> BTreeSet<u64> {
        self.messages.values().map(|at| at.0 >> 14).collect()
    }
}

#[test]
fn a_crash_at_any_disk_call_leaves_what_the_snapshot_needs() {
    let mut steps = 0;
    for seed in 0..12 {
        for operations in 0.. {
            let disk = MemDisk::new(seed);
            let (mut log, _) = open(&disk, &tiny()).unwrap();
            let written: Vec<Lsn> = (0..12)
                .map(|number| commit(&mut log, &record(number, 30)))
                .collect();
            idle(&mut log).unwrap();
            let mut confirmed = 12;
            let mut snapshot = Snapshot {
                from: written[8],
                messages: (0..8).map(|number| (number, written[number])).collect(),
            };
            disk.crash_after(operations);
            let played = play(&disk, log, &mut snapshot, &mut confirmed);
            let was_down = disk.is_down();
            assert!(played.is_some() || was_down, "seed {seed}, {operations}");
            check(&disk.restart(), &snapshot, confirmed)
                .unwrap_or_else(|e| panic!("seed {seed}, {operations}: {e}"));
            if !was_down {
                break;
            }
            steps += 1;
        }
    }
    assert!(steps > 500, "{steps}");
}

/// `None` when a disk call failed.
fn play(
    disk: &MemDisk,
    mut log: Log<MemDisk>,
    snapshot: &mut Snapshot,
    confirmed: &mut usize,
) -> Option<()> {
    log.set_start(snapshot.from);
    idle(&mut log).ok()?;
    // Two messages of the first segment go into a cold one, the others of the first three are done.
    let mut writer = log.cold_writer()?;
    let copied = [1, 4];
    let bytes = copied.map(|number| Bytes::from(record(number, 30)));
    let places = writer.append(&bytes).ok()?;
    log.add_cold(writer.finish().ok()?);
    snapshot.messages.retain(|number, _| *number >= 6);
    snapshot.messages.extend(copied.into_iter().zip(places));
    free_others(&mut log, snapshot);
    flush(&mut log).ok()?;
    // Freed files are used again.
    append(&mut log, confirmed, 8)?;
    drop(log);
    let (mut log, _) = open_from(disk, &tiny(), snapshot.from, &snapshot.windows()).ok()?;
    append(&mut log, confirmed, 2)?;
    snapshot.messages.remove(&1);
    snapshot.messages.remove(&4);
    free_others(&mut log, snapshot);
    flush(&mut log).ok()?;
    append(&mut log, confirmed, 4)
}

fn append(log: &mut Log<MemDisk>, confirmed: &mut usize, count: usize) -> Option<()> {
    for _ in 0..count {
        log.append(&record(*confirmed, 30)).ok()?;
        flush(log).ok()?;
        *confirmed += 1;
    }
    Some(())
}

fn free_others(log: &mut Log<MemDisk>, snapshot: &Snapshot) {
    let windows = snapshot.windows();
    let files: Vec<_> = log.segment_files().collect();
    for file in files.iter().filter(|file| !file.is_replayed) {
        if !windows.contains(&file.index) {
            log.free_segment(file.index);
        }
    }
}

fn check(disk: &MemDisk, snapshot: &Snapshot, confirmed: usize) -> Result<(), String> {
    let (mut log, replayed) = open_from(disk, &tiny(), snapshot.from, &snapshot.windows())
        .map_err(|e| format!("open: {e}"))?;
    let numbers: Vec<usize> = replayed.iter().map(|(_, it)| number_of(it)).collect();
    let expected: Vec<usize> = (8..8 + numbers.len()).collect();
    if numbers != expected || numbers.len() + 8 < confirmed {
        return Err(format!("{numbers:?} replayed, {confirmed} confirmed"));
    }
    if log.claimed_start() > snapshot.from {
        return Err("the log starts behind the snapshot".to_owned());
    }
    for (number, at) in &snapshot.messages {
        match log.read(*at, 30) {
            Ok(bytes) if bytes == record(*number, 30) => {}
            Ok(_) => return Err(format!("message {number} is another one")),
            Err(e) => return Err(format!("message {number}: {e}")),
        }
    }
    Ok(())
}
