//! What clients of the model of AMQP, which FireMQ shares, sent and saw, by whichever door.
//!
//! A copy of a message belongs to the queue it was routed to; that queue's dead letters are its
//! copies too. Where a message goes is told by the bindings that were there when it was sent, and
//! by those that changed until it was confirmed.

mod args;
mod copies;
mod draw;
mod known;
mod life;
mod mortal;
mod routes;
mod seen;
mod settled;
mod told;
mod topology;

use std::collections::BTreeMap;

use tanda_engine::Millis;

use crate::failure::{Check, Violation, ensure};
use crate::host;
use crate::invariants::amqp::{unexpected, was_published};
use crate::random::Random;

pub(crate) use args::args_of_exchange;
pub(crate) use copies::{
    Arrived, Copy, CopyId, Death, Holder, Outcome, Published, Tx, origin_of, tag_of,
};
pub(crate) use draw::{
    BindingDraw, Dead, HeaderAsk, Overflow, QueueDraw, ROUTING_KEYS, alternate_of, exchanges,
    headers_of, kind_of,
};
pub(crate) use known::{Known, There};
pub(crate) use life::{Asked, Life, Taker};
pub(crate) use settled::Settlement;
pub(crate) use told::{Door, Plain, Told};
pub(crate) use topology::Change;

/// A queue of AMQP clients.
#[derive(Clone, Debug)]
pub(crate) struct AmqpQueue {
    pub(crate) draw: QueueDraw,
    pub(crate) known: Known,
    /// Some message to it has a time to live of its own.
    pub(crate) has_ttl: bool,
    pub(crate) life: Life,
}

impl AmqpQueue {
    pub(crate) fn new(draw: QueueDraw) -> Self {
        Self {
            draw,
            known: Known::default(),
            has_ttl: false,
            life: Life::default(),
        }
    }
}

/// Everything known so far. Without queues there are no AMQP clients.
#[derive(Clone, Debug, Default)]
pub(crate) struct Amqp {
    pub(crate) queues: BTreeMap<String, AmqpQueue>,
    pub(crate) exchanges: BTreeMap<&'static str, Known>,
    pub(crate) bindings: BTreeMap<BindingDraw, Known>,
    /// It has the exchanges and policies that only some of these runs have.
    pub(crate) has_more: bool,
    /// Memory or disk may have no room.
    pub(crate) may_be_full: bool,
    pub(crate) sent: Vec<Published>,
    pub(crate) copies: BTreeMap<CopyId, Copy>,
    pub(crate) txs: Vec<Tx>,
    /// The newest message that is surely on disk, of those confirmed since the last crash.
    pub(crate) proven: Option<usize>,
    /// Crashes so far.
    pub(crate) epoch: u64,
    /// No faults any more; every delivery counts as drained.
    pub(crate) is_draining: bool,
    /// What came out of each queue while it was drained, in order.
    pub(crate) drained: BTreeMap<String, Vec<usize>>,
    /// Channels that published so far.
    pub(crate) streams: u64,
    /// Clients come by several doors.
    pub(crate) is_mixed: bool,
    /// Some queues go by themselves.
    pub(crate) has_lives: bool,
    /// Queues whose names the broker gave, and that may be there without anybody knowing.
    pub(crate) names_lost: u64,
    /// Names that the broker was asked for.
    pub(crate) names_asked: u64,
    /// Things that happened so far.
    pub(crate) ticks: u64,
    pub(crate) now: Millis,
    pub(crate) counts: AmqpCounts,
}

/// Counters of a run's AMQP clients, to see that they did something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AmqpCounts {
    /// Messages confirmed.
    pub confirmed: u64,
    /// Messages not confirmed, in so many words.
    pub refused: u64,
    /// Messages that came back as going nowhere.
    pub returned: u64,
    /// Messages delivered, repetitions included.
    pub delivered: u64,
    /// .. of them marked as delivered before.
    pub redelivered: u64,
    /// .. of them from queues of dead letters, or back from there.
    pub dead_lettered: u64,
    /// Acknowledgements that the broker has surely taken.
    pub acked: u64,
    /// Messages given back.
    pub requeued: u64,
    /// Messages that came by another door than that by which they went in.
    pub crossed: u64,
    /// Times that FireMQ's publishers were asked to wait.
    pub paused: u64,
    /// Messages of FireMQ's clients that were confirmed.
    pub confirmed_by_fire: u64,
    /// Times that a queue that goes by itself was surely gone.
    pub vanished: u64,
    /// Requests about an exclusive queue of another connection.
    pub locked: u64,
    /// Transactions committed.
    pub committed: u64,
    /// Transactions whose commit was not answered.
    pub unknown_commits: u64,
}

impl Amqp {
    pub(crate) fn draw(seed: u64) -> Self {
        let mut random = Random::stream(seed, "amqp");
        let is_for_amqp = random.one_in(4);
        let is_mixed = !is_for_amqp && Random::stream(seed, "fire").one_in(3);
        if !is_for_amqp && !is_mixed {
            return Self::default();
        }
        let mut queues = draw::queues(&mut random);
        let mut bindings = draw::bindings(&mut random, &queues);
        let mut random = Random::stream(seed, "amqp more");
        let has_more = random.percent(60);
        if has_more {
            draw::more(&mut random, &mut queues, &mut bindings);
        }
        let mut random = Random::stream(seed, "amqp lives");
        let has_lives = random.one_in(2);
        if has_lives {
            mortal::draw(&mut random, &mut queues, &mut bindings);
        }
        let queues = queues.into_iter();
        let queues = queues.map(|(name, draw)| (name, AmqpQueue::new(draw)));
        Self {
            queues: queues.collect(),
            has_more,
            has_lives,
            exchanges: exchanges(has_more)
                .map(|name| (name, Known::default()))
                .collect(),
            bindings: bindings
                .into_iter()
                .map(|binding| (binding, Known::default()))
                .collect(),
            is_mixed,
            ..Self::default()
        }
    }

    /// There are AMQP clients in this run.
    pub(crate) fn is_there(&self) -> bool {
        !self.queues.is_empty()
    }

    pub(crate) fn queue(&self, name: &str) -> Result<&AmqpQueue, Violation> {
        let found = self.queues.get(name);
        found.ok_or_else(|| unexpected::of(format!("there is no queue {name:?}")))
    }

    pub(crate) fn published(&self, tag: usize) -> Result<&Published, Violation> {
        let found = self.sent.get(tag);
        found.ok_or_else(|| was_published::never(tag))
    }

    /// A message is sent now. Returns its tag.
    pub(crate) fn on_publish(&mut self, message: Published) -> usize {
        let tag = self.sent.len();
        let (must, may) = self.routes(tag, &message);
        if message.ttl_ms.is_some() {
            for name in &may {
                if let Some(queue) = self.queues.get_mut(name) {
                    queue.has_ttl = true;
                }
            }
        }
        self.sent.push(Published {
            must,
            may,
            ..message
        });
        tag
    }

    /// A publish came to its end.
    pub(crate) fn on_verdict(&mut self, tag: usize, outcome: Outcome) -> Check {
        let message = self
            .sent
            .get_mut(tag)
            .ok_or_else(|| was_published::never(tag))?;
        ensure(message.outcome == Outcome::Open, unexpected::NAME, || {
            format!(
                "message {tag} was {:?}, and is {outcome:?}",
                message.outcome
            )
        })?;
        message.outcome = outcome;
        match outcome {
            Outcome::Confirmed(_) => {
                self.counts.confirmed += 1;
                self.counts.confirmed_by_fire += u64::from(message.door == Door::Fire);
                let queues = &self.queues;
                let is_durable = |name| queues.get(name).is_some_and(|it| it.draw.durable);
                if message.is_persistent && message.must.iter().any(is_durable) {
                    self.proven = self.proven.max(Some(tag));
                }
                was_published::when_confirmed(tag, message)?;
            }
            Outcome::Refused => self.counts.refused += 1,
            Outcome::Open | Outcome::Unknown | Outcome::RolledBack => {}
        }
        Ok(())
    }

    /// A message came back: it went nowhere.
    pub(crate) fn on_returned(&mut self, tag: usize) -> Check {
        let message = self
            .sent
            .get_mut(tag)
            .ok_or_else(|| was_published::never(tag))?;
        message.is_returned = true;
        self.counts.returned += 1;
        was_published::when_returned(tag, message)
    }

    /// The broker's memory is gone.
    pub(crate) fn on_crash(&mut self, death: host::Death) {
        self.epoch += 1;
        let proven = self.proven.take();
        self.on_start();
        self.end_lives();
        for copy in self.copies.values_mut() {
            copy.holder = None;
            copy.is_gone = false;
            copy.deaths = 0;
            if death == host::Death::PowerLoss {
                // What was delivered before something was published that is on disk is so, too.
                copy.delivered.retain(|_, next| Some(*next) <= proven);
            }
        }
        for tx in &mut self.txs {
            (tx.is_seen, tx.is_undone) = (false, false);
        }
    }

    /// It was confirmed, and nothing known has taken it away.
    pub(crate) fn must_be_there(&self, tag: usize, queue: &str) -> Result<bool, Violation> {
        let message = self.published(tag)?;
        let facts = self.queue(queue)?;
        let is_taken = match (message.outcome, message.tx) {
            (Outcome::Confirmed(_), _) => true,
            (Outcome::Unknown, Some(tx)) => self.txs.get(tx).is_some_and(|tx| tx.is_seen),
            _ => false,
        };
        let outlives = message.is_persistent && facts.draw.durable;
        let is_kept = outlives || message.epoch == self.epoch;
        let keeps_dead = facts.draw.keeps_dead();
        let expires =
            message.ttl_ms.is_some() && (!keeps_dead || facts.draw.dead != Some(Dead::Stay));
        let may_go = facts.draw.drops() || expires;
        let copy = self.copies.get(&(tag, queue.to_owned()));
        // Whoever comes back too often dies, and maybe has nowhere to go.
        let is_spent = |copy: &Copy| {
            let has_limit = facts.draw.delivery_limit.is_some() && facts.draw.dead_may_go;
            has_limit && !copy.delivered.is_empty()
        };
        let is_gone = copy.is_some_and(|copy| copy.may_be_gone || is_spent(copy));
        Ok(message.must.contains(queue) && is_taken && is_kept && !may_go && !is_gone)
    }

    /// Messages of this queue, or its dead letters, may leave when their time is over.
    pub(crate) fn leaves_by_time(&self, queue: &str) -> bool {
        let family = [queue.to_owned(), format!("{queue}.dead")];
        let mut family = family.iter().filter_map(|name| self.queues.get(name));
        family.any(|it| it.has_ttl || it.draw.ttl_ms.is_some() || it.draw.expires_ms.is_some())
    }

    /// When a confirmed message of this age has surely expired in a queue it never left.
    pub(crate) fn expires_by(&self, tag: usize, queue: &str) -> Option<Millis> {
        let message = self.sent.get(tag)?;
        let of_queue = self.queues.get(queue)?.draw.ttl_ms;
        let ttl_ms = of_queue.into_iter().chain(message.ttl_ms).min()?;
        match message.outcome {
            Outcome::Confirmed(at) => Some(at.after_ms(ttl_ms)),
            Outcome::Open | Outcome::Refused | Outcome::Unknown | Outcome::RolledBack => None,
        }
    }
}
