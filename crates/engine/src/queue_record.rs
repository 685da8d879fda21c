//! A queue's own record: what replay needs to know of it besides its messages.

use crate::on_admin::DEAD_LETTER_SUFFIX;
use crate::policy::{decode_policy, encode_policy};
use crate::queue::{Identity, Role};
use crate::record::{Kind, Reader, begin, put_len, put_long, put_short};
use crate::{
    Backoff, DeliveryDurability, KeyKind, KeyPart, MaxLength, Millis, MissingOrderingKey, Ordering,
    Overflow, QueueConfig, QueueId, ReplayError, RetryPolicy, ScriptFailure, VhostId,
};

/// A queue with its dead-letter queue, if it has one, as written to the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueueRecord {
    pub(crate) id: QueueId,
    /// 0 = none.
    pub(crate) dead_letters: QueueId,
    pub(crate) vhost: VhostId,
    pub(crate) name: String,
    pub(crate) next_position: u64,
    pub(crate) dead_letters_next_position: u64,
    pub(crate) config: QueueConfig,
}

impl QueueRecord {
    pub(crate) fn encode(&self, out: &mut Vec<u8>, now: Millis) {
        begin(out, Kind::Queue, self.id, now);
        out.extend_from_slice(&self.dead_letters.0.to_be_bytes());
        put_short(out, self.name.as_bytes());
        out.extend_from_slice(&self.next_position.to_be_bytes());
        out.extend_from_slice(&self.dead_letters_next_position.to_be_bytes());
        encode_config(out, &self.config);
        if self.vhost == VhostId::DEFAULT && self.config.amqp.is_none() {
            encode_scripts_if_any(out, &self.config);
            return;
        }
        encode_scripts(out, &self.config);
        out.extend_from_slice(&self.vhost.0.to_be_bytes());
        out.push(u8::from(self.config.amqp.is_some()));
        if let Some(policy) = &self.config.amqp {
            encode_policy(out, policy);
        }
    }

    /// Reads what follows the header.
    pub(crate) fn decode(id: QueueId, reader: &mut Reader<'_>) -> Result<Self, ReplayError> {
        let mut record = Self {
            id,
            dead_letters: QueueId(reader.u32()?),
            vhost: VhostId::DEFAULT,
            name: reader.short()?.to_owned(),
            next_position: reader.u64()?,
            dead_letters_next_position: reader.u64()?,
            config: decode_config(reader)?,
        };
        // Records of the builds before scripts end here, and those of queues without any.
        if reader.has_more() {
            decode_scripts(reader, &mut record.config)?;
        }
        // Records of the builds before virtual hosts end here, and those of Fila's queues.
        if reader.has_more() {
            record.vhost = VhostId(reader.u32()?);
            record.config.amqp = match reader.u8()? {
                0 => None,
                1 => Some(Box::new(decode_policy(reader)?)),
                n => return Err(unknown(reader, "presence byte", n)),
            };
        }
        Ok(record)
    }

    /// What becomes of its messages when they cannot be delivered.
    pub(crate) const fn role(&self) -> Role {
        if self.dead_letters.0 == 0 {
            Role::Plain
        } else {
            Role::Source {
                dead_letters: self.dead_letters,
            }
        }
    }

    /// The dead-letter queue that comes with it.
    pub(crate) fn partner(&self) -> Option<Identity> {
        (self.dead_letters.0 != 0).then(|| Identity {
            id: self.dead_letters,
            vhost: self.vhost,
            name: format!("{}{DEAD_LETTER_SUFFIX}", self.name).into(),
            role: Role::DeadLetter { source: self.id },
        })
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity {
            id: self.id,
            vhost: self.vhost,
            name: self.name.as_str().into(),
            role: self.role(),
        }
    }
}

fn encode_config(out: &mut Vec<u8>, config: &QueueConfig) {
    put_u64(out, config.lease_ms);
    match &config.ordering {
        Ordering::None => out.push(0),
        Ordering::Queue => out.push(1),
        Ordering::Key { key, missing } => {
            out.push(2);
            encode_key(out, key);
            out.push(match missing {
                MissingOrderingKey::Reject => 0,
                MissingOrderingKey::Unordered => 1,
            });
        }
    }
    encode_key(out, config.dedup_key.as_deref().unwrap_or_default());
    put_u64(out, config.dedup_window_ms);
    out.push(match config.script_failure {
        ScriptFailure::Reject => 0,
        ScriptFailure::Park => 1,
    });
    out.extend_from_slice(&config.park_dead_letter_after.to_be_bytes());
    out.extend_from_slice(&config.retry.max_attempts.to_be_bytes());
    out.push(match config.retry.backoff {
        Backoff::None => 1,
        Backoff::Fixed => 2,
        Backoff::Exponential => 3,
    });
    put_u64(out, config.retry.initial_ms);
    put_u64(out, config.retry.max_ms);
    out.push(match config.durability {
        DeliveryDurability::Committed => 0,
        DeliveryDurability::Fast => 1,
    });
    put_u64(out, config.reclaim_grace_ms);
    let (overflow, messages) = match config.max_length {
        None => (0, 0),
        Some(MaxLength {
            messages,
            overflow: Overflow::DropHead,
        }) => (1, messages),
        Some(MaxLength {
            messages,
            overflow: Overflow::Reject,
        }) => (2, messages),
    };
    out.push(overflow);
    put_u64(out, messages);
}

/// A queue without scripts that never had any ends without them, if nothing else follows.
fn encode_scripts_if_any(out: &mut Vec<u8>, config: &QueueConfig) {
    let has_any = config.on_enqueue.is_some() || config.on_failure.is_some();
    if has_any || config.script_version != 1 {
        encode_scripts(out, config);
    }
}

fn encode_scripts(out: &mut Vec<u8>, config: &QueueConfig) {
    let (on_enqueue, on_failure) = (&config.on_enqueue, &config.on_failure);
    put_u64(out, config.script_version);
    for script in [on_enqueue, on_failure] {
        out.push(u8::from(script.is_some()));
        if let Some(script) = script {
            put_long(out, script.as_bytes());
        }
    }
}

fn decode_scripts(reader: &mut Reader<'_>, config: &mut QueueConfig) -> Result<(), ReplayError> {
    config.script_version = reader.u64()?;
    for script in [&mut config.on_enqueue, &mut config.on_failure] {
        *script = match reader.u8()? {
            0 => None,
            1 => Some(reader.long()?.into()),
            n => return Err(unknown(reader, "presence byte", n)),
        };
    }
    Ok(())
}

fn decode_config(reader: &mut Reader<'_>) -> Result<QueueConfig, ReplayError> {
    Ok(QueueConfig {
        lease_ms: reader.u64()?,
        ordering: decode_ordering(reader)?,
        dedup_key: Some(decode_key(reader)?).filter(|parts| !parts.is_empty()),
        dedup_window_ms: reader.u64()?,
        script_failure: match reader.u8()? {
            0 => ScriptFailure::Reject,
            1 => ScriptFailure::Park,
            n => return Err(unknown(reader, "script failure policy", n)),
        },
        park_dead_letter_after: reader.u32()?,
        retry: RetryPolicy {
            max_attempts: reader.u32()?,
            backoff: match reader.u8()? {
                1 => Backoff::None,
                2 => Backoff::Fixed,
                3 => Backoff::Exponential,
                n => return Err(unknown(reader, "backoff", n)),
            },
            initial_ms: reader.u64()?,
            max_ms: reader.u64()?,
        },
        durability: match reader.u8()? {
            0 => DeliveryDurability::Committed,
            1 => DeliveryDurability::Fast,
            n => return Err(unknown(reader, "delivery durability", n)),
        },
        reclaim_grace_ms: reader.u64()?,
        max_length: decode_max_length(reader)?,
        on_enqueue: None,
        on_failure: None,
        script_version: 1,
        amqp: None,
    })
}

fn decode_ordering(reader: &mut Reader<'_>) -> Result<Ordering, ReplayError> {
    Ok(match reader.u8()? {
        0 => Ordering::None,
        1 => Ordering::Queue,
        2 => Ordering::Key {
            key: decode_key(reader)?,
            missing: match reader.u8()? {
                0 => MissingOrderingKey::Reject,
                1 => MissingOrderingKey::Unordered,
                n => return Err(unknown(reader, "missing-key policy", n)),
            },
        },
        n => return Err(unknown(reader, "ordering", n)),
    })
}

fn decode_max_length(reader: &mut Reader<'_>) -> Result<Option<MaxLength>, ReplayError> {
    let overflow = reader.u8()?;
    let messages = reader.u64()?;
    Ok(match overflow {
        0 => None,
        1 => Some(MaxLength {
            messages,
            overflow: Overflow::DropHead,
        }),
        2 => Some(MaxLength {
            messages,
            overflow: Overflow::Reject,
        }),
        n => return Err(unknown(reader, "overflow policy", n)),
    })
}

pub(crate) fn encode_key(out: &mut Vec<u8>, parts: &[KeyPart]) {
    put_len(out, parts.len());
    for part in parts {
        out.push(match part.kind {
            KeyKind::Header => 0,
            KeyKind::FairnessKey => 1,
            KeyKind::Attribute => 2,
            KeyKind::IdempotencyKey => 3,
            KeyKind::Payload => 4,
            KeyKind::AllHeaders => 5,
        });
        put_long(out, part.name.as_bytes());
    }
}

pub(crate) fn decode_key(reader: &mut Reader<'_>) -> Result<Vec<KeyPart>, ReplayError> {
    let count = reader.u32()?;
    let mut parts = Vec::new();
    for _ in 0..count {
        let kind = match reader.u8()? {
            0 => KeyKind::Header,
            1 => KeyKind::FairnessKey,
            2 => KeyKind::Attribute,
            3 => KeyKind::IdempotencyKey,
            4 => KeyKind::Payload,
            5 => KeyKind::AllHeaders,
            n => return Err(unknown(reader, "key part", n)),
        };
        parts.push(KeyPart {
            kind,
            name: reader.long()?.to_owned(),
        });
    }
    Ok(parts)
}

fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_be_bytes());
}

fn unknown(reader: &Reader<'_>, what: &str, byte: u8) -> ReplayError {
    reader.problem(&format!("{what} {byte} is unknown"))
}
