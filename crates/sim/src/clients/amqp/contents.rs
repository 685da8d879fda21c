//! Contents of messages: how they are drawn, and what is read back.

use tanda_wire::amqp::{PropertyValues, Table, TableWriter, Value};
use tanda_wire::firemq::writer::MapWriter;
use tanda_wire::firemq::{self, Props, RawMap};
use tanda_wire::mapping::FireMessage;

use super::extras;
use super::of_amqp::short;
use crate::failure::Violation;
use crate::history::TAG_HEADER;
use crate::history::amqp::{Death, Door, Plain, Told, headers_of};
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

impl Says<'_> {
    /// What can be said by this door: an expiration of 0 is none in FireMQ.
    pub(super) fn of(self, door: Door) -> Self {
        let ttl_ms = self.ttl_ms.filter(|ms| door == Door::Amqp || *ms > 0);
        Self { ttl_ms, ..self }
    }
}

/// The properties of a message, as they stand on the wire of a door. `more` draws what means
/// nothing to the broker.
pub(super) fn properties(
    door: Door,
    tag: usize,
    says: Says<'_>,
    more: Option<&mut Random>,
) -> Vec<u8> {
    match door {
        Door::Amqp => of_amqp(tag, says, more),
        Door::Fire => of_fire(tag, says, more),
    }
}

fn of_amqp(tag: usize, says: Says<'_>, more: Option<&mut Random>) -> Vec<u8> {
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
    let mut texts = extras::Texts::default();
    if let Some(random) = more {
        texts = extras::Texts::draw(random);
        extras::amqp(random, &mut writer);
    }
    let expiration = says.ttl_ms.map(|ms| ms.to_string());
    let values = PropertyValues {
        content_type: texts.content_type.map(short),
        correlation_id: texts.correlation_id.map(short),
        message_type: texts.kind.map(short),
        timestamp: texts.timestamp_s,
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

/// Whether it is persistent stands elsewhere in the frame.
fn of_fire(tag: usize, says: Says<'_>, more: Option<&mut Random>) -> Vec<u8> {
    let mut headers = Vec::new();
    let text = tag.to_string();
    let mut writer = MapWriter::begin(&mut headers);
    writer.entry(TAG_HEADER, &firemq::Value::Str(&text));
    for (name, value) in headers_of(tag).filter(|_| says.has_headers) {
        writer.entry(name, &firemq::Value::Str(value));
    }
    let mut texts = extras::Texts::default();
    if let Some(random) = more {
        texts = extras::Texts::draw(random);
        extras::fire(random, &mut writer);
    }
    writer.finish();
    let fields = firemq::Properties {
        content_type: texts.content_type.unwrap_or_default(),
        correlation_id: texts.correlation_id.unwrap_or_default(),
        kind: texts.kind.unwrap_or_default(),
        timestamp_s: texts.timestamp_s.unwrap_or_default(),
        expiration_ms: says.ttl_ms.unwrap_or_default(),
        priority: says.priority,
        ..firemq::Properties::default()
    };
    let mut props = Vec::new();
    fields.encode(&mut props);
    fire_raw(Props::from_checked(&props), RawMap::from_checked(&headers))
}

/// Both maps of a FireMQ message, as they stand on the wire.
pub(super) fn fire_raw(props: Props<'_>, headers: RawMap<'_>) -> Vec<u8> {
    let mut raw = Vec::new();
    let message = FireMessage {
        persistent: false,
        props,
        headers,
    };
    message.encode(&mut raw);
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
pub(super) fn read(door: Door, raw: &[u8]) -> Result<(usize, Vec<Death>), Violation> {
    let wrong = |what: &str| {
        let raw = raw.escape_ascii().to_string();
        unexpected::of(format!("{what} in properties of {door:?}: {raw:?}"))
    };
    let told = Told::read(door, raw).ok_or_else(|| wrong("nonsense"))?;
    let tag = told.header(TAG_HEADER).and_then(Plain::text);
    let tag = tag.and_then(|text| text.parse().ok());
    let tag = tag.ok_or_else(|| wrong("no tag"))?;
    let Some(found) = told.header("x-death") else {
        return Ok((tag, Vec::new()));
    };
    let Plain::List(items) = found else {
        return Err(wrong("an x-death that is no array"));
    };
    let deaths = items.iter().map(death).collect::<Option<Vec<Death>>>();
    Ok((tag, deaths.ok_or_else(|| wrong("no death"))?))
}

fn death(told: &Plain) -> Option<Death> {
    let Plain::Map(entries) = told else {
        return None;
    };
    let find = |key: &str| {
        let mut found = entries.iter().filter(|(name, _)| name == key);
        found.next().map(|(_, value)| value)
    };
    Some(Death {
        queue: find("queue")?.text()?.to_owned(),
        reason: find("reason")?.text()?.to_owned(),
        count: find("count")?.whole()?,
        time_s: find("time")?.whole()?,
    })
}
