//! Limits that a consumer declares on what is delivered to it and its like.

use std::time::Duration;

use tanda_wire::fila::consume::{ThrottleDeclaration, ThrottleLimit, WhenThrottleKeyMissing};

use crate::message::whole_ms;
use crate::property_key::PropertyKey;

/// A named set of limits: at most so many deliveries in any sliding window of a length, per value
/// of the key. Subscriptions that declare the same name share the counts, across queues.
///
/// ```
/// use std::time::Duration;
/// use tanda_client::{PropertyKey, Throttle};
///
/// let throttle = Throttle::named("smtp")
///     .limit(20, Duration::from_secs(1))
///     .limit(500, Duration::from_secs(60))
///     .key(PropertyKey::header("domain"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Throttle {
    name: String,
    limits: Vec<ThrottleLimit>,
    key: PropertyKey,
    when_key_missing: WhenThrottleKeyMissing,
}

impl Throttle {
    /// A throttle of this name, with one bucket for all messages and no limit yet; the server asks
    /// for at least one.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            limits: Vec::new(),
            key: PropertyKey::default(),
            when_key_missing: WhenThrottleKeyMissing::SharedBucket,
        }
    }

    /// Adds a limit: at most `max_deliveries` in any window of this length. All limits hold.
    #[must_use]
    pub fn limit(mut self, max_deliveries: u64, window: Duration) -> Self {
        self.limits.push(ThrottleLimit {
            max_deliveries,
            window_ms: whole_ms(window),
        });
        self
    }

    /// Counts each value of this key in a bucket of its own.
    #[must_use]
    pub fn key(mut self, key: PropertyKey) -> Self {
        self.key = key;
        self
    }

    /// Does not limit messages that lack a part of the key. Without this they share one bucket.
    #[must_use]
    pub const fn unthrottled_without_key(mut self) -> Self {
        self.when_key_missing = WhenThrottleKeyMissing::Unthrottled;
        self
    }

    pub(crate) fn to_wire(&self) -> ThrottleDeclaration<'_> {
        ThrottleDeclaration {
            name: &self.name,
            limits: self.limits.clone(),
            key: self.key.to_wire(),
            when_key_missing: self.when_key_missing.to_wire(),
        }
    }
}
