//! What Amaquet clients asked, and what they know of it.

use std::collections::{BTreeMap, BTreeSet};

use tanda_engine::Millis;

use crate::failure::Check;
use crate::invariants::amaquet as promise;
use crate::random::Random;

/// Keys that all clients share.
pub(crate) const COUNTERS: [&str; 2] = ["counter-a", "counter-b"];
pub(crate) const LISTS: [&str; 2] = ["list-a", "list-b"];
pub(crate) const LOCKS: [&str; 2] = ["lock-a", "lock-b"];
/// Their queue, and their topic exchange.
pub(crate) const QUEUE: &str = "of-amaquet";
pub(crate) const TOPIC: &str = "bus";
/// How long leases of the queue last.
pub(crate) const LEASE_MS: u64 = 3_000;

/// Counters of a run, to see that it did something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AmaquetCounts {
    /// Answers that it went well.
    pub answered: u64,
    /// Items of lists that were taken.
    pub popped: u64,
    /// Of these, by who had waited.
    pub waited: u64,
    /// Commands that were cancelled.
    pub cancelled: u64,
    /// Locks that were granted.
    pub granted: u64,
    /// Messages of the queue that were acknowledged.
    pub acked: u64,
    /// Events of subscriptions, and messages that these lost.
    pub events: u64,
    /// See `events`.
    pub dropped: u64,
    /// Commands whose outcome nobody knows.
    pub unknown: u64,
}

/// A key that one connection writes to, a number that grows.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// The newest number that was sent.
    pub(crate) issued: u64,
    /// The newest one that was answered or read.
    pub(crate) floor: u64,
}

/// A counter that everybody adds one to.
#[derive(Debug, Default)]
pub(crate) struct Added {
    /// Additions that were sent.
    pub(crate) issued: u64,
    /// Additions that were answered.
    pub(crate) answered: u64,
    /// The highest value that was answered or read.
    pub(crate) floor: u64,
    /// What additions were answered with.
    seen: BTreeSet<u64>,
}

/// Where an item or a message is, as far as clients know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum There {
    /// It was sent, and not answered.
    Maybe,
    Yes,
    No,
}

/// A list: its items are texts, each once.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) items: BTreeMap<String, There>,
    /// Pops without an answer: each may have taken an item.
    pub(crate) lost_pops: u64,
}

/// A lock that somebody was granted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Granted {
    pub(crate) token: u64,
    pub(crate) at: Millis,
    pub(crate) ends_at: Millis,
    /// Its holder has given it back, or has tried to.
    pub(crate) is_released: bool,
}

/// A message of the queue.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) there: There,
    pub(crate) id: Option<String>,
    /// When its leases that clients heard of end. They may hear of them in any order.
    pub(crate) leased_until: Vec<Millis>,
    /// Acknowledgements without an answer: it may be gone.
    pub(crate) acks_open: u32,
    /// How many acknowledgements had been answered when this one's was.
    pub(crate) gone_at: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Amaquet {
    pub(crate) is_there: bool,
    pub(crate) written: BTreeMap<String, Written>,
    pub(crate) added: BTreeMap<&'static str, Added>,
    pub(crate) lists: BTreeMap<&'static str, Listed>,
    pub(crate) locks: BTreeMap<&'static str, Vec<Granted>>,
    /// The newest token that somebody knows of.
    pub(crate) newest_token: u64,
    /// Messages of the queue by their texts.
    pub(crate) queued: BTreeMap<String, Queued>,
    /// The newest number that each connection published.
    pub(crate) published: BTreeMap<String, u64>,
    /// The topic exchange was made, or may have been.
    pub(crate) has_topic: bool,
    pub(crate) counts: AmaquetCounts,
}

impl Amaquet {
    /// A quarter of the runs without AMQP has such clients. The name of the stream is one by which
    /// none of the seeds that once found something does.
    pub(crate) fn draw(seed: u64, is_free: bool) -> Self {
        let is_there = is_free && Random::stream(seed, "amaquet?").one_in(4);
        Self {
            is_there,
            ..Self::default()
        }
    }

    /// An addition was answered, that was sent when the counter was at least `floor`.
    pub(crate) fn on_added(&mut self, key: &'static str, floor: u64, value: u64) -> Check {
        let added = self.added.entry(key).or_default();
        promise::in_bounds(key, value, (floor + 1, added.issued))?;
        promise::once(key, value, added.seen.insert(value))?;
        added.answered += 1;
        added.floor = added.floor.max(value);
        Ok(())
    }

    /// An item came out of a list.
    pub(crate) fn on_popped(&mut self, list: &'static str, item: &str) -> Check {
        let listed = self.lists.entry(list).or_default();
        let before = listed.items.insert(item.to_owned(), There::No);
        self.counts.popped += 1;
        promise::popped(list, item, before)
    }

    /// A lock was granted. `newest` is the newest token that was known when it was asked for.
    pub(crate) fn on_granted(
        &mut self,
        lock: &'static str,
        newest: u64,
        granted: Granted,
    ) -> Check {
        let grants = self.locks.entry(lock).or_default();
        promise::granted(lock, newest, grants, granted)?;
        grants.push(granted);
        self.newest_token = self.newest_token.max(granted.token);
        self.counts.granted += 1;
        Ok(())
    }

    /// Its holder gives a lock back.
    pub(crate) fn on_release(&mut self, lock: &'static str, token: u64) {
        let grants = self.locks.entry(lock).or_default();
        for granted in grants.iter_mut().filter(|it| it.token == token) {
            granted.is_released = true;
        }
    }

    /// A message of the queue came, with a lease until then. `acked` is how many acknowledgements
    /// had been answered when it was asked for.
    pub(crate) fn on_taken(
        &mut self,
        (text, id): (&str, &str),
        leased_until: Millis,
        acked: u64,
    ) -> Check {
        let known = self.queued.get(text);
        promise::taken((text, id), known, leased_until, acked)?;
        if let Some(queued) = self.queued.get_mut(text) {
            queued.id = Some(id.to_owned());
            queued.leased_until.push(leased_until);
            if queued.there == There::Maybe {
                queued.there = There::Yes;
            }
        }
        Ok(())
    }

    /// Acknowledgements are sent.
    pub(crate) fn on_acks(&mut self, texts: &[String]) {
        for text in texts {
            if let Some(queued) = self.queued.get_mut(text) {
                queued.acks_open += 1;
            }
        }
    }

    /// An acknowledgement was answered.
    pub(crate) fn on_acked(&mut self, text: &str, is_ok: bool) {
        self.counts.acked += u64::from(is_ok);
        if let Some(queued) = self.queued.get_mut(text) {
            queued.acks_open -= 1;
            if is_ok && queued.there != There::No {
                (queued.there, queued.gone_at) = (There::No, self.counts.acked);
            }
        }
    }
}
