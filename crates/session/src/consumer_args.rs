//! The arguments of consumers, as tables of AMQP.
//!
//! `x-priority` is a number; the larger is served first. `x-throttles` is an array of tables, one
//! per throttle:
//!
//! ```text
//! { "name": text, "key": [header name, ...], "max_deliveries": n, "window_ms": n,
//!   "when_key_missing": "shared" | "unthrottled" }
//! ```
//!
//! `limits`, an array of tables with `max_deliveries` and `window_ms`, stands for several limits
//! at once. What the values must be to each other the engine checks.

use tanda_engine::{KeyKind, KeyPart, MissingThrottleKey, ThrottleLimit, ThrottleSpec};
use tanda_wire::amqp::{Table, Value};

use tanda_wire::cursor::DecodeError;

/// More are refused by the engine; this bounds what is read.
const THROTTLES_MAX: usize = 64;

/// Why arguments are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentError {
    /// They cannot be read.
    Layout(DecodeError),
    /// One has another form than above.
    Invalid(String),
}

impl From<DecodeError> for ArgumentError {
    fn from(error: DecodeError) -> Self {
        Self::Layout(error)
    }
}

/// `x-priority` for a consumer of this queue, as texts call it; 0 when there is none.
///
/// # Errors
/// It is no number.
pub(crate) fn priority(arguments: Table<'_>, queue: &str) -> Result<i32, ArgumentError> {
    let Some(value) = arguments.find(b"x-priority")? else {
        return Ok(0);
    };
    let number = value.as_i64().filter(|_| !matches!(value, Value::Bool(_)));
    let number = number.ok_or_else(|| {
        let kind = value.type_name();
        let text = format!("invalid arg 'x-priority' for {queue}: {{unacceptable_type,{kind}}}");
        ArgumentError::Invalid(text)
    })?;
    let clamped = number.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
    Ok(i32::try_from(clamped).unwrap_or(0))
}

/// The throttles they declare.
///
/// # Errors
/// Not of the form above.
pub(crate) fn throttles(arguments: Table<'_>) -> Result<Vec<ThrottleSpec>, ArgumentError> {
    let value = arguments.find(b"x-throttles")?;
    let Some(value) = value else {
        return Ok(Vec::new());
    };
    let Value::Array(items) = value else {
        return Err(invalid("it is an array of tables"));
    };
    let mut specs = Vec::new();
    for item in items {
        let item = item?;
        let Value::Table(table) = item.value else {
            return Err(invalid("it is an array of tables"));
        };
        if specs.len() == THROTTLES_MAX {
            return Err(invalid("too many throttles"));
        }
        specs.push(spec(table)?);
    }
    Ok(specs)
}

fn spec(table: Table<'_>) -> Result<ThrottleSpec, ArgumentError> {
    let name = text(table.find(b"name")?).ok_or_else(|| invalid("each has a name"))?;
    let missing = match text(table.find(b"when_key_missing")?).as_deref() {
        None | Some("shared") => MissingThrottleKey::SharedBucket,
        Some("unthrottled") => MissingThrottleKey::Unthrottled,
        Some(_) => return Err(invalid("when_key_missing is \"shared\" or \"unthrottled\"")),
    };
    let mut limits = Vec::new();
    if let Some(value) = table.find(b"limits")? {
        for table in tables(value)? {
            limits.push(limit(table)?);
        }
    } else {
        limits.push(limit(table)?);
    }
    let mut key = Vec::new();
    match table.find(b"key")? {
        None => {}
        Some(Value::Array(names)) => {
            for item in names {
                let item = item?;
                key.push(part(Some(item.value))?);
            }
        }
        Some(value) => key.push(part(Some(value))?),
    }
    Ok(ThrottleSpec {
        name,
        limits,
        key,
        missing,
    })
}

fn part(value: Option<Value<'_>>) -> Result<KeyPart, ArgumentError> {
    let name = text(value).ok_or_else(|| invalid("key is an array of header names"))?;
    Ok(KeyPart {
        kind: KeyKind::Header,
        name,
    })
}

fn tables(value: Value<'_>) -> Result<Vec<Table<'_>>, ArgumentError> {
    let Value::Array(items) = value else {
        return Err(invalid("limits is an array of tables"));
    };
    let mut tables = Vec::new();
    for item in items {
        let item = item?;
        let Value::Table(table) = item.value else {
            return Err(invalid("limits is an array of tables"));
        };
        if tables.len() == THROTTLES_MAX {
            return Err(invalid("too many limits"));
        }
        tables.push(table);
    }
    Ok(tables)
}

fn limit(table: Table<'_>) -> Result<ThrottleLimit, ArgumentError> {
    let number = |key: &[u8]| -> Result<Option<u64>, ArgumentError> {
        let value = table.find(key)?.and_then(|value| value.as_i64());
        Ok(value.and_then(|number| u64::try_from(number).ok()))
    };
    match (number(b"max_deliveries")?, number(b"window_ms")?) {
        (Some(max_deliveries), Some(window_ms)) => Ok(ThrottleLimit {
            window_ms,
            max_deliveries,
        }),
        _ => Err(invalid("a limit has max_deliveries and window_ms")),
    }
}

fn text(value: Option<Value<'_>>) -> Option<String> {
    let bytes = value?.as_long_string()?;
    core::str::from_utf8(bytes).ok().map(str::to_owned)
}

fn invalid(why: &str) -> ArgumentError {
    ArgumentError::Invalid(format!("invalid arg 'x-throttles': {why}"))
}
