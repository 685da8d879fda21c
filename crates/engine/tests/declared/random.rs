//! Random histories.

use tanda_engine::Settlement;

use crate::history::{Draft, History, QUEUES};
use crate::model::{Consumer, Declared};
use crate::world::{REJECT, REQUEUE};

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    fn one_of<T: Clone>(&mut self, of: &[T]) -> T {
        let at = self.below(of.len() as u64);
        of[usize::try_from(at).unwrap()].clone()
    }

    fn declared(&mut self) -> Declared {
        let max_length = self.one_of(&[None, None, Some(2), Some(5)]);
        Declared {
            max_priority: self.one_of(&[None, Some(3)]),
            max_length,
            rejects: max_length.is_some() && self.one_in(2),
            ttl_ms: self.one_of(&[None, None, Some(900)]),
            delivery_limit: self.one_of(&[None, None, Some(0), Some(2)]),
            has_graveyard: !self.one_in(3),
        }
    }
}

/// One thing that happens; says what.
fn step(history: &mut History, random: &mut Random, number: u32) -> String {
    let queue = random.one_of(&QUEUES);
    let held = history.held();
    match random.below(20) {
        0..=5 => publish(history, random, (queue, number)),
        6..=10 => client_step(history, random, queue),
        11..=14 if !held.is_empty() => {
            let which = random.one_of(&held);
            let settlement = random.one_of(&[Settlement::Ack, REJECT, REQUEUE, REQUEUE]);
            history.settle(&which, settlement);
            format!("settle {which:?} {settlement:?}")
        }
        15 | 16 => {
            let ms = random.below(700);
            history.advance(ms);
            format!("advance {ms}")
        }
        17 => {
            if random.one_in(3) {
                history.unbind(queue);
                return format!("unbind {queue}");
            }
            history.bind(queue);
            format!("bind {queue}")
        }
        18 => rare_step(history, random, queue),
        _ => "nothing".to_owned(),
    }
}

fn publish(
    history: &mut History,
    random: &mut Random,
    (queue, number): (&'static str, u32),
) -> String {
    let name = format!("m{number}");
    let draft = Draft {
        name: &name,
        priority: u8::try_from(random.below(6)).unwrap(),
        ttl_ms: random.one_in(4).then(|| 1 + random.below(1_500)),
        transient: random.one_in(6),
    };
    if random.one_in(3) {
        history.route(draft);
        return format!("route {draft:?}");
    }
    history.publish(queue, draft);
    format!("publish to {queue} {draft:?}")
}

fn client_step(history: &mut History, random: &mut Random, queue: &'static str) -> String {
    let clients: Vec<u64> = history.clients.keys().copied().collect();
    let may_come = clients.len() < 6;
    match random.below(5) {
        0 | 1 if may_come => {
            let consumer = Consumer {
                priority: random.one_of(&[0, 0, 5, -3]),
                credit: u32::try_from(1 + random.below(3)).unwrap(),
            };
            history.consume(queue, consumer);
            format!("consume {queue} {consumer:?}")
        }
        2 if may_come => {
            history.get(queue);
            format!("get {queue}")
        }
        3 if !clients.is_empty() => {
            let client = random.one_of(&clients);
            history.grant(client, 2);
            format!("grant {client}")
        }
        4 if !clients.is_empty() => {
            let client = random.one_of(&clients);
            if random.one_in(3) {
                history.cancel(client);
                return format!("cancel {client}");
            }
            history.leave(client);
            format!("leave {client}")
        }
        _ => "nothing".to_owned(),
    }
}

fn rare_step(history: &mut History, random: &mut Random, queue: &'static str) -> String {
    match random.below(4) {
        0 => {
            history.purge(queue);
            format!("purge {queue}")
        }
        1 => {
            history.snapshot();
            "snapshot".to_owned()
        }
        _ => {
            let down_ms = random.below(400);
            history.restart(down_ms);
            format!("restart after {down_ms}")
        }
    }
}

/// Says what led there when a check fails.
struct Trace {
    seed: u64,
    declared: [Declared; 2],
    steps: Vec<String>,
}

impl Drop for Trace {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self {
                seed,
                declared,
                steps,
            } = self;
            eprintln!("seed {seed}, {declared:#?}\n{}", steps.join("\n"));
        }
    }
}

#[test]
fn declared_queues_do_what_a_naive_model_does() {
    let mut all = (0, 0, 0, 0);
    for seed in 0..300 {
        let mut random = Random(seed);
        let declared = [random.declared(), random.declared()];
        let mut trace = Trace {
            seed,
            declared,
            steps: Vec::new(),
        };
        let mut history = History::new(declared);
        for number in 0..120 {
            trace.steps.push(format!("(step {number} failed)"));
            let done = step(&mut history, &mut random, number);
            trace.steps.pop();
            trace.steps.push(done);
            history.check();
        }
        let counts = history.counts;
        all.0 += counts.deliveries;
        all.1 += counts.again;
        all.2 += counts.deaths;
        all.3 += counts.refused;
    }
    let enough = all.0 > 3_000 && all.1 > 500 && all.2 > 1_000 && all.3 > 100;
    assert!(enough, "deliveries, again, deaths, refused: {all:?}");
}
