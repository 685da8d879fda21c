//! The simulated disk as the node sees it, and the ways in which a canary breaks it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tanda_wal::mem_disk::{MemDisk, MemFile, MemLock};
use tanda_wal::{Disk, DiskFile};

use crate::Canary;

/// A [`MemDisk`] that keeps its promises, unless a canary says otherwise.
pub(crate) struct SimDisk {
    inner: MemDisk,
    canary: Canary,
    writes: Arc<AtomicU64>,
}

impl SimDisk {
    pub(crate) fn new(inner: MemDisk, canary: Canary) -> Self {
        Self {
            inner,
            canary,
            writes: Arc::default(),
        }
    }

    fn file(&self, name: &str, inner: MemFile) -> SimFile {
        SimFile {
            inner,
            content: Content::of(name),
            canary: self.canary,
            writes: Arc::clone(&self.writes),
        }
    }
}

/// A file of a [`SimDisk`].
pub(crate) struct SimFile {
    inner: MemFile,
    content: Content,
    canary: Canary,
    writes: Arc<AtomicU64>,
}

/// What a file is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    Pages,
    Snapshot,
    Other,
}

impl Content {
    fn of(name: &str) -> Self {
        match name {
            "index.pages" => Self::Pages,
            "snapshot-a" | "snapshot-b" => Self::Snapshot,
            _ => Self::Other,
        }
    }
}

/// Bytes of the smallest slot of the page file; the simulator's pages fit.
const SLOT_BYTES: u64 = 4096;

/// The canary of lost writes drops one of this many.
const LOST_WRITE_OF: u64 = 16;

impl Disk for SimDisk {
    type File = SimFile;
    type Lock = MemLock;

    fn lock(&self) -> io::Result<MemLock> {
        self.inner.lock()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }

    fn create(&self, name: &str) -> io::Result<SimFile> {
        self.inner.create(name).map(|file| self.file(name, file))
    }

    fn open(&self, name: &str) -> io::Result<SimFile> {
        self.inner.open(name).map(|file| self.file(name, file))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        if self.canary == Canary::KeptFiles {
            return Ok(());
        }
        self.inner.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.inner.sync_dir()
    }

    fn free_bytes(&self) -> Option<u64> {
        self.inner.free_bytes()
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.inner.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let number = self.writes.fetch_add(1, Ordering::Relaxed);
        if self.canary == Canary::LostWrites && number % LOST_WRITE_OF == LOST_WRITE_OF - 1 {
            return Ok(bytes.len());
        }
        if self.canary == Canary::ReusedSlot && self.content == Content::Pages {
            let before = offset.saturating_sub(SLOT_BYTES);
            return self.inner.write_at(before, bytes);
        }
        self.inner.write_at(offset, bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        let does_nothing = match self.canary {
            Canary::SyncLies => true,
            Canary::UnsyncedPages => self.content == Content::Pages,
            Canary::UnsyncedSnapshots => self.content == Content::Snapshot,
            Canary::None
            | Canary::LostWrites
            | Canary::ForgottenAcks
            | Canary::ForgottenMessages
            | Canary::RepeatedDelivery
            | Canary::ReusedSlot
            | Canary::DrainedEarly
            | Canary::ForgottenPurges
            | Canary::BackupGaps
            | Canary::SortedDeliveries
            | Canary::TurnedBits
            | Canary::KeptFiles
            | Canary::ForgottenThrottles
            | Canary::IgnoredScripts
            | Canary::ForgottenDecisions
            | Canary::NoTimers
            | Canary::StaleKeys
            | Canary::ForgottenRevocations
            | Canary::FreedSegment
            | Canary::ForgottenBindings
            | Canary::LostDeadLetters
            | Canary::EarlyConfirms
            | Canary::DoubleRequeues
            | Canary::ForgottenAlternates
            | Canary::TransientFire
            | Canary::FreshFire
            | Canary::ImmortalQueues
            | Canary::ForgottenAdditions
            | Canary::DoubleItems => false,
        };
        if does_nothing {
            return Ok(());
        }
        self.inner.sync_data()
    }

    fn len_bytes(&self) -> io::Result<u64> {
        self.inner.len_bytes()
    }

    fn allocate(&self, len_bytes: u64) -> io::Result<()> {
        self.inner.allocate(len_bytes)
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        self.inner.set_len(len_bytes)
    }
}
