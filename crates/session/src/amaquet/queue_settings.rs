//! The settings of a new queue, in the engine's terms.

use std::borrow::Cow;

use tanda_engine::{
    Backoff, CreateQueueError, DeliveryDurability, KeyKind, KeyPart, MissingOrderingKey, Ordering,
    QueueSpec, VhostId,
};
use tanda_wire::amaquet::ErrorCode;
use tanda_wire::amaquet::command::{self, QueueCreate};
use tanda_wire::amaquet::envelope::Failure;

use super::fields::out_of_limits;
use super::link::Link;

/// What a `queue.create` asks for in a virtual host.
///
/// # Errors
/// A part of a key is none.
pub(super) fn spec(vhost: VhostId, create: &QueueCreate<'_>) -> Result<QueueSpec, Failure> {
    let backoff = create.backoff.map(|backoff| match backoff {
        command::Backoff::None => Backoff::None,
        command::Backoff::Fixed => Backoff::Fixed,
        command::Backoff::Exponential => Backoff::Exponential,
    });
    let durability = match create.delivery_durability {
        Some(command::DeliveryDurability::Fast) => DeliveryDurability::Fast,
        Some(command::DeliveryDurability::Committed) | None => DeliveryDurability::Committed,
    };
    let ordering = match &create.ordering_key {
        Some(parts) => Ordering::Key {
            key: key("ordering_key", parts, false)?,
            missing: MissingOrderingKey::Reject,
        },
        None => Ordering::None,
    };
    let dedup_key = match &create.dedup_key {
        Some(parts) => Some(key("dedup_key", parts, true)?),
        None => None,
    };
    let max_attempts = create.max_attempts.map(|max| match max.0 {
        0 => u32::MAX,
        max => u32::try_from(max).unwrap_or(u32::MAX),
    });
    Ok(QueueSpec {
        vhost,
        name: create.queue.clone().into_owned(),
        lease_ms: create.visibility_timeout_ms.unwrap_or_default(),
        max_attempts: max_attempts.unwrap_or_default(),
        backoff,
        backoff_initial_ms: create.backoff_initial_ms.unwrap_or_default(),
        backoff_max_ms: create.backoff_max_ms.unwrap_or_default(),
        ordering,
        dedup_key,
        dedup_window_ms: create.dedup_window_ms.unwrap_or_default(),
        durability,
        ..QueueSpec::default()
    })
}

fn key(field: &str, parts: &[Cow<'_, str>], for_dedup: bool) -> Result<Vec<KeyPart>, Failure> {
    if parts.is_empty() {
        return Err(out_of_limits(field, "empty", "an array of key parts"));
    }
    let read = |(at, part): (usize, &Cow<'_, str>)| {
        key_part(part, for_dedup).ok_or_else(|| {
            let limits = match for_dedup {
                true => {
                    "\"header:NAME\", \"fairness_key\", \"attribute:NAME\", \"idempotency_key\", \
                     \"payload\" or \"headers\""
                }
                false => "\"header:NAME\", \"fairness_key\" or \"attribute:NAME\"",
            };
            let shown: String = part.chars().take(64).collect();
            out_of_limits(&format!("{field}[{at}]"), format!("{shown:?}"), limits)
        })
    };
    parts.iter().enumerate().map(read).collect()
}

fn key_part(part: &str, for_dedup: bool) -> Option<KeyPart> {
    let (kind, name) = match part.split_once(':') {
        Some(("header", name)) => (KeyKind::Header, name),
        Some(("attribute", name)) => (KeyKind::Attribute, name),
        Some(_) => return None,
        None => {
            let kind = match part {
                "fairness_key" => KeyKind::FairnessKey,
                "idempotency_key" if for_dedup => KeyKind::IdempotencyKey,
                "payload" if for_dedup => KeyKind::Payload,
                "headers" if for_dedup => KeyKind::AllHeaders,
                _ => return None,
            };
            return Some(KeyPart {
                kind,
                name: String::new(),
            });
        }
    };
    (!name.is_empty()).then(|| KeyPart {
        kind,
        name: name.to_owned(),
    })
}

impl Link {
    /// Why a queue was not made.
    pub(super) fn create_failure(&self, queue: &str, error: &CreateQueueError) -> Failure {
        let (code, text) = match error {
            CreateQueueError::AlreadyExists => (
                ErrorCode::Exists,
                format!("the queue {queue:?} or its dead-letter queue exists"),
            ),
            CreateQueueError::ReservedName => (
                ErrorCode::BadRequest,
                format!(
                    "queue is {queue:?}; names that end in .dlq are those of dead-letter queues"
                ),
            ),
            CreateQueueError::InvalidSetting { setting, problem } => {
                let setting = match *setting {
                    "name" => "queue",
                    setting => setting,
                };
                (ErrorCode::BadRequest, format!("{setting}: {problem}"))
            }
            CreateQueueError::ScriptsUnsupported => (
                ErrorCode::BadRequest,
                "this server runs no scripts".to_owned(),
            ),
            CreateQueueError::ScriptRefused { problem } => (ErrorCode::BadRequest, problem.clone()),
            CreateQueueError::TooManyQueues { max } => {
                return self.overloaded(format!("there is no room for more than {max} queues"));
            }
            CreateQueueError::VhostNotFound => {
                let text = format!("the virtual host {:?} is gone", self.config.vhost);
                (ErrorCode::NotFound, text)
            }
            CreateQueueError::Storage => return self.overloaded("the disk is full"),
        };
        Failure::new(code, text)
    }
}
