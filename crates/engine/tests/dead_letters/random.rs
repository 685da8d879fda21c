//! Random histories with restarts and crashes: what was confirmed is in exactly one place.

use std::collections::{BTreeMap, BTreeSet};

use tanda_engine::{Lsn, PublishResult, Settlement};
use tanda_wire::amqp::Value;

use crate::world::{Msg, REJECT, REQUEUE, World, dead_to};

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

impl Random {
    fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).unwrap()
    }
}

const QUEUES: [&str; 4] = ["in", "short", "wait", "dead"];

/// `in` and `short` lose messages to `wait`, which loses all to `dead`, where they stay.
fn world() -> World {
    let mut w = World::new();
    let mut args = dead_to("wait");
    args.push(("x-message-ttl", Value::I32(2_000)));
    w.queue("in", &args);
    let mut args = dead_to("wait");
    args.push(("x-max-length", Value::I32(3)));
    args.push(("x-delivery-limit", Value::I32(1)));
    w.queue("short", &args);
    let mut args = dead_to("dead");
    args.push(("x-message-ttl", Value::I32(500)));
    w.queue("wait", &args);
    w.queue("dead", &[]);
    w
}

/// What the test knows.
#[derive(Default)]
struct Known {
    /// Confirmed messages, with the position that made them durable.
    stored: BTreeMap<String, Lsn>,
    acked: BTreeSet<String>,
    sent: u32,
}

fn step(w: &mut World, random: &mut Random, known: &mut Known) {
    match random.below(8) {
        0..=2 => {
            let queue = ["in", "short"][random.index(2)];
            let name = format!("m{}", known.sent);
            known.sent += 1;
            let ttl_ms = (random.below(3) == 0).then(|| random.below(3_000));
            let msg = Msg {
                ttl_ms,
                ..Msg::to(queue, &name)
            };
            let (result, after) = w.publish(&msg);
            assert!(matches!(result, PublishResult::Stored(_)), "{result:?}");
            known.stored.insert(name, after);
        }
        3 if w.held.len() < 5 => {
            let queue = QUEUES[random.index(3)];
            let sub = w.consume(queue);
            if random.below(2) == 0 {
                let conn = sub;
                w.held.retain(|it| it.queue != queue);
                w.disconnect(conn);
            }
        }
        4 | 5 => {
            let Some(name) = w.held.last().map(|it| it.name.clone()) else {
                return;
            };
            let settlement = [Settlement::Ack, REJECT, REQUEUE][random.index(3)];
            w.settle(&name, settlement);
            if settlement == Settlement::Ack {
                known.acked.insert(name);
            }
        }
        6 => {
            let ms = random.below(700);
            w.advance(ms);
        }
        _ => {
            let flips = random.below(2) == 0;
            w.h.journal.contents_unreadable = flips;
        }
    }
}

/// After a crash that lost the records from `cut` on. Acks since then may be lost.
/// How many are in the last queue.
fn check(w: &mut World, known: &Known, cut: Lsn) -> usize {
    w.h.journal.contents_unreadable = false;
    w.advance(2_000);
    w.advance(2_000);
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let all = w.all_names(&QUEUES);
    for name in all.values().flatten() {
        *seen.entry(name.clone()).or_default() += 1;
    }
    for (name, count) in &seen {
        assert_eq!(*count, 1, "{name} is there {count} times");
    }
    for (name, after) in &known.stored {
        let is_lost = !seen.contains_key(name) && !known.acked.contains(name);
        assert!(!is_lost || *after > cut, "{name} is lost");
    }
    all["dead"].len()
}

#[test]
fn nothing_confirmed_is_lost_and_nothing_is_doubled() {
    let mut dead = 0;
    for seed in 0..60 {
        let mut random = Random(seed);
        let mut w = world();
        let mut known = Known::default();
        let begun = w.h.journal.records.len();
        for _ in 0..60 {
            step(&mut w, &mut random, &mut known);
        }
        let snapshot = random.below(3) == 0;
        if snapshot {
            w.h.take_snapshot();
            for _ in 0..20 {
                step(&mut w, &mut random, &mut known);
            }
        } else {
            let records = &mut w.h.journal.records;
            let lost = random.index(records.len() - begun + 1);
            records.truncate(records.len() - lost);
        }
        let last = w.h.journal.records.last().unwrap();
        let cut = Lsn(last.0.0 + last.1.len() as u64);
        w.held.clear();
        w.h.restart(random.below(1_000));
        dead += check(&mut w, &known, cut);
    }
    assert!(dead > 200, "only {dead} dead letters");
}
