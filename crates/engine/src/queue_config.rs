//! A queue's policies: what is fixed at creation, what may change, and the defaults.

use std::sync::Arc;

use crate::{AmqpPolicy, Defaults, VhostId};

/// What a creator asks for. Zero and `None` mean "the broker's default".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueSpec {
    /// Where it is.
    pub vhost: VhostId,
    /// 1..=255 bytes of UTF-8 without control characters.
    pub name: String,
    /// A script run on every enqueue.
    pub on_enqueue: Option<String>,
    /// A script run on every failure.
    pub on_failure: Option<String>,
    /// Length of a lease; 0 = default.
    pub lease_ms: u64,
    /// What is delivered one at a time.
    pub ordering: Ordering,
    /// What makes two messages the same; `None` = the producer's idempotency key.
    pub dedup_key: Option<Vec<KeyPart>>,
    /// How long a key is remembered after its message left; 0 = default.
    pub dedup_window_ms: u64,
    /// What happens to messages a script fails on.
    pub script_failure: ScriptFailure,
    /// Failed classifications before a parked message is dead-lettered; 0 = never.
    pub park_dead_letter_after: u32,
    /// Deliveries in total before dead-lettering; 0 = default.
    pub max_attempts: u32,
    /// Shape of the retry delay; `None` = default.
    pub backoff: Option<Backoff>,
    /// First retry delay; 0 = default.
    pub backoff_initial_ms: u64,
    /// Longest retry delay; 0 = default.
    pub backoff_max_ms: u64,
    /// What a crash may forget about leases.
    pub durability: DeliveryDurability,
    /// Grace for reclaiming leases after a restart; 0 = default; fast queues only.
    pub reclaim_grace_ms: u64,
    /// Bound on the number of messages.
    pub max_length: Option<MaxLength>,
}

impl QueueSpec {
    /// The policies with every default filled in.
    #[must_use]
    pub fn resolve(&self, defaults: &Defaults) -> QueueConfig {
        QueueConfig {
            lease_ms: non_zero(self.lease_ms, defaults.lease_ms),
            ordering: self.ordering.clone(),
            dedup_key: self.dedup_key.clone(),
            dedup_window_ms: non_zero(self.dedup_window_ms, defaults.dedup_window_ms),
            script_failure: self.script_failure,
            park_dead_letter_after: self.park_dead_letter_after,
            retry: RetryPolicy {
                max_attempts: match self.max_attempts {
                    0 => defaults.retry.max_attempts,
                    n => n,
                },
                backoff: self.backoff.unwrap_or(defaults.retry.backoff),
                initial_ms: non_zero(self.backoff_initial_ms, defaults.retry.initial_ms),
                max_ms: non_zero(self.backoff_max_ms, defaults.retry.max_ms),
            },
            durability: self.durability,
            reclaim_grace_ms: non_zero(self.reclaim_grace_ms, defaults.reclaim_grace_ms),
            max_length: self.max_length,
            on_enqueue: self.on_enqueue.as_deref().map(Arc::from),
            on_failure: self.on_failure.as_deref().map(Arc::from),
            script_version: 1,
            amqp: None,
        }
    }
}

const fn non_zero(value: u64, default: u64) -> u64 {
    if value == 0 { default } else { value }
}

/// Changes to a live queue; `None` leaves a setting as it is, zero sets the broker's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueChanges {
    /// `Some(None)` removes the script.
    pub on_enqueue: Option<Option<String>>,
    /// `Some(None)` removes the script.
    pub on_failure: Option<Option<String>>,
    /// Length of a lease.
    pub lease_ms: Option<u64>,
    /// How long a key is remembered after its message left.
    pub dedup_window_ms: Option<u64>,
    /// Deliveries in total before dead-lettering.
    pub max_attempts: Option<u32>,
    /// Shape of the retry delay; `Some(None)` = default.
    pub backoff: Option<Option<Backoff>>,
    /// First retry delay.
    pub backoff_initial_ms: Option<u64>,
    /// Longest retry delay.
    pub backoff_max_ms: Option<u64>,
    /// What a crash may forget about leases.
    pub durability: Option<DeliveryDurability>,
    /// Grace for reclaiming leases after a restart.
    pub reclaim_grace_ms: Option<u64>,
    /// Failed classifications before a parked message is dead-lettered; 0 = never.
    pub park_dead_letter_after: Option<u32>,
}

impl QueueChanges {
    /// Bytes of the scripts given.
    pub(crate) fn script_bytes(&self) -> usize {
        let given = [&self.on_enqueue, &self.on_failure];
        let texts = given
            .into_iter()
            .filter_map(|change| change.as_ref()?.as_ref());
        texts.map(String::len).sum()
    }

    /// `config` with these changes.
    #[must_use]
    pub fn apply(&self, config: &QueueConfig, defaults: &Defaults) -> QueueConfig {
        let mut next = config.clone();
        if let Some(ms) = self.lease_ms {
            next.lease_ms = non_zero(ms, defaults.lease_ms);
        }
        if let Some(ms) = self.dedup_window_ms {
            next.dedup_window_ms = non_zero(ms, defaults.dedup_window_ms);
        }
        if let Some(n) = self.max_attempts {
            next.retry.max_attempts = if n == 0 {
                defaults.retry.max_attempts
            } else {
                n
            };
        }
        if let Some(backoff) = self.backoff {
            next.retry.backoff = backoff.unwrap_or(defaults.retry.backoff);
        }
        if let Some(ms) = self.backoff_initial_ms {
            next.retry.initial_ms = non_zero(ms, defaults.retry.initial_ms);
        }
        if let Some(ms) = self.backoff_max_ms {
            next.retry.max_ms = non_zero(ms, defaults.retry.max_ms);
        }
        if let Some(durability) = self.durability {
            next.durability = durability;
        }
        if let Some(ms) = self.reclaim_grace_ms {
            next.reclaim_grace_ms = non_zero(ms, defaults.reclaim_grace_ms);
        }
        if let Some(n) = self.park_dead_letter_after {
            next.park_dead_letter_after = n;
        }
        if let Some(script) = &self.on_enqueue {
            next.on_enqueue = script.as_deref().map(Arc::from);
            next.script_version = next.script_version.saturating_add(1);
        }
        if let Some(script) = &self.on_failure {
            next.on_failure = script.as_deref().map(Arc::from);
        }
        next
    }
}

/// A queue's policies in force; every default is filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// Length of a lease.
    pub lease_ms: u64,
    /// What is delivered one at a time.
    pub ordering: Ordering,
    /// What makes two messages the same; `None` = the producer's idempotency key.
    pub dedup_key: Option<Vec<KeyPart>>,
    /// How long a key is remembered after its message left.
    pub dedup_window_ms: u64,
    /// What happens to messages a script fails on.
    pub script_failure: ScriptFailure,
    /// Failed classifications before a parked message is dead-lettered; 0 = never.
    pub park_dead_letter_after: u32,
    /// What follows a failed delivery.
    pub retry: RetryPolicy,
    /// What a crash may forget about leases.
    pub durability: DeliveryDurability,
    /// Grace for reclaiming leases after a restart; fast queues only.
    pub reclaim_grace_ms: u64,
    /// Bound on the number of messages.
    pub max_length: Option<MaxLength>,
    /// The script run on every enqueue.
    pub on_enqueue: Option<Arc<str>>,
    /// The script run on every failure.
    pub on_failure: Option<Arc<str>>,
    /// Grows with each change of `on_enqueue`: what an unclassified message was tried with.
    pub script_version: u64,
    /// What else AMQP or FireMQ said of it; `None` = Fila made it.
    pub amqp: Option<Box<AmqpPolicy>>,
}

impl QueueConfig {
    /// The deduplication key needs something that `on_enqueue` may return.
    #[must_use]
    pub fn dedup_needs_script(&self) -> bool {
        let from_script = |part: &KeyPart| match part.kind {
            KeyKind::FairnessKey | KeyKind::Attribute => true,
            KeyKind::Header | KeyKind::IdempotencyKey | KeyKind::Payload | KeyKind::AllHeaders => {
                false
            }
        };
        let parts = self.dedup_key.as_deref().unwrap_or_default();
        self.on_enqueue.is_some() && parts.iter().any(from_script)
    }
}

/// What follows a failed delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Deliveries in total before dead-lettering; at least 1.
    pub max_attempts: u32,
    /// Shape of the delay.
    pub backoff: Backoff,
    /// First delay.
    pub initial_ms: u64,
    /// Longest delay; exponential only.
    pub max_ms: u64,
}

impl RetryPolicy {
    /// The delay before the retry that follows failed delivery number `attempt` (1 = the first).
    #[must_use]
    pub fn delay_ms(&self, attempt: u32) -> u64 {
        match self.backoff {
            Backoff::None => 0,
            Backoff::Fixed => self.initial_ms,
            Backoff::Exponential => {
                let doublings = attempt.saturating_sub(1).min(63);
                self.initial_ms
                    .saturating_mul(1 << doublings)
                    .min(self.max_ms)
            }
        }
    }
}

/// Shape of the retry delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// Retry at once.
    None,
    /// The same delay each time.
    Fixed,
    /// Doubling from the initial delay up to the maximum.
    Exponential,
}

/// What is delivered one at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ordering {
    /// Nothing.
    #[default]
    None,
    /// The whole queue.
    Queue,
    /// Messages with the same values of these parts.
    Key {
        /// At least one part; header, fairness key or attribute.
        key: Vec<KeyPart>,
        /// What happens to a message that lacks a part.
        missing: MissingOrderingKey,
    },
}

/// What happens to a message that lacks a part of the ordering key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingOrderingKey {
    /// It is refused.
    Reject,
    /// It belongs to no group and never waits for one.
    Unordered,
}

/// One property that, with others, names a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPart {
    /// Which property.
    pub kind: KeyKind,
    /// The header's or attribute's name; empty for the other kinds.
    pub name: String,
}

/// Which property of a message is a part of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// A header.
    Header,
    /// The fairness key.
    FairnessKey,
    /// An attribute returned by `on_enqueue`; missing while no script gave it.
    Attribute,
    /// The producer's idempotency key; deduplication only.
    IdempotencyKey,
    /// A hash of the payload; deduplication only.
    Payload,
    /// A hash of every header, in any order; deduplication only.
    AllHeaders,
}

/// What happens to messages a script fails on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScriptFailure {
    /// The message is refused.
    #[default]
    Reject,
    /// The message is stored unclassified.
    Park,
}

/// What a crash may forget about leases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeliveryDurability {
    /// Nothing: leases and acks are on disk before they count.
    #[default]
    Committed,
    /// Leases and recent acks.
    Fast,
}

/// Bound on the number of messages of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxLength {
    /// Pending messages at most.
    pub messages: u64,
    /// What gives way.
    pub overflow: Overflow,
}

/// What gives way when a queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// The oldest pending messages are dropped.
    DropHead,
    /// The new message is refused.
    Reject,
}
