//! What is said of a queue or a message that does not move.

use crate::{BucketStats, MessageId, Millis, QueueCounts, ThrottleSummary};

/// Why a queue delivers or does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueExplanation {
    /// The queue's name.
    pub name: String,
    /// Its counters.
    pub counts: QueueCounts,
    /// Live subscriptions with credit and room in their connection's buffer.
    pub consumers_ready: u32,
    /// Live subscriptions without credit.
    pub consumers_without_credit: u32,
    /// Live subscriptions whose connection's outbound buffer is full.
    pub consumers_with_full_buffer: u32,
    /// When the next delayed message is due.
    pub next_due_at: Option<Millis>,
    /// When the next lease ends if nobody settles it.
    pub next_lease_end_at: Option<Millis>,
    /// Ordering groups with a message in flight or delayed and others behind it.
    pub groups_held: u64,
    /// What the queue's script said when it failed last since the start.
    pub last_script_error: Option<String>,
    /// Messages that fit no frame of any of its consumers, as far as was tried.
    pub unfit: u64,
    /// The first of those that are ready, if it is in memory.
    pub first_unfit: Option<MessageId>,
    /// Throttles that apply to it.
    pub throttles: Vec<ThrottleSummary>,
    /// The message asked about: `None` when none was asked for.
    pub message: Option<MessagePlace>,
}

/// Where a message is and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessagePlace {
    /// Not in this queue: never was, acked, expired, or moved (named if it is known where).
    Unknown,
    /// Deliverable now: waits for its turn and a consumer.
    Ready {
        /// Its fairness key.
        fairness_key: String,
        /// Messages of its fairness key that go before it, at most (bounded count).
        ahead_in_key: u64,
        /// Fairness keys that take turns with it.
        keys_in_ring: u64,
        /// It fits no frame of any of the queue's consumers.
        is_unfit: bool,
        /// Deliveries so far.
        attempts: u32,
    },
    /// Waits for a time.
    Delayed {
        /// When it is due.
        due_at: Millis,
        /// Deliveries so far; above 0 = a retry delay.
        attempts: u32,
    },
    /// Waits for room in a throttle's bucket.
    Throttled {
        /// The throttle's name.
        throttle: String,
        /// The bucket; of several without room the one that has room last.
        bucket: Box<BucketStats>,
        /// Deliveries so far.
        attempts: u32,
    },
    /// Waits for the message at the head of its ordering group.
    Behind {
        /// That message.
        head: MessageId,
        /// Where that message is.
        head_place: Box<Self>,
    },
    /// A consumer holds it.
    Leased {
        /// When the lease ends if nobody settles it; `None` = with its connection.
        expires_at: Option<Millis>,
        /// Deliveries so far, this one included.
        attempts: u32,
        /// The consumer's number; `None` when it is from before a restart or gone.
        consumer: Option<u64>,
    },
    /// It waits for a script to classify it.
    Parked {
        /// When it was enqueued.
        enqueued_at: Millis,
        /// Tries that failed.
        tries: u32,
        /// What the last one said; `None` when that was before a restart.
        error: Option<String>,
        /// When it is tried again; `None` = when the script changes.
        next_try_at: Option<Millis>,
    },
    /// Classified, but on an ordered queue with an unclassified message before it.
    Stopped {
        /// The first unclassified message.
        first_unclassified: MessageId,
        /// Where that message is.
        place: Box<Self>,
    },
    /// Its delivery failed, and a script is asked what follows.
    Deciding {
        /// Deliveries so far.
        attempts: u32,
    },
    /// A dead letter that a redrive has taken out of the queue's order until it ends.
    Redriving,
    /// It died, and is on its way to the queue's exchange for dead letters.
    Departing {
        /// Why it died, as its headers will say.
        reason: &'static str,
    },
    /// It is a dead letter in the queue's dead-letter queue.
    DeadLettered {
        /// That queue's name.
        queue: String,
    },
}
