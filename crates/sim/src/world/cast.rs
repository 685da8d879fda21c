//! Who takes part in a run: its queues and its clients, drawn from the seed.

use std::collections::BTreeMap;

use crate::clients::{Admin, Client, Consumer, Manner, Producer, Role};
use crate::history::{QueueDraw, QueueFacts, ThrottleDraw};
use crate::random::Random;

/// Four queues that stay, and one that comes and goes.
pub(super) fn queues(seed: u64) -> BTreeMap<String, QueueFacts> {
    let mut random = Random::stream(seed, "queues");
    let count = random.between(1, 4);
    let mut queues = BTreeMap::new();
    for number in 0..count {
        let facts = QueueFacts::new(QueueDraw::draw(&mut random), false);
        queues.insert(format!("queue-{number}"), facts);
    }
    if random.one_in(2) {
        let facts = QueueFacts::new(QueueDraw::draw(&mut random), true);
        queues.insert("scratch".to_owned(), facts);
    }
    throttle(seed, &mut queues);
    queues
}

/// Some queues have throttles, maybe one and the same.
fn throttle(seed: u64, queues: &mut BTreeMap<String, QueueFacts>) {
    let mut random = Random::stream(seed, "throttles");
    let shared = random
        .one_in(3)
        .then(|| ThrottleDraw::draw(&mut random, "shared".to_owned()));
    for (name, facts) in queues {
        if random.one_in(4) {
            let own = ThrottleDraw::draw(&mut random, format!("of {name}"));
            facts.throttle = Some(shared.clone().unwrap_or(own));
        }
    }
}

pub(super) fn clients(seed: u64) -> Vec<Client> {
    let mut random = Random::stream(seed, "clients");
    let mut clients = vec![Client::new(
        Role::Admin(Admin::default()),
        Random::stream(seed, "admin"),
    )];
    for number in 0..random.between(1, 4) {
        let mut own = Random::stream(seed, &format!("producer {number}"));
        let producer = Producer::new(&mut own);
        clients.push(Client::new(Role::Producer(producer), own));
    }
    for number in 0..random.between(1, 5) {
        let mut own = Random::stream(seed, &format!("consumer {number}"));
        let consumer = Consumer::new(Manner::draw(&mut own));
        clients.push(Client::new(Role::Consumer(consumer), own));
    }
    clients
}
