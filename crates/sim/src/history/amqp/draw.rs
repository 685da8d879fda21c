//! What a run's AMQP clients declare, drawn from its seed.

use crate::random::Random;

/// The exchanges of every run with AMQP clients: name and kind.
pub(crate) const EXCHANGES: [(&str, &str); 3] = [
    ("ex.direct", "direct"),
    ("ex.fanout", "fanout"),
    ("ex.topic", "topic"),
];

/// Exchanges of some of these runs: those that look at headers, and those that lead on.
const MORE_EXCHANGES: [(&str, &str); 3] = [
    ("ex.headers", "headers"),
    ("ex.entry", "direct"),
    ("ex.alt", "fanout"),
];

/// Every exchange that a run may have.
pub(crate) fn exchanges(has_more: bool) -> impl Iterator<Item = &'static str> {
    let more = MORE_EXCHANGES.iter().filter(move |_| has_more);
    EXCHANGES.iter().chain(more).map(|(name, _)| *name)
}

/// The kind of an exchange.
pub(crate) fn kind_of(exchange: &str) -> &'static str {
    let mut all = EXCHANGES.iter().chain(&MORE_EXCHANGES);
    let found = all.find(|(name, _)| *name == exchange);
    found.map_or("", |(_, kind)| kind)
}

/// Where messages go that an exchange gives to nobody.
pub(crate) fn alternate_of(exchange: &str) -> Option<&'static str> {
    match exchange {
        "ex.headers" => Some("ex.entry"),
        "ex.entry" => Some("ex.alt"),
        _ => None,
    }
}

/// What happens to messages over a queue's limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overflow {
    DropHead,
    Reject,
    /// Refused, and dead-lettered.
    RejectDead,
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
    /// With the same overflow, where both are there.
    pub(crate) max_bytes: Option<(u64, Overflow)>,
    pub(crate) dead: Option<Dead>,
    /// Where its dead letters go, as routing key of the default exchange.
    pub(crate) dead_key: Option<String>,
    pub(crate) delivery_limit: Option<u32>,
    pub(crate) max_priority: Option<u8>,
    pub(crate) single_active: bool,
    /// A consumer that holds a message for so long loses it, and its subscription.
    pub(crate) ack_timeout_ms: Option<u64>,
    /// Its messages may go at any moment: it is purged, or its consumers do not acknowledge.
    pub(crate) is_lossy: bool,
    /// It comes and goes.
    pub(crate) is_scratch: bool,
    /// It is its connection's.
    pub(crate) exclusive: bool,
    /// It goes with its last consumer.
    pub(crate) auto_delete: bool,
    /// It goes when it was not used for so long.
    pub(crate) expires_ms: Option<u64>,
    /// The queue of its dead letters goes by itself, and they are lost without it.
    pub(crate) dead_may_go: bool,
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

    /// Policies of some of these runs.
    fn draw_more(&mut self, random: &mut Random) {
        let is_circle = matches!(self.dead, Some(Dead::Return(_)));
        if random.one_in(3) && !is_circle {
            let overflow = [Overflow::DropHead, Overflow::Reject];
            let drawn = random.pick(&overflow).copied();
            let overflow = self.max_length.map(|(_, overflow)| overflow).or(drawn);
            let most = random.between(60, 1_500);
            self.max_bytes = overflow.map(|overflow| (most, overflow));
        }
        if self.dead == Some(Dead::Stay) && random.one_in(2) {
            for limit in [&mut self.max_length, &mut self.max_bytes] {
                if let Some((_, overflow @ Overflow::Reject)) = limit {
                    *overflow = Overflow::RejectDead;
                }
            }
        }
        self.ack_timeout_ms = random.one_in(4).then(|| random.between(300, 5_000));
    }

    /// The queue of its dead letters.
    pub(super) fn of_dead(name: &str, durable: bool, dead: Dead) -> Self {
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

    /// What happens over one of its limits, if it has one.
    pub(crate) fn overflow(&self) -> Option<Overflow> {
        let limits = [self.max_length, self.max_bytes];
        limits
            .into_iter()
            .flatten()
            .map(|(_, overflow)| overflow)
            .next()
    }

    /// Its dead letters have a place that stays.
    pub(crate) const fn keeps_dead(&self) -> bool {
        self.dead_key.is_some() && !self.dead_may_go
    }

    /// A message may leave without an acknowledgement, and nowhere to go.
    pub(crate) fn drops(&self) -> bool {
        let drops_head = self.overflow() == Some(Overflow::DropHead);
        self.is_lossy || !self.keeps_dead() && (self.ttl_ms.is_some() || drops_head)
    }

    /// It goes by itself.
    pub(crate) const fn has_life(&self) -> bool {
        self.exclusive || self.auto_delete || self.expires_ms.is_some()
    }

    /// It may be gone at any time, and come back.
    pub(crate) const fn comes_and_goes(&self) -> bool {
        self.is_scratch || self.has_life()
    }
}

/// A binding that is, or comes and goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BindingDraw {
    pub(crate) exchange: &'static str,
    pub(crate) key: &'static str,
    /// Where it leads: the name of a queue, or of an exchange.
    pub(crate) queue: String,
    pub(crate) to_exchange: bool,
    /// What it asks of headers.
    pub(crate) asks: Option<HeaderAsk>,
    pub(crate) comes_and_goes: bool,
}

impl BindingDraw {
    /// The broker knows both as one.
    fn is_as(&self, other: &Self) -> bool {
        let of = |it: &Self| (it.exchange, it.key, it.queue.clone(), it.asks);
        of(self) == of(other)
    }
}

/// What a binding of a headers exchange asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HeaderAsk {
    /// `x-match`.
    pub(crate) mode: &'static str,
    /// Names with their values; without one the name is enough.
    pub(crate) pairs: &'static [(&'static str, Option<&'static str>)],
}

const HEADER_ASKS: [HeaderAsk; 8] = [
    asks("all", &[("h", Some("a"))]),
    asks("any", &[("g", Some("b")), ("h", Some("a"))]),
    asks("all", &[("g", Some("b")), ("h", Some("a"))]),
    asks("all", &[]),
    asks("any", &[]),
    asks("all", &[("g", None)]),
    asks("all-with-x", &[("h", Some("b")), ("x-k", Some("1"))]),
    asks("any-with-x", &[("h", Some("c")), ("x-k", Some("1"))]),
];

const fn asks(
    mode: &'static str,
    pairs: &'static [(&'static str, Option<&'static str>)],
) -> HeaderAsk {
    HeaderAsk { mode, pairs }
}

/// The headers of a message, by its tag.
pub(crate) fn headers_of(tag: usize) -> impl Iterator<Item = (&'static str, &'static str)> {
    let pick = |at: usize, values: &[Option<&'static str>]| values.get(at % values.len()).copied();
    let all = [
        ("h", pick(tag, &[None, Some("a"), Some("b")])),
        ("g", pick(tag / 3, &[None, Some("b"), Some("c")])),
        ("x-k", pick(tag / 9, &[None, Some("1")])),
    ];
    all.into_iter()
        .filter_map(|(name, value)| Some((name, value??)))
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
                    to_exchange: false,
                    asks: None,
                    comes_and_goes,
                });
            }
        }
    }
    bindings
}

/// Gives queues of some runs more policies, and their exchanges more bindings: by headers, and from
/// exchange to exchange, also in circles.
pub(crate) fn more(
    random: &mut Random,
    queues: &mut [(String, QueueDraw)],
    bindings: &mut Vec<BindingDraw>,
) {
    let mut add = |exchange, key, queue: &str, asks, random: &mut Random| {
        let binding = BindingDraw {
            exchange,
            key,
            queue: queue.to_owned(),
            to_exchange: queue.starts_with("ex."),
            asks,
            comes_and_goes: random.one_in(3),
        };
        if !bindings.iter().any(|other| other.is_as(&binding)) {
            bindings.push(binding);
        }
    };
    for (name, draw) in queues {
        if draw.is_scratch || name.ends_with(".dead") {
            continue;
        }
        draw.draw_more(random);
        for _ in 0..random.below(3) {
            let asks = random.pick(&HEADER_ASKS).copied();
            add("ex.headers", "", name, asks, random);
        }
        if random.one_in(2) {
            let key = random.pick(&["k0", "k1"]).copied().unwrap_or("k0");
            add("ex.entry", key, name, None, random);
        }
        if random.one_in(2) {
            add("ex.alt", "", name, None, random);
        }
    }
    let between = [
        ("ex.entry", "a.b", "ex.topic"),
        ("ex.entry", "b", "ex.headers"),
        ("ex.alt", "", "ex.direct"),
        ("ex.fanout", "", "ex.entry"),
        ("ex.topic", "a.#", "ex.entry"),
        ("ex.topic", "*.b", "ex.fanout"),
        ("ex.direct", "k1", "ex.alt"),
    ];
    for (exchange, key, to) in between {
        if random.one_in(3) {
            add(exchange, key, to, None, random);
        }
    }
}
