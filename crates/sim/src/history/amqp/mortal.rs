//! The queues of some runs that go by themselves, drawn from the seed.

use super::{BindingDraw, Dead, QueueDraw, There};
use crate::history::amqp::{Amqp, Known};
use crate::random::Random;

/// Names that the broker gives in one run.
const NAMES_MAX: u64 = 8;

/// Adds queues that go by themselves, some with a queue of dead letters that stays, and lets some
/// queues of dead letters go by themselves.
pub(super) fn draw(
    random: &mut Random,
    queues: &mut Vec<(String, QueueDraw)>,
    bindings: &mut Vec<BindingDraw>,
) {
    lose_dead(random, queues);
    for name in ["amqp-own", "amqp-last", "amqp-idle"] {
        if random.one_in(3) {
            continue;
        }
        let mut draw = QueueDraw {
            exclusive: name == "amqp-own",
            auto_delete: name == "amqp-last" || random.one_in(5),
            ttl_ms: random.one_in(6).then(|| random.between(50, 5_000)),
            max_priority: random.one_in(6).then_some(5),
            ..QueueDraw::default()
        };
        draw.durable = !draw.exclusive && random.one_in(2);
        let expires_ms = expiry(random);
        if name == "amqp-idle" || random.one_in(5) {
            draw.expires_ms = Some(expires_ms);
        }
        if random.one_in(3) {
            let target = format!("{name}.dead");
            let of_dead = QueueDraw::of_dead(name, draw.durable, Dead::Stay);
            draw.dead = Some(Dead::Stay);
            draw.dead_key = Some(target.clone());
            queues.push((target, of_dead));
        }
        for (exchange, key) in WAYS {
            if random.one_in(2) {
                bindings.push(way(exchange, key, name));
            }
        }
        queues.push((name.to_owned(), draw));
    }
}

const fn expiry(random: &mut Random) -> u64 {
    if random.one_in(3) {
        random.between(5_000, 15_000)
    } else {
        random.between(100, 3_000)
    }
}

/// Some dead letters find no queue any more.
fn lose_dead(random: &mut Random, queues: &mut [(String, QueueDraw)]) {
    let mortal: Vec<String> = queues
        .iter()
        .filter(|(_, draw)| draw.dead == Some(Dead::Stay) && random.one_in(4))
        .map(|(name, _)| name.clone())
        .collect();
    for (name, draw) in queues {
        if mortal.contains(name) {
            draw.dead_may_go = true;
        }
        let origin = name.strip_suffix(".dead");
        if origin.is_some_and(|origin| mortal.iter().any(|it| it == origin)) {
            if random.one_in(2) {
                draw.auto_delete = true;
            } else {
                draw.expires_ms = Some(expiry(random));
            }
        }
    }
}

/// Exchanges and keys that lead to such queues.
const WAYS: [(&str, &str); 4] = [
    ("ex.fanout", ""),
    ("ex.topic", "a.#"),
    ("ex.topic", "#"),
    ("ex.direct", "k0"),
];

fn way(exchange: &'static str, key: &'static str, queue: &str) -> BindingDraw {
    BindingDraw {
        exchange,
        key,
        queue: queue.to_owned(),
        to_exchange: false,
        asks: None,
        comes_and_goes: true,
    }
}

impl Amqp {
    /// A queue that the broker is to name: its connection's, or one that expires.
    pub(crate) fn draw_unnamed(&mut self, random: &mut Random) -> Option<QueueDraw> {
        if self.names_asked >= NAMES_MAX {
            return None;
        }
        self.names_asked += 1;
        let exclusive = !random.one_in(3);
        Some(QueueDraw {
            exclusive,
            auto_delete: random.one_in(3),
            expires_ms: (!exclusive).then(|| expiry(random)),
            ..QueueDraw::default()
        })
    }

    /// The bindings that its client may make.
    pub(super) fn add_ways(&mut self, queue: &str) {
        for (exchange, key) in WAYS {
            let binding = way(exchange, key, queue);
            self.bindings.entry(binding).or_default();
        }
    }

    /// Names of the queues that go by themselves, and whether each may be there for a connection.
    pub(crate) fn mortals(&self, conn: u64) -> Vec<(&String, bool)> {
        let mortal = self.queues.iter().filter(|(_, it)| it.draw.has_life());
        let mortal = mortal.map(|(name, it)| {
            let is_open = !it.draw.exclusive || it.life.owners.contains_key(&conn);
            (name, it.known.there != There::No && is_open)
        });
        mortal.collect()
    }

    /// Bindings to queues that stay: those of others are made by who made their queue.
    pub(crate) fn is_mortal(&self, binding: &BindingDraw) -> bool {
        let queue = self.queues.get(&binding.queue);
        !binding.to_exchange && queue.is_some_and(|it| it.draw.has_life())
    }

    /// What is known of the bindings to a queue.
    pub(crate) fn bindings_to(&self, queue: &str) -> Vec<(BindingDraw, Known)> {
        let bindings = self.bindings.iter();
        let of_queue = bindings.filter(|(it, _)| !it.to_exchange && it.queue == queue);
        of_queue.map(|(it, known)| (it.clone(), *known)).collect()
    }
}
