//! `GetStats` counts what is there.
//!
//! Source: message life, "`depth` counts pending messages, not the leased ones".

use crate::failure::{Check, ensure};
use crate::history::{History, main_of};

pub(crate) const NAME: &str = "statistics are exact";

/// What `GetStats` said of a queue and its dead-letter queue, at rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) depth: u64,
    pub(crate) in_flight: u64,
}

impl Counted {
    pub(crate) const fn total(self) -> u64 {
        self.depth + self.in_flight
    }
}

/// Before draining: between what must be there and what may be there.
pub(crate) fn before_drain(history: &History, queue: &str, counted: Counted) -> Check {
    let facts = history.queue(queue)?;
    if facts.is_scratch {
        return Ok(());
    }
    let is_committed = facts.is_committed();
    let (mut low, mut high) = (0_u64, 0_u64);
    for (id, message) in &history.messages {
        if history.sent(message.tag)?.queue == queue {
            low += u64::from(history.must_be_there(*id));
            high += u64::from(message.ack_ok.is_none() || !is_committed);
        }
    }
    for sent in history.sent.iter().filter(|sent| sent.queue == queue) {
        high += u64::from(sent.open + sent.unknown);
    }
    let total = counted.total();
    ensure((low..=high).contains(&total), NAME, || {
        format!("{queue:?} has {counted:?}, but from {low} to {high} messages must be there")
    })
}

/// After draining: every message that was counted was delivered, and nothing else.
pub(crate) fn after_drain(history: &History, queue: &str, counted: Counted) -> Check {
    let mut drained = 0;
    for message in history
        .messages
        .values()
        .filter(|message| message.was_drained)
    {
        drained += u64::from(history.sent(message.tag)?.queue == queue);
    }
    ensure(drained == counted.total(), NAME, || {
        format!("{queue:?} had {counted:?}, and {drained} messages came out of it")
    })
}

/// After draining, each counter is zero.
pub(crate) fn at_the_end(queue: &str, counters: &[(&str, u64)]) -> Check {
    let (main, _) = main_of(queue);
    for (name, value) in counters {
        ensure(*value == 0, NAME, || {
            format!("{main:?} is drained, but {name} of {queue:?} is {value}")
        })?;
    }
    Ok(())
}
