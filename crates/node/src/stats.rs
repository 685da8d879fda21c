//! What a node tells operators.

use tanda_engine::{Lsn, SegmentUse};
use tanda_wal::{Disk, LogStats};

use crate::node::end_of;
use crate::{Node, Pinned, Published};

/// Figures of a node. Counters start at zero with the process and only grow.
#[derive(Clone, Debug)]
pub struct NodeStats {
    /// The log's.
    pub log: LogStats,
    /// Everything below survives a crash. `durable` and `end` differ by what is not written yet.
    pub durable: Lsn,
    /// The position after the newest record.
    pub end: Lsn,
    /// Effects that wait for the log.
    pub waiting_effects: usize,
    /// About how much memory they hold.
    pub waiting_bytes: usize,
    /// Counter: events released to connections, deliveries included.
    pub released_events: u64,
    /// Counter: messages in released deliveries.
    pub released_messages: u64,
    /// Counter: messages given back to the engine because they never left.
    pub returned_messages: u64,
    /// Counter: contents that could not be read back from the log.
    pub read_errors: u64,
    /// What the newest of them was, with its position.
    pub last_read_error: Option<String>,
    /// Messages with unreadable contents that wait to be tried again.
    pub unreadable_messages: usize,
    /// The snapshot that a start would use.
    pub snapshot: Option<Published>,
    /// One is being taken.
    pub taking_snapshot: bool,
    /// Counter: snapshots that could not be written, and why the newest could not.
    pub snapshot_failures: u64,
    /// See `snapshot_failures`.
    pub last_snapshot_error: Option<String>,
    /// Pages in the page file, those included that only the snapshot needs, and its bytes.
    pub pages: usize,
    /// See `pages`.
    pub page_file_bytes: u64,
    /// Counter: pages that could not be read or written.
    pub page_errors: u64,
    /// What the newest of them was.
    pub last_page_error: Option<String>,
    /// Counter: notes of deliveries that could not be written: those deliveries waited for the log.
    pub note_errors: u64,
    /// What the newest of them was.
    pub last_note_error: Option<String>,
    /// Segments that a start does not replay, as of the last look: their bytes, and how many of
    /// them
    /// are contents that messages need. The difference is pinned by those messages.
    pub pinned: Pinned,
    /// The oldest of these segments.
    pub oldest_kept_segment: Option<u64>,
    /// Counter: messages whose contents were copied out of mostly dead segments, and their bytes.
    pub copied: SegmentUse,
    /// Counter: times that copying failed, and why it did last.
    pub copy_failures: u64,
    /// See `copy_failures`.
    pub last_copy_error: Option<String>,
    /// About how much memory the index, the log's caches and scripts take.
    pub memory_bytes: u64,
    /// The scripts' part of it.
    pub script_bytes: u64,
    /// Above this, publishes are refused; 0 = no limit.
    pub memory_limit_bytes: u64,
    /// It is reached.
    pub memory_full: bool,
    /// The disk is full: publishes are refused, settling goes on.
    pub storage_full: bool,
    /// Why the node confirms nothing any more, if so.
    pub failed: Option<String>,
}

/// The counters among them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) released_events: u64,
    pub(crate) released_messages: u64,
    pub(crate) returned_messages: u64,
    pub(crate) read_errors: u64,
    pub(crate) last_read_error: Option<String>,
}

impl<D: Disk> Node<D> {
    /// Figures for operators; allocates, so not for every pass.
    #[must_use]
    pub fn stats(&self) -> NodeStats {
        let counters = self.counters.clone();
        let owned = |(count, error): (u64, Option<&str>)| (count, error.map(str::to_owned));
        let (snapshot_failures, last_snapshot_error) = owned(self.snapshots.failures());
        let (note_errors, last_note_error) = owned(self.notes.errors());
        let (page_errors, last_page_error) = owned(self.pages.errors());
        let (copy_failures, last_copy_error) = owned(self.reclaim.failures());
        NodeStats {
            snapshot: self.snapshots.published(),
            taking_snapshot: self.snapshots.is_taking(),
            snapshot_failures,
            last_snapshot_error,
            pages: self.pages.used(),
            page_file_bytes: self.pages.bytes(),
            page_errors,
            last_page_error,
            note_errors,
            last_note_error,
            pinned: self.reclaim.pinned,
            oldest_kept_segment: self.oldest_kept(),
            copied: self.reclaim.copied,
            copy_failures,
            last_copy_error,
            memory_bytes: self.memory_bytes(),
            script_bytes: self.memory.script_bytes,
            memory_limit_bytes: self.memory.limit_bytes,
            memory_full: self.memory.is_full,
            log: self.log.stats(),
            durable: self.durable(),
            end: end_of(&self.log),
            waiting_effects: self.effects.len(),
            waiting_bytes: self.effects.bytes(),
            released_events: counters.released_events,
            released_messages: counters.released_messages,
            returned_messages: counters.returned_messages,
            read_errors: counters.read_errors,
            last_read_error: counters.last_read_error,
            unreadable_messages: self.unreadable.iter().map(|u| u.batch.items.len()).sum(),
            storage_full: self.storage_full(),
            failed: self.failed().map(str::to_owned),
        }
    }
}
