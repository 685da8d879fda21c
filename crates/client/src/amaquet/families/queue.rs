//! `queue.*`.

use std::collections::BTreeMap;
use std::time::Duration;

use tanda_wire::amaquet::json::{Json, Writer};

use super::family;
use crate::amaquet::client::AmaquetClient;
use crate::amaquet::command::{Argument, Command};
use crate::amaquet::error::RequestError;
use crate::amaquet::payload::Payload;
use crate::amaquet::reply::{Reply, field, text};
use crate::message::whole_ms;

family! {
    /// The broker's queues.
    Queues
}

/// What a queue is made with; what is left out has the broker's default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueOptions {
    /// How long a popped message is leased.
    pub visibility_timeout: Option<Duration>,
    /// Attempts before a message becomes a dead letter; 0 = without end.
    pub attempts_max: Option<u32>,
    /// Parts of the key that keeps order: `header:NAME`, `fairness_key`, `attribute:NAME`.
    pub ordering_key: Vec<String>,
    /// Parts of the key that finds duplicates: those, `idempotency_key`, `payload`, `headers`.
    pub dedup_key: Vec<String>,
    /// For how long duplicates are found.
    pub dedup_window: Option<Duration>,
}

/// A message to be added to a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushMessage {
    payload: Payload,
    headers: Vec<(String, String)>,
    fairness_key: Option<String>,
    weight: Option<u32>,
    delay: Option<Duration>,
    idempotency_key: Option<String>,
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pushed {
    /// It is in the queue.
    Added {
        /// Its id.
        id: String,
    },
    /// It was there already.
    Duplicate {
        /// The id of the one that is there.
        id: String,
    },
    /// It was refused, for this reason.
    Refused(String),
}

/// A message that was taken, or looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Popped {
    /// Its id.
    pub id: String,
    /// What it holds.
    pub payload: Payload,
    /// Its headers.
    pub headers: BTreeMap<String, String>,
    /// How often it was delivered, this time included.
    pub attempts: u64,
    /// Among whom delivery is shared.
    pub fairness_key: String,
}

/// What became of the settlement of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The message.
    pub id: String,
    /// Why it failed, if it did.
    pub error: Option<String>,
}

/// How much is in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueCounts {
    /// Messages that are not leased: those that can be delivered, and those that wait.
    pub depth: u64,
    /// Leased messages.
    pub in_flight: u64,
    /// Messages that wait for a time.
    pub delayed: u64,
    /// Who takes messages.
    pub consumers: u64,
}

impl PushMessage {
    /// A message that holds this.
    pub fn new(payload: impl Into<Payload>) -> Self {
        Self {
            payload: payload.into(),
            headers: Vec::new(),
            fairness_key: None,
            weight: None,
            delay: None,
            idempotency_key: None,
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Among whom delivery is shared.
    #[must_use]
    pub fn fairness_key(mut self, key: impl Into<String>) -> Self {
        self.fairness_key = Some(key.into());
        self
    }

    /// The weight of its fairness key.
    #[must_use]
    pub const fn weight(mut self, weight: u32) -> Self {
        self.weight = Some(weight);
        self
    }

    /// How long it waits before it is delivered.
    #[must_use]
    pub const fn delay(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// What duplicates are found by.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }
}

impl Argument for PushMessage {
    fn write(&self, out: &mut Writer<'_>) {
        out.object(|out| {
            self.payload.write(out.key("payload"));
            if !self.headers.is_empty() {
                out.key("headers").object(|out| {
                    for (name, value) in &self.headers {
                        out.key(name).str(value);
                    }
                });
            }
            let texts = [
                ("fairness_key", &self.fairness_key),
                ("idempotency_key", &self.idempotency_key),
            ];
            for (name, text) in texts {
                if let Some(text) = text {
                    out.key(name).str(text);
                }
            }
            if let Some(weight) = self.weight {
                out.key("weight").u64(u64::from(weight));
            }
            if let Some(delay) = self.delay {
                out.key("delay_ms").u64(whole_ms(delay));
            }
        });
    }
}

impl Pushed {
    fn of(item: Json<'_>) -> Option<Self> {
        if let Some(error) = field(item, "error") {
            return Some(Self::Refused(error_text(error)));
        }
        let id = text(item, "id")?;
        let is_duplicate = field(item, "duplicate").and_then(Json::as_bool);
        Some(if is_duplicate.unwrap_or_default() {
            Self::Duplicate { id }
        } else {
            Self::Added { id }
        })
    }
}

impl Popped {
    fn of(item: Json<'_>) -> Option<Self> {
        let headers = field(item, "headers")?.as_object()?;
        Some(Self {
            id: text(item, "id")?,
            payload: Payload::of(field(item, "payload")?).ok()?,
            headers: headers
                .map(|(name, it)| Some((name.into_owned(), it.as_str()?.into_owned())))
                .collect::<Option<_>>()?,
            attempts: field(item, "attempts")?.as_u64()?,
            fairness_key: text(item, "fairness_key").unwrap_or_default(),
        })
    }
}

impl Settled {
    fn of(item: Json<'_>) -> Option<Self> {
        Some(Self {
            id: text(item, "id")?,
            error: field(item, "error").map(error_text),
        })
    }
}

/// An error as one line, whether it is a text or an object with code and message.
fn error_text(error: Json<'_>) -> String {
    match (error.as_str(), text(error, "code"), text(error, "message")) {
        (Some(text), _, _) => text.into_owned(),
        (None, Some(code), Some(message)) => format!("{code}: {message}"),
        _ => error.text().to_owned(),
    }
}

/// A command on a queue.
fn on(name: &str, queue: &str) -> Command {
    Command::new(name).arg("queue", queue)
}

impl Queues<'_> {
    /// Makes a queue and its dead-letter queue.
    ///
    /// # Errors
    /// `EXISTS` when it is there.
    pub async fn create(self, queue: &str, options: &QueueOptions) -> Result<(), RequestError> {
        let parts = |parts: &Vec<String>| (!parts.is_empty()).then(|| parts.clone());
        let command = on("queue.create", queue)
            .ms("visibility_timeout_ms", options.visibility_timeout)
            .maybe("max_attempts", options.attempts_max)
            .maybe("ordering_key", parts(&options.ordering_key))
            .maybe("dedup_key", parts(&options.dedup_key))
            .ms("dedup_window_ms", options.dedup_window);
        self.run(command).await.map(drop)
    }

    /// Adds messages; the results are in their order.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such queue.
    pub async fn push(
        self,
        queue: &str,
        messages: &[PushMessage],
    ) -> Result<Vec<Pushed>, RequestError> {
        let command = on("queue.push", queue).arg("messages", messages);
        let reply = self.run(command).await?;
        reply.read("messages", |it| it.as_array()?.map(Pushed::of).collect())
    }

    /// Leases up to `max` messages (1..=1000), and waits for the first one for so long. None when
    /// there is none.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such queue.
    pub async fn pop(
        self,
        queue: &str,
        max: u32,
        wait: Duration,
    ) -> Result<Vec<Popped>, RequestError> {
        let command = on("queue.pop", queue).arg("max", max);
        self.messages(command.arg("wait_ms", whole_ms(wait))).await
    }

    /// Looks at up to `max` messages without leasing them.
    ///
    /// # Errors
    /// As [`pop`](Self::pop).
    pub async fn peek(self, queue: &str, max: u32) -> Result<Vec<Popped>, RequestError> {
        self.messages(on("queue.peek", queue).arg("max", max)).await
    }

    async fn messages(self, command: Command) -> Result<Vec<Popped>, RequestError> {
        let reply = self.run(command).await?;
        reply.read("messages", |it| it.as_array()?.map(Popped::of).collect())
    }

    /// Settles messages as done.
    ///
    /// # Errors
    /// As [`pop`](Self::pop); what became of each message is in the results.
    pub async fn ack(self, queue: &str, ids: &[&str]) -> Result<Vec<Settled>, RequestError> {
        self.settle(on("queue.ack", queue).arg("ids", ids)).await
    }

    /// Settles messages as failed, for this reason.
    ///
    /// # Errors
    /// As [`ack`](Self::ack).
    pub async fn nack(
        self,
        queue: &str,
        ids: &[&str],
        error: &str,
    ) -> Result<Vec<Settled>, RequestError> {
        let command = on("queue.nack", queue).arg("ids", ids);
        self.settle(command.arg("error", error)).await
    }

    /// Leases messages for so long from now on.
    ///
    /// # Errors
    /// As [`ack`](Self::ack).
    pub async fn extend(
        self,
        queue: &str,
        ids: &[&str],
        by: Duration,
    ) -> Result<Vec<Settled>, RequestError> {
        let command = on("queue.extend", queue).arg("ids", ids);
        self.settle(command.arg("extend_by_ms", whole_ms(by))).await
    }

    async fn settle(self, command: Command) -> Result<Vec<Settled>, RequestError> {
        let reply = self.run(command).await?;
        reply.read("results", |it| it.as_array()?.map(Settled::of).collect())
    }

    /// Counts what is in a queue.
    ///
    /// # Errors
    /// As [`pop`](Self::pop).
    pub async fn counts(self, queue: &str) -> Result<QueueCounts, RequestError> {
        let reply = self.run(on("queue.stats", queue)).await?;
        Ok(QueueCounts {
            depth: reply.u64("depth")?,
            in_flight: reply.u64("in_flight")?,
            delayed: reply.u64("delayed")?,
            consumers: reply.u64("consumers")?,
        })
    }

    /// Sends up to `count` dead letters, 0 = all, of a dead-letter queue back to its queue; returns
    /// how many went.
    ///
    /// # Errors
    /// As [`pop`](Self::pop).
    pub async fn redrive(self, queue: &str, count: u64) -> Result<u64, RequestError> {
        let command = on("queue.redrive", queue).arg("count", count);
        self.run(command).await?.u64("redriven")
    }

    /// Removes a queue with its messages; `false` when it was not there.
    ///
    /// # Errors
    /// `FORBIDDEN` without the permission for it.
    pub async fn delete(self, queue: &str) -> Result<bool, RequestError> {
        self.run(on("queue.delete", queue)).await?.bool("deleted")
    }
}
