//! What a consumer asks for.

use crate::ThrottleSpec;

/// A subscription's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscribeSpec {
    /// The queue's name.
    pub queue: String,
    /// Deliveries allowed before more is granted; `None` = unlimited.
    pub credit: Option<u32>,
    /// How its leases end.
    pub lease: LeaseMode,
    /// Throttles that apply to all messages of the queue while it lives.
    pub throttles: Vec<ThrottleSpec>,
}

/// How a lease ends when nobody settles it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseMode {
    /// After the queue's visibility timeout, as a failed attempt; outlives the connection.
    Timed,
    /// With the subscription's connection, as a requeue to the old position; no timeout.
    Connection,
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
}
