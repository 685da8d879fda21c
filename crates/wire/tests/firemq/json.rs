//! MessagePack values as the JSON of `test-vectors/firemq/frames.json`.

use serde_json::{Value as Json, json};
use tanda_wire::firemq::{RawMap, Value};

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "{text}");
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

pub(crate) fn map(map: RawMap<'_>) -> Json {
    let entries: Vec<_> = map.iter().collect();
    assert_eq!(entries.len(), map.len());
    let text_keys: Option<Vec<_>> = entries
        .iter()
        .map(|(key, entry)| {
            let Value::Str(key) = key else { return None };
            Some(((*key).to_owned(), value(entry)))
        })
        .collect();
    match text_keys {
        Some(entries) => Json::Object(entries.into_iter().collect()),
        None => {
            let pairs: Vec<_> = entries
                .iter()
                .map(|(key, entry)| json!([value(key), value(entry)]))
                .collect();
            json!({"$map": pairs})
        }
    }
}

pub(crate) fn value(from: &Value<'_>) -> Json {
    match *from {
        Value::Nil => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Uint(value) => json!(value),
        Value::Int(value) => json!(value),
        Value::F32(value) => json!(value),
        Value::F64(value) => json!(value),
        Value::Str(value) => json!(value),
        Value::Bin(bytes) => json!({"$bin": hex(bytes)}),
        Value::Array(items) => items.iter().map(|item| value(&item)).collect(),
        Value::Map(entries) => map(entries),
        Value::Ext { kind, data } => json!({"$ext": [kind, hex(data)]}),
    }
}
