//! Throttles under random histories: no window ever holds more than its limit, whatever is
//! published, taken back, restarted or waited for, and all of it gets through in the end.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::indexing_slicing,
    reason = "a test stops at what it does not expect"
)]

mod harness;

use std::collections::BTreeMap;

use harness::{Harness, Msg};
use tanda_engine::{
    AdminReply, AdminRequest, ConnId, ConnLimits, DeliveryDurability, EngineConfig, Event, KeyKind,
    KeyPart, LeaseMode, MessageId, Millis, MissingOrderingKey, MissingThrottleKey, Ordering,
    Output, QueueSpec, ReplyTo, Request, Settlement, Span, SubId, SubscribeSpec, ThrottleLimit,
    ThrottleSpec, VhostId,
};

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((self.0 >> 33) ^ (self.0 >> 17)) % n
    }
}

const QUEUES: [&str; 3] = ["plain", "fast", "grouped"];

fn part(kind: KeyKind, name: &str) -> KeyPart {
    KeyPart {
        kind,
        name: name.to_owned(),
    }
}

/// Declared by every subscriber, so that they always apply.
fn throttles() -> Vec<ThrottleSpec> {
    let limit = |max_deliveries, window_ms| ThrottleLimit {
        window_ms,
        max_deliveries,
    };
    let throttle = |name: &str, limits: &[ThrottleLimit], key| ThrottleSpec {
        name: name.to_owned(),
        limits: limits.to_vec(),
        key,
        missing: MissingThrottleKey::SharedBucket,
    };
    vec![
        throttle("all", &[limit(6, 1_000)], Vec::new()),
        throttle(
            "key",
            &[limit(4, 1_500)],
            vec![part(KeyKind::FairnessKey, "")],
        ),
        throttle(
            "to",
            &[limit(2, 700), limit(3, 2_500)],
            vec![part(KeyKind::Header, "to")],
        ),
        throttle(
            "both",
            &[limit(2, 1_100)],
            vec![part(KeyKind::Header, "to"), part(KeyKind::FairnessKey, "")],
        ),
    ]
}

struct World {
    h: Harness,
    rng: Rng,
    /// Deliveries that have not left.
    held: Vec<Output>,
    /// What each message is: header and fairness key.
    messages: BTreeMap<MessageId, (Option<String>, String, &'static str)>,
    /// Times at which deliveries left, by throttle and bucket.
    left: BTreeMap<(String, Vec<String>), Vec<Millis>>,
    subs: Vec<SubId>,
    next_conn: u64,
    deliveries: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let config = EngineConfig {
            segment_shift: 12,
            page_messages: 3,
            lane_hot: 6,
            throttled_hot: 12,
            ..EngineConfig::default()
        };
        let mut h = Harness::with_config(config);
        h.holds_deliveries = true;
        for name in QUEUES {
            h.create(QueueSpec {
                name: name.to_owned(),
                lease_ms: 2_000,
                max_attempts: 1_000_000,
                durability: if name == "fast" {
                    DeliveryDurability::Fast
                } else {
                    DeliveryDurability::Committed
                },
                ordering: if name == "grouped" {
                    Ordering::Key {
                        key: vec![part(KeyKind::Header, "group")],
                        missing: MissingOrderingKey::Unordered,
                    }
                } else {
                    Ordering::None
                },
                ..QueueSpec::default()
            });
        }
        Self {
            h,
            rng: Rng(seed.wrapping_mul(0x9e37_79b9) + 7),
            held: Vec::new(),
            messages: BTreeMap::new(),
            left: BTreeMap::new(),
            subs: Vec::new(),
            next_conn: 100,
            deliveries: 0,
        }
    }

    fn keep(&mut self, out: Vec<Output>) {
        let held = out.into_iter();
        self.held
            .extend(held.filter(|it| matches!(it.event, Event::Delivery { .. })));
    }

    fn run(&mut self) {
        let out = self.h.run();
        self.keep(out);
    }

    fn index(&mut self, below: u64) -> usize {
        usize::try_from(self.rng.below(below)).unwrap()
    }

    fn publish(&mut self) {
        let queue = QUEUES[self.index(3)];
        for _ in 0..=self.rng.below(12) {
            let key = ["", "k", "l"][self.index(3)];
            let mut message = Msg::to(queue).payload("x").key(key);
            let to = ["", "a", "b", "c"][self.index(4)];
            if !to.is_empty() {
                message = message.header("to", to);
            }
            if queue == "grouped" {
                let group = format!("g{}", self.rng.below(4));
                message = message.header("group", &group);
            }
            let id = self.h.publish_ids(&[message])[0];
            let to = (!to.is_empty()).then(|| to.to_owned());
            self.messages.insert(id, (to, key.to_owned(), queue));
        }
    }

    fn subscribe(&mut self, queue: &str, credit: Option<u32>) {
        let conn = ConnId(self.next_conn);
        self.next_conn += 1;
        let limits = ConnLimits {
            outbound_bytes_max: 1 << 30,
            subscriptions_max: 8,
        };
        self.h.handle(Request::Connect { conn, limits });
        let spec = SubscribeSpec {
            queue: queue.to_owned(),
            credit,
            lease: LeaseMode::Timed,
            throttles: throttles(),
            ..SubscribeSpec::default()
        };
        let sub = self.h.subscribe_with(conn, spec);
        self.subs.push(sub);
    }

    /// Takes back what did not leave for this connection, as the node does, and ends it.
    fn disconnect(&mut self, at: usize) {
        let sub = self.subs.swap_remove(at);
        let (gone, kept) = core::mem::take(&mut self.held)
            .into_iter()
            .partition(|it| it.conn == sub.conn);
        self.held = kept;
        let gone: Vec<Output> = gone;
        for output in gone {
            if let Event::Delivery { batch, .. } = &output.event {
                let (now, h) = (self.h.now, &mut self.h);
                h.engine.undelivered(now, &mut h.journal, sub.conn, batch);
            }
        }
        self.h.handle(Request::Disconnect { conn: sub.conn });
    }

    /// The oldest deliveries leave.
    fn release(&mut self, most: usize) {
        let most = most.min(self.held.len());
        let mut out: Vec<_> = self.held.drain(..most).collect();
        self.h.release(&mut out);
        let now = self.h.now;
        for output in out {
            let Event::Delivery { batch, .. } = output.event else {
                continue;
            };
            for item in &batch.items {
                self.deliveries += 1;
                let (to, key, queue) = self.messages[&item.id].clone();
                let keyed = (!key.is_empty()).then_some(key);
                let buckets = [
                    ("all", Some(Vec::new())),
                    ("key", keyed.clone().map(|it| vec![it])),
                    ("to", to.clone().map(|it| vec![it])),
                    ("both", to.zip(keyed).map(|(a, b)| vec![a, b])),
                ];
                for (name, values) in buckets {
                    let values = values.unwrap_or_else(|| vec!["(shared)".to_owned()]);
                    let left = self.left.entry((name.to_owned(), values)).or_default();
                    left.push(now);
                }
                let settle = match self.rng.below(5) {
                    0 => Settlement::Fail {
                        error: Span { start: 0, len: 0 },
                        retry_after_ms: Some(self.rng.below(3) * 100),
                    },
                    1 => continue,
                    _ => Settlement::Ack,
                };
                self.h.settle(queue, &[(item.id, settle)]);
            }
        }
    }

    fn step(&mut self) {
        match self.rng.below(12) {
            0..=2 => self.publish(),
            3 => {
                let queue = QUEUES[self.index(3)];
                let credit = u32::try_from(self.rng.below(10)).ok();
                self.subscribe(queue, credit.filter(|credit| *credit < 8));
            }
            4 if self.subs.len() > 3 => {
                let at = self.index(self.subs.len() as u64);
                self.disconnect(at);
            }
            5 if !self.subs.is_empty() => {
                let at = self.index(self.subs.len() as u64);
                let sub = self.subs[at];
                self.h.handle(Request::Grant { sub, credit: 3 });
            }
            6 => self.h.take_snapshot(),
            7 if self.rng.below(4) == 0 => {
                self.held.clear();
                self.subs.clear();
                let down_ms = self.rng.below(1_500);
                self.h.restart(down_ms);
                self.h.holds_deliveries = true;
                for queue in QUEUES {
                    self.subscribe(queue, None);
                }
            }
            8 => self.h.now = self.h.now.after_ms(self.rng.below(5_000)),
            _ => {
                self.h.now = self.h.now.after_ms(self.rng.below(400));
                let most = self.index(4);
                self.release(most);
            }
        }
        self.run();
    }

    fn assert_limits(&self) {
        for throttle in throttles() {
            let buckets = self.left.iter().filter(|(key, _)| key.0 == throttle.name);
            for ((_, values), left) in buckets {
                for limit in &throttle.limits {
                    let span = usize::try_from(limit.max_deliveries).unwrap() + 1;
                    for window in left.windows(span) {
                        let ms = window[span - 1].0 - window[0].0;
                        assert!(
                            ms >= limit.window_ms,
                            "{} {values:?}: {span} deliveries in {ms} ms",
                            throttle.name
                        );
                    }
                }
            }
        }
    }

    /// Everybody works: all messages must get through.
    fn finish(&mut self) {
        for queue in QUEUES {
            self.subscribe(queue, None);
        }
        for _ in 0..20_000 {
            self.run();
            let out = core::mem::take(&mut self.held);
            let ids: Vec<_> = out
                .iter()
                .filter_map(|it| match &it.event {
                    Event::Delivery { batch, .. } => Some(batch),
                    _ => None,
                })
                .flat_map(|batch| batch.items.iter().map(|item| item.id))
                .collect();
            self.held = out;
            self.release(usize::MAX);
            for id in ids {
                let queue = self.messages[&id].2;
                self.h.settle(queue, &[(id, Settlement::Ack)]);
            }
            self.run();
            if self.held.is_empty() {
                match self.h.engine.next_deadline() {
                    Some(next) => self.h.now = self.h.now.max(next),
                    None => break,
                }
            }
            if QUEUES.iter().all(|queue| self.depth(queue) == 0) {
                break;
            }
        }
        for queue in QUEUES {
            assert_eq!(self.depth(queue), 0, "messages of {queue} never went");
        }
    }

    fn depth(&mut self, queue: &str) -> u64 {
        let name = queue.to_owned();
        let request = AdminRequest::InspectQueue {
            vhost: VhostId::DEFAULT,
            name,
        };
        let reply = ReplyTo {
            conn: harness::CONN,
            token: self.h.token(),
        };
        let mut out = self.h.handle(Request::Admin { reply, request });
        match out.pop().unwrap().event {
            Event::Admin { reply, .. } => match *reply {
                AdminReply::Inspected(Ok(it)) => it.counts.depth + it.counts.in_flight,
                other => panic!("not {other:?}"),
            },
            other => panic!("not {other:?}"),
        }
    }
}

#[test]
fn no_window_ever_holds_more_than_its_limit_and_all_get_through() {
    let mut deliveries = 0;
    for seed in 0..40 {
        let mut world = World::new(seed);
        for queue in QUEUES {
            world.subscribe(queue, None);
        }
        for _ in 0..250 {
            world.step();
            if world.held.len() > 50 {
                world.release(50);
            }
        }
        world.assert_limits();
        world.finish();
        world.assert_limits();
        deliveries += world.deliveries;
    }
    assert!(deliveries > 5_000, "{deliveries}");
}
