//! Messages on standard output, and what becomes of them then.

use serde_json::{Map, Value, json};
use tanda_client::{Consumer, Delivery, RequestError};

use super::take::{Take, give_back};
use crate::{
    failure::{Failure, explain},
    note::note,
    output::{Output, printable},
    table::counted,
};

/// Messages that are printed and acknowledged together.
const BATCH: usize = 100;

/// How a message is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A line for people.
    Human,
    /// A JSON object on a line.
    Json,
    /// The payload and a line end.
    Raw,
}

impl Form {
    fn print(self, out: &mut Output, delivery: &Delivery) -> Result<(), Failure> {
        match self {
            Self::Human => out.line(human(delivery)),
            Self::Json => out.line(as_json(delivery)),
            Self::Raw => out.bytes_line(delivery.payload()),
        }
    }
}

/// Prints messages and acknowledges them once they are written.
pub(super) async fn acknowledge(
    consumer: &Consumer,
    mut take: Take,
    form: Form,
) -> Result<(), Failure> {
    let mut out = Output::new();
    let mut late: Option<(u64, RequestError)> = None;
    loop {
        let batch = take.next(BATCH).await?;
        if batch.is_empty() {
            break;
        }
        let printed = batch
            .iter()
            .try_for_each(|delivery| form.print(&mut out, delivery));
        if let Err(failure) = printed.and_then(|()| out.flush()) {
            give_back(batch, "tanda consume could not print it").await;
            give_back(take.rest().await, "tanda consume did not print it").await;
            return Err(failure);
        }
        for error in consumer
            .ack_batch(&batch)
            .await
            .into_iter()
            .filter_map(Result::err)
        {
            late = Some(late.map_or((1, error), |(count, first)| (count + 1, first)));
        }
    }
    give_back(take.rest().await, "tanda consume did not print it").await;
    match late {
        None => Ok(()),
        Some((count, error)) => Err(Failure::Refused(format!(
            "{} printed but not acknowledged, so it may come again: {}",
            counted(count, "message"),
            explain(&error)
        ))),
    }
}

/// Prints messages, then gives them back.
pub(super) async fn look(mut take: Take, form: Form) -> Result<(), Failure> {
    let mut out = Output::new();
    let mut held = Vec::new();
    let outcome = loop {
        let batch = take.next(BATCH).await?;
        if batch.is_empty() {
            break Ok(());
        }
        let printed = batch
            .iter()
            .try_for_each(|delivery| form.print(&mut out, delivery));
        held.extend(batch);
        if let Err(failure) = printed.and_then(|()| out.flush()) {
            break Err(failure);
        }
    };
    held.extend(take.rest().await);
    let attempt = held.iter().map(Delivery::attempt).max();
    let given = give_back(held, "looked at by tanda consume").await;
    if let Some(attempt) = attempt {
        note(format_args!(
            "gave {} back; the look used one attempt of each (highest now: {attempt}). --ack takes \
             them off the queue",
            counted(given, "message")
        ));
    }
    outcome
}

fn human(delivery: &Delivery) -> String {
    let key = match delivery.fairness_key() {
        "" => "-".to_owned(),
        key => printable(key.as_bytes()),
    };
    let payload = printable(delivery.payload());
    let mut line = format!("{}  {key:<8}  {payload}", delivery.id());
    if !delivery.headers().is_empty() {
        let header = |(name, value): (&str, &str)| {
            format!(
                "{}={}",
                printable(name.as_bytes()),
                printable(value.as_bytes())
            )
        };
        let headers: Vec<String> = delivery.headers().iter().map(header).collect();
        line.push_str(&format!("  [{}]", headers.join(" ")));
    }
    if delivery.attempt() > 1 {
        line.push_str(&format!("  (attempt {})", delivery.attempt()));
    }
    if delivery.redrives() > 0 {
        line.push_str(&format!("  (redriven {}x)", delivery.redrives()));
    }
    line
}

/// The headers as a JSON object.
pub(super) fn headers_json(delivery: &Delivery) -> Value {
    let header = |(name, value): (&str, &str)| (name.to_owned(), Value::from(value));
    Value::Object(delivery.headers().iter().map(header).collect::<Map<_, _>>())
}

/// A payload that is no UTF-8 stands as numbers under `payload_bytes`.
fn as_json(delivery: &Delivery) -> Value {
    let payload = delivery.payload();
    let text = std::str::from_utf8(payload).ok();
    let mut value = json!({
        "id": delivery.id().to_string(),
        "queue": delivery.queue(),
        "fairness_key": delivery.fairness_key(),
        "weight": delivery.weight(),
        "headers": headers_json(delivery),
        "attempt": delivery.attempt(),
        "redrives": delivery.redrives(),
        "enqueued_at_ms": delivery.enqueued_at_ms(),
        "leased_at_ms": delivery.leased_at_ms(),
        "lease_expires_at_ms": delivery.lease_expires_at_ms(),
        "payload": text,
    });
    if let (None, Some(fields)) = (text, value.as_object_mut()) {
        fields.insert("payload_bytes".to_owned(), Value::from(payload));
    }
    value
}
