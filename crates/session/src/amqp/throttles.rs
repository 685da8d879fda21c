//! The consumer argument `x-throttles`: an array of tables, one per throttle.
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

use super::fault::Fault;

/// More are refused by the engine; this bounds what is read.
const THROTTLES_MAX: usize = 64;

/// What the arguments declare.
///
/// # Errors
/// Not of the form above.
pub(super) fn specs(arguments: Table<'_>) -> Result<Vec<ThrottleSpec>, Fault> {
    let value = find(arguments, b"x-throttles")?;
    let Some(value) = value else {
        return Ok(Vec::new());
    };
    let Value::Array(items) = value else {
        return Err(invalid("it is an array of tables"));
    };
    let mut specs = Vec::new();
    for item in items {
        let item = item.map_err(|error| Fault::of_layout("arguments", error))?;
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

fn spec(table: Table<'_>) -> Result<ThrottleSpec, Fault> {
    let name = text(find(table, b"name")?).ok_or_else(|| invalid("each has a name"))?;
    let missing = match text(find(table, b"when_key_missing")?).as_deref() {
        None | Some("shared") => MissingThrottleKey::SharedBucket,
        Some("unthrottled") => MissingThrottleKey::Unthrottled,
        Some(_) => return Err(invalid("when_key_missing is \"shared\" or \"unthrottled\"")),
    };
    let mut limits = Vec::new();
    if let Some(value) = find(table, b"limits")? {
        for table in tables(value)? {
            limits.push(limit(table)?);
        }
    } else {
        limits.push(limit(table)?);
    }
    let mut key = Vec::new();
    match find(table, b"key")? {
        None => {}
        Some(Value::Array(names)) => {
            for item in names {
                let item = item.map_err(|error| Fault::of_layout("arguments", error))?;
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

fn part(value: Option<Value<'_>>) -> Result<KeyPart, Fault> {
    let name = text(value).ok_or_else(|| invalid("key is an array of header names"))?;
    Ok(KeyPart {
        kind: KeyKind::Header,
        name,
    })
}

fn tables(value: Value<'_>) -> Result<Vec<Table<'_>>, Fault> {
    let Value::Array(items) = value else {
        return Err(invalid("limits is an array of tables"));
    };
    let mut tables = Vec::new();
    for item in items {
        let item = item.map_err(|error| Fault::of_layout("arguments", error))?;
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

fn limit(table: Table<'_>) -> Result<ThrottleLimit, Fault> {
    let number = |key: &[u8]| -> Result<Option<u64>, Fault> {
        let value = find(table, key)?.and_then(|value| value.as_i64());
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

fn find<'a>(table: Table<'a>, key: &[u8]) -> Result<Option<Value<'a>>, Fault> {
    table
        .find(key)
        .map_err(|error| Fault::of_layout("arguments", error))
}

fn text(value: Option<Value<'_>>) -> Option<String> {
    let bytes = value?.as_long_string()?;
    core::str::from_utf8(bytes).ok().map(str::to_owned)
}

fn invalid(why: &str) -> Fault {
    Fault::precondition(format!("invalid arg 'x-throttles': {why}"))
}
