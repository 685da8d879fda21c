//! Queues that go by themselves: with their connection, with their last consumer, or unused for a
//! while. Knows when one is surely there, and when it is surely gone; what goes with it goes.
//!
//! A connection may end before its client knows. So a queue that depends on one counts as surely
//! there for its own client only, and what others hear of it is held against what that one hears.

use std::collections::BTreeMap;

use tanda_engine::Millis;

use super::{Amqp, AmqpQueue, Change, Outcome, There};
use crate::failure::Check;
use crate::invariants::amqp::lives;

/// Time in which somebody begins to consume.
const A_WHILE_MS: u64 = 2_000;

/// A request: whose it is, how many things had happened when it was sent, and when that was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) conn: u64,
    pub(crate) tick: u64,
    pub(crate) at: Millis,
}

/// A connection that declared an exclusive queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    /// When it did so last.
    pub(crate) asked: u64,
    /// When it was answered last.
    pub(crate) proven: Option<u64>,
}

/// A consumer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taker {
    pub(crate) asked: u64,
    pub(crate) started: Option<u64>,
}

/// See the module. Moments are counts of things that had happened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Life {
    /// When a declaration was last sent or answered.
    pub(crate) made: u64,
    /// When its removal was last sent or answered.
    pub(crate) removed: u64,
    /// Connections that it may belong to.
    pub(crate) owners: BTreeMap<u64, Owner>,
    /// Consumers that it may have, by connection and tag.
    pub(crate) takers: BTreeMap<(u64, String), Taker>,
    /// It does not expire before; `None` while nothing runs that could let it expire.
    pub(crate) sure_until: Option<Millis>,
    /// Since when it is surely there, if it is.
    pub(crate) sure_since: u64,
    /// When it last ceased to be a connection's, as far as clients know.
    pub(crate) freed: u64,
    /// Since when it is surely gone.
    pub(crate) gone: Option<u64>,
}

impl AmqpQueue {
    /// Nothing that was sent before can make it any more.
    fn is_unmade_since(&self, asked: Asked) -> bool {
        let pending = |owner: &Owner| owner.proven.is_none_or(|proven| proven < owner.asked);
        self.life.made < asked.tick
            && !self.known.has_open(true)
            && !self.life.owners.values().any(pending)
    }

    /// It does not expire at once.
    pub(crate) fn stays_a_while(&self, now: Millis) -> bool {
        let until = self.life.sure_until;
        self.draw.expires_ms.is_none() || until > Some(now.after_ms(A_WHILE_MS))
    }

    /// It was used after this.
    fn use_since(&mut self, at: Millis) {
        if let Some(ms) = self.draw.expires_ms {
            self.life.sure_until = self.life.sure_until.max(Some(at.after_ms(ms)));
        }
    }
}

impl Amqp {
    /// Something happens now.
    pub(crate) const fn tick(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }

    fn mortal(&mut self, name: &str) -> Option<&mut AmqpQueue> {
        let queue = self.queues.get_mut(name);
        queue.filter(|queue| queue.draw.has_life())
    }

    /// Time has passed: queues that nobody may have used for so long may be gone.
    pub(crate) fn on_time(&mut self, now: Millis) {
        self.now = now;
        let is_due = |it: &AmqpQueue| {
            let is_over = it.life.sure_until.is_some_and(|until| until <= now);
            it.draw.expires_ms.is_some() && it.known.there == There::Yes && is_over
        };
        let queues = self.queues.iter();
        let due = queues.filter(|(_, it)| is_due(it));
        for name in due.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.cap(&name, There::Maybe);
        }
    }

    /// The broker has started: queues count from now on as unused.
    pub(crate) fn on_up(&mut self, now: Millis) {
        self.now = now;
        for queue in self.queues.values_mut() {
            queue.use_since(now);
        }
    }

    /// The process has ended: with it connections, consumers and whatever is not durable.
    pub(super) fn end_lives(&mut self) {
        let tick = self.tick();
        for queue in self.queues.values_mut().filter(|it| it.draw.has_life()) {
            queue.life.owners.clear();
            queue.life.takers.clear();
            queue.life.sure_until = None;
            if !queue.draw.durable {
                queue.life.gone = Some(tick);
            }
        }
    }

    /// It is so much there at most; what depends on it as well.
    fn cap(&mut self, name: &str, most: There) {
        let Some(queue) = self.queues.get_mut(name) else {
            return;
        };
        let before = queue.known.there;
        queue.known.cap(most);
        self.follow(name, before);
    }

    /// A queue was so much there before. Its bindings go with it, and what it held may.
    pub(super) fn follow(&mut self, name: &str, before: There) {
        let tick = self.tick();
        let Some(queue) = self.mortal(name) else {
            return;
        };
        let after = queue.known.there;
        if before == after {
            return;
        }
        queue.life.sure_since = tick;
        let most = after.min(There::Maybe);
        for (binding, known) in &mut self.bindings {
            if !binding.to_exchange && binding.queue == name {
                known.cap(most);
            }
        }
        if before == There::Yes {
            for (tag, message) in self.sent.iter().enumerate() {
                if message.may.contains(name) {
                    let copy = self.copies.entry((tag, name.to_owned())).or_default();
                    copy.may_be_gone = true;
                }
            }
        }
        self.route_again();
    }

    /// It was gone at some moment after this was asked, with all that it held by then.
    fn gone_since(&mut self, name: &str, asked: Asked) {
        let tick = self.tick();
        self.cap(name, There::No);
        let Some(queue) = self.mortal(name) else {
            return;
        };
        queue.life.gone = Some(tick);
        queue.life.freed = tick;
        queue.life.owners.clear();
        queue.life.takers.clear();
        self.counts.vanished += 1;
        self.bury(name, asked);
    }

    /// Messages that were confirmed before this was asked went with their queue. Dead letters had
    /// left it.
    fn bury(&mut self, name: &str, asked: Asked) {
        for (tag, message) in self.sent.iter().enumerate() {
            let is_old = matches!(message.outcome, Outcome::Confirmed(at) if at < asked.at);
            if is_old && message.may.contains(name) {
                let copy = self.copies.entry((tag, name.to_owned())).or_default();
                copy.went = Some(asked.tick);
            }
        }
    }

    /// A change of such a queue, or of its bindings, was sent.
    pub(super) fn note_sent(&mut self, change: &Change, asked: Asked) {
        let (Change::Queue(name) | Change::Delete(name)) = change else {
            return;
        };
        let is_made = matches!(change, Change::Queue(_));
        let Some(queue) = self.mortal(name) else {
            return;
        };
        if !is_made {
            queue.life.removed = asked.tick;
            return;
        }
        queue.life.made = asked.tick;
        queue.life.gone = None;
        if queue.draw.exclusive {
            let owner = queue.life.owners.entry(asked.conn);
            let owner = owner.or_insert(Owner {
                asked: asked.tick,
                proven: None,
            });
            owner.asked = asked.tick;
        }
    }

    /// A change was answered.
    pub(super) fn note_changed(&mut self, change: &Change, asked: Asked) {
        match change {
            Change::Queue(name) => self.note_declared(name, asked),
            Change::Delete(name) => self.note_removed(name, asked),
            Change::Bind(binding) if !binding.to_exchange => {
                let queue = self.queues.get(&binding.queue);
                let is_older =
                    |it: &AmqpQueue| it.known.there != There::Yes || asked.tick < it.life.made;
                let may_be_old = queue.is_some_and(|it| it.draw.has_life() && is_older(it));
                if let Some(known) = self.bindings.get_mut(binding).filter(|_| may_be_old) {
                    known.cap(There::Maybe);
                }
            }
            Change::Bind(_) | Change::Unbind(_) | Change::Exchange(_) => {}
        }
    }

    fn note_declared(&mut self, name: &str, asked: Asked) {
        let (tick, now) = (self.tick(), self.now);
        let Some(queue) = self.mortal(name) else {
            return;
        };
        queue.life.made = tick;
        queue.use_since(asked.at);
        let is_over = queue.life.sure_until.is_some_and(|until| until <= now);
        let may_go = queue.draw.auto_delete && !queue.life.takers.is_empty();
        let mut is_new = false;
        if let Some(owner) = queue.life.owners.get_mut(&asked.conn) {
            is_new = owner.proven.is_none();
            owner.proven = Some(tick);
        }
        if queue.draw.exclusive || may_go || queue.draw.expires_ms.is_some() && is_over {
            self.cap(name, There::Maybe);
        }
        if is_new {
            // Another connection's is gone, and whatever led there.
            self.bury(name, asked);
            for (binding, known) in &mut self.bindings {
                if !binding.to_exchange && binding.queue == name {
                    known.cap(There::No);
                }
            }
        }
    }

    fn note_removed(&mut self, name: &str, asked: Asked) {
        let tick = self.tick();
        let Some(queue) = self.mortal(name) else {
            return;
        };
        queue.life.removed = tick;
        if queue.life.owners.remove(&asked.conn).is_some() {
            queue.life.freed = tick;
        }
        if queue.is_unmade_since(asked) {
            self.gone_since(name, asked);
        }
    }

    /// A queue without a name was made, and got this one.
    pub(crate) fn on_named(&mut self, name: &str, queue: AmqpQueue, asked: Asked) -> Check {
        lives::named(self, name)?;
        self.queues.insert(name.to_owned(), queue);
        self.add_ways(name);
        let change = Change::Queue(name.to_owned());
        self.on_change_sent(&change, asked);
        self.on_changed(&change, asked);
        Ok(())
    }

    /// A request that only a queue that is there can answer was answered, and keeps it from
    /// expiring.
    pub(crate) fn on_used(&mut self, name: &str, asked: Asked) -> Check {
        if let Some(queue) = self.mortal(name) {
            queue.use_since(asked.at);
        }
        self.on_seen(name, asked)
    }

    /// .. and maybe does not.
    pub(crate) fn on_seen(&mut self, name: &str, asked: Asked) -> Check {
        match self.mortal(name) {
            Some(queue) => lives::used(name, queue, asked),
            None => Ok(()),
        }
    }

    /// A request was refused, with this code, to a client that has a consumer there or not.
    pub(crate) fn on_refused(
        &mut self,
        (name, code): (&str, u16),
        asked: Asked,
        has_consumer: bool,
    ) -> Check {
        let Some(queue) = self.mortal(name) else {
            return Ok(());
        };
        lives::refused((name, code), queue, asked, has_consumer)?;
        self.counts.locked += u64::from(code == lives::RESOURCE_LOCKED);
        let Some(queue) = self.mortal(name) else {
            return Ok(());
        };
        if let Some(owner) = queue.life.owners.get(&asked.conn)
            && owner.proven.is_none()
        {
            queue.life.owners.remove(&asked.conn);
        }
        if code == lives::NOT_FOUND {
            if queue.is_unmade_since(asked) {
                self.gone_since(name, asked);
            } else {
                self.cap(name, There::Maybe);
            }
        }
        Ok(())
    }

    /// A consumer is asked for.
    pub(crate) fn on_consume_sent(&mut self, name: &str, tag: &str, asked: Asked) {
        let Some(queue) = self.mortal(name) else {
            return;
        };
        let taker = Taker {
            asked: asked.tick,
            started: None,
        };
        queue
            .life
            .takers
            .insert((asked.conn, tag.to_owned()), taker);
        if queue.draw.auto_delete {
            self.cap(name, There::Maybe);
        }
    }

    /// .. and is there.
    pub(crate) fn on_consuming(&mut self, name: &str, tag: &str, asked: Asked) -> Check {
        let tick = self.tick();
        if let Some(queue) = self.mortal(name)
            && let Some(taker) = queue.life.takers.get_mut(&(asked.conn, tag.to_owned()))
        {
            taker.started = Some(tick);
        }
        self.on_used(name, asked)
    }

    /// It is not, and never was.
    pub(crate) fn on_not_consuming(&mut self, name: &str, tag: &str, conn: u64) {
        if let Some(queue) = self.mortal(name) {
            queue.life.takers.remove(&(conn, tag.to_owned()));
        }
    }

    /// A consumer has ended as its client wished.
    pub(crate) fn on_consumed(&mut self, name: &str, tag: &str, asked: Asked) {
        let Some(queue) = self.mortal(name) else {
            return;
        };
        let taker = queue.life.takers.remove(&(asked.conn, tag.to_owned()));
        let was_there = taker.is_some_and(|taker| taker.started.is_some());
        let is_last = queue.draw.auto_delete && queue.life.takers.is_empty();
        if was_there && is_last && queue.is_unmade_since(asked) {
            self.gone_since(name, asked);
        }
    }

    /// The broker has ended a consumer.
    pub(crate) fn on_consumer_ended(&mut self, name: &str, tag: &str, conn: u64) -> Check {
        let Some(queue) = self.mortal(name) else {
            return Ok(());
        };
        match queue.life.takers.remove(&(conn, tag.to_owned())) {
            Some(taker) => lives::ended(name, queue, taker),
            None => Ok(()),
        }
    }

    /// A connection was closed in good order: its own queues are gone.
    pub(crate) fn on_goodbye(&mut self, asked: Asked) {
        let tick = self.tick();
        let queues = self.queues.iter_mut().filter(|(_, it)| it.draw.exclusive);
        let gone = queues.filter_map(|(name, it)| {
            let owner = it.life.owners.remove(&asked.conn)?;
            it.life.freed = tick;
            let is_alone = it.life.owners.is_empty() && it.is_unmade_since(asked);
            (owner.proven.is_some() && is_alone).then(|| name.clone())
        });
        for name in gone.collect::<Vec<_>>() {
            self.gone_since(&name, asked);
        }
    }

    /// Nobody is connected, and these queues are there.
    pub(crate) fn on_found_at_rest(&mut self, found: &[String]) -> Check {
        lives::at_rest(self, found)?;
        let (tick, now) = (self.tick(), self.now);
        let names = self.queues.iter().filter(|(_, it)| it.draw.has_life());
        for name in names.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            let is_found = found.contains(&name);
            let Some(queue) = self.mortal(&name) else {
                continue;
            };
            queue.life.takers.clear();
            queue.life.owners.clear();
            let before = queue.known.there;
            let is_sure = queue.life.sure_until.is_some_and(|until| until > now);
            queue.known.observe(is_found);
            if queue.draw.expires_ms.is_some() && !is_sure {
                queue.known.cap(There::Maybe);
            }
            queue.life.gone = (!is_found).then_some(tick);
            self.follow(&name, before);
        }
        Ok(())
    }
}
