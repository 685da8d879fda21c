//! Random histories of queues whose scripts fail and hang, with restarts, slow hosts and scripts
//! that change: nothing that was accepted is lost, nothing acked comes back, an ordered queue keeps
//! its order.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::indexing_slicing,
    reason = "a test stops at what it does not expect"
)]

mod harness;

use std::collections::{BTreeMap, BTreeSet};

use harness::{CONN, Harness, Msg, batch, settle_batch};
use tanda_engine::{
    AdminReply, AdminRequest, ConnId, Event, KeyKind, KeyPart, MessageId, Millis, Ordering, Output,
    PublishResult, QueueChanges, QueueSpec, Reclassify, ReplyTo, Request, ScriptFailure, ScriptJob,
    ScriptOutcome, Settlement, Span, SubId, VhostId,
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

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }
}

/// Refuses; parks; parks and keeps order; parks, gives up and drops late duplicates.
const QUEUES: [&str; 4] = ["refuses", "parks", "strict", "gives-up"];
const SCRIPTS: [&str; 3] = ["s1", "s2", "s3"];

fn spec(name: &str) -> QueueSpec {
    let order = KeyPart {
        kind: KeyKind::Attribute,
        name: "order".to_owned(),
    };
    QueueSpec {
        name: name.to_owned(),
        on_enqueue: Some("s1".to_owned()),
        on_failure: (name != "refuses").then(|| "retry 70".to_owned()),
        script_failure: if name == "refuses" {
            ScriptFailure::Reject
        } else {
            ScriptFailure::Park
        },
        park_dead_letter_after: if name == "gives-up" { 3 } else { 0 },
        ordering: if name == "strict" {
            Ordering::Queue
        } else {
            Ordering::None
        },
        dedup_key: (name == "gives-up").then(|| vec![order]),
        // A dead letter of the strict queue would lose its place.
        max_attempts: if name == "strict" { u32::MAX } else { 3 },
        lease_ms: 900,
        ..QueueSpec::default()
    }
}

struct World {
    h: Harness,
    random: Random,
    /// Jobs that the host has not finished.
    jobs: Vec<ScriptJob>,
    /// Accepted messages with their queues.
    accepted: BTreeMap<MessageId, String>,
    /// Publishes without an answer: token and queues of their items.
    asked: BTreeMap<u32, Vec<String>>,
    acked: BTreeSet<MessageId>,
    held: Vec<(String, MessageId)>,
    /// Whose turn it is in the strict queue: messages acked there, in order.
    strict: Vec<MessageId>,
    subs: Vec<SubId>,
    next_conn: u64,
    late_duplicates: u64,
    restarts: u32,
    parked: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut h = Harness::with_config(tanda_engine::EngineConfig {
            segment_shift: 12,
            has_script_host: true,
            lane_hot: 4,
            page_messages: 2,
            ..tanda_engine::EngineConfig::default()
        });
        h.journal.pages_kept = true;
        for name in QUEUES {
            h.create(spec(name));
        }
        h.has_host = false;
        Self {
            h,
            random: Random(seed),
            jobs: Vec::new(),
            accepted: BTreeMap::new(),
            asked: BTreeMap::new(),
            acked: BTreeSet::new(),
            held: Vec::new(),
            strict: Vec::new(),
            subs: Vec::new(),
            next_conn: 10,
            late_duplicates: 0,
            restarts: 0,
            parked: 0,
        }
    }

    fn see(&mut self, out: &[Output]) {
        for output in out {
            match &output.event {
                Event::Published { token, results } => {
                    let queues = self.asked.remove(token).expect("one answer");
                    for (queue, result) in queues.into_iter().zip(results) {
                        if let PublishResult::Stored(id) = result {
                            self.accepted.insert(*id, queue);
                        }
                    }
                }
                Event::Delivery { batch, .. } => {
                    for item in &batch.items {
                        assert!(!self.acked.contains(&item.id), "{} again", item.id);
                        self.held.push((batch.queue.to_string(), item.id));
                    }
                }
                _ => {}
            }
        }
    }

    fn handle(&mut self, request: Request) {
        let out = self.h.handle(request);
        self.see(&out);
        self.h_jobs();
    }

    fn run(&mut self) {
        let out = self.h.run();
        self.see(&out);
        self.h_jobs();
    }

    fn h_jobs(&mut self) {
        let jobs = self.h.script_jobs();
        self.jobs.extend(jobs);
    }

    fn publish(&mut self) {
        let mut messages = Vec::new();
        for _ in 0..=self.random.below(5) {
            let name = self.random.pick(&QUEUES);
            let mut message = Msg::to(name).payload("x").key("claimed");
            let bad = |random: &mut Random| {
                let scripts = SCRIPTS.into_iter().filter(|_| random.chance(30));
                scripts.collect::<Vec<_>>().join(" ")
            };
            if self.random.chance(40) {
                let fails = bad(&mut self.random);
                let hangs = bad(&mut self.random);
                message = message.header("fails", &fails).header("hangs", &hangs);
            }
            if self.random.chance(60) {
                message = message.header("tenant", self.random.pick(&["a", "b", ""]));
            }
            if self.random.chance(60) {
                let order = self.random.below(1_000).to_string();
                message = message.header("@order", &order);
            }
            if self.random.chance(15) {
                message = message.delay(self.random.below(400));
            }
            messages.push(message);
        }
        let token = self.h.token();
        let queues = messages.iter().map(|it| it.queue.clone()).collect();
        self.asked.insert(token, queues);
        let reply = ReplyTo { conn: CONN, token };
        let batch = batch(&messages);
        self.handle(Request::Publish { reply, batch });
    }

    fn settle(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let at = usize::try_from(self.random.below(self.held.len() as u64)).unwrap();
        let (queue, id) = self.held.swap_remove(at);
        let retry_after_ms = self.random.chance(30).then(|| self.random.below(90));
        let ack = self.random.chance(60);
        let settlement = if ack {
            Settlement::Ack
        } else {
            Settlement::Fail {
                error: Span::default(),
                retry_after_ms,
            }
        };
        let token = self.h.token();
        let reply = ReplyTo { conn: CONN, token };
        let batch = settle_batch(&queue, &[(id, settlement)]);
        let out = self.h.handle(Request::Settle { reply, batch });
        let ok = out.iter().any(
            |it| matches!(&it.event, Event::Settled { results, .. } if results[0] == Ok(Millis(0))),
        );
        if ack && ok {
            self.acked.insert(id);
            if queue == "strict" {
                self.strict.push(id);
            }
        }
        self.see(&out);
        self.h_jobs();
    }

    /// The host finishes one of its jobs, or says that it timed out.
    fn finish_one(&mut self) {
        if self.jobs.is_empty() {
            return;
        }
        let at = usize::try_from(self.random.below(self.jobs.len() as u64)).unwrap();
        let job = self.jobs.swap_remove(at);
        let out = if self.random.chance(10) {
            self.h.finish_with(job, ScriptOutcome::Enqueue(Vec::new()))
        } else {
            self.h.finish(job)
        };
        self.see(&out);
        self.h_jobs();
    }

    fn subscribe(&mut self) {
        let conn = ConnId(self.next_conn);
        self.next_conn += 1;
        self.h.connect(conn);
        let dlq = if self.random.chance(15) { ".dlq" } else { "" };
        let queue = format!("{}{dlq}", self.random.pick(&QUEUES));
        let credit = Some(u32::try_from(1 + self.random.below(4)).unwrap());
        let sub = self.h.subscribe(conn, &queue, credit);
        self.subs.push(sub);
        if self.subs.len() > 6 {
            let conn = self.subs.remove(0).conn;
            self.handle(Request::Disconnect { conn });
        }
    }

    fn admin(&mut self, request: AdminRequest) {
        let token = self.h.token();
        let reply = ReplyTo { conn: CONN, token };
        self.handle(Request::Admin { reply, request });
    }

    fn change(&mut self) {
        let name = self.random.pick(&QUEUES).to_owned();
        if self.random.chance(50) {
            let modes = [Reclassify::All, Reclassify::Unclassified, Reclassify::None];
            let request = AdminRequest::Redrive {
                vhost: VhostId::DEFAULT,
                name: name + ".dlq",
                count: self.random.below(3),
                reclassify: self.random.pick(&modes),
            };
            return self.admin(request);
        }
        let mut changes = QueueChanges::default();
        let keep = self.random.chance(90);
        let script = keep.then(|| self.random.pick(&SCRIPTS).to_owned());
        if self.random.chance(70) {
            changes.on_enqueue = Some(script);
        } else {
            // Never to the dead-letter queue: the strict one would lose its order.
            let decide = self.random.pick(&["retry 70", "retry"]).to_owned();
            changes.on_failure = Some(Some(decide));
        }
        let changes = Box::new(changes);
        self.admin(AdminRequest::UpdateQueue {
            vhost: VhostId::DEFAULT,
            name,
            changes,
        });
    }

    fn restart(&mut self) {
        for queue in QUEUES {
            self.late_duplicates += self.counts(queue).late_duplicates;
        }
        if self.random.chance(40) {
            self.h.take_snapshot();
        }
        self.h.restart(self.random.below(300));
        // What was not answered may be stored or not; the host's jobs are of another life.
        self.asked.clear();
        self.jobs.clear();
        self.subs.clear();
        self.held.clear();
        self.restarts += 1;
        self.h_jobs();
    }

    fn counts(&mut self, name: &str) -> tanda_engine::QueueCounts {
        let name = name.to_owned();
        match self.h.admin(AdminRequest::InspectQueue {
            vhost: VhostId::DEFAULT,
            name,
        }) {
            AdminReply::Inspected(Ok(it)) => it.counts,
            other => panic!("{other:?}"),
        }
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..=29 => self.publish(),
            30..=54 => self.settle(),
            55..=79 => self.finish_one(),
            80..=85 => self.subscribe(),
            86..=89 => self.change(),
            90 => self.restart(),
            _ => self.h.now = self.h.now.after_ms(self.random.below(700)),
        }
        if let Some(sub) = self.subs.last().copied() {
            self.handle(Request::Grant { sub, credit: 1 });
        }
        if self.random.chance(70) {
            self.run();
        }
        self.h.engine.assert_invariants();
        if self.random.chance(5) {
            let name = self.random.pick(&QUEUES);
            let out = self.h.run();
            self.see(&out);
            self.parked += self.counts(name).unclassified;
            self.h_jobs();
        }
    }

    /// Scripts that fail on nothing: everything that was accepted is delivered and acked.
    fn heal(&mut self) {
        for job in core::mem::take(&mut self.jobs) {
            let out = self.h.finish(job);
            self.see(&out);
        }
        self.restart();
        self.h.has_host = true;
        for job in core::mem::take(&mut self.jobs) {
            let out = self.h.finish(job);
            self.see(&out);
        }
        for name in QUEUES {
            let reply = self.h.admin(AdminRequest::UpdateQueue {
                vhost: VhostId::DEFAULT,
                name: name.to_owned(),
                changes: Box::new(QueueChanges {
                    on_enqueue: Some(Some("good".to_owned())),
                    on_failure: Some(None),
                    ..QueueChanges::default()
                }),
            });
            assert_eq!(reply, AdminReply::Updated(Ok(())));
            let reply = self.h.admin(AdminRequest::Redrive {
                vhost: VhostId::DEFAULT,
                name: format!("{name}.dlq"),
                count: 0,
                reclassify: Reclassify::All,
            });
            assert!(matches!(reply, AdminReply::Redriven(Ok(_))), "{reply:?}");
        }
        for name in QUEUES {
            self.h.subscribe(CONN, name, None);
            // Some were leased there when the others left it.
            self.h.subscribe(CONN, &format!("{name}.dlq"), None);
        }
        for _ in 0..200 {
            self.h.now = self.h.now.after_ms(1_000);
            let out = self.h.run_scripts();
            self.see(&out);
            let conn = CONN;
            let bytes = 1 << 30;
            self.h.handle(Request::Drained { conn, bytes });
            for (queue, id) in core::mem::take(&mut self.held) {
                self.h.ack(&queue, &[id]);
                assert!(self.acked.insert(id), "{id} twice");
                if queue == "strict" {
                    self.strict.push(id);
                }
            }
        }
    }
}

#[test]
fn nothing_accepted_is_lost_whatever_scripts_do() {
    let (mut acked, mut restarts, mut parked, mut dropped) = (0, 0, 0, 0);
    for seed in 0..40 {
        let outcome = std::panic::catch_unwind(|| {
            let mut world = World::new(seed);
            for _ in 0..400 {
                world.step();
            }
            world.heal();
            let lost = world.accepted.keys().filter(|id| !world.acked.contains(id));
            let lost = lost.count() as u64;
            let mut late = world.late_duplicates;
            for name in QUEUES {
                let counts = world.counts(name);
                late += counts.late_duplicates;
                assert_eq!((counts.depth, counts.in_flight), (0, 0), "{name}");
            }
            assert!(lost <= late, "{lost} lost, {late} late duplicates");
            assert!(world.strict.is_sorted(), "the strict queue's order");
            (world.acked.len(), world.restarts, world.parked, late)
        });
        let seen = outcome.unwrap_or_else(|_| panic!("seed {seed}"));
        acked += seen.0;
        restarts += seen.1;
        parked += seen.2;
        dropped += seen.3;
    }
    assert!(
        acked > 8_000 && restarts > 100 && parked > 200 && dropped > 0,
        "{acked} {restarts} {parked} {dropped}"
    );
}
