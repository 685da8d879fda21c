//! Whether a declaration means a queue that exists, as RabbitMQ decides it (`rabbit_misc`).

use core::fmt;

use tanda_wire::amqp::{Table, Value};

use super::arguments::{Args, QueueText, refused};
use super::{AmqpPolicy, QueueKind};
use crate::{DeclareQueue, TopologyError};

/// The arguments that have to agree, in the order in which they are compared. Others may differ.
const COMPARED: [&str; 15] = [
    "x-expires",
    "x-message-ttl",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-max-length",
    "x-max-length-bytes",
    "x-max-priority",
    "x-overflow",
    "x-queue-mode",
    "x-queue-version",
    "x-single-active-consumer",
    "x-delivery-limit",
    "x-fairness-key",
    "x-ordering-key",
    "x-dedup-window",
];

/// Checks that a declaration means this queue. Who may see the queue is checked before.
///
/// # Errors
/// What RabbitMQ answers; `text` names the queue.
pub(crate) fn check_same(
    current: &AmqpPolicy,
    spec: &DeclareQueue,
    text: &QueueText<'_>,
) -> Result<(), TopologyError> {
    let durable = spec.durable && !spec.exclusive;
    check_property("durable", (durable, current.durable), text)?;
    check_property("auto_delete", (spec.auto_delete, current.auto_delete), text)?;
    let (new, old) = (
        Args::read(&spec.args, text)?,
        Args::read(&current.args, text)?,
    );
    let (kind, kind_before) = (new.kind()?, current.kind);
    if kind != kind_before {
        let received = Given::Plain(Value::text(kind.name()));
        let is = Given::Plain(Value::text(kind_before.name()));
        return Err(differs("x-queue-type", (received, is), text));
    }
    for key in COMPARED {
        check_argument(key, (new.find(key)?, old.find(key)?), text)?;
    }
    Ok(())
}

impl QueueKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Quorum => "quorum",
        }
    }
}

fn check_property(
    name: &str,
    (received, is): (bool, bool),
    text: &QueueText<'_>,
) -> Result<(), TopologyError> {
    if received == is {
        return Ok(());
    }
    let problem = format!(
        "inequivalent arg '{name}' for {text}: received '{received}' but current is '{is}'"
    );
    Err(refused(problem))
}

fn check_argument(
    key: &str,
    (received, is): (Option<Value<'_>>, Option<Value<'_>>),
    text: &QueueText<'_>,
) -> Result<(), TopologyError> {
    let (received, is) = match (received, is) {
        (None, None) => return Ok(()),
        (Some(received), Some(is)) if is_same(&received, &is) => return Ok(()),
        (Some(received), Some(is)) => (Given::Plain(received), Given::Plain(is)),
        (received, is) => (Given::of(received), Given::of(is)),
    };
    Err(differs(key, (received, is), text))
}

fn differs(
    key: &str,
    (received, is): (Given<'_>, Given<'_>),
    text: &QueueText<'_>,
) -> TopologyError {
    refused(format!(
        "inequivalent arg '{key}' for {text}: received {received} but current is {is}"
    ))
}

/// The width of an integer does not matter.
fn is_same(a: &Value<'_>, b: &Value<'_>) -> bool {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a == b,
        (None, None) => a == b,
        _ => false,
    }
}

/// An argument's value in a text.
enum Given<'a> {
    None,
    /// Beside another value.
    Plain(Value<'a>),
    /// Beside none: with its type.
    Typed(Value<'a>),
}

impl<'a> Given<'a> {
    fn of(value: Option<Value<'a>>) -> Self {
        value.map_or(Self::None, Self::Typed)
    }
}

impl fmt::Display for Given<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Plain(value) => write!(f, "'{}'", Shown(value)),
            Self::Typed(value) => {
                write!(
                    f,
                    "the value '{}' of type '{}'",
                    Shown(value),
                    value.type_name()
                )
            }
        }
    }
}

/// A value as RabbitMQ prints it, where it can be said in a line.
struct Shown<'a>(&'a Value<'a>);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(number) = self.0.as_i64() {
            return write!(f, "{number}");
        }
        match self.0 {
            Value::Bool(value) => write!(f, "{value}"),
            Value::LongString(text) | Value::Bytes(text) => {
                f.write_str(&String::from_utf8_lossy(text.as_bytes()))
            }
            Value::F32(number) => write!(f, "{number:?}"),
            Value::F64(number) => write!(f, "{number:?}"),
            Value::Timestamp(seconds) => write!(f, "{seconds}"),
            Value::Void => f.write_str("undefined"),
            Value::Decimal { scale, value } => write!(f, "{{{scale},{value}}}"),
            Value::Table(table) => write!(f, "{} entries", count(table)),
            Value::Array(array) => write!(f, "{} items", array.iter().count()),
            Value::I8(_)
            | Value::U8(_)
            | Value::I16(_)
            | Value::U16(_)
            | Value::I32(_)
            | Value::U32(_)
            | Value::I64(_) => Ok(()),
        }
    }
}

fn count(table: &Table<'_>) -> usize {
    table.iter().count()
}
