//! The engine: one shard's queues, driven by requests and time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use ahash::RandomState;

use crate::atomic::Atomic;
use crate::capture::Capture;
use crate::consumers::Consumers;
use crate::dead_letter::RefusedMessage;
use crate::graveyard::Graveyard;
use crate::jobs::Job;
use crate::keys::Keys;
use crate::keyspace::Keyspaces;
use crate::message_ids::MessageIds;
use crate::paging::{Paging, WRITES_MAX};
use crate::queue::Queue;
use crate::queue::capture::Generation;
use crate::queues::{QueueIndex, Queues};
use crate::returns::Return;
use crate::schedule::PassScratch;
use crate::script::Scripts;
use crate::segments::SegmentRefs;
use crate::store::StoreScratch;
use crate::throttle::Throttles;
use crate::topology::{RouteScratch, Topology};
use crate::users::Users;
use crate::watch::Watches;
use crate::{
    ConnId, DeliveryBatch, EngineConfig, Event, Journal, Lsn, Millis, Output, Rebalancing, Request,
};

/// Why a record of the log cannot be applied: it is damaged, or of a newer version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayError {
    /// What is wrong with it.
    pub problem: String,
}

/// One shard of the broker.
pub struct Engine {
    pub(crate) config: EngineConfig,
    pub(crate) hasher: RandomState,
    pub(crate) queues: Queues,
    pub(crate) segments: SegmentRefs,
    pub(crate) ids: MessageIds,
    pub(crate) consumers: Consumers,
    /// Runtime configuration.
    pub(crate) runtime: Arc<BTreeMap<String, String>>,
    pub(crate) keys: Keys,
    pub(crate) users: Users,
    pub(crate) keyspaces: Keyspaces,
    pub(crate) topology: Topology,
    pub(crate) routes: RouteScratch,
    pub(crate) watches: Watches,
    pub(crate) shard: ShardState,
    pub(crate) timers: BTreeSet<(Millis, QueueIndex)>,
    /// Consumers that are to be looked at, as they may hold a message only for so long.
    pub(crate) alarms: BTreeSet<(Millis, u32)>,
    /// Queues with something to deliver and somebody to take it, in the order of their turns.
    pub(crate) runnable: VecDeque<QueueIndex>,
    pub(crate) jobs: VecDeque<Job>,
    /// Queues with dead letters to send on their way, and new messages that were refused.
    pub(crate) departing: VecDeque<QueueIndex>,
    pub(crate) refused: VecDeque<RefusedMessage>,
    /// Queues with messages that are to be delivered in this step or never, and the time until
    /// which others leave before them.
    pub(crate) instant: Vec<(QueueIndex, Millis)>,
    pub(crate) scripts: Scripts,
    pub(crate) graveyard: Graveyard,
    pub(crate) returns: VecDeque<Return>,
    /// Names given to queues that were declared without one.
    pub(crate) names_given: u64,
    /// Messages stored since the start.
    pub(crate) stored: u64,
    /// What messages are captured is known by.
    pub(crate) generation: Generation,
    /// The capture under way.
    pub(crate) capture: Option<Capture>,
    pub(crate) storage_full: bool,
    pub(crate) newest_time: Millis,
    /// What recovery still has to put together.
    pub(crate) recovery: Option<crate::replay::Recovery>,
    /// The record being written.
    pub(crate) record: Vec<u8>,
    pub(crate) store: StoreScratch,
    pub(crate) atomic: Atomic,
    pub(crate) paging: Paging,
    pub(crate) throttles: Throttles,
    /// Rough bytes of all queues, deleted ones included.
    queue_bytes: usize,
    pub(crate) pass: PassScratch,
}

/// Switches of the whole shard.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ShardState {
    pub(crate) rebalancing: Rebalancing,
    pub(crate) pause_ends_at: Millis,
}

/// What one step works with.
pub(crate) struct Cx<'a> {
    pub(crate) now: Millis,
    pub(crate) journal: &'a mut dyn Journal,
    pub(crate) out: &'a mut Vec<Output>,
}

impl Cx<'_> {
    pub(crate) fn emit(&mut self, conn: ConnId, after: Lsn, event: Event) {
        self.out.push(Output { conn, after, event });
    }
}

impl Engine {
    /// An engine without queues. Next: [`Engine::replay`] for every record, then
    /// [`Engine::start`].
    #[must_use]
    pub fn new(config: EngineConfig) -> Self {
        let [a, b, c, d] = config.seed;
        let hasher = RandomState::with_seeds(a, b, c, d);
        Self {
            queues: Queues::new(&hasher),
            segments: SegmentRefs::new(config.segment_shift),
            ids: MessageIds::new(a ^ d.rotate_left(32)),
            consumers: Consumers::new(&hasher),
            runtime: Arc::default(),
            keys: Keys::new(&hasher),
            users: Users::new(),
            keyspaces: Keyspaces::new(&hasher),
            topology: Topology::new(&hasher),
            routes: RouteScratch::default(),
            watches: Watches::default(),
            shard: ShardState::default(),
            timers: BTreeSet::new(),
            alarms: BTreeSet::new(),
            runnable: VecDeque::new(),
            jobs: VecDeque::new(),
            departing: VecDeque::new(),
            refused: VecDeque::new(),
            instant: Vec::new(),
            scripts: Scripts::default(),
            graveyard: Graveyard::default(),
            returns: VecDeque::new(),
            names_given: 0,
            stored: 0,
            generation: Generation::default(),
            capture: None,
            storage_full: false,
            newest_time: Millis(0),
            recovery: Some(crate::replay::Recovery::new(&hasher)),
            record: Vec::new(),
            store: StoreScratch::default(),
            atomic: Atomic::default(),
            paging: Paging::default(),
            throttles: Throttles::new(&hasher),
            queue_bytes: 0,
            pass: PassScratch::default(),
            hasher,
            config,
        }
    }

    /// The newest time a replayed record carries: the clock must not start before it.
    #[must_use]
    pub const fn newest_time(&self) -> Millis {
        self.newest_time
    }

    /// Takes one request. Answers go to `out`, each with the log position it waits for.
    ///
    /// # Panics
    /// When called before [`Engine::start`].
    pub fn handle(
        &mut self,
        now: Millis,
        journal: &mut dyn Journal,
        request: Request,
        out: &mut Vec<Output>,
    ) {
        assert!(self.recovery.is_none(), "requests come after start");
        let cx = &mut Cx { now, journal, out };
        match request {
            Request::Connect { conn, limits } => self.consumers.connect(conn, limits),
            Request::Disconnect { conn } => self.on_disconnect(cx, conn),
            Request::Drained { conn, bytes } => self.on_drained(conn, bytes),
            Request::Publish { reply, batch } => self.on_publish(cx, reply, &batch),
            Request::Settle { reply, batch } => self.on_settle(cx, reply, &batch),
            Request::Subscribe { sub, spec } => self.on_subscribe(cx, sub, &spec),
            Request::Grant { sub, credit } => self.on_grant(sub, credit),
            Request::Unsubscribe { sub, held } => self.on_unsubscribe(cx, sub, held),
            Request::Get { reply, spec } => self.on_get(cx, reply, &spec),
            Request::Pool { conn, pool, change } => self.on_pool(conn, pool, change),
            Request::Transaction {
                reply,
                publish,
                settle,
            } => self.on_transaction(cx, reply, (&publish, &settle)),
            Request::Admin { reply, request } => self.on_admin(cx, reply, request),
            Request::Keys { reply, request } => self.on_keys(cx, reply, *request),
            Request::CancelWait { reply } => self.on_cancel_wait(cx, reply),
            Request::GotUndelivered { conn, batch } => {
                self.on_got_undelivered(cx, conn, *batch);
            }
            Request::Watch { sub, spec } => self.on_watch(cx, sub, &spec),
            Request::Unwatch { sub } => self.on_unwatch(sub),
            Request::WatchDrained { sub, events } => self.on_watch_drained(sub, events),
            Request::KeysUndelivered {
                reply,
                vhost,
                answer,
            } => self.on_keys_undelivered(cx, reply, (vhost, *answer)),
            Request::ScriptDone { job, outcome } => self.on_script_done(cx, *job, outcome),
        }
        self.run_departures(cx);
        self.end_watches(cx);
        self.deliver_instant(cx);
        self.run_scripts(cx);
        self.make_pages(cx, WRITES_MAX);
    }

    /// One bounded pass: due timers, slices of long work, then deliveries. True when more could
    /// be done at once.
    #[must_use]
    pub fn run(&mut self, now: Millis, journal: &mut dyn Journal, out: &mut Vec<Output>) -> bool {
        let cx = &mut Cx { now, journal, out };
        self.run_alarms(cx);
        self.run_timers(cx);
        self.run_keys(cx);
        self.run_throttles(cx);
        self.dismantle(cx);
        self.run_returns(cx);
        self.run_jobs(cx);
        self.run_departures(cx);
        self.end_watches(cx);
        self.deliver_instant(cx);
        self.run_scripts(cx);
        self.deliver(cx);
        self.make_pages(cx, WRITES_MAX);
        let timer_due = self.next_timer().is_some_and(|at| at <= now);
        timer_due
            || self.throttles.has_work(now)
            || self.keyspaces.has_work(now)
            || !self.runnable.is_empty()
            || self.has_full_lanes()
            || self.has_departures()
            || !self.jobs.is_empty()
            || !self.returns.is_empty()
            || !self.instant.is_empty()
            || self.scripts.has_work()
            || !self.graveyard.is_empty()
    }

    /// When `run` has something to do although no request comes.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Millis> {
        let keys = self.keyspaces.next_time();
        let times = [self.next_timer(), self.throttles.next_time(), keys];
        times.into_iter().flatten().min()
    }

    fn next_timer(&self) -> Option<Millis> {
        let queue = self.timers.first().map(|(at, _)| *at);
        let alarm = self.alarms.first().map(|(at, _)| *at);
        [queue, alarm].into_iter().flatten().min()
    }

    /// Rough bytes of memory that the engine takes for queues and messages. Cheap.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let config = self.runtime.len() * 256 + self.keys.memory_bytes();
        let config = config + self.users.memory_bytes() + self.keyspaces.memory_bytes();
        let config = config + self.topology.memory_bytes() + self.watches.memory_bytes();
        let records = self.record.capacity() + self.store.record.capacity();
        let scratch = records + self.atomic.memory_bytes();
        let throttles = self.throttles.memory_bytes();
        let parts = self.queue_bytes + config + scratch + self.scripts.memory_bytes();
        (parts + throttles) as u64
    }

    /// A queue is gone: its memory is not counted any more.
    pub(crate) fn uncount_memory(&mut self, queue: &Queue) {
        self.queue_bytes = self.queue_bytes.saturating_sub(queue.memory_counted);
    }

    /// Takes back a delivery that was not released, because its subscription ends or its content
    /// cannot be read: its messages return to their places and the attempt is not counted; credit
    /// and outbound budget return too. Call it before the `Disconnect` or `Unsubscribe` is handled.
    pub fn undelivered(
        &mut self,
        now: Millis,
        journal: &mut dyn Journal,
        conn: ConnId,
        batch: &DeliveryBatch,
    ) {
        let cx = &mut Cx {
            now,
            journal,
            out: &mut Vec::new(),
        };
        self.on_undelivered(cx, conn, batch);
    }

    /// Messages stored since the start, moves from one queue to another not counted.
    #[must_use]
    pub const fn stored(&self) -> u64 {
        self.stored
    }

    /// While set, publishes and new queues are refused with `Storage`; settling goes on.
    pub const fn set_storage_full(&mut self, full: bool) {
        self.storage_full = full;
    }

    /// Appends the record under construction; returns the position after it.
    pub(crate) fn append(&self, cx: &mut Cx<'_>) -> Lsn {
        cx.journal.append(&self.record);
        cx.journal.end()
    }

    /// Call after a step that changed a queue: sweeps, sets its timer, puts it in line for
    /// delivery.
    pub(crate) fn touch(&mut self, index: QueueIndex) {
        let queue = self.queues.at_mut(index);
        queue.sweep();
        if queue.lanes.has_full() && !queue.fills_pages {
            queue.fills_pages = true;
            self.paging.full.push(index);
        }
        if queue.hooks.is_some() {
            self.list_for_scripts(index);
        }
        let queue = self.queues.at_mut(index);
        let memory = queue.memory_bytes();
        let before = core::mem::replace(&mut queue.memory_counted, memory);
        self.queue_bytes = self.queue_bytes.saturating_add(memory) - before;
        if queue.can_deliver() && !queue.runnable {
            queue.runnable = true;
            self.runnable.push_back(index);
        }
        let Some(next) = queue.next_deadline() else {
            return;
        };
        if queue.armed.is_some_and(|armed| armed <= next) {
            return;
        }
        if let Some(armed) = queue.armed.replace(next) {
            self.timers.remove(&(armed, index));
        }
        self.timers.insert((next, index));
    }

    /// Panics when the state contradicts itself. For tests and the simulator.
    ///
    /// # Panics
    /// When an invariant does not hold.
    pub fn assert_invariants(&self) {
        self.keys.assert_invariants();
        self.users.assert_invariants();
        self.keyspaces.assert_invariants();
        self.topology.assert_invariants(|id, vhost| {
            let index = self.queues.index_of(id);
            let queue = index.map(|index| self.queues.at(index));
            queue.is_some_and(|it| it.identity.vhost == vhost && !it.is_dead_letter())
        });
        let in_exchanges = self.topology.watches_len();
        self.watches
            .assert_invariants(in_exchanges, |exchange, pattern, id| {
                self.topology.knows_watch(exchange, pattern, id)
            });
        let mut needed = self
            .graveyard
            .queues()
            .map(|queue| queue.segment_refs())
            .sum::<u64>();
        for (index, queue) in self.queues.iter() {
            queue.assert_invariants();
            self.assert_consumers(index, queue);
            needed += queue.segment_refs();
            let waiting = queue.can_deliver();
            let name = &queue.identity.name;
            assert!(
                queue.runnable || !waiting,
                "{name} could deliver and is not in line"
            );
            assert_eq!(
                queue.runnable,
                self.runnable.contains(&index),
                "{name} in line"
            );
            let listed = queue.hooks.as_ref().is_some_and(|hooks| hooks.listed);
            assert!(
                listed || !queue.wants_script(),
                "{name} has something to run and is not listed"
            );
            let armed = queue.next_deadline().is_none_or(|next| {
                queue
                    .armed
                    .is_some_and(|at| at <= next && self.timers.contains(&(at, index)))
            });
            assert!(armed, "{name} has a deadline without a timer");
        }
        self.assert_units();
        assert_eq!(needed, self.segments.total(), "references to the log");
        let all = self.queues.iter().map(|(_, queue)| queue);
        let counted = all
            .chain(self.graveyard.queues())
            .map(|it| it.memory_counted);
        assert_eq!(counted.sum::<usize>(), self.queue_bytes, "memory of queues");
        let left = (self.pass.positions.len(), self.pass.untimed.len());
        assert_eq!(left, (0, 0), "leases left over for the next turn to write");
    }
}
