//! A disk in memory that can crash, fail and fill up, for tests and the simulator.
//!
//! Everything is decided by the seed and the order of calls. What it promises of a real disk, and
//! nothing more:
//! - `sync_data` makes a file's content and length survive, `sync_dir` the names. What was not
//!   synced survives a [`MemDisk::crash`] in part: each 512-byte sector of each write, each length
//!   and each change of a name by its own draw, so writes are lost, torn and reordered.
//! - A sector is written whole or not at all.
//! - After a failed `sync_data` the data written before can still be read, but later syncs do
//!   not save it (as Linux does: the pages count as clean).
//! - Content that was synced is never lost; [`MemDisk::set_content`] is there to damage it.

mod faults;
mod inode;
mod state;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{Disk, DiskCall, DiskFile};
pub use faults::Fault;
use state::State;

/// A handle on a disk in memory; clones share the disk.
///
/// After [`Self::crash`], [`Self::kill`] or [`Self::restart`] the file operations of older handles
/// and their files fail; take the handle that the call returns. The control methods work on any.
#[derive(Clone)]
pub struct MemDisk {
    state: Arc<Mutex<State>>,
    life: u64,
}

impl MemDisk {
    /// An empty disk without a size limit.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            state: Arc::new(Mutex::new(State::new(seed))),
            life: 0,
        }
    }

    /// Power loss: what was not synced is lost, torn or kept as the seed has it; all handles die.
    /// Pending faults and a pending [`Self::crash_after`] are forgotten. Returns a new handle.
    #[must_use = "older handles no longer work"]
    pub fn crash(&self) -> Self {
        self.next_life(State::lose_unsynced)
    }

    /// The process is killed, the machine goes on: all writes so far stay readable, and are still
    /// not synced. Returns a new handle.
    #[must_use = "older handles no longer work"]
    pub fn kill(&self) -> Self {
        self.next_life(|_| {})
    }

    /// After this many more operations every operation fails, as if the machine had stopped, until
    /// [`Self::restart`].
    pub fn crash_after(&self, operations: u64) {
        self.lock_state().crash_after(operations);
    }

    /// Whether a [`Self::crash_after`] has struck.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.lock_state().is_down()
    }

    /// Power comes back: the same as [`Self::crash`].
    #[must_use = "older handles no longer work"]
    pub fn restart(&self) -> Self {
        self.crash()
    }

    /// Lets the `nth` call (1 is the next) of this kind from now fail or fall short.
    pub fn inject(&self, call: DiskCall, nth: u64, fault: Fault) {
        self.lock_state().faults.inject(call, nth, fault);
    }

    /// How much fits on the disk, in bytes of all files; `None` for no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.lock_state().capacity = bytes;
    }

    /// Bytes of all files.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.lock_state().used_bytes()
    }

    /// Makes `sync_data` and `sync_dir` do nothing and report success: a check of a test's own
    /// sharpness, which must then fail.
    pub fn set_lying(&self, is_lying: bool) {
        self.lock_state().is_lying = is_lying;
    }

    /// How many calls of this kind were made so far.
    #[must_use]
    pub fn calls(&self, call: DiskCall) -> u64 {
        self.lock_state().faults.calls(call)
    }

    /// How many calls of any kind were made so far.
    #[must_use]
    pub fn calls_total(&self) -> u64 {
        self.lock_state().faults.calls_total()
    }

    /// How many bytes were read so far.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.lock_state().bytes_read
    }

    /// Names of the files, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.lock_state().names()
    }

    /// The content of a file as a reader sees it now.
    #[must_use]
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        self.lock_state().content(name)
    }

    /// Puts a file with this content on the disk, synced, whatever was there: for fixtures and
    /// for damaging a file.
    pub fn set_content(&self, name: &str, content: &[u8]) {
        self.lock_state().set_content(name, content);
    }

    /// Flips a bit of a file in place, under the feet of whoever has it open.
    pub fn damage(&self, name: &str, offset: usize) {
        self.lock_state().damage(name, offset);
    }

    /// A bit of a file turns under the feet of whoever reads it, until [`Self::mend`], or until the
    /// byte is written again.
    pub fn rot(&self, name: &str, offset: usize) {
        self.lock_state().rot(name, offset);
    }

    /// Takes back every [`Self::rot`].
    pub fn mend(&self) {
        self.lock_state().mend();
    }

    fn next_life(&self, change: impl FnOnce(&mut State)) -> Self {
        let mut state = self.lock_state();
        change(&mut state);
        let life = state.begin_life();
        Self {
            state: Arc::clone(&self.state),
            life,
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        // A panic in another test thread while it held the lock says nothing about the state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file of a [`MemDisk`].
pub struct MemFile {
    disk: MemDisk,
    inode: u64,
}

/// The lock of a [`MemDisk`]; released when dropped or when the disk starts a new life.
pub struct MemLock {
    disk: MemDisk,
}

impl Drop for MemLock {
    fn drop(&mut self) {
        self.disk.lock_state().unlock(self.disk.life);
    }
}

impl Disk for MemDisk {
    type File = MemFile;
    type Lock = MemLock;

    fn lock(&self) -> io::Result<MemLock> {
        let mut state = self.lock_state();
        state.begin(self.life, DiskCall::Lock)?;
        state.lock()?;
        Ok(MemLock { disk: self.clone() })
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut state = self.lock_state();
        state.begin(self.life, DiskCall::List)?;
        Ok(state.names())
    }

    fn create(&self, name: &str) -> io::Result<MemFile> {
        let mut state = self.lock_state();
        state.begin(self.life, DiskCall::Create)?;
        let inode = state.create(name)?;
        Ok(self.file(inode))
    }

    fn open(&self, name: &str) -> io::Result<MemFile> {
        let mut state = self.lock_state();
        state.begin(self.life, DiskCall::Open)?;
        let inode = state.find(name)?;
        Ok(self.file(inode))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.lock_state();
        state.begin(self.life, DiskCall::Remove)?;
        state.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.lock_state();
        state.begin(self.life, DiskCall::Rename)?;
        state.rename(from, to)
    }

    fn sync_dir(&self) -> io::Result<()> {
        let mut state = self.lock_state();
        state.begin(self.life, DiskCall::SyncDir)?;
        state.sync_dir();
        Ok(())
    }

    fn free_bytes(&self) -> Option<u64> {
        self.lock_state().free_bytes()
    }
}

impl MemDisk {
    fn file(&self, inode: u64) -> MemFile {
        MemFile {
            disk: self.clone(),
            inode,
        }
    }
}

impl DiskFile for MemFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut state = self.disk.lock_state();
        let len = state.begin_sized(self.disk.life, DiskCall::Read, into.len())?;
        let into = into.get_mut(..len).unwrap_or_default();
        let count = state.inode(self.inode)?.read(offset, into);
        state.bytes_read += count as u64;
        Ok(count)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.disk.lock_state();
        let len = state.begin_sized(self.disk.life, DiskCall::Write, bytes.len())?;
        let bytes = bytes.get(..len).unwrap_or_default();
        state.reserve(self.inode, offset + len as u64)?;
        state.inode(self.inode)?.write(offset, bytes);
        Ok(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.lock_state();
        let is_working = state.is_working(self.disk.life);
        match state.begin(self.disk.life, DiskCall::Sync) {
            Ok(()) if state.is_lying => Ok(()),
            Ok(()) => {
                state.inode(self.inode)?.sync();
                Ok(())
            }
            Err(e) => {
                // A machine that has stopped does not try.
                if is_working {
                    state.inode(self.inode)?.fail_sync();
                }
                Err(e)
            }
        }
    }

    fn len_bytes(&self) -> io::Result<u64> {
        let mut state = self.disk.lock_state();
        state.begin(self.disk.life, DiskCall::Len)?;
        Ok(state.inode(self.inode)?.len_bytes())
    }

    fn allocate(&self, len_bytes: u64) -> io::Result<()> {
        let mut state = self.disk.lock_state();
        state.begin(self.disk.life, DiskCall::Allocate)?;
        state.reserve(self.inode, len_bytes)?;
        state.inode(self.inode)?.allocate(len_bytes);
        Ok(())
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        let mut state = self.disk.lock_state();
        state.begin(self.disk.life, DiskCall::SetLen)?;
        state.inode(self.inode)?.set_len(len_bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
