//! The end of a run: no more faults; everything comes to rest, is counted, drained and gone.

use tanda_engine::Millis;

use crate::clients::{Client, Consumer, Manner, Role};
use crate::failure::{Check, Violation, ensure};
use crate::host::{Conn, FarEnd};
use crate::invariants::log_shrinks::{self, Fixed};
use crate::invariants::statistics::{self, Counted};
use crate::invariants::{fair_in_windows, gone_peers, nothing_lost, protocol, recovers};
use crate::random::Random;

use super::World;

/// Rounds of moving everything that can move, until nothing moves.
const ROUNDS_MAX: usize = 20_000;
/// Passes of the node without a pause.
const PASSES_MAX: usize = 10_000;
/// Deadlines until all leases have ended, or all messages were drained.
const DEADLINES_MAX: usize = 20_000;
/// Simulated time that draining may take: the longest lease, delay and backoff several times.
const DRAIN_MS_MAX: u64 = 300_000;

/// Simulated time until a snapshot that was asked for counts, at rest.
const SNAPSHOT_MS_MAX: u64 = 60_000;

/// Simulated time until what is dead has gone: a round of copying at the slowest rate, and more.
const SETTLE_MS: u64 = 60_000;

impl World {
    pub(super) fn heal(&mut self) -> Check {
        self.trace.event(self.now, "heal", 0, &[]);
        self.host.disk.set_capacity(None);
        self.host.disk.mend();
        self.host.hurry();
        self.host.drop_backup();
        let is_ill = self
            .host
            .node
            .as_ref()
            .is_none_or(|node| node.failed().is_some());
        // A planned fault that has not struck is forgotten with the process.
        if is_ill || self.plan.has_disk_faults() || self.process.one_in(2) {
            self.restart()?;
        }
        for client in &mut self.clients {
            client.is_resting = true;
        }
        self.calm()?;
        self.end_backup()?;
        self.renew_scripts()?;
        self.notice_the_gone()?;
        self.finish_amqp()?;
        self.time_out_amqp()?;
        self.finish_requests()?;
        self.end_leases()?;
        let mut counted = self.count()?;
        for (queue, counted) in &counted {
            statistics::before_drain(&self.history, queue, *counted)?;
        }
        if self.process.one_in(3) {
            self.purge_at_rest(&mut counted)?;
        }
        if self.process.one_in(4) {
            self.back_up_at_rest()?;
        }
        self.drain()?;
        self.drain_amqp()?;
        self.drain_amaquet()?;
        for (queue, counted) in &counted {
            statistics::after_drain(&self.history, queue, *counted)?;
        }
        nothing_lost::when_drained(&self.history)?;
        fair_in_windows::when_drained(&self.history, self.host.config.engine.quantum)?;
        self.shrink()?;
        self.restart()?;
        self.calm()?;
        self.check_zero()
    }

    fn restart(&mut self) -> Check {
        let death = self.draw_death();
        self.die(death)?;
        self.now = self.now.max(self.down_until);
        self.start(true)
    }

    /// Connections whose clients vanished end by themselves.
    fn notice_the_gone(&mut self) -> Check {
        let last = self.clients.len().saturating_sub(1);
        if self.process.one_in(3) && self.clients.get(last).is_some_and(Client::is_away) {
            // One more, who has said hello and no more.
            self.act_as(last);
            self.calm()?;
        }
        if self.process.one_in(2) {
            self.lose_one_silently()?;
        }
        let since = self.now;
        loop {
            let is_gone = |conn: &Conn| conn.far_end == FarEnd::Vanished;
            if !self.host.conns.values().any(is_gone) {
                return self.calm();
            }
            self.note_conns();
            gone_peers::when_there(self.now, since)?;
            self.wait()?;
            self.calm()?;
        }
    }

    /// For people: what connections wait for.
    pub(super) fn note_conns(&mut self) {
        for (number, conn) in &mut self.host.conns {
            let waiting = conn.session.output().len();
            let (session, load) = (&conn.session, conn.load);
            self.trace.note(self.now, || {
                format!(
                    "  c{number} {:?}: reads {}, takes {}, closing {}, due {:?}, {} + {waiting} \
                     bytes wait for the network, {} for the session, {load:?}",
                    conn.far_end,
                    session.wants_read(),
                    session.wants_input(),
                    session.is_closing(),
                    conn.next_deadline(),
                    conn.to_client.len(),
                    conn.input.len(),
                )
            });
        }
    }

    /// Every request of a living connection was answered; then the consumers go away.
    fn finish_requests(&mut self) -> Check {
        for (index, client) in self.clients.iter().enumerate() {
            let is_idle = match &client.role {
                Role::Producer(producer) => producer.is_idle(),
                Role::Admin(admin) => admin.is_idle(),
                Role::Consumer(consumer) => consumer.is_answered(),
                Role::Amqp(client) => client.is_idle(),
                Role::Amaquet(client) => client.is_idle(),
            };
            ensure(is_idle, protocol::NAME, || {
                format!("client {index} waits for an answer that does not come")
            })?;
        }
        let numbers: Vec<u64> = self.host.conns.keys().copied().collect();
        for number in numbers {
            let client = self.host.conns.get(&number).map(|conn| conn.client);
            // The first client is the administrator, who still asks for statistics.
            if client != Some(0) {
                self.cut(number)?;
            }
        }
        self.calm()
    }

    /// Waits until nothing is leased: nobody is there to be leased to.
    fn end_leases(&mut self) -> Check {
        let until = self.now.after_ms(DRAIN_MS_MAX);
        for _ in 0..DEADLINES_MAX {
            let counted = self.count()?;
            if counted.iter().all(|(_, counted)| counted.in_flight == 0) {
                return Ok(());
            }
            ensure(self.now < until, recovers::NAME, || {
                format!("leases do not end: {counted:?}")
            })?;
            self.wait()?;
        }
        Err(recovers::stuck("leases do not end"))
    }

    fn drain(&mut self) -> Check {
        self.history.is_draining = true;
        let drainer = Role::Consumer(Consumer::new(Manner::DRAINER));
        self.clients
            .push(Client::new(drainer, Random::stream(0, "drainer")));
        let until = self.now.after_ms(DRAIN_MS_MAX);
        for _ in 0..DEADLINES_MAX {
            self.calm()?;
            let counted = self.count()?;
            if counted.iter().all(|(_, counted)| counted.total() == 0) {
                return self.check_zero();
            }
            ensure(self.now < until, recovers::NAME, || {
                format!("the queues do not drain: {counted:?}")
            })?;
            self.wait()?;
        }
        Err(recovers::stuck("the queues do not drain"))
    }

    /// Once the deduplication windows are over, the log gives its segments back.
    fn shrink(&mut self) -> Check {
        let windows = self
            .history
            .queues
            .values()
            .map(|facts| facts.dedup_window_ms_max);
        let until = self.now.after_ms(windows.max().unwrap_or(0) + SETTLE_MS);
        while self.now < until {
            self.wait()?;
            self.calm()?;
        }
        self.renew_snapshot()?;
        let Some(node) = &self.host.node else {
            return Ok(());
        };
        let files = self.host.disk.names().into_iter().map(|name| {
            let content = self.host.disk.content(&name);
            (name, content.map_or(0, |content| content.len() as u64))
        });
        let fixed = Fixed {
            log: &self.host.config.log,
            queues: self.history.queues.len() as u64,
            keys: node.keys().len() as u64,
        };
        recovers::has_room(&node.stats())?;
        log_shrinks::when_empty(fixed, &node.stats(), &files.collect::<Vec<_>>())
    }

    /// One more snapshot, of nothing but settings.
    fn renew_snapshot(&mut self) -> Check {
        let sequence = |world: &Self| {
            let node = world.host.node.as_ref();
            node.and_then(tanda_node::Node::published_snapshot)
                .map_or(0, |published| published.sequence)
        };
        let before = sequence(self);
        if let Some(node) = &mut self.host.node {
            node.want_snapshot();
        }
        let until = self.now.after_ms(SNAPSHOT_MS_MAX);
        while sequence(self) == before {
            ensure(self.now < until, recovers::NAME, || {
                format!("a snapshot that was asked for does not come: {before} is the newest")
            })?;
            self.calm()?;
            self.wait()?;
        }
        // What only the one before needed goes with the next flush.
        for _ in 0..4 {
            self.calm()?;
            self.wait()?;
        }
        self.calm()
    }

    /// Asks for the counters of every queue and its dead-letter queue.
    fn count(&mut self) -> Result<Vec<(String, Counted)>, Violation> {
        self.ask_all()?;
        let names: Vec<String> = self.history.queues.keys().cloned().collect();
        let mut all = Vec::new();
        for name in names {
            let mut counted = Counted::default();
            for queue in [name.clone(), format!("{name}.dlq")] {
                let counters = self.counters(&queue)?;
                counted.depth += counters.depth;
                counted.in_flight += counters.in_flight;
            }
            all.push((name, counted));
        }
        Ok(all)
    }

    pub(super) fn check_zero(&mut self) -> Check {
        self.ask_all()?;
        let names: Vec<String> = self.history.queues.keys().cloned().collect();
        for name in names {
            for queue in [name.clone(), format!("{name}.dlq")] {
                let counters = self.counters(&queue)?;
                statistics::at_the_end(
                    &queue,
                    &[
                        ("depth", counters.depth),
                        ("in_flight", counters.in_flight),
                        ("delayed", counters.delayed),
                        ("active_fairness_keys", counters.keys),
                    ],
                )?;
            }
        }
        Ok(())
    }

    pub(super) fn ask_all(&mut self) -> Check {
        self.calm()?;
        let names: Vec<String> = self.history.queues.keys().cloned().collect();
        if let Some(Client {
            role: Role::Admin(admin),
            peer: Some(peer),
            ..
        }) = self.clients.first_mut()
        {
            for name in names {
                admin.ask(peer, format!("{name}.dlq"));
                admin.ask(peer, name);
            }
        }
        self.collect(0);
        self.calm()
    }

    pub(super) fn counters(&self, queue: &str) -> Result<crate::clients::Counters, Violation> {
        let found = match self.clients.first().map(|client| &client.role) {
            Some(Role::Admin(admin)) => admin.stats.get(queue).copied(),
            _ => None,
        };
        found.ok_or_else(|| Violation {
            invariant: protocol::NAME,
            what: format!("GetStats of {queue:?} was not answered"),
        })
    }

    /// To the next deadline.
    pub(super) fn wait(&mut self) -> Check {
        let next = self.host.next_deadline();
        let is_ahead = next.is_none_or(|at| at > self.now);
        ensure(is_ahead, recovers::NAME, || {
            format!(
                "at rest at {:?}, but something is due at {next:?}",
                self.now
            )
        })?;
        self.now = next.unwrap_or_else(|| self.now.after_ms(1_000));
        self.history.amqp.on_time(self.now);
        self.trace.event(self.now, "wait", 0, &[]);
        Ok(())
    }

    /// Moves everything until nothing moves, without time passing.
    pub(super) fn calm(&mut self) -> Check {
        for _ in 0..ROUNDS_MAX {
            self.step += 1;
            let before = self.now;
            if !self.round()? {
                debug_assert_eq!(before, self.now, "time stands still");
                return Ok(());
            }
        }
        Err(recovers::stuck("the broker does not come to rest"))
    }

    /// True when something moved.
    fn round(&mut self) -> Result<bool, Violation> {
        let now: Millis = self.now;
        self.history.amqp.on_time(now);
        let mut moved = self.host.session_timers(now);
        for index in 0..self.clients.len() {
            let client = self.clients.get(index);
            // The administrator, and whoever drains, come back.
            if client.is_some_and(|c| index == 0 || !c.is_resting || !c.is_away()) {
                self.act_as(index);
            }
        }
        moved += self.host.wake_for_keys(usize::MAX, now);
        let numbers: Vec<u64> = self.host.conns.keys().copied().collect();
        self.host.widen();
        for number in &numbers {
            moved += self.host.receive(*number, usize::MAX, now);
        }
        moved += self.host.handle(usize::MAX, now);
        moved += self.passes(now)?;
        moved += self.finish_script();
        moved += usize::from(self.host.take_flush(now));
        moved += usize::from(self.host.run_flush(now));
        moved += usize::from(self.host.finish_flush(now));
        moved += usize::from(self.host.take_background(now));
        moved += usize::from(self.host.run_background(now));
        moved += usize::from(self.host.finish_background(now));
        moved += self.host.release(now, &mut self.trace);
        for number in &numbers {
            moved += self.host.deliver_mail(*number, usize::MAX, now);
            moved += self.host.transmit(*number, usize::MAX, now);
            let waiting = self
                .host
                .conns
                .get(number)
                .filter(|conn| conn.is_read())
                .map_or(0, |conn| conn.to_client.len());
            moved += waiting;
            self.arrive(*number, usize::MAX)?;
            let before = self.host.conns.len();
            self.look_at(*number)?;
            moved += before - self.host.conns.len();
        }
        self.host.assert_invariants();
        let failed = self.host.node.as_ref().and_then(|node| node.failed());
        ensure(failed.is_none(), recovers::NAME, || {
            format!("the node failed without a fault: {failed:?}")
        })?;
        let on_the_way = self
            .host
            .conns
            .values()
            .any(|conn| !conn.to_broker.is_empty() && conn.session.wants_read());
        Ok(moved > 0 || on_the_way)
    }

    fn passes(&mut self, now: Millis) -> Result<usize, Violation> {
        for count in 0..PASSES_MAX {
            if !self.host.run_node(now) {
                return Ok(count);
            }
        }
        Err(recovers::stuck("the node's passes do not end"))
    }
}
