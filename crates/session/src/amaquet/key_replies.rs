//! What commands on keys came to.

use std::borrow::Cow;

use tanda_engine::{Datum, DatumForm, KeyAnswer, KeyError, KeyType, VersionedDatum, VhostId};
use tanda_wire::amaquet::command::Spec;
use tanda_wire::amaquet::envelope::{Failure, write_result};
use tanda_wire::amaquet::frame::PAYLOAD_BYTES_HARD_MAX;
use tanda_wire::amaquet::json::Writer;
use tanda_wire::amaquet::{ErrorCode, Payload};

use super::active::{Entry, Stop};
use super::link::Link;
use super::outbound::{Asked, too_large};
use super::undelivered::Lot;

impl Link {
    /// Answers a command on keys.
    pub(super) fn say_keys(
        &mut self,
        entry: &Entry,
        (token, vhost): (u32, VhostId),
        spec: &'static Spec,
        result: Result<KeyAnswer, KeyError>,
    ) {
        let asked = Asked::command(entry.request_id);
        let answer = match result {
            Ok(answer) => answer,
            Err(KeyError::Cancelled) => return self.say_stopped(entry),
            Err(error) => {
                let failure = self.key_failure(spec, error);
                return self.outbound.failure(asked, &failure);
            }
        };
        if !answer.is_taken() {
            return self
                .outbound
                .result(asked, |out| write_answer(out, spec, &answer));
        }
        let mut written = Ok(());
        self.outbound.deliveries(0, |out| {
            written = write_result(out, asked.header(), PAYLOAD_BYTES_HARD_MAX, |out| {
                write_answer(out, spec, &answer);
            });
        });
        let lot = Lot::Keys {
            token,
            vhost,
            answer: Box::new(answer),
        };
        match written {
            Ok(()) => self.outbound.note_lot(lot),
            Err(error) => {
                self.give_back(lot);
                self.outbound.failure(asked, &too_large(error));
            }
        }
    }

    /// Answers a command that was told not to wait any longer.
    pub(super) fn say_stopped(&mut self, entry: &Entry) {
        let (code, text) = match entry.stopped {
            Some(Stop::Forbidden) => (
                ErrorCode::Forbidden,
                "the permission to wait for this was taken away",
            ),
            Some(Stop::KeyLost) => (
                ErrorCode::Unauthenticated,
                "the API key of this connection is no good any more",
            ),
            Some(Stop::Closing) => (ErrorCode::Cancelled, "the connection is being closed"),
            Some(Stop::Cancelled) | None => (ErrorCode::Cancelled, "the command was cancelled"),
        };
        let failure = Failure::new(code, text.to_owned());
        let asked = Asked::command(entry.request_id);
        self.outbound.failure(asked, &failure);
    }

    fn key_failure(&self, spec: &Spec, error: KeyError) -> Failure {
        let (code, text) = match error {
            KeyError::NotFound => (ErrorCode::NotFound, not_found(spec).to_owned()),
            KeyError::WrongType { found } => (ErrorCode::WrongType, wrong_type(spec, found)),
            KeyError::Exists => (
                ErrorCode::Exists,
                match spec.name {
                    "key.rename" => "a key with the name in to exists".to_owned(),
                    _ => "the key exists".to_owned(),
                },
            ),
            KeyError::VersionConflict { found: 0 } => {
                let text = "if_version does not fit: the key does not exist";
                (ErrorCode::Conflict, text.to_owned())
            }
            KeyError::VersionConflict { found } => {
                let text = format!("if_version does not fit: the value has version {found}");
                (ErrorCode::Conflict, text)
            }
            KeyError::Overflow { value } => {
                let text = format!("by would bring {value} beyond 64 bits");
                (ErrorCode::Conflict, text)
            }
            KeyError::Held { until } => {
                let text = format!("the lock is held until {} at most", until.0);
                (ErrorCode::Conflict, text)
            }
            KeyError::StaleToken => {
                let text = "token is not that of who holds the lock";
                (ErrorCode::Conflict, text.to_owned())
            }
            KeyError::TimedOut => (ErrorCode::Timeout, timed_out(spec).to_owned()),
            KeyError::Cancelled => (ErrorCode::Cancelled, "cancelled".to_owned()),
            KeyError::AnswerTooLarge { bytes_max } => {
                let text = format!("the answer would be over the limit of {bytes_max} bytes");
                (ErrorCode::PayloadTooLarge, text)
            }
            KeyError::BadCursor => {
                let text = "cursor is none that key.scan gave";
                (ErrorCode::BadRequest, text.to_owned())
            }
            KeyError::VhostNotFound => {
                let text = "the virtual host of this door is gone";
                (ErrorCode::NotFound, text.to_owned())
            }
            KeyError::TooManyKeys { max } => {
                return self.overloaded(format!("there is no room for more than {max} keys"));
            }
            KeyError::Storage => {
                return self.overloaded("the disk is full: only what makes room is done");
            }
        };
        Failure::new(code, text)
    }
}

fn not_found(spec: &Spec) -> &'static str {
    let has = |name: &str| spec.arguments.iter().any(|argument| argument.name == name);
    match spec.name {
        "list.pop" => "the list has no item",
        "lock.renew" | "lock.release" => "nobody holds the lock",
        _ if has("field") => "key or field not found",
        _ if has("member") => "key or member not found",
        _ => "key not found",
    }
}

fn timed_out(spec: &Spec) -> &'static str {
    match spec.name {
        "lock.acquire" => "the lock was not free within wait_ms",
        _ => "no item came within wait_ms",
    }
}

fn wrong_type(spec: &Spec, found: KeyType) -> String {
    match (spec.name, found) {
        ("map.add", KeyType::Map) => "the field holds no integer of 64 bits".to_owned(),
        ("key.rename", KeyType::Lock) => "a lock cannot be renamed".to_owned(),
        _ => format!("the key is a {}", found.name()),
    }
}

/// Writes a result; answers of one value have the name of the command's first field.
fn write_answer(out: &mut Writer<'_>, spec: &Spec, answer: &KeyAnswer) {
    let name = spec.result.first().map_or("", |field| field.name);
    out.object(|out| match answer {
        KeyAnswer::Bool(value) => out.key(name).bool(*value),
        KeyAnswer::Kind(kind) => out.key(name).str(kind.name()),
        KeyAnswer::ExpiresAt(at) => out.key(name).u64(at.0),
        KeyAnswer::TtlMs(ttl_ms) => out.key(name).u64_or_null(*ttl_ms),
        KeyAnswer::Scanned { keys, cursor } => {
            out.key("keys").array(|out| write_texts(out, keys));
            let out = out.key("cursor");
            match cursor {
                Some(cursor) => out.str(cursor),
                None => out.null(),
            }
        }
        KeyAnswer::Version(version) => out.key(name).u64(*version),
        KeyAnswer::Value(value) => write_versioned(out, value),
        KeyAnswer::Values(values) => out.key(name).array(|out| {
            for value in values {
                match value {
                    Some(value) => out.object(|out| write_versioned(out, value)),
                    None => out.null(),
                }
            }
        }),
        KeyAnswer::Swapped { previous, version } => {
            let previous_out = out.key("previous");
            match previous {
                Some(previous) => payload(previous).write(previous_out),
                None => previous_out.null(),
            }
            out.key("version").u64(*version);
        }
        KeyAnswer::Integer(value) => out.key(name).i64(*value),
        KeyAnswer::Datum(datum) => payload(datum).write(out.key(name)),
        KeyAnswer::Fields(fields) => out.key(name).object(|out| {
            for (field, datum) in fields {
                payload(datum).write(out.key(field));
            }
        }),
        KeyAnswer::Count(count) => out.key(name).u64(*count),
        KeyAnswer::Taken { item, .. } => payload(item).write(out.key(name)),
        KeyAnswer::Items(items) => out.key(name).array(|out| {
            for item in items {
                payload(item).write(out);
            }
        }),
        KeyAnswer::Members(members) => out.key(name).array(|out| write_texts(out, members)),
        KeyAnswer::Score(score) => out.key(name).f64(*score),
        KeyAnswer::Ranked(members) => out.key(name).array(|out| {
            for (member, score) in members {
                out.object(|out| {
                    out.key("member").str(member);
                    out.key("score").f64(*score);
                });
            }
        }),
        KeyAnswer::Locked {
            token, expires_at, ..
        } => {
            out.key("token").u64(*token);
            out.key("expires_at").u64(expires_at.0);
        }
    });
}

fn write_texts(out: &mut Writer<'_>, texts: &[Box<str>]) {
    for text in texts {
        out.str(text);
    }
}

fn write_versioned(out: &mut Writer<'_>, value: &VersionedDatum) {
    payload(&value.value).write(out.key("value"));
    out.key("version").u64(value.version);
}

/// The payload that a key holds. What is said to be text was text when it came.
fn payload(datum: &Datum) -> Payload<'_> {
    let text = || core::str::from_utf8(&datum.bytes).map(Cow::Borrowed).ok();
    let payload = match datum.form {
        DatumForm::Json => text().map(Payload::Json),
        DatumForm::Text => text().map(Payload::Text),
        DatumForm::Bytes => None,
    };
    payload.unwrap_or(Payload::Bytes(Cow::Borrowed(&datum.bytes)))
}
