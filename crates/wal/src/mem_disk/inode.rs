//! One file's content: what readers see, what is on disk, and the writes in between.

use std::collections::{BTreeMap, BTreeSet};

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
    /// Written before a sync that failed, by sector: can be read, may or may not be on disk.
    doubtful: BTreeMap<usize, Write>,
    /// Offsets of bytes that are read with a bit turned, until they are written again.
    rotten: BTreeSet<usize>,
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
        for offset in self.rotten.range(from..from.saturating_add(count)) {
            if let Some(byte) = into.get_mut(offset - from) {
                *byte ^= 1;
            }
        }
        count
    }

    /// From now on this byte is read with a bit turned.
    pub(super) fn rot(&mut self, offset: usize) {
        self.rotten.insert(offset);
    }

    /// Every byte is read as it is.
    pub(super) fn mend(&mut self) {
        self.rotten.clear();
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let write = Write {
            offset: in_memory(offset),
            bytes: bytes.to_vec(),
        };
        write.apply(&mut self.seen);
        let end = write.offset.saturating_add(write.bytes.len());
        self.rotten.retain(|at| !(write.offset..end).contains(at));
        self.writes.push(write);
    }

    pub(super) fn damage(&mut self, offset: usize) {
        for content in [&mut self.seen, &mut self.synced] {
            if let Some(byte) = content.get_mut(offset) {
                *byte ^= 1;
            }
        }
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
            // A sector that is written again is written whole, with what was doubtful in it.
            for sector in write.sectors() {
                if let Some(doubtful) = self.doubtful.remove(&sector.number()) {
                    doubtful.apply_within(&mut self.synced);
                    sector.apply_within(&mut self.synced);
                }
            }
        }
    }

    pub(super) fn fail_sync(&mut self) {
        for write in std::mem::take(&mut self.writes) {
            for sector in write.sectors() {
                self.doubtful.insert(sector.number(), sector);
            }
        }
    }

    /// Power loss: keeps what was synced and a part of the rest.
    pub(super) fn lose_unsynced(&mut self, random: &mut Random) {
        if random.one_in(2) {
            self.synced.resize(self.seen.len(), 0);
        }
        // Per crash and file: nothing, everything, or a mixture.
        let keep_of_8 = random.below(9);
        let doubtful = std::mem::take(&mut self.doubtful).into_values();
        let unsynced = std::mem::take(&mut self.writes).into_iter();
        let sectors = doubtful.chain(unsynced.flat_map(|write| write.sectors()));
        for sector in sectors.filter(|_| random.below(8) < keep_of_8) {
            sector.apply_within(&mut self.synced);
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

    /// Applies as much as lies within the content.
    fn apply_within(&self, content: &mut [u8]) {
        let room = content.len().saturating_sub(self.offset);
        let count = room.min(self.bytes.len());
        let into = content.get_mut(self.offset..self.offset + count);
        if let (Some(into), Some(bytes)) = (into, self.bytes.get(..count)) {
            into.copy_from_slice(bytes);
        }
    }

    /// The same write in pieces that each lie in one sector.
    fn sectors(&self) -> Vec<Self> {
        let mut sectors = Vec::new();
        let mut offset = self.offset;
        let mut rest = self.bytes.as_slice();
        while !rest.is_empty() {
            let in_sector = (SECTOR_BYTES - offset % SECTOR_BYTES).min(rest.len());
            let (sector, after) = rest.split_at_checked(in_sector).unwrap_or((rest, &[]));
            sectors.push(Self {
                offset,
                bytes: sector.to_vec(),
            });
            offset += in_sector;
            rest = after;
        }
        sectors
    }

    const fn number(&self) -> usize {
        self.offset / SECTOR_BYTES
    }
}
