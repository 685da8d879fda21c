//! AMQP clients in the world: how they connect, and how their queues are counted, emptied and
//! removed at the end.

use std::collections::BTreeMap;

use tanda_engine::{AdminReply, AdminRequest, VhostId};

use crate::clients::{AmqpClient, Client, Job, Role};
use crate::failure::{Check, Violation, ensure};
use crate::history::amqp::{Door, There};
use crate::host::Answer;
use crate::invariants::amqp::{
    ack_timeouts, all_or_nothing, counts, in_order, nothing_lost, refused, unexpected,
};
use crate::invariants::{purge_is_exact, recovers};
use crate::random::Random;

use super::World;

/// Simulated time until all is answered.
const ANSWER_MS_MAX: u64 = 60_000;
/// Simulated time until the queues are empty: the longest time to live many times.
const DRAIN_MS_MAX: u64 = 120_000;

/// Ready messages and those in flight, by queue.
type Counted = BTreeMap<String, (u64, u64)>;

impl World {
    pub(super) fn connect_amqp(&mut self, index: usize) {
        let Some(Client {
            role: Role::Amqp(client),
            ..
        }) = self.clients.get_mut(index)
        else {
            return;
        };
        let conn = match client.door {
            Door::Amqp => self.host.accept_amqp(index, self.now),
            Door::Fire => self.host.accept_fire(index, self.now),
        };
        if let Some(conn) = conn {
            client.connect(conn);
            self.trace.event(self.now, "connect amqp", conn, &[]);
        }
    }

    fn amqp_is_idle(&self) -> bool {
        self.clients.iter().all(|client| match &client.role {
            Role::Amqp(client) => client.is_idle(),
            Role::Amaquet(client) => client.is_idle(),
            Role::Producer(_) | Role::Consumer(_) | Role::Admin(_) => true,
        })
    }

    /// Requests that a full channel has held up come a moment later.
    pub(super) fn finish_amqp(&mut self) -> Check {
        let until = self.now.after_ms(ANSWER_MS_MAX);
        while !self.amqp_is_idle() {
            ensure(self.now < until, unexpected::NAME, || {
                "a client waits for an answer that does not come".to_owned()
            })?;
            self.wait()?;
            self.calm()?;
        }
        Ok(())
    }

    /// Consumers that do nothing lose what they hold of queues that do not wait for ever.
    pub(super) fn time_out_amqp(&mut self) -> Check {
        let queues = self.history.amqp.queues.iter();
        let queues = queues.filter(|(_, it)| it.known.there == There::Yes);
        let timed = queues.filter_map(|(name, it)| Some((name.clone(), it.draw.ack_timeout_ms?)));
        let timed: Vec<(String, u64)> = timed.collect();
        let Some(timeout_ms) = timed.iter().map(|(_, ms)| *ms).max() else {
            return Ok(());
        };
        let since = self.now;
        loop {
            let counted = self.count_amqp()?;
            let held = timed.iter().filter_map(|(name, _)| counted.get(name));
            let held = held.map(|(_, held)| *held).sum();
            ack_timeouts::at_rest(since, self.now, timeout_ms, held)?;
            if held == 0 {
                return Ok(());
            }
            self.wait()?;
        }
    }

    /// Asks the administrator for the counters of AMQP's queues.
    fn count_amqp(&mut self) -> Result<Counted, Violation> {
        let queues = self.history.amqp.queues.iter();
        let names = queues.filter(|(_, it)| it.known.there == There::Yes);
        let names: Vec<String> = names.map(|(name, _)| name.clone()).collect();
        self.calm()?;
        if let Some(Client {
            role: Role::Admin(admin),
            peer: Some(peer),
            ..
        }) = self.clients.first_mut()
        {
            for name in &names {
                admin.ask(peer, name.clone());
            }
        }
        self.collect(0);
        self.calm()?;
        let mut counted = Counted::new();
        for name in names {
            let counters = self.counters(&name)?;
            counted.insert(name, (counters.depth, counters.in_flight));
        }
        Ok(counted)
    }

    /// Messages of AMQP's queues that are on their way to an exchange for dead letters: they are
    /// no queue's, and come some time after a disk that was full has room again.
    fn departing(&mut self) -> Result<u64, Violation> {
        let mut all = 0;
        for name in self.history.amqp.queues.keys().cloned().collect::<Vec<_>>() {
            let message = None;
            let answer = self.ask_at_rest(AdminRequest::Explain {
                vhost: VhostId::DEFAULT,
                name,
                message,
            })?;
            if let AdminReply::Explained(Ok(explanation)) = answer {
                all += explanation.counts.departing;
            }
        }
        Ok(all)
    }

    /// Empties AMQP's queues, looks at what came, and removes them.
    pub(super) fn drain_amqp(&mut self) -> Check {
        if !self.history.amqp.is_there() {
            return Ok(());
        }
        self.look_at_lives()?;
        let until = self.now.after_ms(DRAIN_MS_MAX);
        while self.departing()? > 0 {
            ensure(self.now < until, recovers::NAME, || {
                "AMQP's dead letters do not leave".to_owned()
            })?;
            self.wait()?;
        }
        let mut before = self.count_amqp()?;
        counts::before_drain(&self.history.amqp, &before)?;
        if self.amqp_rest.one_in(3) {
            self.purge_amqp(&mut before)?;
        }
        self.history.amqp.is_draining = true;
        let random = Random::stream(0, "amqp drainer");
        let is_by_fire = self.history.amqp.is_mixed && self.looks.one_in(2);
        let drainer = if is_by_fire {
            AmqpClient::by(Job::Drainer, Door::Fire, random.clone())
        } else {
            AmqpClient::new(Job::Drainer)
        };
        let drainer = Role::Amqp(Box::new(drainer));
        self.clients.push(Client::new(drainer, random));
        let until = self.now.after_ms(DRAIN_MS_MAX);
        loop {
            self.calm()?;
            self.finish_amqp()?;
            let counted = self.count_amqp()?;
            if counted.values().all(|counted| *counted == (0, 0)) && self.departing()? == 0 {
                break;
            }
            self.note_conns();
            ensure(self.now < until, recovers::NAME, || {
                format!("AMQP's queues do not drain: {counted:?}")
            })?;
            self.wait()?;
        }
        counts::after_drain(&self.history.amqp, &before)?;
        in_order::when_drained(&self.history.amqp)?;
        nothing_lost::when_drained(&self.history.amqp)?;
        all_or_nothing::when_drained(&self.history.amqp)?;
        refused::when_drained(&self.history.amqp)?;
        self.remove_amqp()
    }

    /// Purges one of AMQP's queues: what it held is gone then, and no more.
    fn purge_amqp(&mut self, counted: &mut Counted) -> Check {
        let names: Vec<String> = counted.keys().cloned().collect();
        let Some(name) = self.amqp_rest.pick(&names).cloned() else {
            return Ok(());
        };
        let (vhost, queue) = (VhostId::DEFAULT, name.clone());
        let answer = self.ask_at_rest(AdminRequest::Purge { vhost, name: queue })?;
        let AdminReply::QueuePurged(Ok(deleted)) = answer else {
            return Err(unexpected::of(format!("a purge says {answer:?}")));
        };
        let pending = counted.insert(name.clone(), (0, 0));
        let pending = pending.map_or(0, |(ready, _)| ready);
        self.trace
            .event(self.now, "purged", deleted, name.as_bytes());
        self.history.amqp.on_purged(&name);
        // Between the counting and the purge no time has passed.
        purge_is_exact::at_rest(&name, pending, deleted)
    }

    /// Asks through the operator's door.
    pub(super) fn ask_at_rest(&mut self, request: AdminRequest) -> Result<AdminReply, Violation> {
        drop(self.host.door_answer());
        ensure(self.host.ask_door(request), unexpected::NAME, || {
            "the door is busy".to_owned()
        })?;
        self.calm()?;
        match self.host.door_answer() {
            Some(Answer::Said(reply)) => Ok(*reply),
            Some(Answer::Unknown) | None => Err(unexpected::of(
                "a request of an operator was not answered".to_owned(),
            )),
        }
    }

    /// Nothing of AMQP's is left: what the log holds then is as small as without it.
    fn remove_amqp(&mut self) -> Check {
        if let Some(client) = self.clients.last_mut() {
            client.is_resting = true;
        }
        self.end_lives()?;
        let vhost = VhostId::DEFAULT;
        let queues: Vec<String> = self.history.amqp.queues.keys().cloned().collect();
        let mut requests = Vec::new();
        for name in queues {
            requests.push(AdminRequest::RemoveQueue {
                vhost,
                name,
                if_unused: false,
                if_empty: false,
            });
        }
        for name in self.history.amqp.exchanges.keys() {
            requests.push(AdminRequest::DeleteExchange {
                vhost,
                name: (*name).to_owned(),
                if_unused: false,
            });
        }
        for request in requests {
            let answer = self.ask_at_rest(request)?;
            let is_done = matches!(
                answer,
                AdminReply::QueueRemoved(Ok(_)) | AdminReply::ExchangeDeleted(Ok(()))
            );
            ensure(is_done, unexpected::NAME, || {
                "a queue or an exchange cannot be removed".to_owned()
            })?;
        }
        let amqp = &mut self.history.amqp;
        amqp.queues.clear();
        amqp.exchanges.clear();
        amqp.bindings.clear();
        Ok(())
    }
}
