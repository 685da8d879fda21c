//! What a queue is made with, and what of it can be changed.

use std::time::Duration;

pub use tanda_wire::fila::queue_admin::{Backoff, DeliveryDurability, ScriptFailure};
use tanda_wire::fila::queue_admin::{
    CreateQueue, QueueOrdering, ScriptChange, UpdateQueue, WhenOrderingKeyMissing,
};

use crate::message::whole_ms;
use crate::property_key::PropertyKey;

/// In which order a queue delivers. At most one message of an ordering group is leased at a time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Ordering {
    /// No order is kept.
    #[default]
    Unordered,
    /// The whole queue is one group.
    WholeQueue,
    /// Messages with equal values of the key form a group; a message without a value is refused.
    ByKey(PropertyKey),
    /// As [`ByKey`](Self::ByKey), but a message without a value belongs to no group, and never
    /// waits.
    ByKeyIfPresent(PropertyKey),
}

/// The settings of a new queue. What is not set is the server's default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueSettings {
    name: String,
    on_enqueue: Option<String>,
    on_failure: Option<String>,
    visibility_timeout_ms: u64,
    ordering: Ordering,
    dedup_key: PropertyKey,
    dedup_window_ms: u64,
    script_failure: ScriptFailure,
    park_dead_letter_after: u32,
    max_attempts: u32,
    backoff: Backoff,
    backoff_initial_ms: u64,
    backoff_max_ms: u64,
    delivery_durability: DeliveryDurability,
    reclaim_grace_ms: u64,
}

impl QueueSettings {
    /// A queue of this name, which must not end in `.dlq`. Its dead-letter queue is made with it.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            on_enqueue: None,
            on_failure: None,
            visibility_timeout_ms: 0,
            ordering: Ordering::Unordered,
            dedup_key: PropertyKey::default(),
            dedup_window_ms: 0,
            script_failure: ScriptFailure::Reject,
            park_dead_letter_after: 0,
            max_attempts: 0,
            backoff: Backoff::ServerDefault,
            backoff_initial_ms: 0,
            backoff_max_ms: 0,
            delivery_durability: DeliveryDurability::Committed,
            reclaim_grace_ms: 0,
        }
    }

    /// Lua source with the function `on_enqueue`, which classifies new messages.
    #[must_use]
    pub fn on_enqueue(mut self, source: impl Into<String>) -> Self {
        self.on_enqueue = Some(source.into());
        self
    }

    /// Lua source with the function `on_failure`, which decides about failed deliveries.
    #[must_use]
    pub fn on_failure(mut self, source: impl Into<String>) -> Self {
        self.on_failure = Some(source.into());
        self
    }

    /// How long a lease lasts.
    #[must_use]
    pub fn visibility_timeout(mut self, timeout: Duration) -> Self {
        self.visibility_timeout_ms = whole_ms(timeout);
        self
    }

    /// The order of deliveries. Fixed at creation.
    #[must_use]
    pub fn ordering(mut self, ordering: Ordering) -> Self {
        self.ordering = ordering;
        self
    }

    /// The properties that make two messages duplicates, in place of the producer's idempotency
    /// key. Fixed at creation.
    #[must_use]
    pub fn dedup_key(mut self, key: PropertyKey) -> Self {
        self.dedup_key = key;
        self
    }

    /// How long a deduplication key is remembered after its message left.
    #[must_use]
    pub fn dedup_window(mut self, window: Duration) -> Self {
        self.dedup_window_ms = whole_ms(window);
        self
    }

    /// What becomes of a message on which the `on_enqueue` script fails. Fixed at creation.
    #[must_use]
    pub const fn script_failure(mut self, policy: ScriptFailure) -> Self {
        self.script_failure = policy;
        self
    }

    /// Failed classifications after which a parked message is dead-lettered; 0 = never.
    #[must_use]
    pub const fn park_dead_letter_after(mut self, failures: u32) -> Self {
        self.park_dead_letter_after = failures;
        self
    }

    /// Deliveries after which a failing message is dead-lettered.
    #[must_use]
    pub const fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = attempts;
        self
    }

    /// How the delay before retries grows.
    #[must_use]
    pub const fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// The first, or fixed, delay before a retry.
    #[must_use]
    pub fn backoff_initial(mut self, delay: Duration) -> Self {
        self.backoff_initial_ms = whole_ms(delay);
        self
    }

    /// The largest delay before a retry, for [`Backoff::Exponential`].
    #[must_use]
    pub fn backoff_max(mut self, delay: Duration) -> Self {
        self.backoff_max_ms = whole_ms(delay);
        self
    }

    /// Whether leases are on disk before their messages leave.
    #[must_use]
    pub const fn delivery_durability(mut self, durability: DeliveryDurability) -> Self {
        self.delivery_durability = durability;
        self
    }

    /// How long a [`Fast`](DeliveryDurability::Fast) queue honours leases of before a crash.
    #[must_use]
    pub fn reclaim_grace(mut self, grace: Duration) -> Self {
        self.reclaim_grace_ms = whole_ms(grace);
        self
    }

    pub(super) fn to_wire(&self) -> CreateQueue<'_> {
        let (ordering, key, missing) = match &self.ordering {
            Ordering::Unordered => (QueueOrdering::None, None, WhenOrderingKeyMissing::Reject),
            Ordering::WholeQueue => (
                QueueOrdering::WholeQueue,
                None,
                WhenOrderingKeyMissing::Reject,
            ),
            Ordering::ByKey(key) => (
                QueueOrdering::ByKey,
                Some(key),
                WhenOrderingKeyMissing::Reject,
            ),
            Ordering::ByKeyIfPresent(key) => (
                QueueOrdering::ByKey,
                Some(key),
                WhenOrderingKeyMissing::Unordered,
            ),
        };
        CreateQueue {
            name: &self.name,
            on_enqueue_script: self.on_enqueue.as_deref(),
            on_failure_script: self.on_failure.as_deref(),
            visibility_timeout_ms: self.visibility_timeout_ms,
            ordering: ordering.to_wire(),
            ordering_key: key.map(PropertyKey::to_wire).unwrap_or_default(),
            when_ordering_key_missing: missing.to_wire(),
            dedup_key: self.dedup_key.to_wire(),
            dedup_window_ms: self.dedup_window_ms,
            script_failure: self.script_failure.to_wire(),
            park_dead_letter_after: self.park_dead_letter_after,
            max_attempts: self.max_attempts,
            backoff: self.backoff.to_wire(),
            backoff_initial_ms: self.backoff_initial_ms,
            backoff_max_ms: self.backoff_max_ms,
            delivery_durability: self.delivery_durability.to_wire(),
            reclaim_grace_ms: self.reclaim_grace_ms,
        }
    }
}

/// What is to happen to a script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Script {
    #[default]
    Keep,
    Set(String),
    Remove,
}

impl Script {
    const fn to_wire(&self) -> ScriptChange {
        match self {
            Self::Keep => ScriptChange::Unchanged,
            Self::Set(_) => ScriptChange::Set,
            Self::Remove => ScriptChange::Remove,
        }
    }

    fn source(&self) -> &str {
        match self {
            Self::Set(source) => source,
            Self::Keep | Self::Remove => "",
        }
    }
}

/// Changes to a queue. What is not named stays as it is; a duration or count of zero means the
/// server's default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueChanges {
    on_enqueue: Script,
    on_failure: Script,
    visibility_timeout_ms: Option<u64>,
    dedup_window_ms: Option<u64>,
    max_attempts: Option<u32>,
    backoff: Option<Backoff>,
    backoff_initial_ms: Option<u64>,
    backoff_max_ms: Option<u64>,
    delivery_durability: Option<DeliveryDurability>,
    reclaim_grace_ms: Option<u64>,
    park_dead_letter_after: Option<u32>,
}

impl QueueChanges {
    /// No change yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// See [`QueueSettings::on_enqueue`]. Messages that are queued keep their classification.
    #[must_use]
    pub fn on_enqueue(mut self, source: impl Into<String>) -> Self {
        self.on_enqueue = Script::Set(source.into());
        self
    }

    /// Removes the `on_enqueue` script.
    #[must_use]
    pub fn remove_on_enqueue(mut self) -> Self {
        self.on_enqueue = Script::Remove;
        self
    }

    /// See [`QueueSettings::on_failure`].
    #[must_use]
    pub fn on_failure(mut self, source: impl Into<String>) -> Self {
        self.on_failure = Script::Set(source.into());
        self
    }

    /// Removes the `on_failure` script.
    #[must_use]
    pub fn remove_on_failure(mut self) -> Self {
        self.on_failure = Script::Remove;
        self
    }

    /// See [`QueueSettings::visibility_timeout`].
    #[must_use]
    pub fn visibility_timeout(mut self, timeout: Duration) -> Self {
        self.visibility_timeout_ms = Some(whole_ms(timeout));
        self
    }

    /// See [`QueueSettings::dedup_window`].
    #[must_use]
    pub fn dedup_window(mut self, window: Duration) -> Self {
        self.dedup_window_ms = Some(whole_ms(window));
        self
    }

    /// See [`QueueSettings::max_attempts`].
    #[must_use]
    pub const fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = Some(attempts);
        self
    }

    /// See [`QueueSettings::backoff`].
    #[must_use]
    pub const fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// See [`QueueSettings::backoff_initial`].
    #[must_use]
    pub fn backoff_initial(mut self, delay: Duration) -> Self {
        self.backoff_initial_ms = Some(whole_ms(delay));
        self
    }

    /// See [`QueueSettings::backoff_max`].
    #[must_use]
    pub fn backoff_max(mut self, delay: Duration) -> Self {
        self.backoff_max_ms = Some(whole_ms(delay));
        self
    }

    /// See [`QueueSettings::delivery_durability`].
    #[must_use]
    pub const fn delivery_durability(mut self, durability: DeliveryDurability) -> Self {
        self.delivery_durability = Some(durability);
        self
    }

    /// See [`QueueSettings::reclaim_grace`].
    #[must_use]
    pub fn reclaim_grace(mut self, grace: Duration) -> Self {
        self.reclaim_grace_ms = Some(whole_ms(grace));
        self
    }

    /// See [`QueueSettings::park_dead_letter_after`].
    #[must_use]
    pub const fn park_dead_letter_after(mut self, failures: u32) -> Self {
        self.park_dead_letter_after = Some(failures);
        self
    }

    pub(super) fn to_wire<'a>(&'a self, queue: &'a str) -> UpdateQueue<'a> {
        UpdateQueue {
            queue,
            on_enqueue_change: self.on_enqueue.to_wire().to_wire(),
            on_enqueue_script: self.on_enqueue.source(),
            on_failure_change: self.on_failure.to_wire().to_wire(),
            on_failure_script: self.on_failure.source(),
            visibility_timeout_ms: self.visibility_timeout_ms,
            dedup_window_ms: self.dedup_window_ms,
            max_attempts: self.max_attempts,
            backoff: self.backoff.map(Backoff::to_wire),
            backoff_initial_ms: self.backoff_initial_ms,
            backoff_max_ms: self.backoff_max_ms,
            delivery_durability: self.delivery_durability.map(DeliveryDurability::to_wire),
            reclaim_grace_ms: self.reclaim_grace_ms,
            park_dead_letter_after: self.park_dead_letter_after,
        }
    }
}
