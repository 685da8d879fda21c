//! Who takes part in a run: its queues and its clients, drawn from the seed.

use std::collections::BTreeMap;

use crate::clients::{
    Admin, AmaquetClient, AmqpClient, Client, Consumer, Job, Manner, Producer, Role, Taking,
};
use crate::history::amaquet::Amaquet;
use crate::history::amqp::{Amqp, Door};
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

/// `of_amqp`: there are clients of the model of AMQP, and maybe no others but the administrator.
pub(super) fn clients(seed: u64, of_amqp: &Amqp, of_amaquet: &Amaquet) -> Vec<Client> {
    let mut random = Random::stream(seed, "clients");
    let mut clients = vec![Client::new(
        Role::Admin(Admin::default()),
        Random::stream(seed, "admin"),
    )];
    if of_amqp.is_there() {
        clients.extend(amqp_clients(seed, of_amqp));
        if random.one_in(2) {
            return clients;
        }
    }
    if of_amaquet.is_there {
        let mut random = Random::stream(seed, "amaquet");
        for number in 0..random.between(2, 5) {
            let client = Role::Amaquet(Box::new(AmaquetClient::new()));
            let own = Random::stream(seed, &format!("amaquet {number}"));
            clients.push(Client::new(client, own));
        }
        if random.one_in(2) {
            return clients;
        }
    }
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

/// AMQP's clients: producers, consumers, workers, and one who changes the topology. None in runs
/// without AMQP. Among several doors each client has one of its own.
fn amqp_clients(seed: u64, amqp: &Amqp) -> Vec<Client> {
    let mut random = Random::stream(seed, "amqp clients");
    let mut doors = Random::stream(seed, "doors");
    let mut clients = Vec::new();
    let mut add = |name: String, job: &dyn Fn(&mut Random) -> Job| {
        let mut own = Random::stream(seed, &name);
        let job = job(&mut own);
        let client = if amqp.is_mixed {
            let more = Random::stream(seed, &format!("more of {name}"));
            AmqpClient::by(job, door(&mut doors, job), more)
        } else {
            AmqpClient::new(job)
        };
        clients.push(Client::new(Role::Amqp(Box::new(client)), own));
    };
    add("amqp declarer".to_owned(), &|_| Job::Declarer);
    for number in 0..random.between(1, 3) {
        add(format!("amqp producer {number}"), &|own| {
            let confirms = !own.one_in(5);
            Job::Producer(if confirms { own.length(20) } else { 0 })
        });
    }
    for number in 0..random.between(1, 4) {
        add(format!("amqp consumer {number}"), &|own| {
            Job::Consumer(Taking::draw(own))
        });
    }
    for number in 0..random.below(3) {
        add(format!("amqp worker {number}"), &|_| Job::Worker);
    }
    let guests = Random::stream(seed, "guests").between(2, 4);
    for number in 0..if amqp.has_lives { guests } else { 0 } {
        add(format!("guest {number}"), &|own| {
            Job::Guest(Taking::draw(own))
        });
    }
    clients
}

/// The door of a client: FireMQ has no transactions.
fn door(random: &mut Random, job: Job) -> Door {
    match job {
        Job::Worker => Door::Amqp,
        Job::Producer(_) | Job::Consumer(_) | Job::Declarer | Job::Guest(_) | Job::Drainer => {
            if random.percent(60) {
                Door::Fire
            } else {
                Door::Amqp
            }
        }
    }
}
