//! Histories: queues and a sequence of operations on them, made to shrink well.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tanda_engine::{
    Backoff, DeliveryDurability, KeyKind, KeyPart, MaxLength, MissingOrderingKey, Ordering,
    Overflow, QueueSpec,
};

/// What is done to engine and model. Numbers choose among what there is at that time.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Publish(Vec<Item>),
    Settle(Vec<(u16, Outcome)>),
    Subscribe {
        conn: u8,
        credit: Option<u32>,
        is_connection: bool,
    },
    Unsubscribe(u8),
    Disconnect(u8),
    /// What a connection just got was not sent: it breaks, or the contents cannot be read and it
    /// goes on.
    Lose(u8, bool),
    Grant(u8, u32),
    /// This share of what a connection has not taken yet.
    Drained(u8, u8),
    Advance(u64),
    Redrive(u8, u64),
    Purge(u8, bool),
    ChangeTimes(u8),
    Attempts(u8, u32),
    Delete(u8),
    Create(u8),
    Restart(u64),
    /// Begins a capture; each later operation takes a slice of this many messages.
    Capture(usize),
}

/// A message to publish.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) queue: u8,
    pub(crate) key: u8,
    pub(crate) weight: u32,
    pub(crate) is_urgent: bool,
    pub(crate) delay_ms: u64,
    pub(crate) group: Option<u8>,
    pub(crate) dedup: Option<u8>,
    pub(crate) payload: u8,
}

/// How a message is settled.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    Ack,
    Fail(Option<u64>),
    Requeue,
    Reject,
    Extend(u64),
    /// Whether it speaks of the lease that stands.
    Unsent(bool),
}

/// What a history begins with.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) queues: Vec<QueueSpec>,
    pub(crate) quantum: u32,
    pub(crate) page_messages: u32,
    pub(crate) lane_hot: u32,
    pub(crate) outbound_max: u64,
    /// What every subscriber of a queue, dead letters aside, declares.
    pub(crate) throttle: Option<ThrottleDraw>,
}

/// A throttle of one limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThrottleDraw {
    pub(crate) key: ThrottleKey,
    pub(crate) deliveries: u64,
    pub(crate) window_ms: u64,
    /// The queues have it together; else each has its own.
    pub(crate) is_shared: bool,
}

/// What a throttle's buckets are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThrottleKey {
    None,
    FairnessKey,
    /// The header that ordering groups are of, too.
    Header,
}

pub(crate) const SOURCES: u8 = 2;

fn item() -> impl Strategy<Value = Item> {
    (
        (0..40_u8, 0..4_u8, 0..4_u32, prop::bool::weighted(0.15)),
        prop_oneof![4 => Just(0), 1 => 1..400_u64],
        option::of(0..3_u8),
        option::weighted(0.3, 0..8_u8),
        0..12_u8,
    )
        .prop_map(
            |((queue, key, weight, is_urgent), delay_ms, group, dedup, payload)| Item {
                queue,
                key,
                weight,
                is_urgent,
                delay_ms,
                group,
                dedup,
                payload,
            },
        )
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        6 => Just(Outcome::Ack),
        4 => option::of(prop_oneof![Just(0), 1..300_u64]).prop_map(Outcome::Fail),
        2 => Just(Outcome::Requeue),
        1 => Just(Outcome::Reject),
        2 => (0..800_u64).prop_map(Outcome::Extend),
        1 => any::<bool>().prop_map(Outcome::Unsent),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        24 => vec(item(), 1..10).prop_map(Op::Publish),
        20 => vec((any::<u16>(), outcome()), 1..6).prop_map(Op::Settle),
        8 => (0..8_u8, option::weighted(0.8, 0..5_u32), prop::bool::weighted(0.2)).prop_map(
            |(conn, credit, is_connection)| Op::Subscribe { conn, credit, is_connection }
        ),
        1 => any::<u8>().prop_map(Op::Unsubscribe),
        1 => (0..8_u8).prop_map(Op::Disconnect),
        3 => (0..8_u8, any::<bool>()).prop_map(|(conn, breaks)| Op::Lose(conn, breaks)),
        10 => (any::<u8>(), 1..4_u32).prop_map(|(sub, credit)| Op::Grant(sub, credit)),
        6 => (0..8_u8, 0..4_u8).prop_map(|(conn, share)| Op::Drained(conn, share)),
        10 => prop_oneof![1..60_u64, 1..900_u64].prop_map(Op::Advance),
        3 => (0..SOURCES, 0..4_u64).prop_map(|(queue, count)| Op::Redrive(queue, count)),
        1 => (0..SOURCES, any::<bool>()).prop_map(|(queue, dead)| Op::Purge(queue, dead)),
        1 => (0..SOURCES).prop_map(Op::ChangeTimes),
        1 => (0..SOURCES, 1..4_u32).prop_map(|(queue, n)| Op::Attempts(queue, n)),
        1 => (0..SOURCES).prop_map(Op::Delete),
        2 => (0..SOURCES).prop_map(Op::Create),
        2 => (0..300_u64).prop_map(Op::Restart),
        2 => (1..20_usize).prop_map(Op::Capture),
    ]
}

fn part(kind: KeyKind, name: &str) -> Vec<KeyPart> {
    let name = name.to_owned();
    vec![KeyPart { kind, name }]
}

fn ordering() -> impl Strategy<Value = Ordering> {
    let key = |key, missing| Ordering::Key { key, missing };
    prop_oneof![
        5 => Just(Ordering::None),
        1 => Just(Ordering::Queue),
        2 => Just(key(part(KeyKind::Header, "g"), MissingOrderingKey::Unordered)),
        1 => Just(key(part(KeyKind::Header, "g"), MissingOrderingKey::Reject)),
        1 => Just(key(part(KeyKind::FairnessKey, ""), MissingOrderingKey::Unordered)),
    ]
}

fn queue() -> impl Strategy<Value = QueueSpec> {
    let backoff = prop_oneof![
        Just(Backoff::None),
        Just(Backoff::Fixed),
        Just(Backoff::Exponential)
    ];
    let overflow = prop_oneof![Just(Overflow::DropHead), Just(Overflow::Reject)];
    let max =
        (2..9_u64, overflow).prop_map(|(messages, overflow)| MaxLength { messages, overflow });
    (
        (ordering(), 1..4_u32, backoff, 30..120_u64),
        (prop::bool::weighted(0.2), option::weighted(0.3, max)),
        (prop::bool::weighted(0.2), 100..600_u64, 100..700_u64),
    )
        .prop_map(
            |((ordering, max_attempts, backoff, initial), (is_fast, max_length), times)| {
                QueueSpec {
                    ordering,
                    max_attempts,
                    backoff: Some(backoff),
                    backoff_initial_ms: initial,
                    backoff_max_ms: 150,
                    durability: if is_fast {
                        DeliveryDurability::Fast
                    } else {
                        DeliveryDurability::Committed
                    },
                    reclaim_grace_ms: 120,
                    max_length,
                    dedup_key: times.0.then(|| part(KeyKind::Payload, "")),
                    lease_ms: times.1,
                    dedup_window_ms: times.2,
                    ..QueueSpec::default()
                }
            },
        )
}

fn throttle() -> impl Strategy<Value = ThrottleDraw> {
    let key = prop_oneof![
        Just(ThrottleKey::None),
        Just(ThrottleKey::FairnessKey),
        Just(ThrottleKey::Header)
    ];
    (key, 1..5_u64, 50..900_u64, any::<bool>()).prop_map(
        |(key, deliveries, window_ms, is_shared)| ThrottleDraw {
            key,
            deliveries,
            window_ms,
            is_shared,
        },
    )
}

fn setup() -> impl Strategy<Value = Setup> {
    (
        vec(queue(), usize::from(SOURCES)),
        (1..3_u32, option::weighted(0.3, throttle())),
        prop_oneof![Just((512, 8192)), (1..4_u32, 1..4_u32)],
        prop_oneof![Just(1 << 20), 200..900_u64],
    )
        .prop_map(
            |(mut queues, (quantum, throttle), (page_messages, lane_hot), outbound_max)| {
                // Of a page that a snapshot names nothing was out: a fast queue delivers it at once
                // after
                // a restart, where it holds the others back. Which is which only the engine knows.
                let is_fast = |queue: &QueueSpec| queue.durability == DeliveryDurability::Fast;
                let (page_messages, lane_hot) = if queues.iter().any(is_fast) {
                    (512, 8192)
                } else {
                    (page_messages, lane_hot)
                };
                for (n, queue) in queues.iter_mut().enumerate() {
                    queue.name = format!("q{n}");
                    if throttle.is_some() {
                        // Nothing says whether what waits for room is dropped as the oldest.
                        queue.max_length = None;
                    }
                }
                Setup {
                    queues,
                    quantum,
                    page_messages,
                    lane_hot,
                    outbound_max,
                    throttle,
                }
            },
        )
}

pub(crate) fn history(most: usize) -> impl Strategy<Value = (Setup, Vec<Op>)> {
    (setup(), vec(op(), 1..most))
}
