//! The disk behind all handles: names, files, faults, and the draws of a crash.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};

use super::faults::{Fault, Faults};
use super::inode::Inode;
use crate::disk::DiskCall;

/// The shared state of a `MemDisk`.
pub(super) struct State {
    random: Random,
    inodes: BTreeMap<u64, Inode>,
    next_inode: u64,
    names: Names,
    synced_names: Names,
    /// Not synced, in order.
    name_changes: Vec<NameChange>,
    pub(super) faults: Faults,
    pub(super) capacity: Option<u64>,
    pub(super) is_lying: bool,
    pub(super) bytes_read: u64,
    operations_left: Option<u64>,
    /// Handles of earlier lives no longer work.
    life: u64,
    is_locked: bool,
}

type Names = BTreeMap<String, u64>;

/// A change of the directory that survives a crash whole or not at all.
enum NameChange {
    Create(String, u64),
    Remove(String),
    Rename {
        from: String,
        to: String,
        inode: u64,
    },
}

impl State {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: Random(seed),
            inodes: BTreeMap::new(),
            next_inode: 1,
            names: Names::new(),
            synced_names: Names::new(),
            name_changes: Vec::new(),
            faults: Faults::default(),
            capacity: None,
            is_lying: false,
            bytes_read: 0,
            operations_left: None,
            life: 0,
            is_locked: false,
        }
    }

    /// Counts a call; fails if it is to fail.
    pub(super) fn begin(&mut self, life: u64, call: DiskCall) -> io::Result<()> {
        self.begin_sized(life, call, 0).map(|_| ())
    }

    /// The same for a call on `len` bytes; returns how many it may handle.
    pub(super) fn begin_sized(
        &mut self,
        life: u64,
        call: DiskCall,
        len: usize,
    ) -> io::Result<usize> {
        if life != self.life {
            return Err(io::Error::other("the process of this handle is gone"));
        }
        match &mut self.operations_left {
            Some(0) => return Err(io::Error::other("the machine is down")),
            Some(left) => *left -= 1,
            None => {}
        }
        match self.faults.count(call) {
            Some(Fault::Fail(kind)) => Err(kind.into()),
            Some(Fault::Short(max)) => Ok(len.min(max.max(1))),
            None => Ok(len),
        }
    }

    pub(super) const fn crash_after(&mut self, operations: u64) {
        self.operations_left = Some(operations);
    }

    pub(super) fn is_down(&self) -> bool {
        self.operations_left == Some(0)
    }

    /// Whether a call of a handle of this life reaches the disk.
    pub(super) fn is_working(&self, life: u64) -> bool {
        life == self.life && !self.is_down()
    }

    pub(super) fn begin_life(&mut self) -> u64 {
        self.life += 1;
        self.operations_left = None;
        self.is_locked = false;
        self.faults.forget_planned();
        self.life
    }

    /// Power loss.
    pub(super) fn lose_unsynced(&mut self) {
        for change in std::mem::take(&mut self.name_changes) {
            if self.random.one_in(2) {
                change.apply(&mut self.synced_names);
            }
        }
        self.names.clone_from(&self.synced_names);
        for inode in self.inodes.values_mut() {
            inode.lose_unsynced(&mut self.random);
        }
        self.drop_nameless();
    }

    pub(super) fn lock(&mut self) -> io::Result<()> {
        if self.is_locked {
            return Err(ErrorKind::WouldBlock.into());
        }
        self.is_locked = true;
        Ok(())
    }

    pub(super) const fn unlock(&mut self, life: u64) {
        if life == self.life {
            self.is_locked = false;
        }
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.names.keys().cloned().collect()
    }

    pub(super) fn create(&mut self, name: &str) -> io::Result<u64> {
        if self.names.contains_key(name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let inode = self.new_inode(Inode::default());
        self.change(NameChange::Create(name.to_owned(), inode));
        Ok(inode)
    }

    pub(super) fn find(&self, name: &str) -> io::Result<u64> {
        let inode = self.names.get(name).copied();
        inode.ok_or_else(|| ErrorKind::NotFound.into())
    }

    pub(super) fn remove(&mut self, name: &str) -> io::Result<()> {
        self.find(name)?;
        self.change(NameChange::Remove(name.to_owned()));
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let inode = self.find(from)?;
        self.change(NameChange::Rename {
            from: from.to_owned(),
            to: to.to_owned(),
            inode,
        });
        Ok(())
    }

    pub(super) fn sync_dir(&mut self) {
        if self.is_lying {
            return;
        }
        self.name_changes.clear();
        self.synced_names.clone_from(&self.names);
    }

    pub(super) fn inode(&mut self, inode: u64) -> io::Result<&mut Inode> {
        let found = self.inodes.get_mut(&inode);
        found.ok_or_else(|| ErrorKind::NotFound.into())
    }

    /// Checks that the file may grow to `end`.
    pub(super) fn reserve(&mut self, inode: u64, end: u64) -> io::Result<()> {
        let growth = end.saturating_sub(self.inode(inode)?.len_bytes());
        match self.free_bytes() {
            Some(free) if growth > free => Err(ErrorKind::StorageFull.into()),
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn free_bytes(&self) -> Option<u64> {
        self.capacity
            .map(|capacity| capacity.saturating_sub(self.used_bytes()))
    }

    /// Files without a name count no more, although an open handle may keep one.
    pub(super) fn used_bytes(&self) -> u64 {
        self.names
            .values()
            .filter_map(|inode| self.inodes.get(inode))
            .map(Inode::len_bytes)
            .sum()
    }

    pub(super) fn content(&self, name: &str) -> Option<Vec<u8>> {
        let inode = self.inodes.get(self.names.get(name)?)?;
        Some(inode.content().to_vec())
    }

    pub(super) fn set_content(&mut self, name: &str, content: &[u8]) {
        let inode = self.new_inode(Inode::synced(content));
        self.names.insert(name.to_owned(), inode);
        self.synced_names.insert(name.to_owned(), inode);
    }

    pub(super) fn damage(&mut self, name: &str, offset: usize) {
        let inode = self.names.get(name);
        if let Some(inode) = inode.and_then(|inode| self.inodes.get_mut(inode)) {
            inode.damage(offset);
        }
    }

    pub(super) fn rot(&mut self, name: &str, offset: usize) {
        let inode = self.names.get(name);
        if let Some(inode) = inode.and_then(|inode| self.inodes.get_mut(inode)) {
            inode.rot(offset);
        }
    }

    pub(super) fn mend(&mut self) {
        for inode in self.inodes.values_mut() {
            inode.mend();
        }
    }

    fn new_inode(&mut self, content: Inode) -> u64 {
        let inode = self.next_inode;
        self.next_inode += 1;
        self.inodes.insert(inode, content);
        inode
    }

    fn change(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.name_changes.push(change);
    }

    fn drop_nameless(&mut self) {
        let named: Vec<u64> = self.names.values().copied().collect();
        self.inodes.retain(|inode, _| named.contains(inode));
    }
}

impl NameChange {
    fn apply(&self, names: &mut Names) {
        match self {
            Self::Create(name, inode) => {
                names.insert(name.clone(), *inode);
            }
            Self::Remove(name) => {
                names.remove(name);
            }
            Self::Rename { from, to, inode } => {
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
        }
    }
}

/// The draws of one disk: SplitMix64 (public domain algorithm by S. Vigna).
pub(super) struct Random(u64);

impl Random {
    /// A number below `bound`, which is small.
    pub(super) const fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    pub(super) const fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}
