//! The counters of one queue (`GetStats`), and the throttle summary they share.

use super::consume::ThrottleLimit;
use super::error_code::ErrorCode;
use super::property_key::PropertyKey;
use super::wire_struct::wire_struct;

wire_struct! {
    /// Asks for the counters of one queue.
    pub struct GetStats<'a>: GetStats {
        /// The queue.
        queue: &'a str,
    }

    /// Answers `GetStats`.
    pub struct GetStatsResult<'a>: GetStatsResult {
        /// `Ok`, or why all else is zero.
        error_code: ErrorCode,
        /// Messages waiting, for whatever reason; leased ones not counted.
        depth: u64,
        /// Messages leased.
        in_flight: u64,
        /// Of `depth`: waiting for their time.
        delayed: u64,
        /// Of `depth`: parked after a script failure.
        unclassified: u64,
        /// Unix time in milliseconds of the oldest parked message; 0 = none.
        oldest_unclassified_at_ms: u64,
        /// Of `depth`: waiting for room in a throttle bucket.
        throttled: u64,
        /// Fairness keys with waiting messages.
        active_fairness_keys: u64,
        /// Subscriptions.
        active_consumers: u32,
        /// Messages one unit of weight is worth per turn.
        quantum: u32,
        /// 0 on a single node.
        leader_node_id: u64,
        /// 0 on a single node.
        replication_count: u32,
        /// One entry per fairness key.
        per_key_stats: Vec<FairnessKeyStats<'a>>,
        /// The throttles active on the queue.
        active_throttles: Vec<ThrottleSummary<'a>>,
    }

    /// The counters of one fairness key.
    pub struct FairnessKeyStats<'a> {
        /// The key; empty for messages without one.
        key: &'a str,
        /// Its messages waiting.
        pending_count: u64,
        /// What it is owed, in messages; negative when it is ahead.
        current_deficit: i64,
        /// Its share relative to other keys.
        weight: u32,
    }

    /// A throttle as it applies now.
    pub struct ThrottleSummary<'a> {
        /// Its name.
        name: &'a str,
        /// All limits that apply, from every declaration.
        limits: Vec<ThrottleLimit> as list_u16,
        /// No parts: one bucket for all messages.
        key: PropertyKey<'a>,
        /// A [`WhenThrottleKeyMissing`](super::consume::WhenThrottleKeyMissing).
        when_key_missing: u8,
        /// Subscribers that declare it.
        declaring_subscribers: u32,
    }
}
