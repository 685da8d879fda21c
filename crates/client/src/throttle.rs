//! Limits that a consumer declares on what is delivered to it and its like.
//!
//! Owns: building a declaration, and saying what is wrong with one before it is sent.
//! Refuses to know: what other subscriptions declare under the same name.

use std::fmt;
use std::time::Duration;

pub use tanda_wire::fila::consume::WhenThrottleKeyMissing;
use tanda_wire::fila::consume::{ThrottleDeclaration, ThrottleLimit};

use crate::message::whole_ms;
use crate::property_key::{KeyPart, PropertyKey};

/// A named set of limits: at most so many deliveries in any sliding window of a length, per value
/// of the key. Subscriptions that declare the same name share the counts, across queues.
///
/// ```
/// use std::time::Duration;
/// use tanda_client::{KeyPart, Throttle};
///
/// let throttle = Throttle::new("smtp")
///     .at_most(20).per(Duration::from_secs(1))
///     .at_most(500).per(Duration::from_secs(60))
///     .keyed_by([KeyPart::header("domain")]);
/// assert_eq!(throttle.check(), Ok(()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Throttle {
    name: String,
    limits: Vec<ThrottleLimit>,
    key: PropertyKey,
    when_missing: WhenThrottleKeyMissing,
}

/// A limit that lacks its window.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "per() says in which window"]
pub struct AtMost {
    throttle: Throttle,
    max_deliveries: u64,
}

impl AtMost {
    /// In any window of this length, wherever it begins. Parts of a millisecond count as a whole
    /// one.
    #[must_use]
    pub fn per(self, window: Duration) -> Throttle {
        let mut throttle = self.throttle;
        throttle.limits.push(ThrottleLimit {
            max_deliveries: self.max_deliveries,
            window_ms: whole_ms(window),
        });
        throttle
    }
}

impl Throttle {
    /// A throttle of this name, with one bucket for all messages and no limit yet; it needs at
    /// least one.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            limits: Vec::new(),
            key: PropertyKey::default(),
            when_missing: WhenThrottleKeyMissing::SharedBucket,
        }
    }

    /// Adds a limit: so many deliveries, and [`per`](AtMost::per) says in which window. All limits
    /// hold.
    pub const fn at_most(self, deliveries: u64) -> AtMost {
        AtMost {
            throttle: self,
            max_deliveries: deliveries,
        }
    }

    /// Counts each combination of values of these properties in a bucket of its own: headers, the
    /// fairness key, and attributes that the queue's script returned.
    #[must_use]
    pub fn keyed_by(mut self, parts: impl IntoIterator<Item = KeyPart>) -> Self {
        self.key = PropertyKey::of(parts);
        self
    }

    /// What happens to messages that lack a part of the key. If nothing is said, they share one
    /// bucket.
    #[must_use]
    pub const fn when_missing(mut self, policy: WhenThrottleKeyMissing) -> Self {
        self.when_missing = policy;
        self
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Looks for what every server refuses.
    ///
    /// # Errors
    /// The first problem. Opening a subscription checks too.
    pub fn check(&self) -> Result<(), InvalidThrottle> {
        let problem = self.problem();
        problem.map_or(Ok(()), |problem| Err(self.invalid(problem)))
    }

    fn invalid(&self, problem: ThrottleProblem) -> InvalidThrottle {
        InvalidThrottle {
            name: self.name.clone(),
            problem,
        }
    }

    fn problem(&self) -> Option<ThrottleProblem> {
        if self.name.is_empty() {
            return Some(ThrottleProblem::NoName);
        }
        if self.limits.is_empty() {
            return Some(ThrottleProblem::NoLimit);
        }
        for limit in &self.limits {
            if limit.max_deliveries == 0 {
                return Some(ThrottleProblem::NoDeliveries);
            }
            if limit.window_ms == 0 {
                return Some(ThrottleProblem::NoWindow);
            }
        }
        let foreign = self.key.parts.iter().find(|part| !fits(part));
        if let Some(part) = foreign {
            return Some(ThrottleProblem::KeyPart { part: part.clone() });
        }
        self.useless_limit()
    }

    /// A limit that another one of this throttle keeps already.
    fn useless_limit(&self) -> Option<ThrottleProblem> {
        for limit in &self.limits {
            let keeper = self
                .limits
                .iter()
                .find(|other| *other != limit && keeps(other, limit));
            if let Some(because) = keeper {
                return Some(ThrottleProblem::NeverApplies {
                    limit: limit.clone(),
                    because: because.clone(),
                });
            }
        }
        None
    }

    pub(crate) fn to_wire(&self) -> ThrottleDeclaration<'_> {
        ThrottleDeclaration {
            name: &self.name,
            limits: self.limits.clone(),
            key: self.key.to_wire(),
            when_key_missing: self.when_missing.to_wire(),
        }
    }
}

/// Checks all throttles of one subscription.
pub(crate) fn check_all(throttles: &[Throttle]) -> Result<(), InvalidThrottle> {
    for (at, throttle) in throttles.iter().enumerate() {
        throttle.check()?;
        let before = throttles.iter().take(at);
        if before.into_iter().any(|other| other.name == throttle.name) {
            return Err(throttle.invalid(ThrottleProblem::NameRepeated));
        }
    }
    Ok(())
}

/// `Encoding Primitives`: kinds 3 to 5 are for deduplication keys.
const fn fits(part: &KeyPart) -> bool {
    match part {
        KeyPart::Header(_) | KeyPart::FairnessKey | KeyPart::Attribute(_) => true,
        // A kind of a later protocol is for the server to judge.
        KeyPart::Unknown { .. } => true,
        KeyPart::IdempotencyKey | KeyPart::PayloadHash | KeyPart::HeadersHash => false,
    }
}

/// Whether deliveries that keep `this` can never pass `limit`: a window of `limit` is covered by
/// so many windows of `this`.
const fn keeps(this: &ThrottleLimit, limit: &ThrottleLimit) -> bool {
    let windows = limit.window_ms.div_ceil(this.window_ms);
    this.max_deliveries.saturating_mul(windows) <= limit.max_deliveries
}

/// A throttle that no server takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidThrottle {
    /// Its name.
    pub name: String,
    /// What is wrong.
    pub problem: ThrottleProblem,
}

/// What is wrong with a throttle.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThrottleProblem {
    /// Its name is empty.
    NoName,
    /// The subscription declares another one of the same name.
    NameRepeated,
    /// It has no limit.
    NoLimit,
    /// A limit allows nothing.
    NoDeliveries,
    /// The window of a limit is empty.
    NoWindow,
    /// A property that no throttle can be keyed by.
    KeyPart {
        /// The part of the key.
        part: KeyPart,
    },
    /// A limit that is never reached, because another one is reached first.
    NeverApplies {
        /// The useless limit.
        limit: ThrottleLimit,
        /// The one that is reached first.
        because: ThrottleLimit,
    },
}

impl fmt::Display for InvalidThrottle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "throttle {:?} is invalid: {}", self.name, self.problem)
    }
}

impl std::error::Error for InvalidThrottle {}

impl fmt::Display for ThrottleProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoName => f.write_str("it needs a name"),
            Self::NameRepeated => {
                f.write_str("the subscription declares its name twice; put all limits into one")
            }
            Self::NoLimit => f.write_str("it needs at least one limit"),
            Self::NoDeliveries => f.write_str("a limit must allow at least one delivery"),
            Self::NoWindow => f.write_str("a window must be at least a millisecond long"),
            Self::KeyPart { part } => write!(
                f,
                "its key has {part:?}, but takes headers, attributes and the fairness key only"
            ),
            Self::NeverApplies { limit, because } => write!(
                f,
                "{} deliveries in {} ms are never reached, because {} in {} ms are reached first; \
                 remove that limit or correct it",
                limit.max_deliveries, limit.window_ms, because.max_deliveries, because.window_ms
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(limits: &[(u64, u64)]) -> Throttle {
        limits.iter().fold(Throttle::new("t"), |throttle, limit| {
            throttle
                .at_most(limit.0)
                .per(Duration::from_millis(limit.1))
        })
    }

    fn problem(throttle: &Throttle) -> Option<ThrottleProblem> {
        throttle.check().err().map(|error| error.problem)
    }

    #[test]
    fn what_can_hold_passes() {
        let key = [
            KeyPart::header("a"),
            KeyPart::FairnessKey,
            KeyPart::attribute("b"),
        ];
        let throttle = limited(&[(20, 1_000), (500, 60_000), (5_000, 3_600_000)]).keyed_by(key);
        assert_eq!(throttle.check(), Ok(()));
        assert_eq!(limited(&[(1, 1)]).check(), Ok(()));
        assert_eq!(limited(&[(u64::MAX, u64::MAX)]).check(), Ok(()));
        // A window of 1.5 s is covered by two of 1 s, which may hold 40.
        assert_eq!(limited(&[(20, 1_000), (39, 1_500)]).check(), Ok(()));
    }

    #[test]
    fn what_is_incomplete_is_named() {
        assert_eq!(
            problem(&Throttle::new("").at_most(1).per(Duration::from_secs(1))),
            Some(ThrottleProblem::NoName)
        );
        assert_eq!(problem(&limited(&[])), Some(ThrottleProblem::NoLimit));
        assert_eq!(
            problem(&limited(&[(5, 1_000), (0, 1)])),
            Some(ThrottleProblem::NoDeliveries)
        );
        assert_eq!(
            problem(&limited(&[(5, 0)])),
            Some(ThrottleProblem::NoWindow)
        );
        let part = KeyPart::PayloadHash;
        assert_eq!(
            problem(&limited(&[(5, 1)]).keyed_by([part.clone()])),
            Some(ThrottleProblem::KeyPart { part })
        );
    }

    #[test]
    fn a_limit_that_never_applies_is_named() {
        for (useless, because) in [
            ((100, 1_000), (60, 60_000)),
            ((2_000, 60_000), (20, 1_000)),
            ((40, 1_500), (20, 1_000)),
            ((60, 1_000), (60, 60_000)),
        ] {
            for limits in [[useless, because], [because, useless]] {
                let Some(ThrottleProblem::NeverApplies {
                    limit,
                    because: other,
                }) = problem(&limited(&limits))
                else {
                    panic!("{limits:?}")
                };
                assert_eq!((limit.max_deliveries, limit.window_ms), useless);
                assert_eq!((other.max_deliveries, other.window_ms), because);
            }
        }
    }

    #[test]
    fn a_name_stands_once_in_a_subscription() {
        let one = limited(&[(1, 1)]);
        let error = check_all(&[one.clone(), one]).unwrap_err();
        assert_eq!(error.problem, ThrottleProblem::NameRepeated);
        assert!(error.to_string().starts_with("throttle \"t\" is invalid: "));
    }
}
