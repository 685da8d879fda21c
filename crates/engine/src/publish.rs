//! A batch of messages on its way in.

use bytes::Bytes;

use crate::{Form, MessageId, QueueId, Span, VhostId};

/// Messages that arrived together and get one answer. All spans point into `data`.
#[derive(Clone, Debug)]
pub struct PublishBatch {
    /// Where names of queues and exchanges belong to.
    pub vhost: VhostId,
    /// The bytes the messages came in.
    pub data: Bytes,
    /// The messages, in the order they are to be stored.
    pub items: Vec<PublishItem>,
    /// Targets of items that go to several queues ([`PublishTarget::Queues`]).
    pub routes: Vec<QueueId>,
    /// Routing keys of items that have more than the one in their content (CC and BCC).
    pub extra_keys: Vec<Span>,
    /// Somebody waits for the answer to mean that the messages are on disk; otherwise it waits for
    /// nothing.
    pub confirm: bool,
}

impl Default for PublishBatch {
    fn default() -> Self {
        Self {
            vhost: VhostId::DEFAULT,
            data: Bytes::new(),
            items: Vec::new(),
            routes: Vec::new(),
            extra_keys: Vec::new(),
            confirm: true,
        }
    }
}

impl PublishBatch {
    /// The keys an item has besides the one in its content.
    pub(crate) fn extra_keys_of(&self, item: &PublishItem) -> &[Span] {
        let (start, len) = (item.extra_keys.start as usize, item.extra_keys.len as usize);
        let keys = self.extra_keys.get(start..start.saturating_add(len));
        keys.unwrap_or_default()
    }

    pub(crate) fn weight_bytes(&self) -> usize {
        self.data.len()
            + size_of_val(self.items.as_slice())
            + size_of_val(self.routes.as_slice())
            + size_of_val(self.extra_keys.as_slice())
    }
}

/// Where a message goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PublishTarget {
    /// One queue, by name.
    Name(Span),
    /// Several queues: `len` ids in [`PublishBatch::routes`] from `start`. One body, one confirm.
    Queues(Span),
    /// The queues that the exchange of the content's envelope gives its routing key to.
    #[default]
    Route,
    /// The same, of an exchange that must be a topic exchange; a durable one is made when there is
    /// none, but not by a [`crate::Request::Transaction`]. The result is [`PublishResult::Sent`].
    Topic,
    /// The session already refused it; kept so that results stay in request order.
    Refused(PublishError),
}

/// One message.
#[derive(Clone, Copy, Debug, Default)]
pub struct PublishItem {
    /// Its destination.
    pub target: PublishTarget,
    /// Headers and payload in the layout of [`crate::Content`].
    pub content: Span,
    /// Which layout that is.
    pub form: Form,
    /// Range in [`PublishBatch::extra_keys`]: more keys to route by. Only [`PublishTarget::Route`].
    pub extra_keys: Span,
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
    /// It leaves the queue, undelivered, this long after `enqueued_at`.
    pub ttl_ms: Option<u64>,
}

/// The answer for one message, in request order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishResult {
    /// Stored under this id.
    Stored(MessageId),
    /// Not stored: the queue remembers its deduplication key from this message.
    Duplicate(MessageId),
    /// Not stored: its exchange gives it to no queue, and no watch.
    Unroutable,
    /// Of [`PublishTarget::Topic`]: stored in all queues it goes to. Else: no queue gets it, and
    /// only watches do.
    Sent {
        /// Watches that took it, and queues that stored it or have a script that decides on it.
        receivers: u32,
    },
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
    /// No exchange of that name.
    ExchangeNotFound,
    /// The exchange takes messages from other exchanges only.
    ExchangeInternal,
    /// The exchange is no topic exchange ([`PublishTarget::Topic`]).
    ExchangeNotTopic,
    /// The topic exchange is not there, and there are `limits.exchanges_max` others.
    TooManyExchanges,
    /// The disk is full or the log failed: try again later.
    Storage,
}
