//! A history in the headers of AMQP, and what else changes in the properties.

use tanda_wire::amqp::{
    Array, ArrayWriter, LongStr, Properties, Property, PropertyKind, ShortStr, Table, TableWriter,
    Value,
};

use super::death::{DEATHS, Death, FIRST, History, LAST, NewDeath};
use super::{Burial, Buried};
use crate::{MessageId, Millis};

/// The header with more routing keys.
const CC: &str = "CC";

/// What a message's properties become.
pub(super) fn bury(raw: &[u8], (routing_key, is_ours): (&str, bool), it: &Burial<'_>) -> Buried {
    // What is no list of properties was never taken from a client.
    let properties = Properties::decode(raw).unwrap_or(Properties::EMPTY);
    let headers = properties.headers().unwrap_or_default();
    let mut keys = vec![routing_key.to_owned()];
    keys.extend(cc_keys(headers));
    let expiration = properties.expiration();
    let expiration = expiration.and_then(|text| text.to_str().ok()?.parse().ok());
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
        expiration_ms: expiration,
    };
    history.record(&new);
    let mut entries = Vec::with_capacity(headers.as_bytes().len() + 256);
    let replaced = it.routing_key.is_some();
    write(&mut entries, headers, (&history, &new), (is_ours, replaced));
    let headers = Table::new(&entries).unwrap_or(headers);
    let mut out = Vec::with_capacity(raw.len() + 256);
    let set = [Property::Headers(headers)];
    properties.edited(&mut out, &set, &[PropertyKind::Expiration]);
    Buried {
        properties: out,
        keys,
        persistent: Some(properties.delivery_mode() == Some(2)),
        priority: properties.priority(),
        history,
    }
}

/// The history in the headers of these properties.
#[cfg(test)]
pub(super) fn history_of(raw: &[u8]) -> History {
    let properties = Properties::decode(raw).unwrap_or(Properties::EMPTY);
    read(properties.headers().unwrap_or_default())
}

/// Keys in the `CC` header.
fn cc_keys(headers: Table<'_>) -> Vec<String> {
    let Ok(Some(Value::Array(keys))) = headers.find(CC.as_bytes()) else {
        return Vec::new();
    };
    texts(keys)
}

fn texts(items: Array<'_>) -> Vec<String> {
    let items = items.iter().map_while(Result::ok);
    let texts = items.filter_map(|it| {
        let text = it.value.as_long_string()?;
        Some(String::from_utf8_lossy(text).into_owned())
    });
    texts.collect()
}

fn read(headers: Table<'_>) -> History {
    let Ok(Some(Value::Array(deaths))) = headers.find(DEATHS.as_bytes()) else {
        return History::default();
    };
    let tables = deaths.iter().map_while(Result::ok);
    let deaths = tables.filter_map(|it| {
        let Value::Table(table) = it.value else {
            return None;
        };
        Some(read_death(table))
    });
    History {
        deaths: deaths.collect(),
    }
}

fn read_death(table: Table<'_>) -> Death {
    let find = |key: &str| table.find(key.as_bytes()).ok().flatten();
    let text = |key: &str| {
        let value = find(key);
        let bytes = value.as_ref().and_then(Value::as_long_string);
        String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
    };
    let keys = match find("routing-keys") {
        Some(Value::Array(keys)) => texts(keys),
        _ => Vec::new(),
    };
    let count = find("count").and_then(|value| value.as_i64());
    Death {
        queue: text("queue"),
        reason: text("reason"),
        count: count
            .and_then(|count| u64::try_from(count).ok())
            .unwrap_or(1),
        exchange: text("exchange"),
        keys,
        time_s: match find("time") {
            Some(Value::Timestamp(seconds)) => seconds,
            _ => 0,
        },
        expiration_ms: text("original-expiration").parse().ok(),
    }
}

fn write(
    out: &mut Vec<u8>,
    headers: Table<'_>,
    (history, new): (&History, &NewDeath<'_>),
    (is_ours, drops_cc): (bool, bool),
) {
    let mut dropped = vec![DEATHS.as_bytes()];
    dropped.extend(LAST.map(str::as_bytes));
    if !is_ours {
        dropped.extend(FIRST.map(str::as_bytes));
    }
    if drops_cc {
        dropped.push(CC.as_bytes());
    }
    let mut writer = TableWriter::new(out);
    // Entries behind one that cannot be read cannot be told apart.
    let _cut_short = writer.copy_without(headers, &dropped);
    writer.array(ShortStr::clip(DEATHS), |items| {
        for death in &history.deaths {
            write_death(items, death);
        }
    });
    let values = [new.exchange, new.queue, new.reason.name()];
    if !is_ours {
        for (name, value) in FIRST.iter().zip(values) {
            writer.value(ShortStr::clip(name), &Value::text(value));
        }
    }
    for (name, value) in LAST.iter().zip(values) {
        writer.value(ShortStr::clip(name), &Value::text(value));
    }
}

fn write_death(items: &mut ArrayWriter<'_>, death: &Death) {
    items.table(|table| {
        if let Some(expiration) = death.expiration_ms {
            let text = expiration.to_string();
            table.value(ShortStr::clip("original-expiration"), &Value::text(&text));
        }
        let count = i64::try_from(death.count).unwrap_or(i64::MAX);
        table.value(ShortStr::clip("count"), &Value::I64(count));
        table.value(ShortStr::clip("reason"), &Value::text(&death.reason));
        table.value(ShortStr::clip("queue"), &Value::text(&death.queue));
        table.value(ShortStr::clip("time"), &Value::Timestamp(death.time_s));
        table.value(ShortStr::clip("exchange"), &Value::text(&death.exchange));
        table.array(ShortStr::clip("routing-keys"), |keys| {
            for key in &death.keys {
                keys.value(&Value::text(key));
            }
        });
    });
}

/// The properties of a message that came through Fila: its headers as strings, its id and time.
pub(super) fn of_fila<'a>(
    headers: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    id: MessageId,
) -> Vec<u8> {
    let mut entries = Vec::new();
    let mut writer = TableWriter::new(&mut entries);
    for (name, value) in headers {
        // A longer name has no place in a table.
        if let (Ok(name), Ok(value)) = (ShortStr::new(name), LongStr::new(value)) {
            writer.value(name, &Value::LongString(value));
        }
    }
    let text = id.to_string();
    let Millis(enqueued_ms) = id.enqueued_at();
    let set = [
        Property::Headers(Table::new(&entries).unwrap_or_default()),
        Property::DeliveryMode(2),
        Property::MessageId(ShortStr::clip(&text)),
        Property::Timestamp(enqueued_ms / 1000),
    ];
    let mut out = Vec::new();
    Properties::EMPTY.edited(&mut out, &set, &[]);
    out
}
