//! Arguments of queues, exchanges and bindings: JSON there, AMQP field tables here.

use bytes::Bytes;
use serde_json::{Map, Value as Json, json};
use tanda_wire::amqp::{Array, ArrayWriter, LongStr, ShortStr, Table, TableWriter, Value};

/// Deepest nesting that is read.
const DEPTH_MAX: usize = 16;

/// A field table without its length.
///
/// # Errors
/// What cannot be in one.
pub(super) fn encode(object: &Map<String, Json>) -> Result<Bytes, String> {
    let mut out = Vec::new();
    let mut problem = None;
    let mut writer = TableWriter::new(&mut out);
    for (key, value) in object {
        put(&mut writer, (key, value), DEPTH_MAX, &mut problem);
    }
    problem.map_or_else(|| Ok(Bytes::from(out)), Err)
}

fn put(
    table: &mut TableWriter<'_>,
    (key, value): (&str, &Json),
    depth: usize,
    problem: &mut Option<String>,
) {
    let Ok(key) = ShortStr::new(key.as_bytes()) else {
        *problem = Some(format!("the argument {key:?} has a name of over 255 bytes"));
        return;
    };
    if depth == 0 {
        *problem = Some(format!("arguments are nested over {DEPTH_MAX} deep"));
        return;
    }
    match value {
        Json::Array(items) => {
            table.array(key, |array| put_items(array, items, depth - 1, problem));
        }
        Json::Object(object) => {
            table.table(key, |table| {
                for (key, value) in object {
                    put(table, (key, value), depth - 1, problem);
                }
            });
        }
        scalar @ (Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_)) => {
            table.value(key, &plain(scalar));
        }
    }
}

fn put_items(
    array: &mut ArrayWriter<'_>,
    items: &[Json],
    depth: usize,
    problem: &mut Option<String>,
) {
    if depth == 0 {
        *problem = Some(format!("arguments are nested over {DEPTH_MAX} deep"));
        return;
    }
    for item in items {
        match item {
            Json::Array(items) => {
                array.array(|array| put_items(array, items, depth - 1, problem));
            }
            Json::Object(object) => {
                array.table(|table| {
                    for (key, value) in object {
                        put(table, (key, value), depth - 1, problem);
                    }
                });
            }
            scalar @ (Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_)) => {
                array.value(&plain(scalar));
            }
        }
    }
}

fn plain(scalar: &Json) -> Value<'_> {
    match scalar {
        Json::Bool(is) => Value::Bool(*is),
        Json::Number(number) => number.as_i64().map_or_else(
            || Value::F64(number.as_f64().unwrap_or_default()),
            Value::I64,
        ),
        Json::String(text) => Value::text(text),
        Json::Null | Json::Array(_) | Json::Object(_) => Value::Void,
    }
}

/// A field table as JSON. What JSON does not have becomes the nearest; what cannot be read is left
/// out.
pub(crate) fn decode(raw: &[u8]) -> Json {
    Table::new(raw).map_or_else(|_| json!({}), object)
}

fn object(table: Table<'_>) -> Json {
    let entries = table.iter().map_while(Result::ok);
    let entries = entries.map(|entry| {
        let key = String::from_utf8_lossy(entry.key.as_bytes()).into_owned();
        (key, json_of(&entry.value))
    });
    Json::Object(entries.collect())
}

fn array_of(array: &Array<'_>) -> Json {
    array
        .iter()
        .map_while(Result::ok)
        .map(|it| json_of(&it.value))
        .collect()
}

fn text(bytes: LongStr<'_>) -> Json {
    json!(String::from_utf8_lossy(bytes.as_bytes()))
}

fn json_of(value: &Value<'_>) -> Json {
    match value {
        Value::Bool(is) => json!(is),
        Value::I8(n) => json!(n),
        Value::U8(n) => json!(n),
        Value::I16(n) => json!(n),
        Value::U16(n) => json!(n),
        Value::I32(n) => json!(n),
        Value::U32(n) => json!(n),
        Value::I64(n) => json!(n),
        Value::F32(n) => json!(n),
        Value::F64(n) => json!(n),
        Value::Timestamp(n) => json!(n),
        Value::Decimal { scale, value } => {
            json!(f64::from(*value) / 10_f64.powi(i32::from(*scale)))
        }
        Value::LongString(bytes) | Value::Bytes(bytes) => text(*bytes),
        Value::Array(array) => array_of(array),
        Value::Table(table) => object(*table),
        Value::Void => Json::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_survive_the_way_there_and_back() {
        let arguments = json!({
            "x-queue-type": "classic",
            "x-message-ttl": 60_000,
            "x-single-active-consumer": true,
            "share": 0.5,
            "nothing": null,
            "list": [1, "two", [3], {"four": 4}],
            "table": {"deeper": {"still": "deeper"}},
        });
        let encoded = encode(arguments.as_object().unwrap()).unwrap();
        assert_eq!(decode(&encoded), arguments);
    }

    #[test]
    fn what_cannot_be_an_argument_is_refused() {
        let long = json!({ "x".repeat(256): 1 });
        assert!(encode(long.as_object().unwrap()).is_err());
        for open in ["[", "{\"a\":"] {
            let close = if open == "[" { "]" } else { "}" };
            let text = format!("{{\"a\":{}1{}}}", open.repeat(20), close.repeat(20));
            let deep: Json = serde_json::from_str(&text).unwrap();
            assert!(encode(deep.as_object().unwrap()).is_err(), "{text}");
        }
    }
}
