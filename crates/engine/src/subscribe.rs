//! What a consumer asks for.

use crate::{DeliveryBatch, ThrottleSpec, TopologyError, VhostId};

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
    /// What operators see of it.
    pub tag: String,
    /// Throttles that apply to all messages of the queue while it lives.
    pub throttles: Vec<ThrottleSpec>,
}

/// How a lease ends when nobody settles it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeaseMode {
    /// After the queue's visibility timeout, as a failed attempt; outlives the connection.
    #[default]
    Timed,
    /// With the subscription's connection, as a requeue to the old position; no timeout.
    Connection,
    /// There is none: a message is gone once it is delivered.
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
    /// How many, and what becomes of them.
    pub take: Take,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// One message, which is gone once it is delivered.
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
