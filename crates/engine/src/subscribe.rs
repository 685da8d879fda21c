//! What a consumer asks for.

use crate::{DeliveryBatch, Form, ThrottleSpec, TopologyError, VhostId};

/// A subscription's terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscribeSpec {
    /// The queue's virtual host.
    pub vhost: VhostId,
    /// The queue's name.
    pub queue: String,
    /// Deliveries allowed before more is granted; `None` = unlimited.
    pub credit: Option<u32>,
    /// A limit that it shares with other consumers of its connection ([`crate::Request::Pool`]).
    pub pool: Option<u32>,
    /// How its leases end.
    pub lease: LeaseMode,
    /// A message that it holds unsettled for so long ends the subscription.
    pub ack_timeout_ms: Option<u64>,
    /// Consumers of higher priority are served first while they can take a message.
    pub priority: i32,
    /// It wants to be the queue's only one.
    pub exclusive: bool,
    /// The largest message that it can be sent.
    pub frame_limit: FrameLimit,
    /// What operators see of it.
    pub tag: String,
    /// Throttles that apply to all messages of the queue while it lives.
    pub throttles: Vec<ThrottleSpec>,
}

/// The largest message that a consumer's connection can carry. What a session found not to fit
/// ([`crate::Settlement::Unfit`]) is offered only to consumers with larger frames, or of another
/// protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrameLimit {
    /// Every message fits.
    #[default]
    None,
    /// Properties and headers go in one frame of AMQP, of so many bytes.
    Amqp(u32),
    /// All of a message goes in one frame of FireMQ, of so many bytes.
    Fire(u32),
}

impl FrameLimit {
    /// For a connection whose frames of AMQP have so many bytes. Sizes are told apart by an
    /// eighth of the power of two below them.
    #[must_use]
    pub const fn amqp(frame_bytes: u32) -> Self {
        Self::Amqp(rounded(frame_bytes))
    }

    /// For a connection whose frames of FireMQ have so many bytes, as [`Self::amqp`].
    #[must_use]
    pub const fn fire(frame_bytes: u32) -> Self {
        Self::Fire(rounded(frame_bytes))
    }

    /// Whether a content of this form and length may turn out not to fit. What it becomes in the
    /// terms of another protocol has at most ten times its size: an integer of one byte becomes
    /// nine.
    pub(crate) fn may_be_exceeded(self, form: Form, content_bytes: u32) -> bool {
        /// Names in front, and what is added on the way out.
        const ADDED_BYTES: u64 = 1024;
        let (limit, own) = match self {
            Self::None => return false,
            Self::Amqp(bytes) => (bytes, Form::Amqp),
            Self::Fire(bytes) => (bytes, Form::Fire),
        };
        let growth = if form == own { 1 } else { 10 };
        u64::from(content_bytes) * growth + ADDED_BYTES > u64::from(limit)
    }
}

/// The four highest bits of a number.
const fn rounded(bytes: u32) -> u32 {
    match bytes.checked_ilog2() {
        Some(log @ 4..) => (bytes >> (log - 3)) << (log - 3),
        Some(_) | None => bytes,
    }
}

/// How a lease ends when nobody settles it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeaseMode {
    /// After the queue's visibility timeout, as a failed attempt; outlives the connection.
    #[default]
    Timed,
    /// With the subscription's connection, as a requeue to the old position; no timeout.
    Connection,
    /// There is none: a message is gone once it is delivered. But one that may not fit a frame is
    /// held like one of [`Self::Connection`], and its session acknowledges what it has sent
    /// ([`crate::DeliveryItem::is_leased`]).
    NoAck,
}

/// What becomes of the messages of a subscription that ends, if their leases have no timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Back to their old positions.
    Requeue,
    /// They stay with the connection until it settles them or is gone.
    Keep,
}

/// A change of a credit limit that several consumers of a connection share. Until it is set there
/// is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolChange {
    /// No limit any more.
    Unlimited,
    /// Deliveries allowed from now on; may be negative.
    Set(i64),
    /// More deliveries allowed, or fewer.
    Add(i64),
}

/// Messages are asked for, without a subscription.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GetSpec {
    /// The queue's virtual host.
    pub vhost: VhostId,
    /// The queue's name.
    pub queue: String,
    /// The largest message that can be sent in answer.
    pub frame_limit: FrameLimit,
    /// How many, and what becomes of them.
    pub take: Take,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// One message, which is gone once it is delivered; see [`LeaseMode::NoAck`].
    NoAck,
    /// One message, held until its connection settles it or is gone.
    Held {
        /// How long it may be held unsettled.
        ack_timeout_ms: Option<u64>,
    },
    /// Messages with a lease that outlives the connection ([`LeaseMode::Timed`]). Who has to wait
    /// is served in the order of arrival; [`crate::Request::Unsubscribe`] with the request's token
    /// ends the wait without an answer.
    Leased {
        /// How many at most; as many as are ready, or become so together.
        max: u32,
        /// How long the leases last; `None` = the queue's visibility timeout.
        lease_ms: Option<u64>,
        /// How long to wait for the first one.
        wait_ms: u64,
    },
    /// The messages that would be delivered next, without taking them.
    Look {
        /// How many at most; fewer when the rest is not in memory.
        max: u32,
    },
    /// The oldest message that could be delivered now, without taking it. The one that would be
    /// delivered next may be younger: keys have turns, and priorities go first.
    Oldest,
}

impl Default for Take {
    fn default() -> Self {
        Self::Held {
            ack_timeout_ms: None,
        }
    }
}

/// The answer to a [`GetSpec`].
#[derive(Clone, Debug, Default)]
pub struct Got {
    /// The messages; `None` when none is ready.
    pub batch: Option<DeliveryBatch>,
    /// Ready messages that are left.
    pub remaining: u64,
}

/// Why no message can be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GetError {
    /// No queue of that name.
    NotFound,
    /// The queue is there, and not for this connection.
    Topology(TopologyError),
}

/// Why a subscription was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubscribeError {
    /// No queue of that name.
    QueueNotFound,
    /// The connection already has a live subscription with this token.
    TokenInUse,
    /// The connection has its maximum number of subscriptions.
    TooMany {
        /// `limits.subscriptions_max`.
        max: u32,
    },
    /// A throttle is declared that cannot be.
    InvalidThrottle {
        /// Its name.
        name: String,
        /// What is wrong and what is allowed.
        problem: String,
    },
    /// Other subscribers declare this throttle with another key.
    ThrottleConflict {
        /// Its name.
        name: String,
    },
    /// The queue belongs to another connection. The text is RabbitMQ's.
    ResourceLocked(String),
    /// The queue has a consumer that wants to be the only one, or has others already. The text is
    /// RabbitMQ's.
    AccessRefused(String),
}
