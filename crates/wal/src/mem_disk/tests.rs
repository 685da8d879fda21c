use std::io::ErrorKind;

use super::{Fault, MemDisk};
use crate::disk::{Disk, DiskCall, DiskFile, read_up_to, write_all_at};

const FILE_BYTES: usize = 8192;

fn disk_with_file(seed: u64) -> (MemDisk, super::MemFile) {
    let disk = MemDisk::new(seed);
    let file = disk.create("a").unwrap();
    file.allocate(FILE_BYTES as u64).unwrap();
    write_all_at(&file, 0, &[1; FILE_BYTES]).unwrap();
    file.sync_data().unwrap();
    disk.sync_dir().unwrap();
    (disk, file)
}

#[test]
fn what_was_synced_survives_and_the_rest_in_sectors() {
    let (mut kept, mut lost, mut torn) = (0, 0, 0);
    for seed in 0..100 {
        let (disk, file) = disk_with_file(seed);
        write_all_at(&file, 1024, &[2; 4096]).unwrap();
        let disk = disk.crash();
        let content = disk.content("a").unwrap();
        assert_eq!(content.len(), FILE_BYTES);
        assert!(content[..1024].iter().all(|byte| *byte == 1));
        assert!(content[5120..].iter().all(|byte| *byte == 1));
        let new = content[1024..5120].chunks(512).filter(|sector| {
            assert!(
                sector.iter().all(|byte| byte == &sector[0]),
                "a torn sector"
            );
            sector[0] == 2
        });
        match new.count() {
            0 => lost += 1,
            8 => kept += 1,
            _ => torn += 1,
        }
    }
    assert!(kept > 5 && lost > 5 && torn > 50, "{kept} {lost} {torn}");
}

#[test]
fn names_survive_when_the_directory_was_synced() {
    let mut outcomes = std::collections::BTreeSet::new();
    for seed in 0..100 {
        let (disk, _) = disk_with_file(seed);
        disk.create("b").unwrap();
        disk.rename("a", "c").unwrap();
        let crashed = disk.crash();
        outcomes.insert(crashed.names().join(" "));
        let (disk, _) = disk_with_file(seed);
        disk.create("b").unwrap();
        disk.rename("a", "c").unwrap();
        disk.sync_dir().unwrap();
        disk.remove("b").unwrap();
        let killed = disk.kill();
        assert_eq!(killed.names(), ["c"]);
        killed.sync_dir().unwrap();
        assert_eq!(killed.crash().names(), ["c"]);
    }
    let expected = ["a", "a b", "b c", "c"].map(String::from);
    assert!(outcomes.into_iter().eq(expected));
}

#[test]
fn a_failed_sync_leaves_data_that_a_later_sync_does_not_save() {
    let (mut kept, mut lost) = (0, 0);
    for seed in 0..60 {
        let (disk, file) = disk_with_file(seed);
        disk.inject(DiskCall::Sync, 1, Fault::Fail(ErrorKind::Other));
        write_all_at(&file, 0, &[2; 512]).unwrap();
        write_all_at(&file, 512, &[2; 512]).unwrap();
        assert!(file.sync_data().is_err());
        assert_eq!(disk.content("a").unwrap()[0], 2, "it can be read");
        // Written again, and synced this time.
        write_all_at(&file, 512, &[3; 512]).unwrap();
        file.sync_data().unwrap();
        let content = disk.crash().content("a").unwrap();
        assert_eq!(content[512..1024], [3; 512]);
        match content[0] {
            1 => lost += 1,
            _ => kept += 1,
        }
    }
    assert!(kept > 5 && lost > 5, "{kept} {lost}");
}

#[test]
fn calls_fail_as_planned_and_after_a_crash() {
    let (disk, file) = disk_with_file(1);
    disk.inject(DiskCall::Read, 2, Fault::Fail(ErrorKind::PermissionDenied));
    disk.inject(DiskCall::Read, 3, Fault::Short(10));
    let mut into = [0; 100];
    assert_eq!(file.read_at(0, &mut into).unwrap(), 100);
    let failed = file.read_at(0, &mut into).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::PermissionDenied);
    assert_eq!(file.read_at(0, &mut into).unwrap(), 10);
    assert_eq!(read_up_to(&file, 8150, &mut into).unwrap(), 42);
    let before = disk.calls_total();
    disk.crash_after(2);
    assert!(!disk.is_down());
    assert!(disk.list().is_ok() && disk.list().is_ok() && disk.is_down());
    assert!(disk.list().is_err() && file.sync_data().is_err());
    assert_eq!(disk.calls_total(), before + 2);
    let new = disk.restart();
    assert!(new.list().is_ok() && new.open("a").is_ok());
    assert!(disk.list().is_err(), "a handle of the life before");
    assert!(file.write_at(0, &[1]).is_err());
}

#[test]
fn the_capacity_counts_files_with_a_name() {
    let (disk, file) = disk_with_file(1);
    disk.set_capacity(Some(10_000));
    assert_eq!(disk.free_bytes(), Some(10_000 - 8192));
    let other = disk.create("b").unwrap();
    let full = other.allocate(2000).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::StorageFull);
    other.allocate(1000).unwrap();
    assert!(other.write_at(1500, &[0; 1000]).is_err());
    file.set_len(100).unwrap();
    other.allocate(5000).unwrap();
    disk.remove("b").unwrap();
    assert_eq!(disk.used_bytes(), 100);
}

#[test]
fn the_lock_is_exclusive_until_it_is_dropped_or_its_process_gone() {
    let disk = MemDisk::new(1);
    let lock = disk.lock().unwrap();
    let refused = disk.lock().map(drop).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::WouldBlock);
    let new = disk.kill();
    let second = new.lock().unwrap();
    drop(lock);
    assert!(
        new.lock().is_err(),
        "an old life's lock does not release a new one"
    );
    drop(second);
    assert!(new.lock().is_ok());
}

#[test]
fn a_bit_that_turned_is_read_so_until_it_is_mended_or_written() {
    let (disk, file) = disk_with_file(1);
    let read = |offset| {
        let mut byte = [0; 3];
        read_up_to(&file, offset, &mut byte).unwrap();
        byte
    };
    disk.rot("a", 100);
    disk.rot("a", 200);
    assert_eq!(read(99), [1, 0, 1]);
    assert_eq!(read(101), [1, 1, 1]);
    write_all_at(&file, 100, &[7]).unwrap();
    assert_eq!(read(99), [1, 7, 1]);
    assert_eq!(read(200), [0, 1, 1]);
    disk.mend();
    assert_eq!(read(200), [1, 1, 1]);
}
