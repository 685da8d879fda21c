//! Power is lost at any disk call of a random history.

use std::collections::BTreeMap;

use crate::support::{CONSUMER, START, World, config, named, stored, sub};
use tanda_engine::{Backoff, MessageId, PublishError, PublishResult, QueueSpec, Settlement};
use tanda_wal::mem_disk::MemDisk;

/// What the test knows of one message.
#[derive(Default)]
struct Known {
    payload: Vec<u8>,
    /// Highest attempt seen.
    attempts: u32,
    ack_sent: bool,
    acked: bool,
}

struct Crashes {
    random: u64,
    world: World,
    known: BTreeMap<MessageId, Known>,
    /// Published, answer not seen: by the number in their payload.
    sent: u32,
    publishes: Vec<(u32, Vec<Vec<u8>>)>,
    acks: Vec<(u32, Vec<MessageId>)>,
}

impl Crashes {
    fn new(seed: u64) -> Self {
        let mut world = World::reopened(MemDisk::new(seed), START, config());
        world.create(QueueSpec {
            lease_ms: 1_000,
            max_attempts: 1_000_000,
            backoff: Some(Backoff::None),
            ..named("jobs")
        });
        world.subscribe(sub(CONSUMER, 9), "jobs", None);
        Self {
            random: seed,
            world,
            known: BTreeMap::new(),
            sent: 0,
            publishes: Vec::new(),
            acks: Vec::new(),
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % bound
    }

    fn publish(&mut self) {
        let payloads: Vec<Vec<u8>> = (0..=self.below(5))
            .map(|_| {
                self.sent += 1;
                let mut payload = self.sent.to_be_bytes().to_vec();
                let len = 4 + self.below(2_000) as usize;
                payload.resize(len, self.sent as u8);
                payload
            })
            .collect();
        let token = self.world.publish("jobs", &payloads);
        self.publishes.push((token, payloads));
    }

    /// Takes in all answers and deliveries; acks about half of what came.
    fn observe(&mut self) {
        let mut open = std::mem::take(&mut self.publishes);
        open.retain(|(token, payloads)| {
            let Some(results) = self.world.published(*token) else {
                return true;
            };
            for (result, payload) in results.iter().zip(payloads) {
                // A disk that stops may look like a full one first.
                if *result == PublishResult::Refused(PublishError::Storage) {
                    continue;
                }
                let id = stored(&[*result])[0];
                let known = self.known.entry(id).or_default();
                known.payload.clone_from(payload);
            }
            false
        });
        self.publishes = open;
        let mut open = std::mem::take(&mut self.acks);
        open.retain(|(token, ids)| {
            let Some(results) = self.world.settled(*token) else {
                return true;
            };
            for (result, id) in results.iter().zip(ids) {
                // The lease may have ended before the ack came; then it will come again.
                let known = self.known.get_mut(id).unwrap();
                known.acked |= result.is_ok();
                known.ack_sent &= result.is_ok();
            }
            false
        });
        self.acks = open;
        self.receive();
    }

    fn receive(&mut self) {
        let received = self.world.received(sub(CONSUMER, 9));
        let mut acks = Vec::new();
        for message in received {
            let known = self.known.entry(message.id).or_default();
            assert!(!known.acked, "{} came back", message.id);
            if known.payload.is_empty() {
                known.payload.clone_from(&message.payload);
            }
            assert_eq!(known.payload, message.payload, "{}", message.id);
            assert!(
                message.attempts > known.attempts,
                "{}: attempt {} after {}",
                message.id,
                message.attempts,
                known.attempts
            );
            known.attempts = message.attempts;
            acks.push(message.id);
        }
        acks.retain(|_| self.below(2) == 0);
        self.ack(acks);
    }

    fn ack(&mut self, ids: Vec<MessageId>) {
        if ids.is_empty() {
            return;
        }
        for id in &ids {
            self.known.get_mut(id).unwrap().ack_sent = true;
        }
        let token = self.world.settle("jobs", &ids, Settlement::Ack);
        self.acks.push((token, ids));
    }

    fn step(&mut self) {
        match self.below(5) {
            0 | 1 => self.publish(),
            2 => self.world.run(),
            3 => {
                self.world.flush();
            }
            _ => {
                let ms = self.below(400);
                self.world.now = self.world.now.after_ms(ms);
                self.world.run();
            }
        }
        self.observe();
    }

    fn crash(&mut self) {
        self.publishes.clear();
        self.acks.clear();
        let now = self.world.now.after_ms(self.below(3_000));
        let disk = self.world.disk.restart();
        self.world = World::reopened(disk, now, config());
        self.world.subscribe(sub(CONSUMER, 9), "jobs", None);
    }

    /// With a sound disk: everything that was confirmed and not acked comes.
    fn check_all(&mut self) {
        let before: BTreeMap<MessageId, u32> = self
            .known
            .iter()
            .map(|(id, known)| (*id, known.attempts))
            .collect();
        for _ in 0..200 {
            self.world.pass(50, 50);
            self.observe();
        }
        for (id, attempts) in before {
            let known = &self.known[&id];
            assert!(
                known.acked || known.ack_sent || known.attempts > attempts,
                "{id} is lost (attempts {attempts})"
            );
        }
    }
}

#[test]
fn crashes_at_any_step_lose_nothing_confirmed_and_return_nothing_acked() {
    for seed in 0..30 {
        let mut crashes = Crashes::new(seed);
        for _life in 0..5 {
            let operations = crashes.below(120);
            for _ in 0..10 {
                crashes.step();
            }
            crashes.world.disk.crash_after(operations);
            for _ in 0..60 {
                crashes.step();
                if crashes.world.node.failed().is_some() {
                    break;
                }
            }
            crashes.crash();
        }
        crashes.check_all();
        assert!(crashes.known.len() > 20, "seed {seed} tested nothing");
        let acked = crashes.known.values().filter(|k| k.acked).count();
        assert!(acked > 0, "seed {seed} acked nothing");
    }
}

#[test]
fn the_same_history_gives_the_same_state() {
    let digest = |seed| {
        let mut crashes = Crashes::new(seed);
        for _ in 0..80 {
            crashes.step();
        }
        let stats = crashes.world.node.stats();
        let ids: Vec<MessageId> = crashes.known.keys().copied().collect();
        (
            stats.end,
            stats.durable,
            stats.released_events,
            ids,
            crashes.world.now,
        )
    };
    assert_eq!(digest(3), digest(3));
    assert_ne!(digest(3).3, digest(4).3);
}
