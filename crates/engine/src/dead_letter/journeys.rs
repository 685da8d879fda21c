//! Tests: dead letters on their way, whatever comes in between.

use super::*;
use crate::atomic::tests::Memory;
use crate::queue::entries::Place;
use crate::{
    AdminRequest, ConnId, ConnLimits, Engine, EngineConfig, Event, Lsn, MaxLength, MessagePlace,
    Output, Overflow, PublishBatch, PublishError, PublishItem, PublishResult, PublishTarget,
    QueueSpec, ReplyTo, Request, SettleBatch, SettleItem, SettleQueue, Settlement, Span, SubId,
    SubscribeSpec,
};

const CONN: ConnId = ConnId(1);

struct World {
    engine: Engine,
    journal: Memory,
    now: Millis,
    out: Vec<Output>,
}

/// Queues by name; each of the first has a rule where its dead letters go.
fn world(queues: &[&str], rules: &[(&str, Option<&str>)]) -> World {
    let mut world = World {
        engine: Engine::new(EngineConfig::default()),
        journal: Memory::default(),
        now: Millis(1_700_000_000_000),
        out: Vec::new(),
    };
    world.engine.start(world.now, &mut world.journal).unwrap();
    let limits = ConnLimits {
        outbound_bytes_max: 1 << 30,
        subscriptions_max: 10,
    };
    world.handle(Request::Connect { conn: CONN, limits });
    for name in queues {
        let spec = QueueSpec {
            name: (*name).to_owned(),
            max_length: name.starts_with("short").then_some(MaxLength {
                messages: 1,
                overflow: if *name == "short" {
                    Overflow::DropHead
                } else {
                    Overflow::Reject
                },
            }),
            max_attempts: 1,
            ..QueueSpec::default()
        };
        let reply = reply();
        let request = AdminRequest::CreateQueue(Box::new(spec));
        world.handle(Request::Admin { reply, request });
    }
    for (name, key) in rules {
        let index = world.engine.queues.find(name).unwrap();
        let queue = world.engine.queues.at_mut(index);
        // Like a queue that has no partner.
        queue.identity.role = crate::queue::Role::DeadLetter {
            source: crate::QueueId(u32::MAX),
        };
        queue.dead_letters = Some(std::sync::Arc::new(DeadLetterRules {
            exchange: String::new(),
            routing_key: key.map(str::to_owned),
            takes_refused: true,
        }));
    }
    world
}

const fn reply() -> ReplyTo {
    ReplyTo {
        conn: CONN,
        token: 1,
    }
}

impl World {
    fn handle(&mut self, request: Request) {
        let (now, out) = (self.now, &mut self.out);
        self.engine.handle(now, &mut self.journal, request, out);
        self.engine.assert_invariants();
    }

    fn run(&mut self) {
        for _ in 0..1_000 {
            let (now, out) = (self.now, &mut self.out);
            let more = self.engine.run(now, &mut self.journal, out);
            self.engine.assert_invariants();
            if !more {
                return;
            }
        }
        panic!("it never comes to rest");
    }

    fn advance(&mut self, ms: u64) {
        self.now = self.now.after_ms(ms);
        self.run();
    }

    fn publish(&mut self, queue: &str, name: &str, ttl_ms: Option<u64>) -> PublishResult {
        let index = self.engine.queues.find(queue).unwrap();
        let id = self.engine.queues.at(index).identity.id;
        let mut content = Vec::new();
        put_name(&mut content, "orders");
        put_name(&mut content, queue);
        crate::record::put_long(&mut content, &[0x10, 0, 2]);
        crate::record::put_long(&mut content, name.as_bytes());
        let len = u32::try_from(content.len()).unwrap();
        let batch = PublishBatch {
            data: content.into(),
            items: vec![PublishItem {
                target: PublishTarget::Queues(Span { start: 0, len: 1 }),
                content: Span { start: 0, len },
                form: Form::Amqp,
                ttl_ms,
                ..PublishItem::default()
            }],
            routes: vec![id],
            ..PublishBatch::default()
        };
        self.out.clear();
        // The queue is dressed up as one that cannot be published to.
        let role = self.engine.queues.at(index).identity.role;
        let plain = crate::queue::Role::Source {
            dead_letters: crate::QueueId(u32::MAX),
        };
        self.engine.queues.at_mut(index).identity.role = plain;
        let reply = reply();
        self.handle(Request::Publish { reply, batch });
        self.engine.queues.at_mut(index).identity.role = role;
        let Event::Published { results, .. } = &self.out[0].event else {
            panic!("not {:?}", self.out[0].event);
        };
        results[0]
    }

    fn subscribe(&mut self, queue: &str) {
        let spec = SubscribeSpec {
            queue: queue.to_owned(),
            ..SubscribeSpec::default()
        };
        let sub = SubId {
            conn: CONN,
            token: 9,
        };
        self.handle(Request::Subscribe { sub, spec });
        self.run();
    }

    fn reject(&mut self, queue: &str) -> SettleBatch {
        let index = self.engine.queues.find(queue).unwrap();
        let queue = self.engine.queues.at(index);
        let slots = queue.slots_in_order();
        let mut slots = slots.iter();
        let leased = slots.find(|slot| queue.entries.at(**slot).place == Place::Leased);
        let id = queue.entries.at(*leased.expect("a lease")).id;
        SettleBatch {
            items: vec![SettleItem {
                queue: SettleQueue::Id(queue.identity.id),
                id,
                settlement: Settlement::Reject,
            }],
            ..SettleBatch::default()
        }
    }

    fn settle(&mut self, batch: SettleBatch) {
        let reply = reply();
        self.handle(Request::Settle { reply, batch });
    }

    /// Each message: its queue, its body, and its deaths as `queue reason count`.
    fn messages(&mut self) -> Vec<String> {
        let was = core::mem::take(&mut self.journal.is_unreadable);
        let mut lines = Vec::new();
        for (_, queue) in self.engine.queues.iter() {
            for slot in queue.slots_in_order() {
                let entry = queue.entries.at(slot);
                let mut bytes = Vec::new();
                crate::Journal::read_content(&mut self.journal, entry.at, entry.len, &mut bytes);
                let content = Content::new(entry.flags.form(), &bytes);
                let body = String::from_utf8_lossy(content.payload().unwrap()).into_owned();
                let mut line = format!("{}: {body}", queue.identity.name);
                for death in amqp::history_of(content.properties()).deaths {
                    line += &format!(", {} {} {}", death.queue, death.reason, death.count);
                }
                lines.push(line);
            }
        }
        self.journal.is_unreadable = was;
        lines.sort();
        lines
    }

    /// Where the only message of a queue is.
    fn place(&mut self, name: &str) -> MessagePlace {
        let index = self.engine.queues.find(name).unwrap();
        let slots = self.engine.queues.at(index).slots_in_order();
        let out = &mut Vec::new();
        let cx = &mut crate::engine::Cx {
            now: self.now,
            journal: &mut self.journal,
            out,
        };
        self.engine.place_of(cx, index, slots[0])
    }

    fn figures(&self, name: &str) -> (u64, u64, u64) {
        let index = self.engine.queues.find(name).unwrap();
        let counts = self.engine.queues.at(index).counts();
        (counts.depth, counts.departing, counts.dead_lettered)
    }

    /// Another engine that replays the log.
    fn replayed(&mut self) -> Vec<String> {
        let mut engine = Engine::new(EngineConfig::default());
        for (at, record) in &self.journal.records {
            engine.replay(Lsn(*at), record).unwrap();
        }
        engine.start(self.now, &mut self.journal).unwrap();
        core::mem::swap(&mut self.engine, &mut engine);
        let messages = self.messages();
        self.engine = engine;
        messages
    }
}

fn died() -> World {
    let mut w = world(&["in", "dead"], &[("in", Some("dead"))]);
    w.publish("in", "m", None);
    w.subscribe("in");
    w
}

#[test]
fn a_rejected_message_is_stored_elsewhere_and_leaves_in_one_record() {
    let mut w = died();
    let records = w.journal.records.len();
    let batch = w.reject("in");
    w.settle(batch);
    assert_eq!(w.messages(), ["dead: m, in rejected 1"]);
    assert_eq!(w.figures("in"), (0, 0, 1));
    assert_eq!(w.journal.records.len(), records + 1);
    assert_eq!(w.replayed(), ["dead: m, in rejected 1"]);
    w.journal.records.pop_last();
    assert_eq!(w.replayed(), ["in: m"]);
}

#[test]
fn a_transaction_takes_its_dead_letters_with_it() {
    let mut w = died();
    let records = w.journal.records.len();
    let settle = w.reject("in");
    w.handle(Request::Transaction {
        reply: reply(),
        publish: PublishBatch::default(),
        settle,
    });
    assert_eq!(w.journal.records.len(), records + 1);
    assert_eq!(w.replayed(), ["dead: m, in rejected 1"]);
}

#[test]
fn a_message_that_cannot_be_read_or_stored_now_stays() {
    for full in [false, true] {
        let mut w = died();
        w.journal.is_unreadable = !full;
        w.engine.set_storage_full(full);
        let batch = w.reject("in");
        w.settle(batch);
        assert_eq!(w.messages(), ["in: m"]);
        assert_eq!(w.figures("in"), (0, 1, 0));
        assert_eq!(
            w.place("in"),
            MessagePlace::Departing { reason: "rejected" }
        );
        w.run();
        w.advance(999);
        assert_eq!(w.figures("in"), (0, 1, 0));
        w.journal.is_unreadable = false;
        w.engine.set_storage_full(false);
        // A restart finds it where it was.
        assert_eq!(w.replayed(), ["in: m"]);
        w.advance(1);
        assert_eq!(w.messages(), ["dead: m, in rejected 1"]);
    }
}

#[test]
fn an_expired_message_goes_there_too() {
    let mut w = world(&["in", "dead"], &[("in", Some("dead"))]);
    w.publish("in", "m", Some(1_000));
    w.publish("in", "n", Some(0));
    w.run();
    assert_eq!(w.messages(), ["dead: n, in expired 1", "in: m"]);
    w.advance(1_000);
    assert_eq!(
        w.messages(),
        ["dead: m, in expired 1", "dead: n, in expired 1"]
    );
    assert_eq!(w.replayed(), w.messages());
}

#[test]
fn what_is_over_the_length_goes_there_too() {
    let mut w = world(&["short", "dead"], &[("short", Some("dead"))]);
    w.publish("short", "m", None);
    w.publish("short", "n", None);
    assert_eq!(w.messages(), ["dead: m, short maxlen 1", "short: n"]);
    let mut w = world(&["shortest", "dead"], &[("shortest", Some("dead"))]);
    w.publish("shortest", "m", None);
    // In one of several queues it is not there for one alone to refuse.
    let index = w.engine.queues.find("shortest").unwrap();
    let new = crate::incoming::Incoming {
        content: b"\x01e\x01k\0\0\0\x03\x10\0\x02\0\0\0\x01n",
        buffer: None,
        attributes: &[],
        form: Form::Amqp,
        key: "",
        weight: 1,
        idempotency_key: &[],
        delay_ms: 0,
        ttl_ms: None,
        priority: 0,
        transient: false,
        parked: None,
    };
    w.engine.refuse(index, &new, PublishError::QueueFull);
    w.run();
    assert_eq!(w.messages(), ["dead: n, shortest maxlen 1", "shortest: m"]);
}

#[test]
fn a_circle_without_a_rejection_ends() {
    let rules = [("a", Some("b")), ("b", Some("a"))];
    let mut w = world(&["a", "b"], &rules);
    for (name, _) in rules {
        // Queues of dead letters would not get any.
        let index = w.engine.queues.find(name).unwrap();
        w.engine.queues.at_mut(index).identity.role = crate::queue::Role::Source {
            dead_letters: crate::QueueId(u32::MAX),
        };
    }
    w.publish("a", "m", Some(0));
    w.run();
    assert_eq!(w.messages(), ["b: m, a expired 1"]);
    w.subscribe("b");
    // Rejected in `b`, it may come back to `a`.
    let batch = w.reject("b");
    w.settle(batch);
    assert_eq!(w.messages(), ["a: m, b rejected 1, a expired 1"]);
    let a = w.engine.queues.find("a").unwrap();
    let slot = w.engine.queues.at(a).slots_in_order()[0];
    let out = &mut Vec::new();
    let cx = &mut crate::engine::Cx {
        now: w.now,
        journal: &mut w.journal,
        out,
    };
    let queue = w.engine.queues.at_mut(a);
    let lane = queue.entries.at(slot).lane;
    queue.lanes.take_first(&queue.entries, lane);
    w.engine.die(cx, a, &[slot], Reason::Expired);
    w.run();
    assert_eq!(w.messages(), ["b: m, a expired 2, b rejected 1"]);
}

#[test]
fn many_go_in_bounded_steps() {
    let mut w = world(&["in", "dead"], &[("in", Some("dead"))]);
    for n in 0..600 {
        w.publish("in", &n.to_string(), Some(1_000));
    }
    w.now = w.now.after_ms(1_000);
    let out = &mut Vec::new();
    let mut departing = Vec::new();
    while w.engine.run(w.now, &mut w.journal, out) {
        departing.push(w.figures("in").1);
    }
    assert_eq!(departing, [344, 88]);
    assert_eq!(w.figures("in"), (0, 0, 600));
    assert_eq!(w.figures("dead").0, 600);
}
