//! Queues: how a seed draws them, and what is known of them.

use std::collections::BTreeSet;

use tanda_engine::Millis;

use crate::random::Random;

/// What is delivered one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grouping {
    None,
    WholeQueue,
    /// By the header [`GROUP_HEADER`]; messages without it are outside of every group.
    Header,
    FairnessKey,
}

/// What makes two messages of a queue the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dedup {
    /// The idempotency key, if a message has one.
    Producer,
    TagHeader,
    Payload,
    AllHeaders,
}

/// The header that names a message's ordering group.
pub(crate) const GROUP_HEADER: &str = "group";
/// The header that names a message.
pub(crate) const TAG_HEADER: &str = "tag";

/// Which scripts a queue has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScriptDraw {
    /// `on_enqueue` gives every message its key and weight.
    pub(crate) classifies: bool,
    /// `on_failure` decides what follows a failed delivery.
    pub(crate) decides: bool,
    /// What cannot be classified is parked, else refused.
    pub(crate) parks: bool,
    pub(crate) park_dead_letter_after: u32,
}

impl ScriptDraw {
    fn draw(random: &mut Random) -> Self {
        Self {
            classifies: random.one_in(4),
            decides: random.one_in(5),
            parks: random.one_in(2),
            park_dead_letter_after: u32::try_from(random.below(3)).unwrap_or(0),
        }
    }
}

/// The throttle that every subscriber of a queue declares.
#[derive(Clone, Debug)]
pub(crate) struct ThrottleDraw {
    pub(crate) name: String,
    pub(crate) deliveries: u64,
    pub(crate) window_ms: u64,
    /// Each fairness key has a bucket of its own.
    pub(crate) by_key: bool,
}

impl ThrottleDraw {
    pub(crate) fn draw(random: &mut Random, name: String) -> Self {
        Self {
            name,
            deliveries: random.between(1, 6),
            window_ms: *random.pick(&[20, 200, 1_000, 5_000, 20_000]).unwrap_or(&1),
            by_key: random.one_in(2),
        }
    }

    /// A whole run's messages pass in reasonable time.
    pub(crate) const fn is_quick(&self) -> bool {
        self.window_ms <= 100 * self.deliveries
    }
}

/// What a queue is created with.
#[derive(Clone, Debug)]
pub(crate) struct QueueDraw {
    pub(crate) grouping: Grouping,
    pub(crate) dedup: Dedup,
    pub(crate) is_fast: bool,
    pub(crate) lease_ms: u64,
    pub(crate) dedup_window_ms: u64,
    pub(crate) attempts_max: u32,
    /// A number of the wire.
    pub(crate) backoff: u8,
    pub(crate) backoff_initial_ms: u64,
    pub(crate) backoff_max_ms: u64,
    pub(crate) reclaim_grace_ms: u64,
    pub(crate) script: ScriptDraw,
    /// Each fairness key keeps its weight; else each message has one of its own.
    pub(crate) keeps_weights: bool,
}

impl QueueDraw {
    pub(crate) fn draw(random: &mut Random) -> Self {
        let script = ScriptDraw::draw(random);
        Self {
            script,
            grouping: match random.below(8) {
                0 => Grouping::WholeQueue,
                1 | 2 => Grouping::Header,
                // Clients could not tell the groups of keys that scripts give.
                3 if !script.classifies => Grouping::FairnessKey,
                _ => Grouping::None,
            },
            dedup: match random.below(8) {
                0 => Dedup::TagHeader,
                1 => Dedup::Payload,
                2 => Dedup::AllHeaders,
                _ => Dedup::Producer,
            },
            is_fast: random.percent(25),
            lease_ms: lease_ms(random),
            dedup_window_ms: dedup_window_ms(random),
            attempts_max: attempts_max(random),
            backoff: u8::try_from(random.between(1, 3)).unwrap_or(1),
            backoff_initial_ms: random.between(1, 300),
            backoff_max_ms: random.between(300, 3_000),
            reclaim_grace_ms: random.between(10, 2_000),
            keeps_weights: random.percent(75),
        }
    }
}

pub(crate) const fn lease_ms(random: &mut Random) -> u64 {
    if random.one_in(2) {
        random.between(20, 300)
    } else {
        random.between(300, 5_000)
    }
}

pub(crate) const fn dedup_window_ms(random: &mut Random) -> u64 {
    random.between(50, 20_000)
}

pub(crate) fn attempts_max(random: &mut Random) -> u32 {
    u32::try_from(random.between(1, 4)).unwrap_or(1)
}

/// What is known of a queue. Settings that were ever sent count as ever in force.
#[derive(Clone, Debug)]
pub(crate) struct QueueFacts {
    pub(crate) draw: QueueDraw,
    /// Its creation was answered, and it is never deleted.
    pub(crate) is_there: bool,
    /// It is deleted now and then: nothing in it is promised to stay.
    pub(crate) is_scratch: bool,
    pub(crate) was_fast: bool,
    pub(crate) lease_ms: BTreeSet<u64>,
    pub(crate) attempts_max: u32,
    pub(crate) dedup_window_ms_min: u64,
    pub(crate) dedup_window_ms_max: u64,
    /// Redrives sent so far.
    pub(crate) redrives: u32,
    pub(crate) throttle: Option<ThrottleDraw>,
}

impl QueueFacts {
    pub(crate) fn new(draw: QueueDraw, is_scratch: bool) -> Self {
        Self {
            is_there: false,
            is_scratch,
            was_fast: draw.is_fast,
            lease_ms: BTreeSet::from([draw.lease_ms]),
            attempts_max: draw.attempts_max,
            dedup_window_ms_min: draw.dedup_window_ms,
            dedup_window_ms_max: draw.dedup_window_ms,
            redrives: 0,
            throttle: None,
            draw,
        }
    }

    pub(crate) fn note_dedup_window(&mut self, ms: u64) {
        self.dedup_window_ms_min = self.dedup_window_ms_min.min(ms);
        self.dedup_window_ms_max = self.dedup_window_ms_max.max(ms);
    }

    /// Leases and settlements survive a crash.
    pub(crate) const fn is_committed(&self) -> bool {
        !self.was_fast && !self.is_scratch
    }
}

/// The later of two moments, when both are known.
pub(crate) fn earlier(a: Option<Millis>, b: Millis) -> Option<Millis> {
    Some(a.map_or(b, |a| a.min(b)))
}
