//! Contents of messages: how they are drawn, and what is read back.

use tanda_wire::amqp::{Properties, PropertyValues, Table, TableWriter, Value};

use super::of_amqp::short;
use crate::failure::Violation;
use crate::history::TAG_HEADER;
use crate::history::amqp::{Death, headers_of};
use crate::invariants::amqp::unexpected;
use crate::random::Random;

/// What a message says of itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Says<'a> {
    pub(super) is_persistent: bool,
    pub(super) priority: u8,
    pub(super) ttl_ms: Option<u64>,
    pub(super) cc: &'a [&'static str],
    /// It has the headers of its tag.
    pub(super) has_headers: bool,
}

/// The properties of a message, as they stand on the wire.
pub(super) fn properties(tag: usize, says: Says<'_>) -> Vec<u8> {
    let mut headers = Vec::new();
    let text = tag.to_string();
    let mut writer = TableWriter::new(&mut headers);
    writer.value(short(TAG_HEADER), &Value::text(&text));
    for (name, value) in headers_of(tag).filter(|_| says.has_headers) {
        writer.value(short(name), &Value::text(value));
    }
    if !says.cc.is_empty() {
        writer.array(short("CC"), |array| {
            for key in says.cc {
                array.value(&Value::text(key));
            }
        });
    }
    let expiration = says.ttl_ms.map(|ms| ms.to_string());
    let values = PropertyValues {
        headers: Table::new(&headers).ok(),
        delivery_mode: Some(if says.is_persistent { 2 } else { 1 }),
        priority: (says.priority > 0).then_some(says.priority),
        expiration: expiration.as_deref().map(short),
        ..PropertyValues::default()
    };
    let mut raw = Vec::new();
    values.encode(&mut raw);
    raw
}

/// The body of a message.
pub(super) fn body(random: &mut Random, tag: usize, is_small: bool) -> Vec<u8> {
    let mut body = format!("amqp {tag} ").into_bytes();
    let filler = match random.below(100) {
        0 if !is_small => random.length(60_000),
        1..=5 if !is_small => random.length(6_000),
        6..=8 => 0,
        _ => random.length(200),
    };
    body.resize(body.len() + filler, u8::try_from(tag % 251).unwrap_or(0));
    body
}

/// A message's tag and deaths, as its properties tell them.
pub(super) fn read(raw: &[u8]) -> Result<(usize, Vec<Death>), Violation> {
    let wrong =
        |what: &str| unexpected::of(format!("{what}: {:?}", raw.escape_ascii().to_string()));
    let properties = Properties::decode(raw).map_err(|error| wrong(&error.to_string()))?;
    let headers = properties.headers().ok_or_else(|| wrong("no headers"))?;
    let tag = headers.find(TAG_HEADER.as_bytes()).ok().flatten();
    let tag = tag.and_then(|value| value.as_long_string());
    let tag = tag.and_then(|text| str::from_utf8(text).ok()?.parse().ok());
    let tag = tag.ok_or_else(|| wrong("no tag"))?;
    let mut deaths = Vec::new();
    let found = headers
        .find(b"x-death")
        .map_err(|error| wrong(&error.to_string()))?;
    if let Some(found) = found {
        let Value::Array(array) = found else {
            return Err(wrong("x-death is no array"));
        };
        for item in array.iter() {
            let Ok(Value::Table(table)) = item.map(|item| item.value) else {
                return Err(wrong("x-death holds what is no table"));
            };
            deaths.push(death(&table).ok_or_else(|| wrong("no death"))?);
        }
    }
    Ok((tag, deaths))
}

fn death(table: &Table<'_>) -> Option<Death> {
    let find = |key: &str| table.find(key.as_bytes()).ok().flatten();
    let text = |key: &str| {
        let value = find(key)?;
        Some(str::from_utf8(value.as_long_string()?).ok()?.to_owned())
    };
    let Value::Timestamp(time_s) = find("time")? else {
        return None;
    };
    Some(Death {
        queue: text("queue")?,
        reason: text("reason")?,
        count: u64::try_from(find("count")?.as_i64()?).ok()?,
        time_s,
    })
}
