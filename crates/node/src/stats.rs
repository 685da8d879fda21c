//! What a node tells operators.

use tanda_engine::Lsn;
use tanda_wal::LogStats;

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
