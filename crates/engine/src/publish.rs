//! A batch of messages on its way in.

use bytes::Bytes;

use crate::{MessageId, QueueId, Span};

/// Messages that arrived together and get one answer. All spans point into `data`.
#[derive(Clone, Debug, Default)]
pub struct PublishBatch {
    /// The bytes the messages came in.
    pub data: Bytes,
    /// The messages, in the order they are to be stored.
    pub items: Vec<PublishItem>,
    /// Targets of items that go to several queues ([`PublishTarget::Queues`]).
    pub routes: Vec<QueueId>,
}

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishTarget {
    /// One queue, by name.
    Name(Span),
    /// Several queues: `len` ids in [`PublishBatch::routes`] from `start`. One body, one confirm.
    Queues(Span),
    /// The session already refused it; kept so that results stay in request order.
    Refused(PublishError),
}

/// One message.
#[derive(Clone, Copy, Debug)]
pub struct PublishItem {
    /// Its destination.
    pub target: PublishTarget,
    /// Headers and payload in the layout of [`crate::Content`].
    pub content: Span,
    /// The fairness key; length 0 = the unkeyed group.
    pub fairness_key: Span,
    /// The key's weight; 0 means 1.
    pub weight: u32,
    /// Not deliverable before `enqueued_at` plus this.
    pub delay_ms: u64,
    /// The producer's idempotency key.
    pub idempotency_key: Option<Span>,
    /// Strict priority, higher first.
    pub priority: u8,
    /// Not written to disk: lost at restart.
    pub transient: bool,
}

/// The answer for one message, in request order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishResult {
    /// Stored under this id.
    Stored(MessageId),
    /// Not stored: the queue remembers its deduplication key from this message.
    Duplicate(MessageId),
    /// Not stored.
    Refused(PublishError),
}

/// Why one message was not stored. Reaches: that message only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishError {
    /// No queue of that name.
    QueueNotFound,
    /// Dead-letter queues take no messages from outside.
    ReservedQueueName,
    /// The caller may not publish there.
    Forbidden,
    /// No value for the queue's ordering key, and the queue rejects such messages.
    OrderingKeyMissing,
    /// The body is over `limits.max_message`.
    TooLarge,
    /// The queue is at its maximum length and rejects what comes on top.
    QueueFull,
    /// The queue's `on_enqueue` script failed on it, and the queue rejects such messages.
    ScriptFailed,
    /// The queue's `on_enqueue` script did not end in time, and the queue rejects such messages.
    ScriptTimedOut,
    /// Too much waits for the queue's script. If one item of a batch has it, all have it, and
    /// nothing of the batch was taken.
    Overloaded,
    /// The disk is full or the log failed: try again later.
    Storage,
}
