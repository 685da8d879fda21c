//! What a message says of the queues it died in.
//!
//! A message that is dead-lettered to an exchange carries its history in its headers, as RabbitMQ 4
//! writes it (`mc:record_death`, `mc_amqpl:death_table`): `x-death` with one table per queue and
//! reason, newest first, and the first and last death in headers of their own. Owns what becomes
//! of that with another death, and whether a message goes round in a circle. It refuses to know
//! the bytes of any protocol.

use crate::Millis;

/// Why a message died.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// A consumer said so.
    Rejected,
    /// Its time had come.
    Expired,
    /// Its queue was full.
    MaxLength,
    /// It was returned too often.
    DeliveryLimit,
}

impl Reason {
    /// Its word in headers.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::MaxLength => "maxlen",
            Self::DeliveryLimit => "delivery_limit",
        }
    }
}

/// Headers that say of the first and the last death what the exchange, the queue and the reason
/// was, in this order.
pub(super) const FIRST: [&str; 3] = [
    "x-first-death-exchange",
    "x-first-death-queue",
    "x-first-death-reason",
];
pub(super) const LAST: [&str; 3] = [
    "x-last-death-exchange",
    "x-last-death-queue",
    "x-last-death-reason",
];

/// The header with all of them.
pub(super) const DEATHS: &str = "x-death";

/// One table of `x-death`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Death {
    pub(super) queue: String,
    pub(super) reason: String,
    pub(super) count: u64,
    /// Where the message had been published to, at the first of these deaths.
    pub(super) exchange: String,
    /// By which keys: the routing key, and those of `CC`.
    pub(super) keys: Vec<String>,
    /// When the first of these deaths was, in seconds since 1970.
    pub(super) time_s: u64,
    /// The expiration, in milliseconds, that the message had when it died there first.
    pub(super) expiration_ms: Option<u64>,
}

/// The history of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    /// Newest first.
    pub(super) deaths: Vec<Death>,
}

/// A death that just happened, as the message's envelope and properties describe it.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewDeath<'a> {
    pub(super) queue: &'a str,
    pub(super) reason: Reason,
    pub(super) at: Millis,
    pub(super) exchange: &'a str,
    pub(super) keys: &'a [String],
    pub(super) expiration_ms: Option<u64>,
}

impl History {
    /// Adds a death: the same one again is counted and comes to the front.
    pub(super) fn record(&mut self, new: &NewDeath<'_>) {
        let reason = new.reason.name();
        let same = |it: &Death| it.queue == new.queue && it.reason == reason;
        let death = if let Some(known) = self.deaths.iter().position(same) {
            let mut known = self.deaths.remove(known);
            known.count = known.count.saturating_add(1);
            known
        } else {
            Death {
                queue: new.queue.to_owned(),
                reason: reason.to_owned(),
                count: 1,
                exchange: new.exchange.to_owned(),
                keys: new.keys.to_vec(),
                time_s: new.at.0 / 1000,
                expiration_ms: new.expiration_ms,
            }
        };
        self.deaths.insert(0, death);
    }

    /// A message that died last as the history says would go round in a circle in `queue`: it has
    /// been there, and nobody rejected it since, so nobody would ever take it out.
    pub(super) fn is_cycle(&self, queue: &str) -> bool {
        let Some(last) = self.deaths.iter().position(|it| it.queue == queue) else {
            return false;
        };
        let since = self.deaths.get(..=last).unwrap_or_default();
        let rejected = Reason::Rejected.name();
        since.iter().all(|it| it.reason != rejected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn died(history: &mut History, queue: &str, reason: Reason) {
        history.record(&NewDeath {
            queue,
            reason,
            at: Millis(5_999),
            exchange: "",
            keys: &["k".to_owned()],
            expiration_ms: None,
        });
    }

    fn lines(history: &History) -> Vec<String> {
        let lines = history.deaths.iter();
        lines
            .map(|it| format!("{} {} {}", it.queue, it.reason, it.count))
            .collect()
    }

    #[test]
    fn deaths_are_counted_by_queue_and_reason_newest_first() {
        let mut history = History::default();
        died(&mut history, "a", Reason::Expired);
        died(&mut history, "b", Reason::Rejected);
        died(&mut history, "a", Reason::MaxLength);
        died(&mut history, "a", Reason::Expired);
        died(&mut history, "c", Reason::DeliveryLimit);
        let expected = [
            "c delivery_limit 1",
            "a expired 2",
            "a maxlen 1",
            "b rejected 1",
        ];
        assert_eq!(lines(&history), expected);
        assert_eq!(history.deaths[0].time_s, 5);
    }

    #[test]
    fn a_circle_is_one_without_a_rejection_in_it() {
        let mut history = History::default();
        assert!(!history.is_cycle("a"));
        died(&mut history, "a", Reason::Expired);
        assert!(history.is_cycle("a"));
        assert!(!history.is_cycle("b"));
        died(&mut history, "b", Reason::Rejected);
        // Somebody rejects it again and again: that may end.
        assert!(!history.is_cycle("a"));
        assert!(!history.is_cycle("b"));
        died(&mut history, "c", Reason::MaxLength);
        assert!(history.is_cycle("c"));
        assert!(!history.is_cycle("a"));
        died(&mut history, "a", Reason::Expired);
        // The newest time in `a` counts.
        assert!(history.is_cycle("a"));
        assert!(history.is_cycle("c"));
    }
}
