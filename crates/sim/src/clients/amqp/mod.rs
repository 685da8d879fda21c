//! Clients of the model of AMQP, which FireMQ shares, as seeded state machines: one connection and
//! one channel each, one synchronous request at a time. What they ask and hear is in terms of no
//! protocol; [`link`] speaks the one they came by.

mod answers;
mod consumer;
mod contents;
mod declarer;
mod extras;
mod guest;
mod link;
mod of_amqp;
mod of_fire;
mod producer;
mod refusals;
mod worker;

use std::collections::BTreeMap;

use tanda_engine::Millis;

use super::Cx;
use crate::failure::Check;
use crate::history::amqp::{Asked, Change, CopyId, Door, Outcome, QueueDraw, There};
use crate::random::Random;

pub(crate) use consumer::Taking;
use link::Ask;
pub(crate) use link::Link;

/// What an AMQP client does for a living.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// Publishes, so many messages unconfirmed at a time; 0: without confirms.
    Producer(usize),
    Consumer(Taking),
    /// Takes and publishes in transactions.
    Worker,
    /// Makes and removes what comes and goes.
    Declarer,
    /// Makes and uses queues that go by themselves.
    Guest(Taking),
    /// Takes everything and acknowledges it.
    Drainer,
}

/// A synchronous method that was not answered.
#[derive(Debug)]
enum Call {
    Change(Change),
    /// A queue that the broker is to name.
    Name(Box<QueueDraw>),
    /// Whether a queue is there that may have gone by itself.
    Look(String),
    Select,
    Qos,
    Consume(String, String),
    Cancel(String),
    Get(String),
    Recover,
    Purge,
    /// Once it is answered, these acknowledgements have been taken.
    Barrier(Vec<CopyId>),
    Commit(usize, Vec<(u64, CopyId)>),
    Rollback(usize, Vec<(u64, CopyId)>),
}

/// What a channel knows; it goes with it.
#[derive(Default)]
struct Channel {
    call: Option<Call>,
    /// When that was asked.
    asked: Asked,
    /// When each consumer was asked for, by tag.
    began: BTreeMap<String, u64>,
    /// Crashes of the broker before it was opened.
    epoch: u64,
    /// Its number as a publisher.
    stream: u64,
    /// Confirms or transactions are on.
    is_selected: bool,
    has_qos: bool,
    /// Confirms asked for so far, and who waits for one.
    published: u64,
    open: BTreeMap<u64, usize>,
    /// Queues of consumers, by tag.
    consumers: BTreeMap<String, String>,
    /// When it began to consume from each queue, and to get from it.
    since: BTreeMap<String, Millis>,
    gets: BTreeMap<String, Millis>,
    /// What consumers may still get, by tag, where they are held back by credit.
    credit: BTreeMap<String, u64>,
    /// A consumer has ended: what it held may be taken back, and where the client has ended it
    /// itself nothing says so before the next settlement.
    was_cancelled: bool,
    tags: u64,
    held: BTreeMap<u64, CopyId>,
    /// Acknowledgements that nothing proves yet.
    acked: Vec<CopyId>,
    /// What comes now was given back before it came.
    is_stale: bool,
    tx: Option<usize>,
    /// Acknowledgements of the transaction.
    tx_acked: Vec<(u64, CopyId)>,
}

/// See the module.
pub(crate) struct AmqpClient {
    job: Job,
    pub(crate) door: Door,
    pub(crate) link: Option<Link>,
    /// The connection's number.
    conn: u64,
    channel: Channel,
    /// When it has said goodbye.
    left: Option<Asked>,
    /// Draws what was not always drawn; `None`: the client does only what it always did.
    more: Option<Random>,
}

impl AmqpClient {
    /// An AMQP client.
    pub(crate) fn new(job: Job) -> Self {
        Self {
            job,
            door: Door::Amqp,
            link: None,
            conn: 0,
            channel: Channel::default(),
            left: None,
            more: None,
        }
    }

    /// A client by this door, among clients of others.
    pub(crate) fn by(job: Job, door: Door, more: Random) -> Self {
        Self {
            door,
            more: Some(more),
            ..Self::new(job)
        }
    }

    /// It has a connection now.
    pub(crate) fn connect(&mut self, conn: u64) {
        self.conn = conn;
        self.link = Some(Link::new(conn, self.door));
    }

    /// Nothing that it asked is unanswered, or it knows why.
    pub(crate) fn is_idle(&self) -> bool {
        let is_answered = self.channel.call.is_none() && self.channel.open.is_empty();
        // What was sent before the broker asked for a pause waits for its end.
        is_answered || self.link.as_ref().is_some_and(|link| link.line.is_paused)
    }

    pub(crate) fn act(&mut self, random: &mut Random, cx: &mut Cx<'_>) {
        let Some(mut link) = self.link.take_if(|link| link.is_free()) else {
            return;
        };
        if self.channel.call.is_none() {
            self.act_on(random, &mut link, cx);
        }
        self.link = Some(link);
    }

    fn act_on(&mut self, random: &mut Random, link: &mut Link, cx: &mut Cx<'_>) {
        self.channel.epoch = cx.history.amqp.epoch;
        if self.job == Job::Drainer {
            return self.drain(link, cx);
        }
        if let Some(change) = cx.history.amqp.missing() {
            return self.change(link, cx, change);
        }
        if random.one_in(150) {
            return self.leave(link, cx);
        }
        match self.job {
            Job::Producer(window) => self.produce(random, link, cx, window),
            Job::Consumer(taking) => self.consume(random, link, cx, taking),
            Job::Worker => self.work(random, link, cx),
            Job::Declarer => self.declare(random, link, cx),
            Job::Guest(taking) => self.visit(random, link, cx, taking),
            Job::Drainer => {}
        }
    }

    fn call(&mut self, cx: &mut Cx<'_>, call: Call) {
        let (door, job) = (self.door, self.job);
        cx.trace
            .note(cx.now, || format!("  {door:?} {job:?}: {call:?}"));
        self.channel.call = Some(call);
        self.channel.asked = self.asked(cx);
        if self.is_at_risk(cx) {
            self.on_risk(cx, true);
        }
    }

    /// Something is asked now.
    const fn asked(&self, cx: &mut Cx<'_>) -> Asked {
        Asked {
            conn: self.conn,
            tick: cx.history.amqp.tick(),
            at: cx.now,
        }
    }

    /// Says goodbye.
    fn leave(&mut self, link: &mut Link, cx: &mut Cx<'_>) {
        self.forget(cx);
        self.left = Some(self.asked(cx));
        link.ask(Ask::Close);
    }

    /// Asks for something that changes nothing: all that was sent before is done then.
    fn barrier(&mut self, link: &mut Link, cx: &mut Cx<'_>) {
        let queues = &cx.history.amqp.queues;
        let mut there = queues
            .iter()
            .filter(|(_, queue)| queue.known.there == There::Yes && !queue.draw.comes_and_goes());
        let Some((name, _)) = there.next() else {
            return;
        };
        link.ask(Ask::Check(name));
        let acked = core::mem::take(&mut self.channel.acked);
        self.call(cx, Call::Barrier(acked));
    }

    /// Its channel is over: what it held goes back, what it asked will not be answered.
    fn forget(&mut self, cx: &mut Cx<'_>) {
        let channel = core::mem::take(&mut self.channel);
        let conn = self.conn;
        let amqp = &mut cx.history.amqp;
        let committing = match &channel.call {
            Some(Call::Commit(_, acked) | Call::Rollback(_, acked)) => acked.as_slice(),
            _ => &[],
        };
        let acked = channel.tx_acked.iter().chain(committing).map(|(_, id)| id);
        for id in channel.held.values().chain(acked) {
            amqp.on_gone(id, conn);
        }
        for tag in channel.open.into_values() {
            amqp.on_unknown(tag);
        }
        if let Some(tx) = channel.tx {
            amqp.on_tx_gone(tx, Outcome::RolledBack);
        }
        match channel.call {
            Some(Call::Change(change)) => amqp.on_change_lost(&change, channel.epoch),
            Some(Call::Name(_)) => amqp.names_lost += 1,
            Some(Call::Commit(tx, _)) => amqp.on_tx_gone(tx, Outcome::Unknown),
            Some(Call::Rollback(tx, _)) => amqp.on_tx_gone(tx, Outcome::RolledBack),
            _ => {}
        }
    }

    /// The connection is gone.
    pub(crate) fn on_lost(&mut self, cx: &mut Cx<'_>) {
        self.forget(cx);
        self.left = None;
        self.link = None;
    }

    /// Bytes came from the broker.
    pub(crate) fn on_bytes(&mut self, bytes: &[u8], cx: &mut Cx<'_>) -> Check {
        let Some(mut link) = self.link.take() else {
            return Ok(());
        };
        link.receive(bytes);
        let checked = self.take(&mut link, cx);
        self.link = Some(link);
        checked
    }

    fn take(&mut self, link: &mut Link, cx: &mut Cx<'_>) -> Check {
        while let Some(said) = link.next()? {
            if link.line.is_over {
                self.on_last_words(&said, cx);
            } else {
                self.on_said(link, said, cx)?;
            }
        }
        Ok(())
    }
}
