//! A broker and its model, to which the same things happen.

use std::collections::{BTreeMap, BTreeSet};

use tanda_engine::{
    AdminReply, AdminRequest, ConnId, ConnLimits, Event, GetSpec, Held, LeaseMode, Output,
    PublishError, PublishResult, ReplyTo, Request, Settlement, SubId, SubscribeSpec, Take, VhostId,
};
use tanda_wire::amqp::Value;

use crate::harness::CONN;
use crate::model::{Consumer, Declared, Delivery, Message, Queue};
use crate::world::{Got, Msg, REJECT, REQUEUE, World, dead_to, settle_batch};

pub(crate) const QUEUES: [&str; 2] = ["one", "two"];

/// Where all dead letters go, and who takes them there.
const GRAVEYARD: &str = "dead";
const EXCHANGE: &str = "both";
const KEY: &str = "key";

pub(crate) struct History {
    w: World,
    queues: BTreeMap<&'static str, Queue>,
    bound: BTreeSet<&'static str>,
    /// Connections, with the queue that each takes from and its subscription.
    pub(crate) clients: BTreeMap<u64, Client>,
    held: BTreeMap<(String, String), Got>,
    next_client: u64,
    pub(crate) counts: Counts,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    pub(crate) queue: &'static str,
    pub(crate) sub: Option<SubId>,
}

/// What happened in all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) deliveries: usize,
    pub(crate) again: usize,
    pub(crate) deaths: usize,
    pub(crate) refused: usize,
}

/// A message to publish, beside where it goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) name: &'a str,
    pub(crate) priority: u8,
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) transient: bool,
}

impl History {
    pub(crate) fn new(declared: [Declared; 2]) -> Self {
        let mut w = World::new();
        w.exchange(EXCHANGE, "direct");
        w.queue(GRAVEYARD, &[]);
        for (name, declared) in QUEUES.into_iter().zip(declared) {
            w.queue(name, &arguments(declared));
        }
        let queues = QUEUES.into_iter().zip(declared.map(Queue::new));
        let mut history = Self {
            w,
            queues: queues.collect(),
            bound: BTreeSet::new(),
            clients: BTreeMap::new(),
            held: BTreeMap::new(),
            next_client: 1_000,
            counts: Counts::default(),
        };
        history.collect_deaths();
        history
    }

    /// Messages that clients hold, as queue and name.
    pub(crate) fn held(&self) -> Vec<(String, String)> {
        self.held.keys().cloned().collect()
    }

    pub(crate) fn publish(&mut self, queue: &'static str, draft: Draft<'_>) {
        let msg = message_of(("", queue), draft);
        self.send(&msg, &[queue], draft);
    }

    /// Publishes to the exchange.
    pub(crate) fn route(&mut self, draft: Draft<'_>) {
        let msg = message_of((EXCHANGE, KEY), draft);
        let targets: Vec<_> = self.bound.iter().copied().collect();
        self.send(&msg, &targets, draft);
    }

    fn send(&mut self, msg: &Msg<'_>, targets: &[&'static str], draft: Draft<'_>) {
        let now = self.w.h.now;
        let (result, _) = self.w.publish(msg);
        let mut taken = 0;
        for target in targets {
            let message = Message {
                name: draft.name.to_owned(),
                position: 0,
                priority: draft.priority,
                expires: None,
                transient: draft.transient,
                deliveries: 0,
                held_by: None,
            };
            let queue = self.queues.get_mut(target).unwrap();
            taken += usize::from(queue.publish(now, message, draft.ttl_ms));
        }
        self.counts.refused += targets.len() - taken;
        match result {
            PublishResult::Unroutable => assert!(targets.is_empty()),
            PublishResult::Refused(PublishError::QueueFull) => assert!(taken < targets.len()),
            PublishResult::Stored(_) => assert!(taken == targets.len() && taken > 0),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn bind(&mut self, queue: &'static str) {
        self.w.bind(EXCHANGE, queue, KEY);
        self.bound.insert(queue);
    }

    pub(crate) fn unbind(&mut self, queue: &'static str) {
        self.w.unbind(EXCHANGE, queue, KEY);
        self.bound.remove(queue);
    }

    fn connect(&mut self) -> ConnId {
        let conn = ConnId(self.next_client);
        self.next_client += 1;
        let limits = ConnLimits {
            outbound_bytes_max: 1 << 30,
            subscriptions_max: 10,
        };
        self.ask(Request::Connect { conn, limits });
        conn
    }

    pub(crate) fn consume(&mut self, queue: &'static str, consumer: Consumer) {
        let conn = self.connect();
        let sub = SubId { conn, token: 1 };
        let spec = SubscribeSpec {
            queue: queue.to_owned(),
            credit: Some(consumer.credit),
            priority: consumer.priority,
            lease: LeaseMode::Connection,
            ..SubscribeSpec::default()
        };
        let sub_of = Some(sub);
        self.clients.insert(conn.0, Client { queue, sub: sub_of });
        self.ask(Request::Subscribe { sub, spec });
        let now = self.w.h.now;
        let model = self.queues.get_mut(queue).unwrap();
        model.consumers.insert(conn.0, consumer);
        model.settle_down(now);
    }

    pub(crate) fn grant(&mut self, client: u64, credit: u32) {
        let it = self.clients[&client];
        let Some(sub) = it.sub else { return };
        self.ask(Request::Grant { sub, credit });
        let now = self.w.h.now;
        let model = self.queues.get_mut(it.queue).unwrap();
        model.consumers.get_mut(&client).unwrap().credit += credit;
        model.settle_down(now);
    }

    /// It takes no more, and keeps what it has.
    pub(crate) fn cancel(&mut self, client: u64) {
        let it = self.clients.get_mut(&client).unwrap();
        let Some(sub) = it.sub.take() else { return };
        let queue = it.queue;
        let held = Held::Keep;
        self.ask(Request::Unsubscribe { sub, held });
        let model = self.queues.get_mut(queue).unwrap();
        model.consumers.remove(&client);
    }

    pub(crate) fn leave(&mut self, client: u64) {
        let it = self.clients.remove(&client).unwrap();
        self.held.retain(|_, got| got.conn.0 != client);
        let conn = ConnId(client);
        self.ask(Request::Disconnect { conn });
        let now = self.w.h.now;
        self.queues.get_mut(it.queue).unwrap().leave(now, client);
    }

    /// One message, for a client of its own that keeps it.
    pub(crate) fn get(&mut self, queue: &'static str) {
        let conn = self.connect();
        self.clients.insert(conn.0, Client { queue, sub: None });
        let spec = GetSpec {
            queue: queue.to_owned(),
            take: Take::Held {
                ack_timeout_ms: None,
            },
            ..GetSpec::default()
        };
        let reply = ReplyTo { conn, token: 2 };
        let answers = self.ask(Request::Get { reply, spec });
        let [
            Event::Got {
                result: Ok(got), ..
            },
        ] = answers.as_slice()
        else {
            panic!("{answers:?}");
        };
        let left = usize::try_from(got.remaining).unwrap();
        let batch = got.batch.as_ref();
        let found = batch.map(|batch| self.w.got(conn, batch, &batch.items[0]));
        let told = found
            .as_ref()
            .map(|it| (it.name.clone(), it.deliveries > 1));
        let model = self.queues.get_mut(queue).unwrap();
        assert_eq!((told, left), model.get(conn.0));
        if let Some(found) = found {
            self.counts.deliveries += 1;
            self.counts.again += usize::from(found.deliveries > 1);
            self.held
                .insert((queue.to_owned(), found.name.clone()), found);
        }
    }

    pub(crate) fn settle(&mut self, held: &(String, String), settlement: Settlement) {
        let got = self.held.remove(held).unwrap();
        let reply = ReplyTo {
            conn: CONN,
            token: 3,
        };
        let batch = settle_batch(&got, settlement);
        let answers = self.ask(Request::Settle { reply, batch });
        let [Event::Settled { results, .. }] = answers.as_slice() else {
            panic!("{answers:?}");
        };
        assert!(results[0].is_ok(), "{results:?}");
        let now = self.w.h.now;
        let model = self.queues.get_mut(held.0.as_str()).unwrap();
        match settlement {
            Settlement::Ack => model.ack(&held.1),
            REJECT => model.reject(&held.1),
            REQUEUE => model.requeue(now, &held.1),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn purge(&mut self, queue: &'static str) {
        let request = AdminRequest::Purge {
            vhost: VhostId::DEFAULT,
            name: queue.to_owned(),
        };
        let purged = match self.w.h.admin(request) {
            AdminReply::QueuePurged(Ok(count)) => usize::try_from(count).unwrap(),
            other => panic!("{other:?}"),
        };
        assert_eq!(purged, self.queues.get_mut(queue).unwrap().purge());
    }

    pub(crate) fn advance(&mut self, ms: u64) {
        let end = self.w.h.now.after_ms(ms);
        self.w.advance(ms);
        for model in self.queues.values_mut() {
            while let Some(at) = model.next_expiry().filter(|at| *at <= end) {
                model.settle_down(at);
            }
        }
    }

    pub(crate) fn snapshot(&mut self) {
        self.w.h.take_snapshot();
    }

    /// The process ends and starts again.
    pub(crate) fn restart(&mut self, down_ms: u64) {
        self.clients.clear();
        self.held.clear();
        self.w.h.restart(down_ms);
        self.w.run();
        let now = self.w.h.now;
        for model in self.queues.values_mut() {
            model.restart(now);
        }
        self.collect_deaths();
    }

    /// Somebody takes all dead letters from now on.
    fn collect_deaths(&mut self) {
        let conn = self.connect();
        let sub = SubId { conn, token: 1 };
        let spec = SubscribeSpec {
            queue: GRAVEYARD.to_owned(),
            lease: LeaseMode::NoAck,
            ..SubscribeSpec::default()
        };
        self.ask(Request::Subscribe { sub, spec });
    }

    /// Asks, passes, and gives the answers.
    fn ask(&mut self, request: Request) -> Vec<Event> {
        let out = self.w.h.handle(request);
        let is_delivery = |it: &Output| matches!(it.event, Event::Delivery { .. });
        let (deliveries, answers) = out.into_iter().partition(is_delivery);
        let answers: Vec<Output> = answers;
        self.w.take(deliveries);
        self.w.run();
        answers.into_iter().map(|it| it.event).collect()
    }

    /// What came of the last step is what the model says.
    pub(crate) fn check(&mut self) {
        let (dead, delivered): (Vec<Got>, _) = core::mem::take(&mut self.w.held)
            .into_iter()
            .partition(|it| it.queue == GRAVEYARD);
        let deaths = dead.iter().map(|it| {
            let newest = it.deaths().swap_remove(0);
            let (queue, reason) = newest.split_once(' ').unwrap();
            let reason = reason.split_once("*1 ").unwrap().0;
            (queue.to_owned(), it.name.clone(), reason.to_owned())
        });
        let mut deaths: Vec<_> = deaths.collect();
        let mut expected_deaths = Vec::new();
        let mut expected = BTreeMap::new();
        for (name, model) in &mut self.queues {
            let (deaths, deliveries) = model.told();
            let deaths = deaths.into_iter();
            let of = |(message, reason): (String, &str)| {
                ((*name).to_owned(), message, reason.to_owned())
            };
            expected_deaths.extend(deaths.map(of));
            expected.insert(*name, deliveries);
        }
        deaths.sort();
        expected_deaths.sort();
        assert_eq!(deaths, expected_deaths, "dead letters");
        self.counts.deaths += deaths.len();
        for (name, expected) in expected {
            let of_queue = delivered.iter().filter(|it| it.queue == name);
            self.check_deliveries(name, &expected, &of_queue.cloned().collect::<Vec<_>>());
        }
        for name in QUEUES {
            let depth = self.w.counts_now(name).depth;
            assert_eq!(depth, self.queues[name].ready() as u64, "depth of {name}");
        }
    }

    fn check_deliveries(&mut self, queue: &'static str, expected: &[Delivery], found: &[Got]) {
        let told = |it: &Got| (it.name.clone(), it.deliveries > 1);
        let mut sorted: Vec<_> = found.iter().map(told).collect();
        let mut wanted = expected.to_vec();
        sorted.sort();
        wanted.sort();
        assert_eq!(sorted, wanted, "deliveries of {queue}");
        // Each client got its own in the order of all.
        let clients: BTreeSet<_> = found.iter().map(|it| it.conn.0).collect();
        for client in clients {
            let its = found.iter().filter(|it| it.conn.0 == client);
            let its: Vec<_> = its.map(told).collect();
            let order = expected.iter().filter(|it| its.contains(it));
            assert_eq!(its, order.cloned().collect::<Vec<_>>(), "order in {queue}");
        }
        let takers = found.iter().map(|it| (it.name.clone(), it.conn.0));
        self.queues
            .get_mut(queue)
            .unwrap()
            .assign(&takers.collect::<Vec<_>>());
        self.counts.deliveries += found.len();
        self.counts.again += found.iter().filter(|it| it.deliveries > 1).count();
        for got in found {
            self.held
                .insert((queue.to_owned(), got.name.clone()), got.clone());
        }
    }
}

fn message_of<'a>((exchange, key): (&'a str, &'a str), draft: Draft<'a>) -> Msg<'a> {
    Msg {
        exchange,
        key,
        name: draft.name,
        ttl_ms: draft.ttl_ms,
        transient: draft.transient,
        priority: draft.priority,
        ..Msg::default()
    }
}

fn arguments(declared: Declared) -> Vec<(&'static str, Value<'static>)> {
    let number = |value: u64| Value::I64(i64::try_from(value).unwrap());
    let mut args = if declared.has_graveyard {
        dead_to(GRAVEYARD)
    } else {
        Vec::new()
    };
    let max_length = declared.max_length.map(|max| max as u64);
    let limit = declared.delivery_limit.map(u64::from);
    for (name, value) in [
        ("x-max-priority", declared.max_priority.map(u64::from)),
        ("x-max-length", max_length),
        ("x-message-ttl", declared.ttl_ms),
        ("x-delivery-limit", limit),
    ] {
        args.extend(value.map(|value| (name, number(value))));
    }
    if declared.rejects {
        args.push(("x-overflow", Value::text("reject-publish")));
    }
    args
}
