//! What a subscriber declares, and what it may declare (fila.md, 'Throttle declarations').

use super::ThrottleLimit;
use crate::{KeyKind, KeyPart, Limits, SubscribeError};

/// A throttle as one subscriber declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThrottleSpec {
    /// Subscribers that declare the same name share its buckets.
    pub name: String,
    /// At least one; all of them hold.
    pub limits: Vec<ThrottleLimit>,
    /// What messages share a bucket; no parts = all messages share one.
    pub key: Vec<KeyPart>,
    /// What happens to messages that lack a part of the key.
    pub missing: MissingThrottleKey,
}

/// What a throttle does with a message that lacks a part of its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingThrottleKey {
    /// All such messages share one bucket.
    #[default]
    SharedBucket,
    /// Such messages are not limited.
    Unthrottled,
}

/// Longest name in bytes: it stands in every record of charges.
const NAME_BYTES_MAX: usize = 255;

/// Checks all that does not depend on what others declare.
pub(crate) fn check_declarations(
    throttles: &[ThrottleSpec],
    limits: &Limits,
) -> Result<(), SubscribeError> {
    let invalid = |name: &str, problem: String| SubscribeError::InvalidThrottle {
        name: name.to_owned(),
        problem,
    };
    let (count, max) = (throttles.len(), limits.throttles_max);
    if count > max {
        let problem = format!("{count} throttles are declared: {max} are allowed");
        return Err(invalid("", problem));
    }
    for (at, throttle) in throttles.iter().enumerate() {
        let name = throttle.name.as_str();
        check(throttle, limits).map_err(|problem| invalid(name, problem))?;
        let before = throttles.iter().take(at);
        if before.into_iter().any(|other| other.name == name) {
            let problem = "the name is declared twice in this subscription".to_owned();
            return Err(invalid(name, problem));
        }
    }
    Ok(())
}

fn check(throttle: &ThrottleSpec, limits: &Limits) -> Result<(), String> {
    let len = throttle.name.len();
    if len == 0 || len > NAME_BYTES_MAX {
        return Err(format!(
            "a name has 1 to {NAME_BYTES_MAX} bytes, this one has {len}"
        ));
    }
    let (count, max) = (throttle.limits.len(), limits.throttle_limits_max);
    if count == 0 || count > max {
        return Err(format!(
            "a throttle has 1 to {max} limits, this one has {count}"
        ));
    }
    let zero = |it: &&ThrottleLimit| it.max_deliveries == 0 || it.window_ms == 0;
    if let Some(it) = throttle.limits.iter().find(zero) {
        let (deliveries, ms) = (it.max_deliveries, it.window_ms);
        return Err(format!(
            "{deliveries} deliveries in {ms} ms: both must be 1 or more"
        ));
    }
    check_key(&throttle.key, limits)?;
    for limit in &throttle.limits {
        let implied = |it: &&ThrottleLimit| *it != limit && it.implies(*limit);
        if let Some(other) = throttle.limits.iter().find(implied) {
            return Err(format!(
                "{} deliveries in {} ms are never reached, because {} in {} ms are reached first: \
                 leave that limit out",
                limit.max_deliveries, limit.window_ms, other.max_deliveries, other.window_ms
            ));
        }
    }
    Ok(())
}

fn check_key(key: &[KeyPart], limits: &Limits) -> Result<(), String> {
    let (count, max) = (key.len(), limits.key_parts_max);
    if count > max {
        return Err(format!("its key has {count} parts: {max} are allowed"));
    }
    for part in key {
        let is_named = match part.kind {
            KeyKind::Header | KeyKind::Attribute => true,
            KeyKind::FairnessKey => false,
            KeyKind::IdempotencyKey | KeyKind::Payload | KeyKind::AllHeaders => {
                return Err(
                    "its key has a part that only deduplication keys can have: use headers, \
                     attributes and the fairness key"
                        .to_owned(),
                );
            }
        };
        if is_named == part.name.is_empty() {
            return Err(
                "in its key headers and attributes have names, and the fairness key has none"
                    .to_owned(),
            );
        }
    }
    Ok(())
}
