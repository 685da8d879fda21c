//! The arguments of a declaration: which are known, what they may be, and what they mean.
//!
//! Texts and the order of the checks are RabbitMQ's (`rabbit_amqqueue`, 4.x). Arguments of both
//! kinds of queue are taken for either, as there is one kind; unknown ones are kept.

use core::fmt;

use tanda_wire::amqp::{Table, Value};

use super::{AmqpOverflow, AmqpPolicy, QueueKind};
use crate::{
    Backoff, DeclareQueue, Defaults, DeliveryDurability, KeyKind, KeyPart, MaxLength,
    MissingOrderingKey, Ordering, Overflow, QueueConfig, QueueSpec, RetryPolicy, TopologyCode,
    TopologyError,
};

/// Returns of one message that a quorum queue allows when nothing is said of it.
const QUORUM_DELIVERY_LIMIT: u32 = 20;

/// A queue as texts name it.
pub(crate) struct QueueText<'a> {
    pub(crate) name: &'a str,
    pub(crate) vhost: &'a str,
}

/// "queue 'q' in vhost '/'".
pub(crate) const fn queue_text<'a>(name: &'a str, vhost: &'a str) -> QueueText<'a> {
    QueueText { name, vhost }
}

impl fmt::Display for QueueText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue '{}' in vhost '{}'", self.name, self.vhost)
    }
}

/// A declaration of a new queue that was found good.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    pub(crate) policy: AmqpPolicy,
    pub(crate) ordering: Ordering,
    pub(crate) dedup_window_ms: u64,
}

/// Why an argument was refused, in the words of RabbitMQ.
enum Wrong {
    /// An atom or a tuple: as it is.
    Term(String),
    /// A text: in quotes.
    Text(String),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Term(term) => f.write_str(term),
            Self::Text(text) => write!(f, "\"{text}\""),
        }
    }
}

impl Declared {
    /// Checks the arguments of a queue that is to be made.
    ///
    /// # Errors
    /// What RabbitMQ answers; `text` names the queue.
    pub(crate) fn check(spec: &DeclareQueue, text: &QueueText<'_>) -> Result<Self, TopologyError> {
        let args = Args::read(&spec.args, text)?;
        if let Some(value) = args.find("x-dead-letter-exchange")?
            && value.as_long_string().is_none()
        {
            let (kind, arg) = (value.type_name(), "x-dead-letter-exchange");
            let problem = format!("invalid type '{kind}' for arg '{arg}' in {text}");
            return Err(refused(problem));
        }
        let kind = args.kind()?;
        let mut policy = AmqpPolicy {
            durable: spec.durable && !spec.exclusive,
            exclusive: spec.exclusive,
            auto_delete: spec.auto_delete,
            args: spec.args.clone(),
            kind,
            expires_ms: args.checked("x-expires", positive)?,
            message_ttl_ms: args.checked("x-message-ttl", not_negative)?,
            dead_letter_exchange: args.checked("x-dead-letter-exchange", string)?,
            ..AmqpPolicy::default()
        };
        policy.dead_letter_routing_key = args.checked("x-dead-letter-routing-key", |value| {
            let key = string(value)?;
            let has_exchange = policy.dead_letter_exchange.is_some();
            has_exchange
                .then_some(key)
                .ok_or_else(|| term("routing_key_but_no_dlx_defined"))
        })?;
        args.checked("x-dead-letter-strategy", |value| {
            one_of(
                value,
                &["at-most-once", "at-least-once"],
                "invalid_dlx_strategy",
            )
        })?;
        policy.max_messages = args.checked("x-max-length", not_negative)?;
        policy.max_bytes = args.checked("x-max-length-bytes", not_negative)?;
        args.checked("x-max-in-memory-length", not_negative)?;
        args.checked("x-max-in-memory-bytes", not_negative)?;
        policy.max_priority = args.checked("x-max-priority", max_priority)?;
        policy.overflow = args.checked("x-overflow", overflow)?.unwrap_or_default();
        args.checked("x-queue-mode", queue_mode)?;
        args.checked("x-queue-version", queue_version)?;
        let single = args.checked("x-single-active-consumer", boolean)?;
        policy.single_active_consumer = single.unwrap_or(false);
        args.checked("x-quorum-initial-group-size", positive)?;
        args.checked("x-initial-cluster-size", positive)?;
        policy.delivery_limit = args.delivery_limit(kind)?;
        let timeout = args
            .find("x-consumer-timeout")?
            .and_then(|value| value.as_i64());
        policy.consumer_timeout_ms = timeout
            .and_then(|ms| u64::try_from(ms).ok())
            .filter(|ms| *ms > 0);
        check_quorum(&policy, spec, text)?;
        let (ordering, dedup_window_ms) = args.ours(&mut policy)?;
        Ok(Self {
            policy,
            ordering,
            dedup_window_ms,
        })
    }

    /// The policies in force.
    pub(crate) fn resolve(self, defaults: &Defaults) -> QueueConfig {
        let policy = self.policy;
        let max_length = policy.max_messages.map(|messages| MaxLength {
            messages,
            overflow: match policy.overflow {
                AmqpOverflow::DropHead => Overflow::DropHead,
                AmqpOverflow::Reject | AmqpOverflow::RejectDeadLetter => Overflow::Reject,
            },
        });
        let spec = QueueSpec {
            ordering: self.ordering,
            dedup_window_ms: self.dedup_window_ms,
            durability: DeliveryDurability::Fast,
            max_length,
            ..QueueSpec::default()
        };
        QueueConfig {
            retry: RetryPolicy {
                max_attempts: u32::MAX,
                backoff: Backoff::None,
                initial_ms: 0,
                max_ms: 0,
            },
            reclaim_grace_ms: 0,
            amqp: Some(Box::new(policy)),
            ..spec.resolve(defaults)
        }
    }
}

/// RabbitMQ replicates quorum queues: they have to be durable and shared.
fn check_quorum(
    policy: &AmqpPolicy,
    spec: &DeclareQueue,
    text: &QueueText<'_>,
) -> Result<(), TopologyError> {
    if policy.kind != QueueKind::Quorum {
        return Ok(());
    }
    let refusals = [
        (spec.auto_delete, "auto-delete"),
        (spec.exclusive, "exclusive-owner"),
        (!policy.durable, "non-durable"),
    ];
    let refusal = refusals.into_iter().find(|(is_asked, _)| *is_asked);
    refusal.map_or(Ok(()), |(_, property)| {
        Err(refused(format!("invalid property '{property}' for {text}")))
    })
}

/// A declaration's arguments, and the queue they are for.
pub(super) struct Args<'a> {
    table: Table<'a>,
    text: &'a QueueText<'a>,
}

impl<'a> Args<'a> {
    pub(super) fn read(bytes: &'a [u8], text: &'a QueueText<'a>) -> Result<Self, TopologyError> {
        let table = Table::new(bytes).map_err(|error| refused(error.to_string()))?;
        Ok(Self { table, text })
    }

    /// The first value of an argument.
    pub(super) fn find(&self, key: &str) -> Result<Option<Value<'a>>, TopologyError> {
        let found = self.table.find(key.as_bytes());
        found.map_err(|error| refused(format!("arguments of {}: {error}", self.text)))
    }

    fn checked<T>(
        &self,
        key: &str,
        check: impl FnOnce(&Value<'a>) -> Result<T, Wrong>,
    ) -> Result<Option<T>, TopologyError> {
        let Some(value) = self.find(key)? else {
            return Ok(None);
        };
        let checked = check(&value);
        checked
            .map(Some)
            .map_err(|wrong| refused(format!("invalid arg '{key}' for {}: {wrong}", self.text)))
    }

    /// Which kind of queue is asked for.
    pub(super) fn kind(&self) -> Result<QueueKind, TopologyError> {
        let kind = self.checked("x-queue-type", |value| match string(value)?.as_str() {
            "classic" => Ok(Some(QueueKind::Classic)),
            "quorum" => Ok(Some(QueueKind::Quorum)),
            "stream" => Ok(None),
            other => Err(Wrong::Text(format!("unsupported queue type '{other}'"))),
        })?;
        match kind {
            None => Ok(QueueKind::Classic),
            Some(Some(kind)) => Ok(kind),
            Some(None) => {
                let text = format!(
                    "{} cannot be a stream: streams are not supported",
                    self.text
                );
                Err(TopologyError::new(TopologyCode::NotImplemented, text))
            }
        }
    }

    /// A negative limit is none.
    fn delivery_limit(&self, kind: QueueKind) -> Result<Option<u32>, TopologyError> {
        let limit = self.checked("x-delivery-limit", integer)?;
        Ok(match (limit, kind) {
            (None, QueueKind::Classic) => None,
            (None, QueueKind::Quorum) => Some(QUORUM_DELIVERY_LIMIT),
            (Some(limit), _) => (limit >= 0).then(|| u32::try_from(limit).unwrap_or(u32::MAX)),
        })
    }

    /// The arguments that give Fila's scheduling; the ordering and the deduplication window.
    fn ours(&self, policy: &mut AmqpPolicy) -> Result<(Ordering, u64), TopologyError> {
        policy.fairness_key = self.checked("x-fairness-key", header_name)?;
        let ordering = match self.checked("x-ordering-key", header_name)? {
            None => Ordering::None,
            Some(name) => Ordering::Key {
                key: vec![KeyPart {
                    kind: KeyKind::Header,
                    name,
                }],
                missing: MissingOrderingKey::Unordered,
            },
        };
        let window = self.checked("x-dedup-window", positive)?;
        Ok((ordering, window.unwrap_or(0)))
    }
}

pub(super) const fn refused(text: String) -> TopologyError {
    TopologyError::new(TopologyCode::PreconditionFailed, text)
}

fn term(text: &str) -> Wrong {
    Wrong::Term(text.to_owned())
}

fn unacceptable(value: &Value<'_>) -> Wrong {
    Wrong::Term(format!("{{unacceptable_type,{}}}", value.type_name()))
}

fn string(value: &Value<'_>) -> Result<String, Wrong> {
    let bytes = value.as_long_string().ok_or_else(|| unacceptable(value))?;
    let text = core::str::from_utf8(bytes);
    text.map(str::to_owned)
        .map_err(|error| Wrong::Text(error.to_string()))
}

fn header_name(value: &Value<'_>) -> Result<String, Wrong> {
    let name = string(value)?;
    if name.is_empty() || name.len() > 255 {
        return Err(Wrong::Text(
            "expected the name of a header, 1 to 255 bytes".to_owned(),
        ));
    }
    Ok(name)
}

fn integer(value: &Value<'_>) -> Result<i64, Wrong> {
    let number = value.as_i64();
    number.ok_or_else(|| Wrong::Text(format!("expected integer, got {}", value.type_name())))
}

fn not_negative(value: &Value<'_>) -> Result<u64, Wrong> {
    let number = integer(value)?;
    u64::try_from(number).map_err(|_negative| Wrong::Term(format!("{{value_negative,{number}}}")))
}

fn positive(value: &Value<'_>) -> Result<u64, Wrong> {
    match not_negative(value)? {
        0 => Err(term("{value_zero,0}")),
        number => Ok(number),
    }
}

fn max_priority(value: &Value<'_>) -> Result<u8, Wrong> {
    let number = not_negative(value)?;
    u8::try_from(number).map_err(|_large| Wrong::Term(format!("{{max_value_exceeded,{number}}}")))
}

fn boolean(value: &Value<'_>) -> Result<bool, Wrong> {
    let Value::Bool(boolean) = value else {
        return Err(unacceptable(value));
    };
    Ok(*boolean)
}

fn one_of(value: &Value<'_>, known: &[&str], wrong: &str) -> Result<String, Wrong> {
    let text = string(value)?;
    if known.contains(&text.as_str()) {
        Ok(text)
    } else {
        Err(term(wrong))
    }
}

fn overflow(value: &Value<'_>) -> Result<AmqpOverflow, Wrong> {
    match string(value)?.as_str() {
        "drop-head" => Ok(AmqpOverflow::DropHead),
        "reject-publish" => Ok(AmqpOverflow::Reject),
        "reject-publish-dlx" => Ok(AmqpOverflow::RejectDeadLetter),
        _ => Err(term("invalid_overflow")),
    }
}

fn queue_mode(value: &Value<'_>) -> Result<(), Wrong> {
    match string(value)?.as_str() {
        "default" | "lazy" => Ok(()),
        other => Err(Wrong::Text(format!("unsupported queue mode '{other}'"))),
    }
}

fn queue_version(value: &Value<'_>) -> Result<(), Wrong> {
    match not_negative(value)? {
        1 | 2 => Ok(()),
        other => Err(Wrong::Text(format!("unsupported queue version '{other}'"))),
    }
}
