//! Random operations with captures begun and advanced at random moments: an engine from a capture
//! and the records after it is like one from the whole log in everything that can be seen.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used,
    reason = "a test stops at what it does not expect"
)]

mod harness;

use std::collections::{BTreeMap, BTreeSet};

use harness::{CONN, Harness, Msg, batch, deliveries, settle_batch};
use tanda_engine::{
    AdminReply, AdminRequest, Backoff, ConnId, DeliveryBatch, DeliveryDurability, EngineConfig,
    Event, KeyKind, KeyPart, LeaseMode, Lsn, MaxLength, MessageId, MessagePlace,
    MissingThrottleKey, Moved, Ordering, Output, Overflow, PublishResult, QueueChanges, QueueSpec,
    Rebalancing, Reclassify, ReplyTo, Request, ScriptJob, SegmentUse, Settlement, Span, SubId,
    SubscribeSpec, SurvivorCursor, ThrottleLimit, ThrottleSpec, VhostId,
};

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()]
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

const KEYS: [&str; 4] = ["", "a", "b", "c"];
/// The one that is created and deleted again and again.
const PASSING: &str = "passing";

fn spec(name: &str, fast: bool) -> QueueSpec {
    let account = KeyPart {
        kind: KeyKind::Header,
        name: "account".to_owned(),
    };
    QueueSpec {
        name: name.to_owned(),
        lease_ms: 700,
        backoff: Some(Backoff::None),
        max_attempts: 3,
        dedup_window_ms: 900,
        ordering: match name {
            "whole" => Ordering::Queue,
            "grouped" => Ordering::Key {
                key: vec![account],
                missing: tanda_engine::MissingOrderingKey::Unordered,
            },
            _ => Ordering::None,
        },
        max_length: (name == "bounded").then_some(MaxLength {
            messages: 12,
            overflow: Overflow::DropHead,
        }),
        durability: if fast && name == "other" {
            DeliveryDurability::Fast
        } else {
            DeliveryDurability::Committed
        },
        ..QueueSpec::default()
    }
}

const QUEUES: [&str; 6] = ["plain", "whole", "grouped", "bounded", "other", PASSING];

/// Queues with scripts; one is ordered.
const SCRIPTED: [&str; 2] = ["scripted", "stopped"];
/// Declared by every subscriber of a queue in some of the worlds, with and without a key: windows
/// that a restart does not outlast, and limits that are reached.
fn throttles(queue: &str) -> Vec<ThrottleSpec> {
    if !QUEUES.contains(&queue) {
        return Vec::new();
    }
    let throttle = |name: &str, (max_deliveries, window_ms), key: &[KeyPart]| ThrottleSpec {
        name: name.to_owned(),
        limits: vec![ThrottleLimit {
            window_ms,
            max_deliveries,
        }],
        key: key.to_vec(),
        missing: MissingThrottleKey::SharedBucket,
    };
    let part = |kind, name: &str| KeyPart {
        kind,
        name: name.to_owned(),
    };
    vec![
        throttle("all", (12, 2_000), &[]),
        throttle("account", (4, 1_500), &[part(KeyKind::Header, "account")]),
        throttle("key", (5, 1_800), &[part(KeyKind::FairnessKey, "")]),
    ]
}

const SCRIPTS: [&str; 3] = ["s1", "s2", "s3"];

fn scripted(name: &str) -> QueueSpec {
    let order = KeyPart {
        kind: KeyKind::Attribute,
        name: "order".to_owned(),
    };
    QueueSpec {
        name: name.to_owned(),
        on_enqueue: Some("s1".to_owned()),
        on_failure: Some("retry 70".to_owned()),
        script_failure: tanda_engine::ScriptFailure::Park,
        park_dead_letter_after: 3,
        ordering: if name == "stopped" {
            Ordering::Queue
        } else {
            Ordering::None
        },
        dedup_key: (name == "scripted").then(|| vec![order]),
        lease_ms: 1_000,
        ..QueueSpec::default()
    }
}

struct World {
    h: Harness,
    random: Random,
    subs: Vec<SubId>,
    held: Vec<(String, MessageId)>,
    ids: BTreeSet<MessageId>,
    next_conn: u64,
    /// No two messages are due at the same time: those would come in the order of their slots.
    next_ms: u64,
    /// The capture under way.
    capture: Option<(Lsn, Vec<Vec<u8>>)>,
    compared: u32,
    pages_seen: bool,
    fast: bool,
    /// Subscribers declare throttles.
    throttled: bool,
    /// Comparisons in which a bucket had deliveries in its window.
    charged: u32,
    /// Where contents that were copied lay at first.
    origins: BTreeMap<Lsn, Lsn>,
    moved: usize,
    /// What the host of scripts has not finished.
    jobs: Vec<ScriptJob>,
    unclassified: u64,
    /// Deliveries that will be found not to have left.
    late: Vec<(ConnId, DeliveryBatch)>,
    next_cold: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        // Fast queues deliver what is in pages at once after a restart, so not both.
        let fast = seed.is_multiple_of(3);
        let config = EngineConfig {
            segment_shift: 12,
            has_script_host: true,
            page_messages: 1 + u32::try_from(random.below(4)).unwrap(),
            lane_hot: if fast {
                1_000_000
            } else {
                1 + u32::try_from(random.below(4)).unwrap()
            },
            ..EngineConfig::default()
        };
        let mut h = Harness::with_config(config);
        h.journal.pages_kept = true;
        for name in QUEUES {
            h.create(spec(name, fast));
        }
        for name in SCRIPTED {
            h.create(scripted(name));
        }
        h.has_host = false;
        Self {
            h,
            random,
            subs: Vec::new(),
            held: Vec::new(),
            ids: BTreeSet::new(),
            next_conn: 10,
            next_ms: 1,
            capture: None,
            compared: 0,
            pages_seen: false,
            fast,
            throttled: seed % 4 == 1,
            charged: 0,
            origins: BTreeMap::new(),
            moved: 0,
            jobs: Vec::new(),
            unclassified: 0,
            late: Vec::new(),
            next_cold: 1 << 63,
        }
    }

    fn queue(&mut self) -> String {
        self.random.pick(&QUEUES).to_owned()
    }

    fn any_queue(&mut self) -> String {
        if self.random.chance(30) {
            self.random.pick(&SCRIPTED).to_owned()
        } else {
            self.queue()
        }
    }

    fn queue_or_dead_letters(&mut self) -> String {
        let suffix = if self.random.chance(30) { ".dlq" } else { "" };
        self.any_queue() + suffix
    }

    /// A time that nothing else gets, spread over half a second.
    fn some_ms(&mut self) -> u64 {
        self.next_ms += 1;
        1 + self.next_ms * 37 % 499
    }

    fn take(&mut self, out: &[Output]) {
        for output in out {
            if let Event::Published { results, .. } = &output.event {
                self.ids
                    .extend(results.iter().filter_map(|result| match result {
                        PublishResult::Stored(id) => Some(*id),
                        PublishResult::Duplicate(_)
                        | PublishResult::Sent { .. }
                        | PublishResult::Unroutable
                        | PublishResult::Refused(_) => None,
                    }));
            }
            let Event::Delivery { batch, .. } = &output.event else {
                continue;
            };
            if self.random.chance(10) {
                self.late.push((output.conn, batch.clone()));
                continue;
            }
            for item in &batch.items {
                self.held.push((batch.queue.to_string(), item.id));
            }
        }
    }

    fn publish(&mut self) {
        let mut messages = Vec::new();
        let one_queue = self.random.chance(50).then(|| self.queue());
        for _ in 0..=self.random.below(12) {
            let queue = one_queue.clone().unwrap_or_else(|| self.queue());
            let mut message = Msg::to(&queue).key(self.random.pick(&KEYS));
            message.weight = u32::try_from(self.random.below(4)).unwrap();
            message.priority = u8::try_from(self.random.below(8) / 7).unwrap();
            message.payload = vec![b'x'; usize::try_from(self.random.below(200)).unwrap()];
            message.transient = self.random.chance(5);
            if message.transient {
                // It says what its key weighs, and the log does not.
                message = message.key("transient");
            }
            if self.random.chance(70) {
                message = message.header("account", &self.random.below(4).to_string());
            }
            if self.random.chance(20) {
                message.delay_ms = self.some_ms();
            }
            if self.random.chance(25) {
                message = message.idempotency(&self.random.below(20).to_string());
            }
            messages.push(message);
        }
        for result in self.h.publish(&messages) {
            if let PublishResult::Stored(id) = result {
                self.ids.insert(id);
            }
        }
    }

    /// Messages for queues with scripts. The host is slow.
    fn publish_scripted(&mut self) {
        let mut messages = Vec::new();
        for _ in 0..=self.random.below(5) {
            let mut message = Msg::to(self.random.pick(&SCRIPTED)).key("claimed");
            for name in ["fails", "hangs"] {
                let bad = SCRIPTS.into_iter().filter(|_| self.random.chance(20));
                let bad: Vec<_> = bad.collect();
                message = message.header(name, &bad.join(" "));
            }
            if self.random.chance(60) {
                message = message.header("tenant", self.random.pick(&KEYS));
                let order = self.random.below(50).to_string();
                message = message.header("@order", &order);
            }
            if self.random.chance(20) {
                message.delay_ms = self.some_ms();
            }
            messages.push(message);
        }
        let batch = batch(&messages);
        let reply = ReplyTo {
            conn: CONN,
            token: 9,
        };
        let out = self.h.handle(Request::Publish { reply, batch });
        self.take(&out);
    }

    /// The host finishes a job.
    fn finish_job(&mut self) {
        let jobs = self.h.script_jobs();
        self.jobs.extend(jobs);
        if let Some(job) = self.jobs.pop() {
            let out = self.h.finish(job);
            self.take(&out);
            for name in SCRIPTED {
                let name = name.to_owned();
                if let AdminReply::Inspected(Ok(it)) = self.h.admin(AdminRequest::InspectQueue {
                    vhost: VhostId::DEFAULT,
                    name,
                }) {
                    self.unclassified += it.counts.unclassified;
                }
            }
        }
    }

    fn change_script(&mut self) {
        let keep = self.random.chance(80);
        let request = AdminRequest::UpdateQueue {
            vhost: VhostId::DEFAULT,
            name: self.random.pick(&SCRIPTED).to_owned(),
            changes: Box::new(QueueChanges {
                on_enqueue: Some(keep.then(|| self.random.pick(&SCRIPTS).to_owned())),
                ..QueueChanges::default()
            }),
        };
        let reply = ReplyTo {
            conn: CONN,
            token: 9,
        };
        let out = self.h.handle(Request::Admin { reply, request });
        self.take(&out);
    }

    fn settle(&mut self) {
        for _ in 0..self.random.below(5).min(self.held.len() as u64) {
            let index = usize::try_from(self.random.below(self.held.len() as u64)).unwrap();
            let (queue, id) = self.held.swap_remove(index);
            let after = Some(self.some_ms());
            let fail = |retry_after_ms| Settlement::Fail {
                error: Span::default(),
                retry_after_ms,
            };
            let settlement = match self.random.below(9) {
                0..=3 => Settlement::Ack,
                4 => fail(None),
                5 => fail(after),
                6 => Settlement::Requeue,
                7 => Settlement::Reject,
                _ => Settlement::Extend {
                    by_ms: 1_000 + self.some_ms(),
                },
            };
            let batch = settle_batch(&queue, &[(id, settlement)]);
            let reply = ReplyTo {
                conn: CONN,
                token: 9,
            };
            self.h.handle(Request::Settle { reply, batch });
            if matches!(settlement, Settlement::Extend { .. }) {
                self.held.push((queue, id));
            }
        }
    }

    fn subscribe(&mut self) {
        let conn = ConnId(self.next_conn);
        self.next_conn += 1;
        self.h.connect(conn);
        let queue = self.queue_or_dead_letters();
        let name = queue.clone();
        let reply = self.h.admin(AdminRequest::InspectQueue {
            vhost: VhostId::DEFAULT,
            name,
        });
        if !matches!(reply, AdminReply::Inspected(Ok(_))) {
            return;
        }
        let credit = self.random.pick(&[Some(2), Some(5), None]);
        let lease = self
            .random
            .pick(&[LeaseMode::Timed, LeaseMode::Timed, LeaseMode::Connection]);
        let throttles = if self.throttled {
            throttles(&queue)
        } else {
            Vec::new()
        };
        let spec = SubscribeSpec {
            queue,
            credit,
            lease,
            throttles,
            ..SubscribeSpec::default()
        };
        let sub = self.h.subscribe_with(conn, spec);
        self.subs.push(sub);
    }

    fn end_sub(&mut self) {
        if self.subs.is_empty() {
            return;
        }
        let index = usize::try_from(self.random.below(self.subs.len() as u64)).unwrap();
        let sub = self.subs.swap_remove(index);
        let mut out = Vec::new();
        let (now, h) = (self.h.now, &mut self.h);
        let _more = h.engine.run(now, &mut h.journal, &mut out);
        let (mine, mut others): (Vec<_>, Vec<_>) =
            out.into_iter().partition(|output| output.conn == sub.conn);
        for (_, batch) in deliveries(&mine) {
            h.engine.undelivered(now, &mut h.journal, sub.conn, &batch);
        }
        h.let_go(&mut others);
        h.handle(Request::Disconnect { conn: sub.conn });
        self.take(&others);
    }

    /// A delivery waited for the disk, and then its content could not be read.
    fn undelivered(&mut self) {
        if let Some((conn, batch)) = self.late.pop() {
            let (now, h) = (self.h.now, &mut self.h);
            h.engine.undelivered(now, &mut h.journal, conn, &batch);
            h.engine.assert_invariants();
        }
    }

    fn admin(&mut self) {
        let name = self.any_queue();
        let delete = self.random.chance(50);
        let modes = [Reclassify::All, Reclassify::Unclassified, Reclassify::None];
        let request = match self.random.below(8) {
            0..=2 => AdminRequest::Redrive {
                vhost: VhostId::DEFAULT,
                name: format!("{name}.dlq"),
                count: self.random.below(3),
                reclassify: self.random.pick(&modes),
            },
            3 => AdminRequest::PurgeQueue {
                vhost: VhostId::DEFAULT,
                name,
            },
            4 => AdminRequest::SetConfig {
                key: name,
                value: self.random.below(3).to_string(),
            },
            5 => AdminRequest::SetRebalancing(Rebalancing::Paused {
                pause_ms: self.random.below(9),
            }),
            6 if delete => AdminRequest::DeleteQueue {
                vhost: VhostId::DEFAULT,
                name: PASSING.to_owned(),
            },
            6 => AdminRequest::CreateQueue(Box::new(spec(PASSING, self.fast))),
            _ => AdminRequest::UpdateQueue {
                vhost: VhostId::DEFAULT,
                name,
                changes: Box::new(QueueChanges {
                    max_attempts: Some(u32::try_from(1 + self.random.below(4)).unwrap()),
                    ..QueueChanges::default()
                }),
            },
        };
        let purge = matches!(request, AdminRequest::PurgeQueue { .. });
        if purge && !self.random.chance(50) {
            return;
        }
        let reply = ReplyTo {
            conn: CONN,
            token: 9,
        };
        let out = self.h.handle(Request::Admin { reply, request });
        self.take(&out);
        self.forget_ended_subs(&out);
        let out = self.h.run();
        self.take(&out);
    }

    fn forget_ended_subs(&mut self, out: &[Output]) {
        for output in out {
            if let Event::SubscriptionEnded { token, .. } = output.event {
                self.subs
                    .retain(|sub| (sub.conn, sub.token) != (output.conn, token));
            }
        }
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..=19 => self.publish(),
            20..=26 => self.publish_scripted(),
            27..=33 => self.finish_job(),
            34 => self.change_script(),
            35..=64 => self.settle(),
            65..=73 => self.subscribe(),
            74..=77 => self.end_sub(),
            88..=89 => self.undelivered(),
            78..=84 => self.admin(),
            85..=87 => self.relocate(),
            _ => {
                let ms = self.random.below(300);
                let out = self.h.advance(ms);
                self.take(&out);
            }
        }
        for sub in self.subs.clone() {
            let conn = sub.conn;
            let bytes = 1 << 20;
            self.h.handle(Request::Drained { conn, bytes });
            if self.random.chance(40) {
                self.h.handle(Request::Grant { sub, credit: 1 });
            }
        }
        if self.random.chance(80) {
            let out = self.h.run();
            self.take(&out);
        }
        self.pages_seen |= self.h.engine.page_slots().count() > 3;
        self.capture();
    }

    /// Copies what is left in some segments elsewhere; nothing needs them afterwards.
    fn relocate(&mut self) {
        let victims = self.h.engine.segments().map(|(segment, _)| segment);
        let victims: BTreeSet<_> = victims.filter(|_| self.random.chance(40)).collect();
        let (mut cursor, mut survivors) = (SurvivorCursor::default(), Vec::new());
        let (engine, journal) = (&mut self.h.engine, &mut self.h.journal);
        let budget = u32::try_from(1 + self.random.below(9)).unwrap();
        while !engine.survivors_slice(journal, &victims, &mut cursor, budget, &mut survivors) {}
        let mut moved = Vec::new();
        // Into a segment that is not to be emptied itself.
        self.next_cold += 1 << 12;
        for survivor in survivors {
            self.next_cold += 1_000;
            let new_at = Lsn(self.next_cold);
            let origin = self.origins.get(&survivor.at).copied();
            self.origins.insert(new_at, origin.unwrap_or(survivor.at));
            moved.push(Moved { survivor, new_at });
        }
        engine.relocate(journal, &moved);
        engine.assert_invariants();
        journal.copies = self.origins.clone();
        for victim in victims {
            assert_eq!(engine.segment_use(victim), SegmentUse::default());
        }
        // Nothing is there any more: nothing happens.
        engine.relocate(journal, &moved);
        engine.assert_invariants();
        self.moved += moved.len();
    }

    /// Begins a capture, or goes on with the one under way.
    fn capture(&mut self) {
        let Some((from, mut records)) = self.capture.take() else {
            if self.random.chance(25) {
                let from = self.h.engine.begin_capture(self.h.now, &self.h.journal);
                self.capture = Some((from, Vec::new()));
            }
            return;
        };
        if self.random.chance(40) {
            let budget = usize::try_from(self.random.pick(&[1, 5, 20, 60])).unwrap();
            if self.h.engine.capture_slice(budget, &mut records) {
                self.compare(from, &records);
                return;
            }
        }
        self.capture = Some((from, records));
    }

    /// What a restart has to go on with, as another world.
    fn twin(&self) -> Harness {
        let journal = self.h.journal.clone();
        let mut twin = Harness::over(self.h.config.clone(), journal, self.h.now);
        twin.has_host = false;
        twin
    }

    /// When deliveries have left is in the log some time after: a snapshot may know it before, and
    /// then its windows end earlier than those of the log.
    fn record_departures(&mut self) {
        for sub in core::mem::take(&mut self.subs) {
            self.h.handle(Request::Disconnect { conn: sub.conn });
        }
        let out = self.h.advance(200);
        self.take(&out);
    }

    fn compare(&mut self, from: Lsn, snapshot: &[Vec<u8>]) {
        // What was left running comes to its end, so that all queues are whole.
        let out = self.h.run();
        self.take(&out);
        self.compared += 1;
        if self.throttled {
            self.record_departures();
        }
        let down_ms = 2 + self.random.below(400);
        let mut whole = self.twin();
        whole.restart(down_ms);
        let mut quick = self.twin();
        quick.restart_from_snapshot(from, snapshot, down_ms);
        whole.now = whole.now.max(quick.now);
        quick.now = whole.now;
        let ids: Vec<_> = self.ids.iter().copied().collect();
        let fast = self.fast.then_some("other");
        let mut charges = (Vec::new(), Vec::new());
        if self.throttled {
            charges = (observe_throttles(&mut whole), observe_throttles(&mut quick));
            let is_idle = |line: &String| line.contains("active_buckets: 0,");
            let is_active = |line: &String| line.contains("active_buckets") && !is_idle(line);
            self.charged += u32::from(charges.0.iter().any(is_active));
        }
        let (mut expected, mut found) = charges;
        expected.extend(observe(&mut whole, &ids, (fast, &self.origins)));
        found.extend(observe(&mut quick, &ids, (fast, &self.origins)));
        let differs = expected.iter().zip(&found).position(|(a, b)| a != b);
        if let Some(at) = differs {
            let around = |seen: &[String]| seen[at..seen.len().min(at + 4)].join("\n");
            panic!("not\n{}\nbut\n{}", around(&expected), around(&found));
        }
        assert_eq!(expected.len(), found.len());
        if self.random.chance(30) {
            // The world goes on from the snapshot, and the whole log must still say the same.
            self.h.restart_from_snapshot(from, snapshot, down_ms);
            (self.subs, self.held) = (Vec::new(), Vec::new());
            self.jobs = Vec::new();
            self.late = Vec::new();
        }
    }
}

/// The fast queue, if there is one, and where copied contents lay at first.
type Of<'a> = (Option<&'a str>, &'a BTreeMap<Lsn, Lsn>);

/// What the throttles of an engine have counted.
fn observe_throttles(h: &mut Harness) -> Vec<String> {
    let AdminReply::Queues(queues) = h.admin(AdminRequest::ListQueues) else {
        panic!("a list of queues");
    };
    let names = queues.into_iter().map(|queue| queue.name);
    let names: Vec<_> = names.filter(|it| !throttles(it).is_empty()).collect();
    let Some(first) = names.first() else {
        return Vec::new();
    };
    let declared = throttles(first);
    // They get nothing: in which order keys take what room there is depends on what is in pages.
    let subs = names.iter().map(|queue| SubscribeSpec {
        queue: queue.clone(),
        credit: Some(0),
        throttles: throttles(queue),
        ..SubscribeSpec::default()
    });
    let subs: Vec<_> = subs.map(|spec| h.subscribe_with(CONN, spec)).collect();
    let mut seen = Vec::new();
    for throttle in declared {
        let (name, top_buckets) = (throttle.name.clone(), 100);
        let mut stats = h.admin(AdminRequest::ThrottleStats { name, top_buckets });
        if let AdminReply::Throttle(Ok(stats)) = &mut stats {
            // Nothing waits for any, so they come in no order.
            stats
                .buckets
                .sort_by_key(|it| (it.shared, it.values.clone()));
        }
        seen.push(format!("{stats:?}"));
        let values = ["0", "1", "2", "3"].iter().chain(&KEYS);
        let values = values.map(|it| (false, vec![(*it).to_owned()]));
        for (shared, values) in values.chain([(false, Vec::new()), (true, Vec::new())]) {
            let name = throttle.name.clone();
            let request = AdminRequest::ThrottleBucket {
                name,
                shared,
                values,
            };
            seen.push(format!("{request:?}: {:?}", h.admin(request.clone())));
        }
    }
    for sub in subs {
        h.handle(Request::Unsubscribe {
            sub,
            held: tanda_engine::Held::Requeue,
        });
    }
    seen
}

/// All that can be seen of an engine after its start; the order of what it delivers at once too.
fn observe(h: &mut Harness, ids: &[MessageId], of: Of<'_>) -> Vec<String> {
    let mut seen = Vec::new();
    if of.1.is_empty() {
        seen.push(format!("{:?}", h.engine.segments().collect::<Vec<_>>()));
    }
    let prefix = String::new();
    seen.push(format!(
        "{:?}",
        h.admin(AdminRequest::ListConfig { prefix })
    ));
    seen.push(format!("{:?}", h.admin(AdminRequest::ClusterStatus)));
    let AdminReply::Queues(queues) = h.admin(AdminRequest::ListQueues) else {
        panic!("a list of queues");
    };
    for queue in &queues {
        let name = queue.name.clone();
        seen.push(format!("{queue:?}"));
        let stats = h.admin(AdminRequest::QueueStats {
            vhost: VhostId::DEFAULT,
            name: name.clone(),
        });
        seen.push(format!("{name}: {stats:?}"));
        let details = h.admin(AdminRequest::InspectQueue {
            vhost: VhostId::DEFAULT,
            name: name.clone(),
        });
        seen.push(format!("{details:?}"));
        for message in ids.iter().rev().take(80) {
            let message = Some(*message);
            let name = name.clone();
            let place = h.admin(AdminRequest::Explain {
                vhost: VhostId::DEFAULT,
                name,
                message,
            });
            if let AdminReply::Explained(Ok(mut place)) = place {
                if let Some(MessagePlace::Ready { ahead_in_key, .. }) = &mut place.message {
                    // How many of a page go before it is not known without reading that.
                    *ahead_in_key = 0;
                }
                if let Some(MessagePlace::Parked { next_try_at, .. }) = &mut place.message {
                    // Counts from the start.
                    *next_try_at = None;
                }
                seen.push(format!(
                    "{message:?} {:?} {:?}",
                    place.message, place.counts
                ));
            }
        }
    }
    // What is remembered. The clock has passed all ids that were made.
    h.now = h.now.after_ms(2);
    for queue in QUEUES {
        for key in 0..20 {
            let message = Msg::to(queue).idempotency(&key.to_string());
            let delayed = Msg {
                delay_ms: 1_000_000 + key,
                ..message
            };
            match &h.publish(&[delayed])[..] {
                [PublishResult::Duplicate(id)] => seen.push(format!("{queue} {key} {id}")),
                other => seen.push(format!("{queue} {key} {}", other.len())),
            }
        }
    }
    let names: Vec<_> = queues.into_iter().map(|queue| queue.name).collect();
    drain(h, &names, of, &mut seen);
    seen
}

fn drain(h: &mut Harness, names: &[String], (fast, places): Of<'_>, seen: &mut Vec<String>) {
    for name in names {
        h.subscribe(CONN, name, None);
    }
    for step in 0..30 {
        let out = h.advance(if step == 0 { 0 } else { 60 });
        let conn = CONN;
        h.handle(Request::Drained {
            conn,
            bytes: 1 << 30,
        });
        let mut lines = Vec::new();
        for (_, batch) in deliveries(&out) {
            for item in &batch.items {
                let key = item.fairness_key.text(&batch.keys).to_owned();
                // Only what is on disk: a fast queue's deliveries are not.
                let is_fast = fast.is_some_and(|fast| batch.queue.starts_with(fast));
                let deliveries = (!is_fast).then_some(item.deliveries);
                let at = places.get(&item.at).copied().unwrap_or(item.at);
                let line = format!(
                    "{step} {:?} {} {:?} {} {deliveries:?} {} {}",
                    item.id, item.len, at, item.attempts, item.redrives, item.weight
                );
                lines.push((batch.queue.to_string(), key, line));
            }
            let ids = batch.items.iter().map(|item| item.id);
            let half: Vec<_> = ids.filter(|id| id.0.is_multiple_of(2)).collect();
            h.ack(&batch.queue, &half);
        }
        if step == 0 {
            // A pass reads a few pages only, so queues may take other turns than without pages.
            lines.sort_by(|a, b| a.0.cmp(&b.0));
        } else {
            // What ends at the same time ends in no order.
            lines.sort();
        }
        seen.extend(lines.into_iter().map(|line| format!("{line:?}")));
    }
}

fn scenario(seed: u64, steps: u32) -> World {
    let mut world = World::new(seed);
    for _ in 0..steps {
        world.step();
    }
    world
}

#[test]
fn a_capture_and_what_follows_it_are_the_whole_log() {
    let (mut compared, mut paged, mut moved, mut unclassified) = (0, 0, 0, 0);
    let mut charged = 0;
    for seed in 0..34 {
        let outcome = std::panic::catch_unwind(|| {
            let world = scenario(seed, 150);
            let pages = u32::from(world.pages_seen);
            let seen = (world.compared, pages, world.moved, world.unclassified);
            (seen, world.charged)
        });
        let ((more, pages, contents, parked), of_throttles) =
            outcome.unwrap_or_else(|_| panic!("seed {seed}"));
        charged += of_throttles;
        compared += more;
        paged += pages;
        moved += contents;
        unclassified += parked;
    }
    // Worlds that had more than three pages at once. A third of the seeds has none by design, and
    // of the others about half keep up with what is sent: ten of 34. Fewer would mean that pages
    // are not tried any more, more is chance.
    let sums = (compared, paged, moved, unclassified, charged);
    assert!(
        compared > 60 && paged > 8 && moved > 1_000 && unclassified > 100 && charged > 5,
        "{sums:?}"
    );
}
