//! What clients sent and saw: the only knowledge the checks use.
//!
//! Owns the facts and when each check is asked. Refuses to know the broker's state: everything
//! here comes from bytes on the clients' side of the wire.

pub(crate) mod amaquet;
pub(crate) mod amqp;
mod keys;
mod message;
mod order;
mod purge;
mod queue;
mod settled;

use std::collections::BTreeMap;

use tanda_engine::Millis;
use tanda_wire::fila::delivery::DeliveryMessage;

use crate::failure::{Check, Violation, ensure};
use crate::host::Death;
use crate::invariants;
use crate::invariants::scripted::Decided;

pub(crate) use keys::{Change, Holder, KeyFacts, Keys, Need, Right, draw_acl};
pub(crate) use message::{Holding, MessageFacts, Sent, enqueued_at};
use order::Order;
pub(crate) use purge::Purge;
use queue::earlier;
pub(crate) use queue::{
    Dedup, GROUP_HEADER, Grouping, QueueDraw, QueueFacts, TAG_HEADER, ThrottleDraw, attempts_max,
    dedup_window_ms, lease_ms,
};
pub(crate) use settled::{Forbidden, Settled};

/// A message that some consumer holds; any consumer may settle it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    /// The queue it was delivered from.
    pub(crate) queue: String,
    pub(crate) id: u128,
}

/// A message that came while its queue was drained.
#[derive(Clone, Debug)]
pub(crate) struct Drained {
    pub(crate) queue: String,
    pub(crate) id: u128,
    pub(crate) leased_at: Millis,
}

/// Counters of a run, to see that it did something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages confirmed as new.
    pub confirmed: u64,
    /// Answers that named an original.
    pub duplicates: u64,
    /// Sends without an answer.
    pub unknown_sends: u64,
    /// Messages delivered, repetitions included.
    pub delivered: u64,
    /// Acks answered with Ok.
    pub acked: u64,
    /// Nacks answered with Ok.
    pub nacked: u64,
    /// Deliveries from dead-letter queues.
    pub dead_lettered: u64,
    /// Deliveries of redriven messages.
    pub redriven: u64,
    /// What keys did not allow: messages, settlements, subscriptions.
    pub forbidden: u64,
    /// Connections whose key was no good, or no longer.
    pub turned_away: u64,
    /// Deliveries of messages that were held with a key when it was revoked.
    pub inherited: u64,
}

/// Everything known so far.
#[derive(Default)]
pub(crate) struct History {
    pub(crate) queues: BTreeMap<String, QueueFacts>,
    pub(crate) sent: Vec<Sent>,
    pub(crate) messages: BTreeMap<u128, MessageFacts>,
    /// Held messages that their consumers left to others.
    pub(crate) pool: Vec<Held>,
    /// No faults any more; every delivery counts as drained.
    pub(crate) is_draining: bool,
    pub(crate) counts: Counts,
    pub(crate) purges: Vec<Purge>,
    /// What came out of queues, dead-letter queues aside, while they were drained.
    pub(crate) drained: Vec<Drained>,
    /// The newest decision about each failed message that no crash may have taken back.
    pub(crate) decided: BTreeMap<u128, Decided>,
    /// When messages of each bucket were leased, in order, by the throttle's name and key.
    pub(crate) throttled: BTreeMap<(String, String), Vec<u64>>,
    /// What is known of API keys.
    pub(crate) keys: Keys,
    /// What AMQP clients sent and saw.
    pub(crate) amqp: amqp::Amqp,
    /// What Amaquet clients sent and saw.
    pub(crate) amaquet: amaquet::Amaquet,
    /// Contents are small: memory has a limit, and the largest record counts.
    pub(crate) is_small: bool,
    /// Things that happened so far.
    pub(crate) ticks: u64,
}

/// The queue a name belongs to, and whether it is its dead-letter queue.
pub(crate) fn main_of(name: &str) -> (&str, bool) {
    name.strip_suffix(".dlq")
        .map_or((name, false), |main| (main, true))
}

/// What an `EnqueueResult` said of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendOutcome {
    New(u128),
    Duplicate(u128),
    Refused,
    /// No answer will come.
    Unknown,
}

impl History {
    pub(crate) fn queue(&self, name: &str) -> Result<&QueueFacts, Violation> {
        self.queues.get(main_of(name).0).ok_or_else(|| Violation {
            invariant: invariants::delivered_was_sent::NAME,
            what: format!("queue {name:?} was never created"),
        })
    }

    pub(crate) fn sent(&self, tag: usize) -> Result<&Sent, Violation> {
        self.sent.get(tag).ok_or_else(|| unsent(tag))
    }

    pub(crate) fn message(&self, id: u128) -> Result<&MessageFacts, Violation> {
        self.messages.get(&id).ok_or_else(|| Violation {
            invariant: invariants::delivered_was_sent::NAME,
            what: format!("message {id:032x} was never seen before"),
        })
    }

    /// Names of the queues that a request sent now must find.
    pub(crate) fn queues_that_are_there(&self) -> Vec<String> {
        let there = self.queues.iter().filter(|(_, facts)| facts.is_there);
        there.map(|(name, _)| name.clone()).collect()
    }

    /// A message was sent, once more, with this right.
    pub(crate) fn on_send(&mut self, tag: usize, right: Right) {
        let tick = self.tick();
        if let Some(sent) = self.sent.get_mut(tag) {
            sent.rights.push(right);
            sent.first_sent = sent.first_sent.min(tick);
            sent.open += 1;
        }
    }

    /// A send came to its end at `now`; it was sent at `sent_at`.
    pub(crate) fn on_send_ended(
        &mut self,
        now: Millis,
        sent_at: Millis,
        tag: usize,
        outcome: SendOutcome,
    ) -> Check {
        let sent = self.sent.get_mut(tag).ok_or_else(|| unsent(tag))?;
        sent.open = sent.open.saturating_sub(1);
        match outcome {
            SendOutcome::Refused => {}
            SendOutcome::Unknown => {
                sent.unknown += 1;
                self.counts.unknown_sends += 1;
            }
            SendOutcome::New(id) => {
                self.counts.confirmed += 1;
                let message = self.learn(tag, id)?;
                let was_known = message.is_known_new;
                message.is_known_new = true;
                message.is_confirmed = true;
                ensure(!was_known, invariants::delivered_was_sent::NAME, || {
                    format!("id {id:032x} was given to two messages")
                })?;
                self.note_confirmed(id);
                invariants::dedup::on_id(self, id)?;
            }
            SendOutcome::Duplicate(id) => {
                self.counts.duplicates += 1;
                self.learn(tag, id)?.is_confirmed = true;
                self.note_confirmed(id);
                invariants::dedup::on_duplicate(self, tag, id, sent_at)?;
                invariants::dedup::on_id(self, id)?;
            }
        }
        ensure(now >= sent_at, invariants::not_early::NAME, || {
            "an answer came before its request".to_owned()
        })?;
        invariants::delivered_was_sent::once_per_send(self, tag)
    }

    /// A message came to a consumer. Returns its tag.
    pub(crate) fn on_delivery(
        &mut self,
        now: Millis,
        message: &DeliveryMessage<'_>,
    ) -> Result<Held, Violation> {
        let id = u128::from_be_bytes(message.meta.message_id);
        let tag = invariants::delivered_was_sent::tag_of(self, message)?;
        let is_new_id = !self.messages.contains_key(&id);
        self.learn(tag, id)?;
        if is_new_id {
            invariants::delivered_was_sent::once_per_send(self, tag)?;
            invariants::dedup::on_id(self, id)?;
        }
        invariants::acked_stays_gone::on_delivery(self, message)?;
        invariants::attempts::on_delivery(self, message)?;
        invariants::not_early::on_delivery(self, now, message)?;
        invariants::scripted::on_delivery(self, message)?;
        invariants::throttles::on_delivery(self, message)?;
        invariants::authority::on_message(self, tag)?;
        self.hold(id, message)?;
        invariants::one_per_group::on_delivery(self, id)?;
        self.counts.delivered += 1;
        if self.is_draining {
            self.drained.push(Drained {
                queue: message.queue.to_owned(),
                id,
                leased_at: Millis(message.meta.leased_at_ms),
            });
        }
        let is_main = !main_of(message.queue).1;
        self.counts.dead_lettered += u64::from(!is_main);
        self.counts.redriven += u64::from(message.meta.redrive_count > 0);
        Ok(Held {
            queue: message.queue.to_owned(),
            id,
        })
    }

    /// The broker's memory is gone: fast queues have forgotten their leases.
    pub(crate) fn on_crash(&mut self, now: Millis, death: Death) {
        self.amqp.on_crash(death);
        self.decided.clear();
        self.keys.on_crash();
        let Self {
            queues,
            sent,
            messages,
            ..
        } = self;
        for message in messages.values_mut() {
            let queue = sent.get(message.tag).map(|sent| sent.queue.as_str());
            let facts = queue.and_then(|queue| queues.get(queue));
            if facts.is_some_and(|facts| facts.is_committed()) {
                continue;
            }
            for holding in &mut message.holdings {
                holding.forgotten_at = earlier(holding.forgotten_at, now);
            }
        }
    }

    /// Ties an id to a tag.
    fn learn(&mut self, tag: usize, id: u128) -> Result<&mut MessageFacts, Violation> {
        let message = self
            .messages
            .entry(id)
            .or_insert_with(|| MessageFacts::new(tag));
        ensure(
            message.tag == tag,
            invariants::delivered_was_sent::NAME,
            || {
                format!(
                    "id {id:032x} stands for message {} and for message {tag}",
                    message.tag
                )
            },
        )?;
        if let Some(sent) = self.sent.get_mut(tag) {
            sent.ids.insert(id);
        }
        Ok(message)
    }

    fn hold(&mut self, id: u128, message: &DeliveryMessage<'_>) -> Check {
        let is_draining = self.is_draining;
        let facts = self.messages.get_mut(&id).ok_or_else(|| unsent(0))?;
        facts.was_drained |= is_draining;
        self.counts.inherited += u64::from(core::mem::take(&mut facts.is_orphan));
        facts.holdings.push(Holding {
            leased_at: Millis(message.meta.leased_at_ms),
            expires_at: Millis(message.meta.lease_expires_at_ms),
            forgotten_at: None,
            redrives: message.meta.redrive_count,
            is_main: !main_of(message.queue).1,
        });
        Ok(())
    }
}

fn unsent(tag: usize) -> Violation {
    Violation {
        invariant: invariants::delivered_was_sent::NAME,
        what: format!("message {tag} was never sent"),
    }
}
