//! What a queue counts.

use crate::Millis;

/// A queue's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Pending messages: ready, delayed, behind.
    pub depth: u64,
    /// Leased messages.
    pub in_flight: u64,
    /// Of `depth`: waiting for a not-before time, retries included.
    pub delayed: u64,
    /// Of `depth`: waiting for their ordering group.
    pub behind: u64,
    /// Of `depth`: waiting for room in a throttle's bucket.
    pub throttled: u64,
    /// Of `depth`: could go now.
    pub ready: u64,
    /// Fairness keys with pending messages.
    pub active_fairness_keys: u64,
    /// Live subscriptions.
    pub active_consumers: u32,
    /// Pending and leased content bytes.
    pub bytes: u64,
    /// Deduplication keys remembered now.
    pub remembered_keys: u64,
    /// Of `depth`: unclassified, as a script failed on them; they wait for it.
    pub unclassified: u64,
    /// When the oldest unclassified message was enqueued.
    pub oldest_unclassified_at: Option<Millis>,
    /// Of `depth`: on an ordered queue, behind the first unclassified message.
    pub stopped: u64,
    /// Messages dropped since the start because a script, run late, gave them a deduplication key
    /// that is remembered from another message.
    pub late_duplicates: u64,
    /// Messages that left undelivered since the start, as their time had come.
    pub expired: u64,
    /// Dead letters on their way to an exchange, in no other figure.
    pub departing: u64,
    /// Messages that went to the exchange for dead letters since the start.
    pub dead_lettered: u64,
}
