//! What AMQP and FireMQ say of a queue when they declare it.
//!
//! Owns: the policies that only such queues have, what their arguments mean, which arguments are
//! refused, when a second declaration means the same queue, and how all that is recorded. It
//! refuses to know what the policies do: that is the queue's and the engine's business.

mod arguments;
mod equivalence;
mod record;

use bytes::Bytes;

pub(crate) use arguments::{Declared, QueueText, queue_text};
pub(crate) use equivalence::check_same;
pub(crate) use record::{decode_policy, encode_policy};

/// The policies of a queue that AMQP or FireMQ declared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AmqpPolicy {
    /// It survives a restart. Never together with `exclusive`.
    pub durable: bool,
    /// It is its declaring connection's, and goes with it.
    pub exclusive: bool,
    /// It goes with its last consumer.
    pub auto_delete: bool,
    /// What it was declared with: an AMQP field table without its length.
    pub args: Bytes,
    /// `x-queue-type`.
    pub kind: QueueKind,
    /// `x-message-ttl`: messages leave so long after they came in. 0 = unless delivered at once.
    pub message_ttl_ms: Option<u64>,
    /// `x-expires`: it is deleted when nobody used it for so long; at least 1.
    pub expires_ms: Option<u64>,
    /// `x-max-length`: ready messages at most.
    pub max_messages: Option<u64>,
    /// `x-max-length-bytes`: bytes of the bodies of ready messages at most.
    pub max_bytes: Option<u64>,
    /// `x-overflow`: what gives way when one of both is reached.
    pub overflow: AmqpOverflow,
    /// `x-dead-letter-exchange`.
    pub dead_letter_exchange: Option<String>,
    /// `x-dead-letter-routing-key`; only with an exchange.
    pub dead_letter_routing_key: Option<String>,
    /// `x-max-priority`: a higher priority counts as this.
    pub max_priority: Option<u8>,
    /// `x-single-active-consumer`.
    pub single_active_consumer: bool,
    /// `x-delivery-limit`: returns of one message before it is dead-lettered.
    pub delivery_limit: Option<u32>,
    /// `x-consumer-timeout`: how long a consumer may hold a message, whatever its door says.
    pub consumer_timeout_ms: Option<u64>,
    /// `x-fairness-key`: the header whose value is a message's fairness key when it brings none.
    pub fairness_key: Option<String>,
}

/// `x-queue-type`. There is one kind of queue; the word decides what may be asked of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueKind {
    /// `classic`, also when nothing is said.
    #[default]
    Classic,
    /// `quorum`: durable, not exclusive, not deleted with its last consumer.
    Quorum,
}

/// `x-overflow`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AmqpOverflow {
    /// The messages at the head are dropped, or dead-lettered where there is an exchange for it.
    #[default]
    DropHead,
    /// The new message is refused.
    Reject,
    /// The new message is refused, and dead-lettered.
    RejectDeadLetter,
}

impl AmqpPolicy {
    /// Its messages are in memory only, and it is gone after a restart.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        !self.durable
    }

    /// Its consumers are told how often a message came back.
    #[must_use]
    pub const fn counts_returns(&self) -> bool {
        matches!(self.kind, QueueKind::Quorum)
    }

    /// Something limits its ready messages.
    #[must_use]
    pub const fn is_limited(&self) -> bool {
        self.max_messages.is_some() || self.max_bytes.is_some()
    }
}
