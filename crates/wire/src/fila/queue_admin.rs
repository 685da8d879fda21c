//! Creating, changing, removing and listing queues.

use super::error_code::ErrorCode;
use super::property_key::PropertyKey;
use super::table::named_values;
use super::wire_struct::wire_struct;

named_values! {
    /// How a queue orders deliveries.
    pub enum QueueOrdering {
        /// It does not.
        None = 0,
        /// One message of the queue at a time.
        WholeQueue = 1,
        /// One message at a time per value of the ordering key.
        ByKey = 2,
    }
}

named_values! {
    /// What an ordered queue does with a message that lacks a part of the ordering key.
    pub enum WhenOrderingKeyMissing {
        /// Refuses it.
        Reject = 0,
        /// Takes it outside every group.
        Unordered = 1,
    }
}

named_values! {
    /// What a queue does with a message on which its `on_enqueue` script fails.
    pub enum ScriptFailure {
        /// Refuses it.
        Reject = 0,
        /// Keeps it, undelivered, until the script works.
        Park = 1,
    }
}

named_values! {
    /// How the delay before retries grows.
    pub enum Backoff {
        /// As the server is configured.
        ServerDefault = 0,
        /// No delay.
        None = 1,
        /// The initial delay every time.
        Fixed = 2,
        /// Doubling from the initial to the maximal delay.
        Exponential = 3,
    }
}

named_values! {
    /// Whether a lease is on disk before its message leaves.
    pub enum DeliveryDurability {
        /// It is.
        Committed = 0,
        /// It is not; a crash may deliver again.
        Fast = 1,
    }
}

named_values! {
    /// What an update does to a script.
    pub enum ScriptChange {
        /// Leaves it.
        Unchanged = 0,
        /// Sets it.
        Set = 1,
        /// Removes it.
        Remove = 2,
    }
}

wire_struct! {
    /// Makes a queue and its dead-letter queue. Zeros mean the server's defaults.
    pub struct CreateQueue<'a>: CreateQueue {
        /// The name; must not end in `.dlq`.
        name: &'a str,
        /// Lua source of the hook that classifies new messages.
        on_enqueue_script: Option<&'a str> as optional_text,
        /// Lua source of the hook that decides about failed deliveries.
        on_failure_script: Option<&'a str> as optional_text,
        /// Length of a lease; 0 = server default.
        visibility_timeout_ms: u64,
        /// A [`QueueOrdering`].
        ordering: u8,
        /// Empty unless `ordering` is 2.
        ordering_key: PropertyKey<'a>,
        /// A [`WhenOrderingKeyMissing`]; counts only when `ordering` is 2.
        when_ordering_key_missing: u8,
        /// No parts: the queue itself defines no deduplication.
        dedup_key: PropertyKey<'a>,
        /// How long a key is remembered after its message left; 0 = server default.
        dedup_window_ms: u64,
        /// A [`ScriptFailure`].
        script_failure: u8,
        /// Failed classifications before a parked message is dead-lettered; 0 = never.
        park_dead_letter_after: u32,
        /// Deliveries before dead-lettering; 0 = server default.
        max_attempts: u32,
        /// A [`Backoff`].
        backoff: u8,
        /// First or fixed delay; 0 = server default.
        backoff_initial_ms: u64,
        /// Largest delay, exponential only; 0 = server default.
        backoff_max_ms: u64,
        /// A [`DeliveryDurability`].
        delivery_durability: u8,
        /// How long leases of before a crash are honoured, fast queues only; 0 = server default.
        reclaim_grace_ms: u64,
    }

    /// Answers `CreateQueue`.
    pub struct CreateQueueResult<'a>: CreateQueueResult {
        /// `Ok`, or why not.
        error_code: ErrorCode,
        /// The new queue's ID; empty on an error.
        queue_id: &'a str,
    }

    /// Changes settings of a queue; what is absent stays as it is.
    pub struct UpdateQueue<'a>: UpdateQueue {
        /// The queue to change.
        queue: &'a str,
        /// A [`ScriptChange`].
        on_enqueue_change: u8,
        /// Empty unless `on_enqueue_change` is 1.
        on_enqueue_script: &'a str as text,
        /// A [`ScriptChange`].
        on_failure_change: u8,
        /// Empty unless `on_failure_change` is 1.
        on_failure_script: &'a str as text,
        /// See [`CreateQueue::visibility_timeout_ms`].
        visibility_timeout_ms: Option<u64>,
        /// See [`CreateQueue::dedup_window_ms`].
        dedup_window_ms: Option<u64>,
        /// See [`CreateQueue::max_attempts`].
        max_attempts: Option<u32>,
        /// A [`Backoff`].
        backoff: Option<u8>,
        /// See [`CreateQueue::backoff_initial_ms`].
        backoff_initial_ms: Option<u64>,
        /// See [`CreateQueue::backoff_max_ms`].
        backoff_max_ms: Option<u64>,
        /// A [`DeliveryDurability`].
        delivery_durability: Option<u8>,
        /// See [`CreateQueue::reclaim_grace_ms`].
        reclaim_grace_ms: Option<u64>,
        /// See [`CreateQueue::park_dead_letter_after`].
        park_dead_letter_after: Option<u32>,
    }

    /// Answers `UpdateQueue`.
    pub struct UpdateQueueResult: UpdateQueueResult {
        /// `Ok`, or why nothing changed.
        error_code: ErrorCode,
    }

    /// Removes a queue and its dead-letter queue.
    pub struct DeleteQueue<'a>: DeleteQueue {
        /// The queue to remove.
        queue: &'a str,
    }

    /// Answers `DeleteQueue`.
    pub struct DeleteQueueResult: DeleteQueueResult {
        /// `Ok`, or why not.
        error_code: ErrorCode,
    }

    /// Asks for the queues the caller may touch.
    pub struct ListQueues: ListQueues {}

    /// Answers `ListQueues`.
    pub struct ListQueuesResult<'a>: ListQueuesResult {
        /// `Ok`, or why not.
        error_code: ErrorCode,
        /// 0 on a single node.
        cluster_node_count: u32,
        /// The queues.
        queues: Vec<QueueInfo<'a>>,
    }

    /// One queue of a listing.
    pub struct QueueInfo<'a> {
        /// Its name.
        name: &'a str,
        /// Messages waiting, leased ones not counted.
        depth: u64,
        /// Messages leased.
        in_flight: u64,
        /// Subscriptions.
        active_consumers: u32,
        /// 0 on a single node.
        leader_node_id: u64,
    }
}
