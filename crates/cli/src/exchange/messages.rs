//! Messages to and from exchanges.

use std::io::{self, BufRead};
use std::thread;

use clap::Args;
use serde_json::{Map, Value, json};
use tanda_client::fire::{
    Binding, Confirm, Delivery, Fields, FireClient, Message, Published, Queue, RequestError,
    Value as Header,
};
use tokio::sync::mpsc;

use super::{Door, DoorArgs, refused};
use crate::{
    failure::Failure,
    output::{Output, printable},
    signals::StopSignals,
    table::counted,
    target::TargetArgs,
};

/// Messages printed ahead of their acknowledgement.
const PREFETCH: u32 = 100;
/// Messages sent whose confirm is awaited.
const UNDER_WAY_MAX: usize = 1000;
/// Lines read ahead of the connection.
const LINES_AHEAD: usize = 1000;

#[derive(Args, Debug)]
#[command(after_help = "\
Without a message each line of standard input is one; its line end is not part of it. Messages are \
persistent. One that no queue takes is an error, unless --maybe says that this may be.")]
pub(crate) struct SendArgs {
    /// The exchange; '' is the default one, which gives to the queue named by the key
    exchange: String,
    /// Messages; an empty one is written ''
    #[arg(value_name = "MESSAGE")]
    messages: Vec<String>,
    /// The routing key
    #[arg(long = "routing-key", value_name = "KEY", default_value = "")]
    key: String,
    /// Add a header; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = crate::send::parse_header)]
    header: Vec<(String, String)>,
    /// It is no error when no queue takes a message
    #[arg(long)]
    maybe: bool,
    #[command(flatten)]
    door: DoorArgs,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Prints the routing key and the body of each message. Its queue is this command's own: what comes \
while it does not run is not kept for it. SIGINT or SIGTERM ends it.")]
pub(crate) struct ListenArgs {
    /// The exchange
    exchange: String,
    /// The binding's key; for a topic exchange a pattern
    #[arg(long = "routing-key", value_name = "KEY", default_value = "")]
    key: String,
    /// End after so many messages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    #[command(flatten)]
    door: DoorArgs,
}

pub(super) async fn send(args: SendArgs, before: TargetArgs) -> Result<(), Failure> {
    let mut headers = Fields::new();
    for (name, value) in &args.header {
        headers = headers.set(name.as_str(), value.as_str());
    }
    let mut template = Message::to(args.exchange.as_str(), args.key.as_str());
    template = template.persistent().headers(headers);
    if !args.maybe {
        template = template.mandatory();
    }
    let mut bodies = bodies(args.messages);
    let Door { fire, json } = args.door.open(before).await?;
    let mut sent = Sent::default();
    let mut under_way = std::collections::VecDeque::new();
    while let Some(body) = bodies.recv().await {
        let message = template.clone().body(body?);
        let submitted = fire.submit(message).await;
        under_way.push_back(submitted.map_err(|error| refused("send", &error))?);
        if under_way.len() >= UNDER_WAY_MAX
            && let Some(confirm) = under_way.pop_front()
        {
            sent.note(confirm).await;
        }
    }
    for confirm in under_way {
        sent.note(confirm).await;
    }
    fire.close().await;
    sent.report(json)
}

/// What became of messages.
#[derive(Debug, Default)]
struct Sent {
    taken: u64,
    unroutable: u64,
    refused: u64,
    first: Option<RequestError>,
}

impl Sent {
    async fn note(&mut self, confirm: Confirm) {
        match confirm.await {
            Ok(Published::Taken) => self.taken += 1,
            Ok(Published::Returned(_)) => self.unroutable += 1,
            Err(error) => {
                self.refused += 1;
                self.first.get_or_insert(error);
            }
        }
    }

    fn report(self, as_json: bool) -> Result<(), Failure> {
        let mut out = Output::new();
        if as_json {
            out.document(&json!({
                "sent": self.taken,
                "unroutable": self.unroutable,
                "refused": self.refused,
            }))?;
        } else {
            out.line(format_args!("sent {}", counted(self.taken, "message")))?;
        }
        out.flush()?;
        if let Some(error) = &self.first {
            let action = format!("send {}", counted(self.refused, "message"));
            return Err(refused(&action, error));
        }
        if self.unroutable > 0 {
            return Err(Failure::Refused(format!(
                "no queue took {}: bind one with `tanda exchange bind`, or say --maybe",
                counted(self.unroutable, "message")
            )));
        }
        Ok(())
    }
}

/// What is to be sent: the messages given, or lines of standard input, read by a thread of its own,
/// which ends with the process.
fn bodies(messages: Vec<String>) -> mpsc::Receiver<Result<Vec<u8>, Failure>> {
    let (sender, bodies) = mpsc::channel(LINES_AHEAD);
    thread::spawn(move || {
        if !messages.is_empty() {
            let mut messages = messages.into_iter().map(String::into_bytes);
            messages.all(|message| sender.blocking_send(Ok(message)).is_ok());
            return;
        }
        for line in io::stdin().lock().split(b'\n') {
            let line = line.map_err(|source| Failure::io("read standard input", source));
            let ends = line.is_err();
            if sender.blocking_send(line).is_err() || ends {
                return;
            }
        }
    });
    bodies
}

pub(super) async fn listen(args: ListenArgs, before: TargetArgs) -> Result<(), Failure> {
    let mut signals = StopSignals::listen()?;
    let Door { fire, json } = tokio::select! {
        door = args.door.open(before) => door?,
        () = signals.arrived() => return Ok(()),
    };
    let outcome = tokio::select! {
        outcome = print(&fire, (&args.exchange, &args.key), args.count, json) => outcome,
        () = signals.arrived() => Ok(()),
    };
    fire.close().await;
    outcome
}

async fn print(
    fire: &FireClient,
    (exchange, key): (&str, &str),
    count: Option<u64>,
    as_json: bool,
) -> Result<(), Failure> {
    let action = format!("listen to exchange {exchange:?}");
    let failed = |error: RequestError| refused(&action, &error);
    let queue = fire.declare_queue(Queue::server_named().exclusive());
    let queue = queue.await.map_err(failed)?.name;
    let binding = Binding::to_queue(exchange, queue.as_str()).key(key);
    fire.bind(binding).await.map_err(failed)?;
    let subscribe = fire.subscribe(queue.as_str()).prefetch(PREFETCH);
    let mut messages = subscribe.open().await.map_err(failed)?;
    let mut left = count.unwrap_or(u64::MAX);
    let mut out = Output::new();
    while left > 0 {
        let Some(delivery) = messages.next().await else {
            break;
        };
        let delivery =
            delivery.map_err(|error| Failure::Refused(format!("cannot {action}: {error}")))?;
        if as_json {
            out.line(to_json(&delivery))?;
        } else {
            let key = printable(delivery.content().key().as_bytes());
            let body = printable(delivery.content().body());
            out.line(format_args!("{key}  {body}"))?;
        }
        out.flush()?;
        delivery.ack().map_err(failed)?;
        left -= 1;
    }
    Ok(())
}

fn to_json(delivery: &Delivery) -> Value {
    let content = delivery.content();
    json!({
        "exchange": content.exchange(),
        "key": content.key(),
        "headers": value_json(Header::Map(content.headers())),
        "body": String::from_utf8_lossy(content.body()),
    })
}

/// A header's value; bytes as text, and what JSON has no place for as null.
fn value_json(value: Header<'_>) -> Value {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    match value {
        Header::Nil | Header::Ext { .. } => Value::Null,
        Header::Bool(value) => json!(value),
        Header::Uint(value) => json!(value),
        Header::Int(value) => json!(value),
        Header::F32(value) => json!(value),
        Header::F64(value) => json!(value),
        Header::Str(value) => json!(value),
        Header::Bin(value) => json!(text(value)),
        Header::Array(values) => values.into_iter().map(value_json).collect(),
        Header::Map(entries) => {
            let entries = entries.into_iter().map(|(name, value)| {
                let name = if let Header::Str(name) = name {
                    name.to_owned()
                } else {
                    value_json(name).to_string()
                };
                (name, value_json(value))
            });
            Value::Object(entries.collect::<Map<_, _>>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_all_types_are_shown() {
        // {"a": [nil, true, 1, -1, "t", bytes "b"], 2: {}}
        let raw = b"\x82\xa1a\x96\xc0\xc3\x01\xff\xa1t\xc4\x01b\x02\x80";
        let map = tanda_client::fire::RawMap::decode(raw).unwrap();
        let expected = json!({"a": [null, true, 1, -1, "t", "b"], "2": {}});
        assert_eq!(value_json(Header::Map(map)), expected);
    }
}
