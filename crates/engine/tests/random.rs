//! Random operations: after each one the engine's invariants hold, and an engine built from the
//! journal has the same messages with the same counters in the same order.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used,
    reason = "a test stops at what it does not expect"
)]

mod harness;

use std::collections::BTreeMap;

use harness::{Harness, Msg, delivered_ids, deliveries};
use tanda_engine::{
    AdminReply, AdminRequest, Backoff, ConnId, DeliveryDurability, EngineConfig, Event, KeyKind,
    KeyPart, LeaseMode, MessageId, MissingOrderingKey, Ordering, Output, PublishResult,
    QueueChanges, QueueSpec, Request, Settlement, Span, SubId, VhostId,
};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

fn key(kind: KeyKind, name: &str) -> Vec<KeyPart> {
    vec![KeyPart {
        kind,
        name: name.to_owned(),
    }]
}

fn specs() -> Vec<QueueSpec> {
    let plain = QueueSpec {
        lease_ms: 500,
        backoff_initial_ms: 100,
        ..QueueSpec::default()
    };
    let missing = MissingOrderingKey::Unordered;
    vec![
        QueueSpec {
            name: "plain".to_owned(),
            ..plain.clone()
        },
        QueueSpec {
            name: "whole".to_owned(),
            ordering: Ordering::Queue,
            ..plain.clone()
        },
        QueueSpec {
            name: "grouped".to_owned(),
            ordering: Ordering::Key {
                key: key(KeyKind::Header, "account"),
                missing,
            },
            backoff: Some(Backoff::None),
            ..plain.clone()
        },
        QueueSpec {
            name: "fast".to_owned(),
            durability: DeliveryDurability::Fast,
            dedup_window_ms: 700,
            ..plain.clone()
        },
        QueueSpec {
            name: "unique".to_owned(),
            dedup_key: Some(key(KeyKind::Payload, "")),
            dedup_window_ms: 300,
            max_attempts: 1,
            ..plain
        },
    ]
}

const QUEUES: [&str; 5] = ["plain", "whole", "grouped", "fast", "unique"];

/// What the world knows of the engine.
struct World {
    h: Harness,
    random: Random,
    subs: Vec<SubId>,
    /// Delivered and not settled, with their queue's name.
    held: Vec<(String, MessageId)>,
    next_conn: u64,
    /// Present = confirmed and not acked; only queues that are not fast.
    expected: BTreeMap<MessageId, String>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut h = Harness::with_config(EngineConfig {
            segment_shift: 12,
            page_messages: 3,
            lane_hot: 2,
            ..EngineConfig::default()
        });
        for spec in specs() {
            h.create(spec);
        }
        Self {
            h,
            random: Random(seed),
            subs: Vec::new(),
            held: Vec::new(),
            next_conn: 10,
            expected: BTreeMap::new(),
        }
    }

    fn queue(&mut self) -> &'static str {
        QUEUES[usize::try_from(self.random.below(5)).unwrap()]
    }

    fn take(&mut self, out: &[Output]) {
        for (_, batch) in deliveries(out) {
            for item in &batch.items {
                assert!(item.attempts > 0);
                self.held.push((batch.queue.to_string(), item.id));
            }
        }
    }

    fn publish(&mut self) {
        let count = 1 + self.random.below(6);
        let mut messages = Vec::new();
        for _ in 0..count {
            let mut msg = Msg::to(self.queue());
            msg.key =
                ["", "a", "b", "c"][usize::try_from(self.random.below(4)).unwrap()].to_owned();
            msg.weight = u32::try_from(self.random.below(4)).unwrap();
            msg.payload = vec![b'x'; usize::try_from(self.random.below(40)).unwrap()];
            if self.random.chance(70) {
                msg = msg.header("account", &self.random.below(4).to_string());
            }
            if self.random.chance(20) {
                msg.delay_ms = self.random.below(900);
            }
            if self.random.chance(20) {
                msg.idempotency_key = Some(self.random.below(30).to_string());
            }
            messages.push(msg);
        }
        for (result, msg) in self.h.publish(&messages).into_iter().zip(&messages) {
            match result {
                PublishResult::Stored(id) if msg.queue != "fast" => {
                    assert!(
                        self.expected.insert(id, msg.queue.clone()).is_none(),
                        "{id} twice"
                    );
                }
                PublishResult::Stored(_) | PublishResult::Duplicate(_) => {}
                PublishResult::Sent { .. } | PublishResult::Unroutable => {
                    panic!("a queue was named")
                }
                PublishResult::Refused(error) => panic!("{error:?}"),
            }
        }
    }

    fn settle(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let count = 1 + self.random.below(4);
        for _ in 0..count.min(self.held.len() as u64) {
            let index = usize::try_from(self.random.below(self.held.len() as u64)).unwrap();
            let (queue, id) = self.held.swap_remove(index);
            let settlement = match self.random.below(10) {
                0..=4 => Settlement::Ack,
                5 => Settlement::Fail {
                    error: Span::default(),
                    retry_after_ms: None,
                },
                6 => Settlement::Fail {
                    error: Span::default(),
                    retry_after_ms: Some(0),
                },
                7 => Settlement::Requeue,
                8 => Settlement::Reject,
                _ => Settlement::Extend {
                    by_ms: self.random.below(2_000),
                },
            };
            let twice = [(id, settlement), (id, Settlement::Ack)];
            let extend = matches!(settlement, Settlement::Extend { .. });
            let items = if extend { &twice[..1] } else { &twice[..] };
            let results = self.h.settle(&queue, items);
            if !extend {
                assert!(results[1].is_err(), "settled twice: {settlement:?}");
            }
            let in_dlq = queue.strip_suffix(".dlq").is_some();
            let gone =
                settlement == Settlement::Ack || (settlement == Settlement::Reject && in_dlq);
            if results[0].is_ok() && gone {
                self.expected.remove(&id);
            }
            if extend && results[0].is_ok() {
                self.held.push((queue, id));
            }
        }
    }

    fn subscribe(&mut self) {
        let conn = ConnId(self.next_conn);
        self.next_conn += 1;
        self.h.connect(conn);
        let mut queue = self.queue().to_owned();
        if self.random.chance(25) {
            queue.push_str(".dlq");
        }
        let credit = if self.random.chance(30) {
            None
        } else {
            Some(3)
        };
        let lease = if self.random.chance(25) {
            LeaseMode::Connection
        } else {
            LeaseMode::Timed
        };
        let sub = self.h.subscribe_as(conn, &queue, credit, lease);
        self.subs.push(sub);
    }

    fn end_sub(&mut self) {
        if self.subs.is_empty() {
            return;
        }
        let index = usize::try_from(self.random.below(self.subs.len() as u64)).unwrap();
        let sub = self.subs.swap_remove(index);
        let mut out = Vec::new();
        if self.random.chance(50) {
            let more = self.h.engine.run(self.h.now, &mut self.h.journal, &mut out);
            let _ = more;
            let (mine, others): (Vec<_>, Vec<_>) =
                out.into_iter().partition(|output| output.conn == sub.conn);
            self.take(&others);
            for (_, batch) in deliveries(&mine) {
                self.h
                    .engine
                    .undelivered(self.h.now, &mut self.h.journal, sub.conn, &batch);
                self.h.engine.assert_invariants();
            }
        }
        self.h.handle(Request::Disconnect { conn: sub.conn });
    }

    fn admin(&mut self) {
        let name = self.queue().to_owned();
        let request = match self.random.below(6) {
            0 | 1 => AdminRequest::Redrive {
                vhost: VhostId::DEFAULT,
                name: format!("{name}.dlq"),
                count: self.random.below(3),
                reclassify: tanda_engine::Reclassify::All,
            },
            2 => AdminRequest::QueueStats {
                vhost: VhostId::DEFAULT,
                name,
            },
            3 => AdminRequest::Explain {
                vhost: VhostId::DEFAULT,
                name,
                message: self.expected.keys().next().copied(),
            },
            4 => AdminRequest::SetConfig {
                key: name,
                value: "v".to_owned(),
            },
            _ => {
                let changes = QueueChanges {
                    lease_ms: Some(300 + self.random.below(500)),
                    ..QueueChanges::default()
                };
                AdminRequest::UpdateQueue {
                    vhost: VhostId::DEFAULT,
                    name,
                    changes: Box::new(changes),
                }
            }
        };
        let reply = tanda_engine::ReplyTo {
            conn: harness::CONN,
            token: 9,
        };
        let mut out = self.h.handle(Request::Admin { reply, request });
        out.extend(self.h.run());
        assert!(
            out.iter()
                .any(|output| matches!(output.event, Event::Admin { .. }))
        );
        self.take(&out);
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..=34 => self.publish(),
            35..=69 => self.settle(),
            70..=76 => self.subscribe(),
            77..=80 => self.end_sub(),
            81..=86 => self.admin(),
            87..=88 => self.restart(),
            89..=90 => self.release(),
            _ => {
                let ms = self.random.below(400);
                let out = self.h.advance(ms);
                self.take(&out);
            }
        }
        for sub in self.subs.clone() {
            let conn = sub.conn;
            self.h.handle(Request::Drained {
                conn,
                bytes: 1 << 20,
            });
            if self.random.chance(50) {
                self.h.handle(Request::Grant { sub, credit: 1 });
            }
        }
        let out = self.h.run();
        self.take(&out);
    }

    /// What clients can see of all queues, whatever is leased.
    fn totals(&mut self) -> Vec<(String, u64)> {
        let AdminReply::Queues(queues) = self.h.admin(AdminRequest::ListQueues) else {
            panic!("a list of queues");
        };
        queues
            .into_iter()
            .map(|queue| (queue.name, queue.counts.depth + queue.counts.in_flight))
            .collect()
    }

    fn restart(&mut self) {
        let before = self.totals();
        self.subs.clear();
        self.h.restart(0);
        assert_eq!(self.totals(), before, "messages per queue");
    }

    /// Cuts off what the engine does not need any more, and starts from what is left.
    fn release(&mut self) {
        self.h.take_snapshot();
        self.restart();
    }

    /// Everything confirmed and not acked comes out, and nothing else.
    fn drain(mut self) {
        self.subs.clear();
        self.held.clear();
        self.h.restart(0);
        let mut seen = BTreeMap::new();
        for round in 0.. {
            assert!(round < 2_000, "not drained: {:?}", self.totals());
            if self.totals().iter().all(|(_, messages)| *messages == 0) {
                break;
            }
            if round == 0 {
                for queue in QUEUES
                    .iter()
                    .flat_map(|q| [(*q).to_owned(), format!("{q}.dlq")])
                {
                    self.subs
                        .push(self.h.subscribe(harness::CONN, &queue, None));
                }
            }
            let out = self.h.advance(200);
            self.h.handle(Request::Drained {
                conn: harness::CONN,
                bytes: 1 << 30,
            });
            for (_, batch) in deliveries(&out) {
                let ids: Vec<_> = batch.items.iter().map(|item| item.id).collect();
                for id in &ids {
                    seen.insert(*id, batch.queue.to_string());
                }
                self.h.ack(&batch.queue, &ids);
            }
        }
        for (id, queue) in &self.expected {
            assert!(seen.contains_key(id), "{id} of {queue} is lost");
        }
        let fast = |queue: &str| queue.starts_with("fast");
        for (id, queue) in &seen {
            assert!(
                fast(queue) || self.expected.contains_key(id),
                "{id} of {queue} came back"
            );
        }
        let out = self.h.advance(700_000);
        assert_eq!(delivered_ids(&out), []);
        let needed = self.h.engine.segments().count();
        assert_eq!(needed, 0, "an empty engine needs nothing of the log");
    }
}

fn scenario(seed: u64, steps: u32) {
    let mut world = World::new(seed);
    for _ in 0..steps {
        world.step();
    }
    world.drain();
}

#[test]
fn random_operations_keep_every_promise() {
    for seed in 0..60 {
        let outcome = std::panic::catch_unwind(|| scenario(seed, 300));
        assert!(outcome.is_ok(), "seed {seed}");
    }
}
