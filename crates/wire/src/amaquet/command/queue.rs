//! `queue.*`: the broker's queues.

use std::borrow::Cow;

use super::argument::{
    Argument, ArgumentLimits, Backoff, DeliveryDurability, Item, Max, U32, WaitMs, Weight,
};
use super::error::{FieldProblem, RequestError};
use super::fields::Fields;
use super::spec::{ArgumentSpec, ValueType};
use super::table::commands;
use crate::amaquet::Payload;
use crate::amaquet::json::Json;

commands! {
    /// Makes a queue as the Fila door makes one. Present: EXISTS; a name that ends in `.dlq`:
    /// BAD_REQUEST. What is left out has the broker's default.
    QueueCreate<'a> = "queue.create", Admin(queue) {
        /// The queue.
        must queue: Cow<'a, str>,
        /// How long a popped message is leased, in milliseconds.
        may visibility_timeout_ms: u64,
        /// Attempts before a message becomes a dead letter; 0 = without end.
        may max_attempts: U32,
        /// How long a failed message waits.
        may backoff: Backoff,
        /// The first wait, in milliseconds.
        may backoff_initial_ms: u64,
        /// The longest wait, in milliseconds.
        may backoff_max_ms: u64,
        /// Parts of the key that keeps order: `header:NAME`, `fairness_key`, `attribute:NAME`.
        may ordering_key: Vec<Cow<'a, str>>,
        /// Parts of the key that finds duplicates: those, `idempotency_key`, `payload`, `headers`.
        may dedup_key: Vec<Cow<'a, str>>,
        /// For how long duplicates are found, in milliseconds.
        may dedup_window_ms: u64,
        /// What a restart remembers of deliveries.
        may delivery_durability: DeliveryDurability,
    } -> {
        /// The queue.
        queue: String,
    }

    /// Adds messages to a queue.
    QueuePush<'a> = "queue.push", Write(queue) {
        /// The queue.
        must queue: Cow<'a, str>,
        /// The messages.
        must messages: Vec<PushedMessage<'a>>,
    } -> {
        /// An array in the order of the messages: `{"id","duplicate"}` or `{"error"}`.
        messages: Object,
    }

    /// Leases messages of a queue.
    QueuePop<'a> = "queue.pop", Read(queue) {
        /// The queue.
        must queue: Cow<'a, str>,
        /// How many at most (default 1).
        or max: Max = super::argument::Bounded(1),
        /// How long to wait for the first one, in milliseconds (default 0).
        or wait_ms: WaitMs = WaitMs(0),
        /// For how long they are leased, in milliseconds; left out = as the queue says.
        may lease_ms: u64,
    } -> {
        /// `{"id","payload","headers","attempts","fairness_key","enqueued_at","lease_expires_at"}`
        /// each; none when there is none.
        messages: Messages,
    }

    /// Settles leased messages as done.
    QueueAck<'a> = "queue.ack", Read(queue) {
        /// The queue.
        must queue: Cow<'a, str>,
        /// The messages.
        must ids: Vec<Cow<'a, str>>,
    } -> {
        /// An array in the order of the ids: `{"id","ok"}` or `{"id","error"}`.
        results: Object,
    }

    /// Settles leased messages as failed.
    QueueNack<'a> = "queue.nack", Read(queue) {
        /// The queue.
        must queue: Cow<'a, str>,
        /// The messages.
        must ids: Vec<Cow<'a, str>>,
        /// Why, for the queue's scripts.
        may error: Cow<'a, str>,
        /// When to try again, in milliseconds; left out = as the queue says.
        may retry_after_ms: u64,
    } -> {
        /// As `queue.ack`.
        results: Object,
    }

    /// Leases messages for longer.
    QueueExtend<'a> = "queue.extend", Read(queue) {
        /// The queue.
        must queue: Cow<'a, str>,
        /// The messages.
        must ids: Vec<Cow<'a, str>>,
        /// How long from now on, in milliseconds.
        must extend_by_ms: u64,
    } -> {
        /// As `queue.ack`, with `lease_expires_at`.
        results: Object,
    }

    /// Counts what is in a queue.
    QueueStats<'a> = "queue.stats", Admin(queue) {
        /// The queue.
        must queue: Cow<'a, str>,
    } -> {
        /// Messages that are not leased: those that can be delivered, and those that wait.
        depth: U64,
        /// Leased messages.
        in_flight: U64,
        /// Messages that wait for a time.
        delayed: U64,
        /// Messages that wait for a throttle.
        throttled: U64,
        /// Messages that wait for a script.
        unclassified: U64,
        /// Who takes messages.
        consumers: U64,
        /// Fairness keys with messages.
        fairness_keys: U64,
        /// How long ago the oldest message that could be delivered now was enqueued, in
        /// milliseconds; `null` without one. Messages that are leased, or wait for a time, a script
        /// or their ordering group, are not looked at.
        oldest_message_age_ms: U64,
    }

    /// Shows messages without leasing them.
    QueuePeek<'a> = "queue.peek", Read(queue) {
        /// The queue.
        must queue: Cow<'a, str>,
        /// How many at most (default 1).
        or max: Max = super::argument::Bounded(1),
    } -> {
        /// As `queue.pop`.
        messages: Messages,
    }

    /// Sends dead letters back to their queue.
    QueueRedrive<'a> = "queue.redrive", Admin(queue) {
        /// The dead-letter queue: its name ends in `.dlq`.
        must queue: Cow<'a, str>,
        /// How many at most; 0 = all (default).
        or count: u64 = 0,
    } -> {
        /// How many went.
        redriven: U64,
        /// How many are left.
        left: U64,
    }

    /// Removes a queue with its messages and dead letters.
    QueueDelete<'a> = "queue.delete", Admin(queue) {
        /// The queue.
        must queue: Cow<'a, str>,
    } -> {
        /// `false` when it was not there.
        deleted: Bool,
    }
}

/// A message to be added to a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushedMessage<'a> {
    /// What it holds.
    pub payload: Payload<'a>,
    /// Its headers.
    pub headers: TextFields<'a>,
    /// Among whom delivery is shared.
    pub fairness_key: Option<Cow<'a, str>>,
    /// The weight of its fairness key.
    pub weight: Option<Weight>,
    /// How long it waits before it is delivered, in milliseconds.
    pub delay_ms: u64,
    /// What duplicates are found by.
    pub idempotency_key: Option<Cow<'a, str>>,
}

/// Fields of a message; the docs show them.
pub(super) const MESSAGE: &[ArgumentSpec] = &[
    field::<Payload<'_>>("payload", true, "What it holds."),
    field::<TextFields<'_>>("headers", false, "Its headers."),
    field::<Cow<'_, str>>("fairness_key", false, "Among whom delivery is shared."),
    field::<Weight>("weight", false, "The weight of its fairness key."),
    field::<u64>(
        "delay_ms",
        false,
        "How long it waits before it is delivered, in milliseconds.",
    ),
    field::<Cow<'_, str>>("idempotency_key", false, "What duplicates are found by."),
];

const fn field<T: Argument<'static>>(
    name: &'static str,
    required: bool,
    summary: &'static str,
) -> ArgumentSpec {
    ArgumentSpec {
        name,
        value_type: T::TYPE,
        required,
        limits: T::LIMITS,
        summary,
    }
}

impl<'a> Argument<'a> for PushedMessage<'a> {
    const TYPE: ValueType = ValueType::Object;

    fn read(value: Json<'a>, limits: &ArgumentLimits) -> Result<Self, RequestError> {
        expect_object(value)?;
        let fields = Fields::of(value.as_object().into_iter().flatten(), MESSAGE, limits);
        Ok(Self {
            payload: fields.required("payload")?,
            headers: fields.optional("headers")?.unwrap_or_default(),
            fairness_key: fields.optional("fairness_key")?,
            weight: fields.optional("weight")?,
            delay_ms: fields.optional("delay_ms")?.unwrap_or_default(),
            idempotency_key: fields.optional("idempotency_key")?,
        })
    }
}

impl<'a> Item<'a> for PushedMessage<'a> {
    const ARRAY: ValueType = ValueType::Messages;
}

/// Texts by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextFields<'a>(pub Vec<(Cow<'a, str>, Cow<'a, str>)>);

/// Most headers of a message, as at every door.
const HEADERS_MAX: usize = 1_024;

impl<'a> Argument<'a> for TextFields<'a> {
    const TYPE: ValueType = ValueType::Object;
    const LIMITS: &'static str = "an object of at most 1024 strings";

    fn read(value: Json<'a>, limits: &ArgumentLimits) -> Result<Self, RequestError> {
        expect_object(value)?;
        let mut texts = Vec::new();
        for (name, value) in value.as_object().into_iter().flatten() {
            let text = Cow::read(value, limits).map_err(|error| error.within(&name))?;
            if texts.len() == HEADERS_MAX {
                return Err(RequestError::out_of_limits("larger", Self::LIMITS));
            }
            texts.push((name, text));
        }
        Ok(Self(texts))
    }
}

fn expect_object(value: Json<'_>) -> Result<(), RequestError> {
    if value.as_object().is_some() {
        return Ok(());
    }
    Err(RequestError::here(FieldProblem::Mistyped {
        wanted: ValueType::Object,
        found: value.kind(),
        value: String::new(),
    }))
}
