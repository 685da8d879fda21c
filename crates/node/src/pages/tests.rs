use tanda_wal::mem_disk::{Fault, MemDisk};

use super::*;

const LOG: u128 = 9;
const PAGE: usize = 5000;

fn open(disk: &MemDisk, used: &[u32], begun: u64) -> Result<PageFile<MemDisk>, DiskError> {
    let used = used.iter().map(|slot| PageSlot(*slot)).collect();
    PageFile::open(Arc::new(disk.clone()), LOG, PAGE, &used, begun)
}

fn page(n: u8) -> Vec<u8> {
    vec![n; PAGE - usize::from(n)]
}

fn read(pages: &mut PageFile<MemDisk>, slot: PageSlot) -> Option<Vec<u8>> {
    let mut into = vec![1, 2, 3];
    pages.read(slot, &mut into).ok().map(|()| into)
}

#[test]
fn pages_are_read_as_they_were_written() {
    let disk = MemDisk::new(1);
    let mut pages = open(&disk, &[], 0).unwrap();
    assert_eq!((pages.bytes(), pages.used()), (0, 0));
    let slots: Vec<_> = (0..100).map(|n| pages.write(&page(n)).unwrap()).collect();
    for (n, slot) in (0..100).zip(&slots) {
        assert_eq!(read(&mut pages, *slot), Some(page(n)));
    }
    assert_eq!(pages.used(), 100);
}

#[test]
fn a_slot_is_used_again_at_once_when_no_snapshot_can_name_it() {
    let mut pages = open(&MemDisk::new(1), &[], 0).unwrap();
    let first = pages.write(&page(1)).unwrap();
    pages.free(first);
    assert_eq!(pages.write(&page(2)), Some(first));
    pages.on_begun(1);
    pages.on_published(1);
    let second = pages.write(&page(3)).unwrap();
    pages.free(second);
    assert_eq!(pages.write(&page(4)), Some(second));
}

#[test]
fn a_slot_that_a_snapshot_may_name_waits_for_the_next() {
    let mut pages = open(&MemDisk::new(1), &[], 0).unwrap();
    let named = pages.write(&page(1)).unwrap();
    pages.on_begun(1);
    pages.free(named);
    assert_ne!(
        pages.write(&page(2)),
        Some(named),
        "the capture may name it"
    );
    pages.on_published(1);
    assert_ne!(pages.write(&page(3)), Some(named), "the snapshot names it");
    pages.on_begun(2);
    assert_ne!(
        pages.write(&page(4)),
        Some(named),
        "a start uses snapshot 1 still"
    );
    pages.on_published(2);
    assert_eq!(pages.write(&page(5)), Some(named));
}

#[test]
fn a_snapshot_that_is_never_published_frees_nothing() {
    let disk = MemDisk::new(1);
    disk.set_content(PAGE_FILE, &[0; 1 << 20]);
    let mut pages = open(&disk, &[0, 2], 7).unwrap();
    pages.free(PageSlot(0));
    pages.on_begun(8);
    assert_eq!(pages.write(&page(1)), Some(PageSlot(1)));
    assert_ne!(pages.write(&page(2)), Some(PageSlot(0)));
    pages.on_begun(9);
    pages.on_published(9);
    assert_eq!(pages.write(&page(3)), Some(PageSlot(0)));
}

#[test]
fn after_a_start_only_what_the_snapshot_names_is_in_use() {
    let disk = MemDisk::new(1);
    let mut pages = open(&disk, &[], 0).unwrap();
    for n in 0..5 {
        pages.write(&page(n)).unwrap();
    }
    pages.take_to_sync().unwrap().sync_data().unwrap();
    disk.sync_dir().unwrap();
    let disk = disk.crash();
    let mut pages = open(&disk, &[1, 3], 1).unwrap();
    assert_eq!(read(&mut pages, PageSlot(3)), Some(page(3)));
    assert_eq!(pages.used(), 2);
    assert_eq!(pages.write(&page(9)), Some(PageSlot(0)));
    let pages = open(&disk, &[], 2).unwrap();
    assert_eq!((pages.used(), pages.bytes()), (0, 0));
}

#[test]
fn a_missing_or_short_file_is_refused() {
    let disk = MemDisk::new(1);
    assert!(open(&disk, &[0], 1).is_err());
    let mut pages = open(&disk, &[], 0).unwrap();
    pages.write(&page(1)).unwrap();
    let bytes = pages.bytes();
    pages.take_to_sync().unwrap().set_len(bytes - 1).unwrap();
    assert!(open(&disk, &[GROWTH_SLOTS - 1], 1).is_err());
}

#[test]
fn a_flipped_bit_anywhere_in_a_page_is_seen() {
    let disk = MemDisk::new(1);
    let mut pages = open(&disk, &[], 0).unwrap();
    let slot = pages.write(&page(1)).unwrap();
    for offset in (0..SLOT_HEAD_BYTES + page(1).len()).step_by(7) {
        disk.damage(PAGE_FILE, offset);
        let error = pages.read(slot, &mut Vec::new()).unwrap_err();
        assert!(matches!(error, PageError::Damaged(found) if found == slot));
        // The same bit again.
        disk.damage(PAGE_FILE, offset);
    }
    assert_eq!(read(&mut pages, slot), Some(page(1)));
}

#[test]
fn a_page_does_not_pass_for_that_of_another_slot() {
    let disk = MemDisk::new(1);
    let mut pages = open(&disk, &[], 0).unwrap();
    let slots = [
        pages.write(&page(1)).unwrap(),
        pages.write(&page(2)).unwrap(),
    ];
    let mut content = disk.content(PAGE_FILE).unwrap();
    let (first, second) = content.split_at_mut(pages.slot_bytes);
    first.swap_with_slice(&mut second[..pages.slot_bytes]);
    disk.set_content(PAGE_FILE, &content);
    let mut pages = open(&disk, &[0, 1], 0).unwrap();
    for slot in slots {
        assert_eq!(read(&mut pages, slot), None);
    }
}

#[test]
fn a_failing_disk_costs_a_page_and_is_told_of() {
    let disk = MemDisk::new(1);
    let mut pages = open(&disk, &[], 0).unwrap();
    let slot = pages.write(&page(1)).unwrap();
    disk.inject(DiskCall::Write, 1, Fault::Fail(io::ErrorKind::Other));
    assert_eq!(pages.write(&page(2)), None);
    disk.inject(DiskCall::Read, 1, Fault::Fail(io::ErrorKind::Other));
    let error = pages.read(slot, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, PageError::Disk(_)));
    assert_eq!(pages.errors().0, 2);
    assert_eq!(read(&mut pages, slot), Some(page(1)));
    assert!(pages.write(&page(2)).is_some());
}

#[test]
fn a_full_disk_takes_no_page_and_says_nothing() {
    let disk = MemDisk::new(1);
    disk.set_capacity(Some(1000));
    let mut pages = open(&disk, &[], 0).unwrap();
    assert_eq!(pages.write(&page(1)), None);
    assert_eq!(pages.errors().0, 0);
    disk.set_capacity(None);
    assert!(pages.write(&page(1)).is_some());
}

#[test]
fn the_free_end_of_the_file_is_given_back() {
    let mut pages = open(&MemDisk::new(1), &[], 0).unwrap();
    let slots: Vec<_> = (0..3 * GROWTH_SLOTS)
        .map(|_| pages.write(&page(1)).unwrap())
        .collect();
    let full = pages.bytes();
    for slot in &slots[1..] {
        pages.free(*slot);
    }
    pages.on_begun(1);
    pages.on_published(1);
    assert_eq!(pages.bytes(), full / 3);
    assert_eq!(read(&mut pages, slots[0]), Some(page(1)));
}
