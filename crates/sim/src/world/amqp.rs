//! AMQP clients in the world: how they connect, and how their queues are counted, emptied and
//! removed at the end.

use std::collections::BTreeMap;

use tanda_engine::{AdminReply, AdminRequest, VhostId};

use crate::clients::{AmqpClient, Client, Job, Role};
use crate::failure::{Check, Violation, ensure};
use crate::history::amqp::There;
use crate::host::Answer;
use crate::invariants::amqp::{all_or_nothing, counts, in_order, nothing_lost, unexpected};
use crate::invariants::recovers;
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
        let Some(conn) = self.host.accept_amqp(index, self.now) else {
            return;
        };
        if let Some(Client {
            role: Role::Amqp(client),
            ..
        }) = self.clients.get_mut(index)
        {
            client.connect(conn);
            self.trace.event(self.now, "connect amqp", conn, &[]);
        }
    }

    fn amqp_is_idle(&self) -> bool {
        self.clients.iter().all(|client| match &client.role {
            Role::Amqp(client) => client.is_idle(),
            Role::Producer(_) | Role::Consumer(_) | Role::Admin(_) => true,
        })
    }

    /// Requests that a full channel has held up come a moment later.
    pub(super) fn finish_amqp(&mut self) -> Check {
        let until = self.now.after_ms(ANSWER_MS_MAX);
        while !self.amqp_is_idle() {
            ensure(self.now < until, unexpected::NAME, || {
                "an AMQP client waits for an answer that does not come".to_owned()
            })?;
            self.wait()?;
            self.calm()?;
        }
        Ok(())
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

    /// Empties AMQP's queues, looks at what came, and removes them.
    pub(super) fn drain_amqp(&mut self) -> Check {
        if !self.history.amqp.is_there() {
            return Ok(());
        }
        let before = self.count_amqp()?;
        counts::before_drain(&self.history.amqp, &before)?;
        self.history.amqp.is_draining = true;
        let drainer = Role::Amqp(Box::new(AmqpClient::new(Job::Drainer)));
        let random = Random::stream(0, "amqp drainer");
        self.clients.push(Client::new(drainer, random));
        let until = self.now.after_ms(DRAIN_MS_MAX);
        loop {
            self.calm()?;
            self.finish_amqp()?;
            let counted = self.count_amqp()?;
            if counted.values().all(|counted| *counted == (0, 0)) {
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
        self.remove_amqp()
    }

    /// Nothing of AMQP's is left: what the log holds then is as small as without it.
    fn remove_amqp(&mut self) -> Check {
        if let Some(client) = self.clients.last_mut() {
            client.is_resting = true;
        }
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
            drop(self.host.door_answer());
            ensure(self.host.ask_door(request), unexpected::NAME, || {
                "the door is busy".to_owned()
            })?;
            self.calm()?;
            let answer = self.host.door_answer();
            let is_done = match &answer {
                Some(Answer::Said(reply)) => matches!(
                    **reply,
                    AdminReply::QueueRemoved(Ok(_)) | AdminReply::ExchangeDeleted(Ok(()))
                ),
                Some(Answer::Unknown) | None => false,
            };
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
