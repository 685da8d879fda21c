//! The same random history with pages and without, and with long work in the smallest slices: every
//! delivery, answer and counter is the same.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test stops at what it does not expect"
)]

mod harness;

use harness::{CONN, Harness, Msg, batch, delivered_ids};
use tanda_engine::{
    AdminReply, AdminRequest, ConnId, DeliveryBatch, EngineConfig, Event, LeaseMode, MaxLength,
    MessageId, Output, Overflow, QueueChanges, QueueCounts, QueueSpec, Reclassify, ReplyTo,
    Request, ScriptFailure, Settlement, Span, SubId, VhostId,
};

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % n).unwrap()
    }
}

const QUEUES: [&str; 3] = ["plain", "bounded", "refusing"];
/// One with a script, which gives attributes or fails.
const CLASSIFIED: &str = "classified";
const SCRIPTS: [&str; 3] = ["s1", "s2", "s3"];

/// One step, the same for both engines.
#[derive(Clone, Debug)]
enum Step {
    Publish(Vec<Msg>),
    /// Messages that wait for a script.
    Classify(Vec<Msg>),
    /// Another script.
    Script(&'static str),
    Settle(String, Vec<(MessageId, Settlement)>),
    Subscribe(ConnId, String, u32, LeaseMode),
    Disconnect(ConnId),
    /// The broker stops when so many passes have followed.
    DisconnectAndRestart(ConnId, usize),
    Grant(SubId, u32),
    Redrive(String, u64),
    Purge(String),
    Advance(u64),
    Restart,
}

struct Twins {
    paged: Harness,
    plain: Harness,
    /// Work goes in slices, so that what is delivered meanwhile may be another message: such work
    /// is only begun while nobody consumes.
    sliced: bool,
    random: Random,
    subs: Vec<SubId>,
    held: Vec<(String, MessageId)>,
    next_conn: u64,
    /// No two messages are due at the same time: those would come in the order of their slots.
    next_delay_ms: u64,
    /// Most pages at a time.
    pages_most: usize,
}

impl Twins {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let config = EngineConfig {
            segment_shift: 12,
            has_script_host: true,
            ..EngineConfig::default()
        };
        let mut small = config.clone();
        small.page_messages = 1 + u32::try_from(random.below(6)).unwrap();
        small.lane_hot = 1 + u32::try_from(random.below(6)).unwrap();
        let sliced = random.below(2) == 0;
        if sliced {
            small.slice_messages = 1 + u32::try_from(random.below(4)).unwrap();
        }
        let (mut paged, mut plain) = (Harness::with_config(small), Harness::with_config(config));
        for name in QUEUES {
            let overflow = |overflow| MaxLength {
                messages: 60,
                overflow,
            };
            let spec = QueueSpec {
                name: name.to_owned(),
                lease_ms: 3_600_000,
                max_length: match name {
                    "bounded" => Some(overflow(Overflow::DropHead)),
                    "refusing" => Some(overflow(Overflow::Reject)),
                    _ => None,
                },
                ..QueueSpec::default()
            };
            paged.create(spec.clone());
            plain.create(spec);
        }
        let spec = QueueSpec {
            name: CLASSIFIED.to_owned(),
            on_enqueue: Some("s1".to_owned()),
            script_failure: ScriptFailure::Park,
            park_dead_letter_after: 2,
            lease_ms: 3_600_000,
            ..QueueSpec::default()
        };
        paged.create(spec.clone());
        plain.create(spec);
        Self {
            paged,
            plain,
            sliced,
            random,
            subs: Vec::new(),
            held: Vec::new(),
            next_conn: 10,
            next_delay_ms: 0,
            pages_most: 0,
        }
    }

    fn queue(&mut self) -> String {
        let name = [QUEUES.as_slice(), &[CLASSIFIED]].concat()[self.random.below(4)];
        match self.random.below(4) {
            0 => format!("{name}.dlq"),
            _ => name.to_owned(),
        }
    }

    fn publish(&mut self) -> Step {
        let count = 1 + self.random.below(20);
        let mut delays = self.next_delay_ms..;
        let mut message = |random: &mut Random| Msg {
            key: ["", "a", "b"][random.below(3)].to_owned(),
            weight: u32::try_from(random.below(4)).unwrap(),
            priority: u8::try_from(random.below(8) / 6).unwrap(),
            payload: vec![b'x'; random.below(30)],
            delay_ms: match random.below(10) {
                0 => delays.next().unwrap_or(0),
                _ => 0,
            },
            transient: random.below(8) == 0,
            ..Msg::to(QUEUES[random.below(3)])
        };
        let messages = (0..count).map(|_| message(&mut self.random)).collect();
        self.next_delay_ms = delays.start;
        Step::Publish(messages)
    }

    fn classify(&mut self) -> Step {
        let count = 1 + self.random.below(20);
        let random = &mut self.random;
        let mut message = || {
            let fails = SCRIPTS.into_iter().filter(|_| random.below(4) == 0);
            let fails = fails.collect::<Vec<_>>().join(" ");
            let message = Msg::to(CLASSIFIED).key("claimed").header("fails", &fails);
            let message = message.header("tenant", ["", "a", "b"][random.below(3)]);
            if random.below(2) == 0 {
                return message;
            }
            message.header("@tier", ["gold", "silver"][random.below(2)])
        };
        let messages = (0..count).map(|_| message()).collect();
        Step::Classify(messages)
    }

    fn delay_ms(&mut self) -> u64 {
        self.next_delay_ms += 1;
        self.next_delay_ms
    }

    fn settle(&mut self) -> Option<Step> {
        if self.held.is_empty() {
            return None;
        }
        let at = self.random.below(self.held.len() as u64);
        let queue = self.held[at].0.clone();
        let most = 1 + self.random.below(12);
        let mut items = Vec::new();
        let mut left = Vec::new();
        for (name, id) in core::mem::take(&mut self.held) {
            if name != queue || items.len() == most {
                left.push((name, id));
                continue;
            }
            let settlement = match self.random.below(8) {
                0..=3 => Settlement::Ack,
                4 => Settlement::Fail {
                    error: Span::default(),
                    retry_after_ms: Some(self.delay_ms()),
                },
                5 => Settlement::Requeue,
                _ => Settlement::Reject,
            };
            items.push((id, settlement));
        }
        self.held = left;
        Some(Step::Settle(queue, items))
    }

    fn step(&mut self) -> Option<Step> {
        Some(match self.random.below(100) {
            0..=34 => self.publish(),
            35..=43 => self.classify(),
            44 if !self.sliced || self.subs.is_empty() => {
                Step::Script(SCRIPTS[self.random.below(3)])
            }
            45..=69 => return self.settle(),
            70..=76 => {
                self.next_conn += 1;
                let credit = u32::try_from(self.random.below(40)).unwrap();
                let (queue, number) = (self.queue(), self.random.below(2));
                // What comes back in slices may be dropped in slices, and keys change their turns.
                let number = number * usize::from(!self.sliced || queue != "bounded");
                let mode = [LeaseMode::Timed, LeaseMode::Connection][number];
                Step::Subscribe(ConnId(self.next_conn), queue, credit, mode)
            }
            77..=79 if !self.subs.is_empty() => {
                let at = self.random.below(self.subs.len() as u64);
                let conn = self.subs.swap_remove(at).conn;
                match self.random.below(8) {
                    // Others would go on with what came back.
                    0..=3 if self.subs.is_empty() => {
                        Step::DisconnectAndRestart(conn, self.random.below(5))
                    }
                    _ => Step::Disconnect(conn),
                }
            }
            80..=87 if !self.subs.is_empty() => {
                let at = self.random.below(self.subs.len() as u64);
                let credit = u32::try_from(self.random.below(9)).unwrap();
                Step::Grant(self.subs[at], credit)
            }
            88..=90 if !self.sliced || self.subs.is_empty() => {
                let name = [QUEUES.as_slice(), &[CLASSIFIED]].concat()[self.random.below(4)];
                // So few are one slice with pages too.
                Step::Redrive(format!("{name}.dlq"), 1 + self.random.below(8) as u64)
            }
            // Slices may be shorter with pages, and what is delivered between them another message.
            91 if self.subs.is_empty() => Step::Purge(self.queue()),
            92 => Step::Restart,
            _ => Step::Advance(self.random.below(400) as u64),
        })
    }

    fn run(&mut self, steps: usize) {
        for number in 0..steps {
            let Some(step) = self.step() else { continue };
            let seen = see(&mut self.paged, &step);
            let expected = see(&mut self.plain, &step);
            assert_eq!(seen, expected, "step {number}: {step:?}");
            if let Step::Restart | Step::DisconnectAndRestart(..) = step {
                self.subs.clear();
                self.held.clear();
            }
            if let Some(sub) = seen.sub {
                self.subs.push(sub);
            }
            self.held.extend(seen.delivered);
            let pages = self.paged.journal.pages.iter().flatten().count();
            self.pages_most = self.pages_most.max(pages);
            assert!(self.plain.journal.pages.is_empty());
        }
    }
}

fn classify(h: &mut Harness, messages: &[Msg]) -> Vec<Output> {
    let conn = CONN;
    let reply = ReplyTo { conn, token: 1 };
    let batch = batch(messages);
    let mut out = h.handle(Request::Publish { reply, batch });
    out.extend(h.run_scripts());
    out
}

fn set_script(h: &mut Harness, text: &str) -> AdminReply {
    let changes = QueueChanges {
        on_enqueue: Some(Some(text.to_owned())),
        ..QueueChanges::default()
    };
    let name = CLASSIFIED.to_owned();
    let changes = Box::new(changes);
    h.admin(AdminRequest::UpdateQueue {
        vhost: VhostId::DEFAULT,
        name,
        changes,
    })
}

fn redrive(h: &mut Harness, name: &str, count: u64) -> AdminReply {
    h.admin(AdminRequest::Redrive {
        vhost: VhostId::DEFAULT,
        name: name.to_owned(),
        count,
        reclassify: Reclassify::All,
    })
}

/// Nobody sees what leaves meanwhile.
fn disconnect_and_restart(h: &mut Harness, conn: ConnId, passes: usize) {
    h.handle(Request::Disconnect { conn });
    for _ in 0..passes {
        let more = h.engine.run(h.now, &mut h.journal, &mut Vec::new());
        h.engine.assert_invariants();
        if !more {
            break;
        }
    }
    h.restart(0);
}

/// What a consumer sees of messages besides who they are.
fn describe(batch: &DeliveryBatch) -> Vec<String> {
    let items = batch.items.iter().map(|item| {
        let key = batch.fairness_key(item);
        let (len, weight) = (item.len, item.weight);
        let attempts = (item.attempts, item.deliveries, item.redrives);
        format!("{key} {len} {weight} {} {attempts:?}", item.has_attributes)
    });
    items.collect()
}

/// What can be seen of one step.
#[derive(Debug, PartialEq)]
struct Seen {
    answer: String,
    sub: Option<SubId>,
    delivered: Vec<(String, MessageId)>,
    items: Vec<String>,
    counts: Vec<QueueCounts>,
}

fn purge(h: &mut Harness, name: &str) -> AdminReply {
    let (vhost, name) = (VhostId::DEFAULT, name.to_owned());
    h.admin(AdminRequest::PurgeQueue { vhost, name })
}

fn see(h: &mut Harness, step: &Step) -> Seen {
    let (mut out, mut sub) = (Vec::new(), None);
    let answer = match step {
        Step::Publish(messages) => format!("{:?}", h.publish(messages)),
        Step::Classify(messages) => {
            out = classify(h, messages);
            let answers = out.iter().filter_map(|output| match &output.event {
                Event::Published { results, .. } => Some(results),
                _ => None,
            });
            format!("{:?}", answers.collect::<Vec<_>>())
        }
        Step::Script(text) => format!("{:?}", set_script(h, text)),
        Step::Settle(queue, items) => format!("{:?}", h.settle(queue, items)),
        Step::Subscribe(conn, queue, credit, mode) => {
            h.connect(*conn);
            sub = Some(h.subscribe_as(*conn, queue, Some(*credit), *mode));
            String::new()
        }
        Step::Disconnect(conn) => {
            out = h.handle(Request::Disconnect { conn: *conn });
            String::new()
        }
        Step::DisconnectAndRestart(conn, passes) => {
            disconnect_and_restart(h, *conn, *passes);
            String::new()
        }
        Step::Grant(sub, credit) => {
            out = h.handle(Request::Grant {
                sub: *sub,
                credit: *credit,
            });
            String::new()
        }
        Step::Redrive(name, count) => format!("{:?}", redrive(h, name, *count)),
        Step::Purge(name) => format!("{:?}", purge(h, name)),
        Step::Advance(ms) => {
            out = h.advance(*ms);
            String::new()
        }
        Step::Restart => {
            h.restart(0);
            String::new()
        }
    };
    out.extend(h.run());
    let batches = harness::deliveries(&out);
    let delivered = batches.iter().flat_map(|(_, batch)| {
        let ids = batch.items.iter().map(|item| item.id);
        ids.map(|id| (batch.queue.to_string(), id))
    });
    assert_eq!(delivered.clone().count(), delivered_ids(&out).len());
    let delivered = delivered.collect();
    let items = batches.iter().flat_map(|(_, batch)| describe(batch));
    let items = items.collect();
    let AdminReply::Queues(queues) = h.admin(AdminRequest::ListQueues) else {
        panic!("a list of queues");
    };
    Seen {
        answer,
        sub,
        delivered,
        items,
        counts: queues.into_iter().map(|queue| queue.counts).collect(),
    }
}

#[test]
fn pages_change_nothing_that_can_be_seen() {
    let mut pages = 0;
    for seed in 0..60 {
        let run = move || {
            let mut twins = Twins::new(seed);
            twins.run(250);
            twins.pages_most
        };
        let outcome = std::panic::catch_unwind(run);
        pages += outcome.unwrap_or_else(|_| panic!("seed {seed}"));
    }
    assert!(pages > 600, "{pages} pages are too few to say anything");
}
