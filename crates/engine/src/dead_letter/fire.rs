//! A history in the headers of FireMQ, and what else changes in the properties.
//!
//! The tables of `x-death` are maps with the same keys; times are seconds, as an unsigned integer.

use tanda_wire::firemq::writer::{ArrayWriter, MapWriter};
use tanda_wire::firemq::{RawMap, Value};
use tanda_wire::mapping::FireMessage;

use super::death::{DEATHS, Death, FIRST, History, LAST, NewDeath};
use super::{Burial, Buried};

/// What a message's properties become.
pub(super) fn bury(raw: &[u8], (routing_key, is_ours): (&str, bool), it: &Burial<'_>) -> Buried {
    let FireMessage {
        persistent,
        props,
        headers,
    } = FireMessage::decode(raw);
    // A header CC is the application's here: messages were not routed by it either.
    let keys = vec![routing_key.to_owned()];
    let fields = props.fields();
    let expiration_ms = fields.expiration_ms;
    let mut history = if is_ours {
        read(headers)
    } else {
        History::default()
    };
    let new = NewDeath {
        queue: it.queue,
        reason: it.reason,
        at: it.at,
        exchange: it.exchange,
        keys: &keys,
        expiration_ms: (expiration_ms > 0).then_some(expiration_ms),
    };
    history.record(&new);
    let mut out = Vec::with_capacity(raw.len() + 256);
    out.extend_from_slice(&[0; 4]);
    let mut writer = MapWriter::begin(&mut out);
    for (key, value) in RawMap::from_checked(props.as_bytes()) {
        match text(&key) {
            Some("expiration") | None => {}
            Some(key) => writer.entry(key, &value),
        }
    }
    writer.finish();
    let head = FireMessage::head(persistent, out.len() - 4);
    if let Some(place) = out.first_chunk_mut::<4>() {
        *place = head;
    }
    write(&mut out, headers, (&history, &new), is_ours);
    Buried {
        properties: out,
        keys,
        persistent: Some(persistent),
        priority: (fields.priority > 0).then_some(fields.priority),
        history,
    }
}

fn text<'a>(value: &Value<'a>) -> Option<&'a str> {
    if let Value::Str(text) = value {
        Some(*text)
    } else {
        None
    }
}

fn read(headers: RawMap<'_>) -> History {
    let Some(Value::Array(deaths)) = headers.find(DEATHS) else {
        return History::default();
    };
    let deaths = deaths.iter().filter_map(|it| {
        let Value::Map(map) = it else {
            return None;
        };
        Some(read_death(map))
    });
    History {
        deaths: deaths.collect(),
    }
}

fn read_death(map: RawMap<'_>) -> Death {
    let word = |key: &str| {
        let value = map.find(key);
        value
            .and_then(|it| text(&it).map(str::to_owned))
            .unwrap_or_default()
    };
    let number = |key: &str| match map.find(key) {
        Some(Value::Uint(number)) => Some(number),
        _ => None,
    };
    let keys = match map.find("routing-keys") {
        Some(Value::Array(keys)) => {
            let keys = keys.iter().filter_map(|it| text(&it).map(str::to_owned));
            keys.collect()
        }
        _ => Vec::new(),
    };
    Death {
        queue: word("queue"),
        reason: word("reason"),
        count: number("count").unwrap_or(1),
        exchange: word("exchange"),
        keys,
        time_s: number("time").unwrap_or(0),
        expiration_ms: word("original-expiration").parse().ok(),
    }
}

fn write(
    out: &mut Vec<u8>,
    headers: RawMap<'_>,
    (history, new): (&History, &NewDeath<'_>),
    is_ours: bool,
) {
    let is_dropped =
        |key: &str| key == DEATHS || LAST.contains(&key) || (!is_ours && FIRST.contains(&key));
    let mut writer = MapWriter::begin(out);
    for (key, value) in headers {
        // Keys of other types are the application's, too.
        if !text(&key).is_some_and(is_dropped) {
            value.encode(writer.any_key(&key));
        }
    }
    let mut deaths = ArrayWriter::begin(writer.key(DEATHS));
    for death in &history.deaths {
        write_death(deaths.slot(), death);
    }
    deaths.finish();
    let values = [new.exchange, new.queue, new.reason.name()];
    if !is_ours {
        for (name, value) in FIRST.iter().zip(values) {
            writer.entry(name, &Value::Str(value));
        }
    }
    for (name, value) in LAST.iter().zip(values) {
        writer.entry(name, &Value::Str(value));
    }
    writer.finish();
}

fn write_death(out: &mut Vec<u8>, death: &Death) {
    let mut map = MapWriter::begin(out);
    if let Some(expiration) = death.expiration_ms {
        map.entry("original-expiration", &Value::Str(&expiration.to_string()));
    }
    map.entry("count", &Value::Uint(death.count));
    map.entry("reason", &Value::Str(&death.reason));
    map.entry("queue", &Value::Str(&death.queue));
    map.entry("time", &Value::Uint(death.time_s));
    map.entry("exchange", &Value::Str(&death.exchange));
    let mut keys = ArrayWriter::begin(map.key("routing-keys"));
    for key in &death.keys {
        keys.item(&Value::Str(key));
    }
    keys.finish();
    map.finish();
}
