//! What a run's AMQP clients declare, drawn from its seed.

use tanda_wire::amqp::{ShortStr, TableWriter, Value};

use crate::random::Random;

/// The exchanges of every run with AMQP clients: name and kind.
pub(crate) const EXCHANGES: [(&str, &str); 3] = [
    ("ex.direct", "direct"),
    ("ex.fanout", "fanout"),
    ("ex.topic", "topic"),
];

/// What happens to messages over a queue's limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overflow {
    DropHead,
    Reject,
}

/// Where dead letters of a queue go: to a queue of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dead {
    /// They stay there.
    Stay,
    /// After so many milliseconds they come back.
    Return(u64),
}

/// What a queue is declared with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueDraw {
    pub(crate) durable: bool,
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) max_length: Option<(u64, Overflow)>,
    pub(crate) dead: Option<Dead>,
    /// Where its dead letters go, as routing key of the default exchange.
    pub(crate) dead_key: Option<String>,
    pub(crate) delivery_limit: Option<u32>,
    pub(crate) max_priority: Option<u8>,
    pub(crate) single_active: bool,
    /// Its messages may go at any moment: it is purged, or its consumers do not acknowledge.
    pub(crate) is_lossy: bool,
    /// It comes and goes.
    pub(crate) is_scratch: bool,
}

impl QueueDraw {
    fn draw(random: &mut Random) -> Self {
        let dead = match random.below(6) {
            0 | 1 => Some(Dead::Stay),
            2 => Some(Dead::Return(random.between(20, 500))),
            _ => None,
        };
        // Whoever goes round in circles without a rejection is dropped.
        let is_circle = matches!(dead, Some(Dead::Return(_)));
        let ttl_ms = random.one_in(6).then(|| random.between(50, 5_000));
        let max_length = random.one_in(5).then(|| {
            let overflow = [Overflow::DropHead, Overflow::Reject];
            let overflow = random.pick(&overflow).copied();
            let most = random.between(1, 12);
            (most, overflow.unwrap_or(Overflow::Reject))
        });
        let limit = u32::try_from(random.between(1, 4)).unwrap_or(1);
        let has_limit = dead == Some(Dead::Stay) && random.one_in(3);
        Self {
            durable: random.percent(85),
            ttl_ms: ttl_ms.filter(|_| !is_circle),
            max_length: max_length.filter(|_| !is_circle),
            dead,
            delivery_limit: has_limit.then_some(limit),
            max_priority: random.one_in(6).then_some(5),
            single_active: random.one_in(6),
            is_lossy: random.one_in(6),
            ..Self::default()
        }
    }

    /// The queue of its dead letters.
    fn of_dead(name: &str, durable: bool, dead: Dead) -> Self {
        let mut draw = Self {
            durable,
            ..Self::default()
        };
        if let Dead::Return(ms) = dead {
            draw.ttl_ms = Some(ms);
            draw.dead_key = Some(name.to_owned());
        }
        draw
    }

    /// The arguments of its declaration.
    pub(crate) fn args(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = TableWriter::new(&mut out);
        let mut put = |key, value| {
            writer.value(ShortStr::clip(key), &value);
        };
        let long = |ms: u64| Value::I64(i64::try_from(ms).unwrap_or(i64::MAX));
        if let Some(ms) = self.ttl_ms {
            put("x-message-ttl", long(ms));
        }
        if let Some((most, overflow)) = self.max_length {
            put("x-max-length", long(most));
            if overflow == Overflow::Reject {
                put("x-overflow", Value::text("reject-publish"));
            }
        }
        if let Some(key) = &self.dead_key {
            put("x-dead-letter-exchange", Value::text(""));
            put("x-dead-letter-routing-key", Value::text(key));
        }
        if let Some(limit) = self.delivery_limit {
            put("x-delivery-limit", long(u64::from(limit)));
        }
        if let Some(most) = self.max_priority {
            put("x-max-priority", Value::U8(most));
        }
        if self.single_active {
            put("x-single-active-consumer", Value::Bool(true));
        }
        out
    }

    /// A message may leave without an acknowledgement, and nowhere to go.
    pub(crate) const fn drops(&self) -> bool {
        let drops_head = matches!(self.max_length, Some((_, Overflow::DropHead)));
        self.is_lossy || self.dead_key.is_none() && (self.ttl_ms.is_some() || drops_head)
    }
}

/// A binding that is, or comes and goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BindingDraw {
    pub(crate) exchange: &'static str,
    pub(crate) key: &'static str,
    pub(crate) queue: String,
    pub(crate) comes_and_goes: bool,
}

/// Keys that messages are published with.
pub(crate) const ROUTING_KEYS: [&str; 7] = ["k0", "k1", "a", "a.b", "a.b.c", "b", ""];
const TOPIC_PATTERNS: [&str; 6] = ["a.*", "a.#", "#", "*.b", "a.b", "#.b.*"];

/// All queues: their name and what they are declared with.
pub(crate) fn queues(random: &mut Random) -> Vec<(String, QueueDraw)> {
    let mut queues = Vec::new();
    for number in 0..random.between(1, 4) {
        let name = format!("amqp-{number}");
        let mut draw = QueueDraw::draw(random);
        if let Some(dead) = draw.dead {
            let target = format!("{name}.dead");
            draw.dead_key = Some(target.clone());
            queues.push((target, QueueDraw::of_dead(&name, draw.durable, dead)));
        }
        queues.push((name, draw));
    }
    if random.one_in(2) {
        let draw = QueueDraw {
            durable: random.one_in(2),
            is_lossy: true,
            is_scratch: true,
            ..QueueDraw::default()
        };
        queues.push(("amqp-scratch".to_owned(), draw));
    }
    queues
}

/// Bindings to queues that are not for dead letters and do not come and go.
pub(crate) fn bindings(random: &mut Random, queues: &[(String, QueueDraw)]) -> Vec<BindingDraw> {
    let mut bindings = Vec::new();
    for (name, draw) in queues {
        if draw.is_scratch || name.ends_with(".dead") {
            continue;
        }
        for (exchange, kind) in EXCHANGES {
            let key = match kind {
                "direct" => *random.pick(&["k0", "k1"]).unwrap_or(&"k0"),
                "topic" => random.pick(&TOPIC_PATTERNS).copied().unwrap_or("#"),
                _ => "",
            };
            let comes_and_goes = random.one_in(4);
            if random.percent(60) {
                bindings.push(BindingDraw {
                    exchange,
                    key,
                    queue: name.clone(),
                    comes_and_goes,
                });
            }
        }
    }
    bindings
}
