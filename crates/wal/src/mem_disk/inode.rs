//! One file's content: what readers see, what is on disk, and the writes in between.

use super::state::Random;
use crate::lsn::in_memory;

const SECTOR_BYTES: usize = 512;

/// A file without its name.
#[derive(Default)]
pub(super) struct Inode {
    seen: Vec<u8>,
    synced: Vec<u8>,
    /// Not synced, in order.
    writes: Vec<Write>,
    /// Written before a sync that failed: can be read, may or may not be on disk.
    doubtful: Vec<Write>,
}

struct Write {
    offset: usize,
    bytes: Vec<u8>,
}

impl Inode {
    /// A file that is on disk as it is.
    pub(super) fn synced(content: &[u8]) -> Self {
        Self {
            seen: content.to_vec(),
            synced: content.to_vec(),
            ..Self::default()
        }
    }

    pub(super) fn content(&self) -> &[u8] {
        &self.seen
    }

    pub(super) fn len_bytes(&self) -> u64 {
        self.seen.len() as u64
    }

    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> usize {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let available = self.seen.get(from..).unwrap_or_default();
        let count = available.len().min(into.len());
        if let (Some(into), Some(bytes)) = (into.get_mut(..count), available.get(..count)) {
            into.copy_from_slice(bytes);
        }
        count
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let write = Write {
            offset: in_memory(offset),
            bytes: bytes.to_vec(),
        };
        write.apply(&mut self.seen);
        self.writes.push(write);
    }

    pub(super) fn allocate(&mut self, len_bytes: u64) {
        let len = in_memory(len_bytes).max(self.seen.len());
        self.seen.resize(len, 0);
    }

    pub(super) fn set_len(&mut self, len_bytes: u64) {
        self.seen.resize(in_memory(len_bytes), 0);
    }

    pub(super) fn sync(&mut self) {
        self.synced.resize(self.seen.len(), 0);
        for write in std::mem::take(&mut self.writes) {
            write.apply_within(&mut self.synced);
        }
    }

    pub(super) fn fail_sync(&mut self) {
        self.doubtful.append(&mut self.writes);
    }

    /// Power loss: keeps what was synced and a part of the rest.
    pub(super) fn lose_unsynced(&mut self, random: &mut Random) {
        if random.one_in(2) {
            self.synced.resize(self.seen.len(), 0);
        }
        let mut writes = std::mem::take(&mut self.doubtful);
        writes.append(&mut self.writes);
        // Per crash and file: nothing, most, or a mixture.
        let keep_of_8 = random.below(9);
        for write in &writes {
            write.apply_some_sectors(&mut self.synced, || random.below(8) < keep_of_8);
        }
        self.seen.clone_from(&self.synced);
    }
}

impl Write {
    /// Extends the content if need be.
    fn apply(&self, content: &mut Vec<u8>) {
        let end = self.offset + self.bytes.len();
        if content.len() < end {
            content.resize(end, 0);
        }
        self.apply_within(content);
    }

    fn apply_within(&self, content: &mut [u8]) {
        self.apply_some_sectors(content, || true);
    }

    /// Applies the sectors that `keep` chooses, as far as they lie within the content.
    fn apply_some_sectors(&self, content: &mut [u8], mut keep: impl FnMut() -> bool) {
        let mut at = self.offset;
        let mut rest = self.bytes.as_slice();
        while !rest.is_empty() {
            let in_sector = (SECTOR_BYTES - at % SECTOR_BYTES).min(rest.len());
            let Some((sector, after)) = rest.split_at_checked(in_sector) else {
                return;
            };
            if keep() {
                let room = content.len().saturating_sub(at).min(in_sector);
                if let (Some(into), Some(bytes)) =
                    (content.get_mut(at..at + room), sector.get(..room))
                {
                    into.copy_from_slice(bytes);
                }
            }
            at += in_sector;
            rest = after;
        }
    }
}
