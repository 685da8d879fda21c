//! Amaquet clients in the world: how they connect, and how what they left is read, emptied and
//! removed at the end.

use tanda_engine::{AdminReply, AdminRequest, VhostId};

use super::World;
use crate::clients::{AmaquetClient, Client, Role};
use crate::failure::{Check, ensure};
use crate::history::amaquet::TOPIC;
use crate::invariants::amaquet as promise;
use crate::random::Random;

/// Simulated time until everything is emptied: the longest lease several times.
const DRAIN_MS_MAX: u64 = 60_000;

impl World {
    pub(super) fn connect_amaquet(&mut self, index: usize) {
        let conn = self.host.accept_amaquet(index, self.now);
        if let Some(conn) = conn
            && let Some(Client {
                role: Role::Amaquet(client),
                ..
            }) = self.clients.get_mut(index)
        {
            client.connect(conn);
            self.trace.event(self.now, "connect amaquet", conn, &[]);
        }
    }

    /// Reads every key, empties lists and queue, looks at what came, and removes it all.
    pub(super) fn drain_amaquet(&mut self) -> Check {
        if !self.history.amaquet.is_there {
            return Ok(());
        }
        let drainer = Box::new(AmaquetClient::drainer(&self.history.amaquet));
        let random = Random::stream(0, "amaquet drainer");
        let client = Client::new(Role::Amaquet(drainer), random);
        self.clients.push(client);
        let until = self.now.after_ms(DRAIN_MS_MAX);
        loop {
            self.calm()?;
            let last = self.clients.last().map(|client| &client.role);
            if let Some(Role::Amaquet(client)) = last
                && client.has_drained()
            {
                break;
            }
            ensure(self.now < until, promise::NAME, || {
                "what Amaquet's clients left cannot be emptied".to_owned()
            })?;
            self.wait()?;
        }
        promise::when_drained(&self.history.amaquet)?;
        if let Some(client) = self.clients.last_mut() {
            client.is_resting = true;
        }
        if !self.history.amaquet.has_topic {
            return Ok(());
        }
        let answer = self.ask_at_rest(AdminRequest::DeleteExchange {
            vhost: VhostId::DEFAULT,
            name: TOPIC.to_owned(),
            if_unused: false,
        })?;
        let is_done = matches!(answer, AdminReply::ExchangeDeleted(Ok(())));
        ensure(is_done, promise::NAME, || {
            "a topic cannot be removed".to_owned()
        })
    }
}
