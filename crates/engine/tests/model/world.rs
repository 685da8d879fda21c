//! Engine and model side by side: every operation is done to both, every output is compared.

use tanda_engine::{
    AdminReply, AdminRequest, ConnId, ConnLimits, DeliveryBatch, Engine, EngineConfig, Event, Lsn,
    MessageId, Millis, Output, ReplyTo, Request,
};

use crate::log::{Log, SEGMENT_SHIFT};
use crate::model::Model;
use crate::ops::{Op, Setup};
use crate::schedule::{Seen, SeenBy};
use crate::throttled::Throttle;

/// Connection of a number; each serves one queue, so that queues do not share outbound budgets.
pub(crate) const CONNS: u8 = 8;
pub(crate) const ADMIN: ConnId = ConnId(1);

pub(crate) struct World {
    pub(crate) setup: Setup,
    pub(crate) engine: Engine,
    pub(crate) log: Log,
    pub(crate) model: Model,
    pub(crate) next_token: u32,
    /// All messages there ever were, with the queue they were sent to.
    pub(crate) known: Vec<(String, MessageId)>,
    /// What the last step delivered.
    pub(crate) last: Vec<(ConnId, DeliveryBatch)>,
    /// The capture under way: where it began, messages per slice, what it has so far.
    capture: Option<(Lsn, usize, Vec<Vec<u8>>)>,
    snapshot: Option<(Lsn, Vec<Vec<u8>>)>,
}

pub(crate) fn conn_of(number: u8) -> ConnId {
    ConnId(10 + u64::from(number % CONNS))
}

/// The queue that a connection serves.
pub(crate) fn queue_of(number: u8) -> String {
    let dead = if number % CONNS >= 6 { ".dlq" } else { "" };
    format!("q{}{dead}", number % 2)
}

impl World {
    fn new(setup: Setup) -> Self {
        let model = Model {
            now: Millis(1_000_000),
            quantum: setup.quantum,
            throttle: setup.throttle.map(Throttle::new),
            ..Model::default()
        };
        let mut world = Self {
            engine: Engine::new(config(&setup)),
            setup,
            log: Log::new(),
            model,
            next_token: 10,
            known: Vec::new(),
            last: Vec::new(),
            capture: None,
            snapshot: None,
        };
        world.engine.start(world.model.now, &mut world.log).unwrap();
        world.connect_all();
        world.step(&Op::Create(0));
        world.step(&Op::Create(1));
        world
    }

    fn connect_all(&mut self) {
        self.handle(Request::Connect {
            conn: ADMIN,
            limits: limits(1 << 20),
        });
        for number in 0..CONNS {
            self.connect(conn_of(number));
        }
    }

    pub(crate) fn connect(&mut self, conn: ConnId) {
        let outbound_max = self.setup.outbound_max;
        let limits = limits(outbound_max);
        assert!(self.handle(Request::Connect { conn, limits }).is_empty());
        self.model.connect(conn, outbound_max);
    }

    pub(crate) fn handle(&mut self, request: Request) -> Vec<Event> {
        let mut out = Vec::new();
        let now = self.model.now;
        self.engine.handle(now, &mut self.log, request, &mut out);
        self.engine.assert_invariants();
        out.into_iter().map(|output| output.event).collect()
    }

    /// Lets engine and model do what they can, and compares deliveries; the other outputs.
    pub(crate) fn run(&mut self) -> Vec<Event> {
        let mut out: Vec<Output> = Vec::new();
        let mut passes = 0;
        while self.engine.run(self.model.now, &mut self.log, &mut out) {
            passes += 1;
            assert!(passes < 1_000, "the engine finds no rest");
            self.engine.assert_invariants();
        }
        self.engine.assert_invariants();
        let mut seen = SeenBy::new();
        let mut others = Vec::new();
        for output in out {
            let Event::Delivery { token, batch } = output.event else {
                others.push(output.event);
                continue;
            };
            let number = batch.consumer;
            let sub = self
                .model
                .sub(number)
                .expect("a delivery to a live consumer");
            assert_eq!((sub.id.conn, sub.id.token), (output.conn, token));
            assert_eq!(sub.queue, *batch.queue);
            seen.entry(number).or_default().extend(seen_in(&batch));
            self.last.push((output.conn, batch));
        }
        self.model.run(&mut seen);
        others
    }

    /// Asks for something and lets it be done: the answer.
    pub(crate) fn admin(&mut self, request: AdminRequest) -> AdminReply {
        self.next_token += 1;
        let reply = ReplyTo {
            conn: ADMIN,
            token: self.next_token,
        };
        let mut events = self.handle(Request::Admin { reply, request });
        events.extend(self.run());
        match events.as_slice() {
            [Event::Admin { token, reply }] if *token == self.next_token => *reply.clone(),
            other => panic!("one answer, not {other:?}"),
        }
    }

    fn step(&mut self, op: &Op) {
        let mut last = core::mem::take(&mut self.last);
        let lost = match op {
            Op::Lose(conn, _) => Some(conn_of(*conn)),
            _ => None,
        };
        // All others have left, before time passes.
        for (_, batch) in last.iter_mut().filter(|(to, _)| Some(*to) != lost) {
            self.engine.released(self.model.now, batch);
        }
        self.apply(op, last);
        assert!(self.run().is_empty(), "nothing else after {op:?}");
        self.capture_slice();
        self.compare();
    }

    pub(crate) fn begin_capture(&mut self, slice: usize) {
        if self.capture.is_none() {
            let at = self.engine.begin_capture(self.model.now, &self.log);
            self.capture = Some((at, slice, Vec::new()));
        }
    }

    fn capture_slice(&mut self) {
        let Some((at, slice, mut records)) = self.capture.take() else {
            return;
        };
        if self.engine.capture_slice(slice, &mut records) {
            self.snapshot = Some((at, records));
        } else {
            self.capture = Some((at, slice, records));
        }
        self.engine.assert_invariants();
    }

    /// A new engine from the newest snapshot, if there is one, and the log from there on.
    pub(crate) fn restart(&mut self, down_ms: u64) {
        self.capture = None;
        self.engine = Engine::new(config(&self.setup));
        let pages = self.log.pages.clone();
        let mut read = |slot: tanda_engine::PageSlot, into: &mut Vec<u8>| {
            into.clear();
            into.extend_from_slice(&pages[slot.0 as usize]);
            true
        };
        let (from, records) = self.snapshot.clone().unwrap_or_default();
        for record in &records {
            let replayed = self.engine.replay_with_pages(Lsn(0), record, &mut read);
            replayed.unwrap();
        }
        for (at, record) in self.log.records.iter().filter(|(at, _)| *at >= from) {
            let replayed = self.engine.replay_with_pages(*at, record, &mut read);
            replayed.unwrap();
        }
        let now = self
            .model
            .now
            .after_ms(down_ms)
            .max(self.engine.newest_time());
        self.engine.start(now, &mut self.log).unwrap();
        self.engine.assert_invariants();
        self.model.restart(now);
        self.connect_all();
    }
}

fn seen_in(batch: &DeliveryBatch) -> impl Iterator<Item = Seen> {
    batch.items.iter().map(|item| Seen {
        id: item.id,
        key: batch.fairness_key(item).to_owned(),
        weight: item.weight,
        attempts: item.attempts,
        deliveries: item.deliveries,
        redrives: item.redrives,
        leased_at: batch.leased_at,
        expires_at: batch.lease_expires_at,
        bytes: u64::from(item.len),
    })
}

pub(crate) fn seen_items(batch: &DeliveryBatch) -> Vec<Seen> {
    seen_in(batch).collect()
}

const fn limits(outbound_bytes_max: u64) -> ConnLimits {
    ConnLimits {
        outbound_bytes_max,
        subscriptions_max: 1_000,
    }
}

fn config(setup: &Setup) -> EngineConfig {
    EngineConfig {
        quantum: setup.quantum,
        page_messages: setup.page_messages,
        lane_hot: setup.lane_hot,
        segment_shift: SEGMENT_SHIFT,
        ..EngineConfig::default()
    }
}

/// One history, from beginning to end.
pub(crate) fn play(setup: Setup, ops: &[Op]) {
    let mut world = World::new(setup);
    for op in ops {
        world.step(op);
    }
}
