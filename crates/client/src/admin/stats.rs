//! The counters of a queue.

pub use tanda_wire::fila::consume::ThrottleLimit;
use tanda_wire::fila::consume::WhenThrottleKeyMissing;
use tanda_wire::fila::stats::{GetStats, GetStatsResult, ThrottleSummary as WireSummary};

use super::{Admin, check, read};
use crate::error::RequestError;
use crate::property_key::PropertyKey;
use crate::shell::handle::Repeat;

/// The counters of a queue at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Messages waiting, for whatever reason; leased ones are not counted.
    pub depth: u64,
    /// Messages leased.
    pub in_flight: u64,
    /// Of `depth`: waiting for their time.
    pub delayed: u64,
    /// Of `depth`: parked after a script failure.
    pub unclassified: u64,
    /// When the oldest parked message was enqueued, in Unix milliseconds; `None` without one.
    pub oldest_unclassified_at_ms: Option<u64>,
    /// Of `depth`: waiting for room in a throttle bucket.
    pub throttled: u64,
    /// Fairness keys with waiting messages.
    pub active_fairness_keys: u64,
    /// Subscriptions.
    pub active_consumers: u32,
    /// Messages that one unit of weight is worth per turn.
    pub quantum: u32,
    /// The node that leads the queue; 0 on a single node.
    pub leader_node_id: u64,
    /// Copies of the queue; 0 on a single node.
    pub replication_count: u32,
    /// One entry per fairness key with waiting messages.
    pub fairness_keys: Vec<FairnessKeyStats>,
    /// The throttles that apply to the queue.
    pub throttles: Vec<ThrottleSummary>,
}

/// The counters of one fairness key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FairnessKeyStats {
    /// The key; empty for messages without one.
    pub key: String,
    /// Its messages waiting.
    pub pending: u64,
    /// What it is owed, in messages.
    pub deficit: i64,
    /// Its share relative to other keys.
    pub weight: u32,
}

/// A throttle as it applies now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThrottleSummary {
    /// Its name.
    pub name: String,
    /// All limits that apply, from every declaration.
    pub limits: Vec<ThrottleLimit>,
    /// The key whose values have buckets of their own; without parts there is one bucket.
    pub key: PropertyKey,
    /// Whether messages that lack a part of the key are not limited; else they share a bucket.
    pub unthrottled_without_key: bool,
    /// Subscriptions that declare it.
    pub declaring_subscribers: u32,
}

impl ThrottleSummary {
    pub(super) fn from_wire(summary: &WireSummary<'_>) -> Self {
        let unthrottled = WhenThrottleKeyMissing::Unthrottled.to_wire();
        Self {
            name: summary.name.to_owned(),
            limits: summary.limits.clone(),
            key: PropertyKey::from_wire(&summary.key),
            unthrottled_without_key: summary.when_key_missing == unthrottled,
            declaring_subscribers: summary.declaring_subscribers,
        }
    }
}

impl Admin {
    /// The counters of a queue; also of a dead-letter queue.
    ///
    /// # Errors
    /// `QueueNotFound`, `Forbidden`.
    pub async fn queue_stats(&self, queue: &str) -> Result<QueueStats, RequestError> {
        let body = self
            .handle
            .call(&GetStats { queue }, Repeat::Harmless)
            .await?;
        let answer = read(GetStatsResult::decode(&body))?;
        check(answer.error_code)?;
        let oldest_ms = answer.oldest_unclassified_at_ms;
        let fairness_keys = answer.per_key_stats.iter().map(|stats| FairnessKeyStats {
            key: stats.key.to_owned(),
            pending: stats.pending_count,
            deficit: stats.current_deficit,
            weight: stats.weight,
        });
        Ok(QueueStats {
            depth: answer.depth,
            in_flight: answer.in_flight,
            delayed: answer.delayed,
            unclassified: answer.unclassified,
            oldest_unclassified_at_ms: (oldest_ms != 0).then_some(oldest_ms),
            throttled: answer.throttled,
            active_fairness_keys: answer.active_fairness_keys,
            active_consumers: answer.active_consumers,
            quantum: answer.quantum,
            leader_node_id: answer.leader_node_id,
            replication_count: answer.replication_count,
            fairness_keys: fairness_keys.collect(),
            throttles: answer
                .active_throttles
                .iter()
                .map(ThrottleSummary::from_wire)
                .collect(),
        })
    }
}
