//! What the properties of a message say, whichever protocol they stand in, and what of it another
//! protocol can say.
//!
//! Source: `firemq.md`, "Interoperability with AMQP 0-9-1"; `broker-model`, "Across the doors".

use std::collections::BTreeMap;

use tanda_wire::amqp::{self, Properties, Table};
use tanda_wire::firemq::{self, RawMap};
use tanda_wire::mapping::FireMessage;

/// The protocol by which a message came or went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Amqp,
    Fire,
}

/// A value in terms of no protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plain {
    Nil,
    Bool(bool),
    /// Whole numbers and moments in seconds.
    Whole(i128),
    /// The bits of a 64 bit float.
    Real(u64),
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// `None`: the protocol does not say it to consumers.
    pub(crate) is_persistent: Option<bool>,
    /// By AMQP's names. What is empty or 0 is absent.
    pub(crate) props: BTreeMap<&'static str, Plain>,
    pub(crate) headers: Vec<(String, Plain)>,
}

impl Told {
    /// Reads properties as they stand on the wire of a protocol; those of FireMQ are `props` and
    /// `headers` behind each other, as [`FireMessage`] keeps them.
    pub(crate) fn read(door: Door, raw: &[u8]) -> Option<Self> {
        match door {
            Door::Amqp => of_amqp(raw),
            Door::Fire => Some(of_fire(raw)),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&Plain> {
        let mut found = self.headers.iter().filter(|(key, _)| key == name);
        found.next().map(|(_, value)| value)
    }

    /// What a consumer of this protocol hears of it.
    pub(crate) fn at(mut self, door: Door, is_persistent: bool) -> Self {
        match door {
            Door::Amqp => {
                self.is_persistent = Some(is_persistent);
                for (_, value) in &mut self.headers {
                    value.clip();
                }
            }
            Door::Fire => self.is_persistent = None,
        }
        self
    }

    /// Without what the broker adds or removes when a message came back, or died.
    pub(crate) fn without_history(mut self, has_died: bool) -> Self {
        let is_history = |name: &str| {
            name == "x-delivery-count"
                || has_died
                    && (name == "x-death"
                        || name == "CC"
                        || name.starts_with("x-first-death-")
                        || name.starts_with("x-last-death-"))
        };
        self.headers.retain(|(name, _)| !is_history(name));
        if has_died {
            self.props.remove("expiration");
        }
        self
    }
}

impl Plain {
    /// AMQP's whole numbers are signed: larger ones are texts there.
    fn clip(&mut self) {
        match self {
            Self::Whole(value) if *value > i128::from(i64::MAX) => {
                *self = Self::Text(value.to_string());
            }
            Self::List(items) => items.iter_mut().for_each(Self::clip),
            Self::Map(entries) => entries.iter_mut().for_each(|(_, value)| value.clip()),
            Self::Nil
            | Self::Bool(_)
            | Self::Whole(_)
            | Self::Real(_)
            | Self::Text(_)
            | Self::Bytes(_) => {}
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self {
            Some(text)
        } else {
            None
        }
    }

    pub(crate) fn whole(&self) -> Option<u64> {
        if let Self::Whole(value) = self {
            u64::try_from(*value).ok()
        } else {
            None
        }
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        match str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Bytes(bytes.to_vec()),
        }
    }
}

fn put(props: &mut BTreeMap<&'static str, Plain>, name: &'static str, value: Plain) {
    let is_absent = value == Plain::Whole(0) || value == Plain::Text(String::new());
    if !is_absent {
        props.insert(name, value);
    }
}

fn of_amqp(raw: &[u8]) -> Option<Told> {
    let values = Properties::decode(raw).ok()?.values();
    let mut props = BTreeMap::new();
    let texts = [
        ("content-type", values.content_type),
        ("content-encoding", values.content_encoding),
        ("correlation-id", values.correlation_id),
        ("reply-to", values.reply_to),
        ("message-id", values.message_id),
        ("type", values.message_type),
        ("user-id", values.user_id),
        ("app-id", values.app_id),
    ];
    for (name, value) in texts {
        if let Some(value) = value {
            put(&mut props, name, Plain::of_bytes(value.as_bytes()));
        }
    }
    let expiration = values
        .expiration
        .and_then(|text| text.to_str().ok()?.parse().ok());
    let numbers = [
        ("expiration", expiration),
        ("timestamp", values.timestamp),
        ("priority", values.priority.map(u64::from)),
    ];
    for (name, value) in numbers {
        if let Some(value) = value {
            put(&mut props, name, Plain::Whole(value.into()));
        }
    }
    Some(Told {
        is_persistent: Some(values.delivery_mode == Some(2)),
        props,
        headers: of_table(values.headers.unwrap_or_default())?,
    })
}

fn of_table(table: Table<'_>) -> Option<Vec<(String, Plain)>> {
    let entries = table.iter().map(|entry| {
        let entry = entry.ok()?;
        let key = String::from_utf8_lossy(entry.key.as_bytes()).into_owned();
        Some((key, of_amqp_value(&entry.value)?))
    });
    entries.collect()
}

fn of_amqp_value(value: &amqp::Value<'_>) -> Option<Plain> {
    Some(match *value {
        amqp::Value::Void => Plain::Nil,
        amqp::Value::Bool(value) => Plain::Bool(value),
        amqp::Value::I8(value) => Plain::Whole(value.into()),
        amqp::Value::U8(value) => Plain::Whole(value.into()),
        amqp::Value::I16(value) => Plain::Whole(value.into()),
        amqp::Value::U16(value) => Plain::Whole(value.into()),
        amqp::Value::I32(value) => Plain::Whole(value.into()),
        amqp::Value::U32(value) => Plain::Whole(value.into()),
        amqp::Value::I64(value) => Plain::Whole(value.into()),
        amqp::Value::Timestamp(value) => Plain::Whole(value.into()),
        amqp::Value::F32(value) => Plain::Real(f64::from(value).to_bits()),
        amqp::Value::F64(value) => Plain::Real(value.to_bits()),
        amqp::Value::Decimal { scale, value } => {
            let float = format!("{value}e-{scale}").parse::<f64>();
            Plain::Real(float.ok()?.to_bits())
        }
        amqp::Value::LongString(text) => Plain::of_bytes(text.as_bytes()),
        amqp::Value::Bytes(bytes) => Plain::Bytes(bytes.as_bytes().to_vec()),
        amqp::Value::Array(items) => {
            let items = items.iter().map(|item| of_amqp_value(&item.ok()?.value));
            Plain::List(items.collect::<Option<_>>()?)
        }
        amqp::Value::Table(table) => Plain::Map(of_table(table)?),
    })
}

fn of_fire(raw: &[u8]) -> Told {
    let message = FireMessage::decode(raw);
    let fields = message.props.fields();
    let mut props = BTreeMap::new();
    let texts = [
        ("content-type", fields.content_type),
        ("content-encoding", fields.content_encoding),
        ("correlation-id", fields.correlation_id),
        ("reply-to", fields.reply_to),
        ("message-id", fields.message_id),
        ("type", fields.kind),
        ("user-id", fields.user_id),
        ("app-id", fields.app_id),
    ];
    for (name, value) in texts {
        put(&mut props, name, Plain::Text(value.to_owned()));
    }
    let numbers = [
        ("expiration", fields.expiration_ms),
        ("timestamp", fields.timestamp_s),
        ("priority", u64::from(fields.priority)),
    ];
    for (name, value) in numbers {
        put(&mut props, name, Plain::Whole(value.into()));
    }
    Told {
        is_persistent: None,
        props,
        headers: of_map(message.headers),
    }
}

fn of_map(map: RawMap<'_>) -> Vec<(String, Plain)> {
    let entries = map.iter().map(|(key, value)| {
        let key = of_fire_value(&key);
        (
            key.text().unwrap_or_default().to_owned(),
            of_fire_value(&value),
        )
    });
    entries.collect()
}

fn of_fire_value(value: &firemq::Value<'_>) -> Plain {
    match *value {
        firemq::Value::Nil => Plain::Nil,
        firemq::Value::Bool(value) => Plain::Bool(value),
        firemq::Value::Uint(value) => Plain::Whole(value.into()),
        firemq::Value::Int(value) => Plain::Whole(value.into()),
        firemq::Value::F32(value) => Plain::Real(f64::from(value).to_bits()),
        firemq::Value::F64(value) => Plain::Real(value.to_bits()),
        firemq::Value::Str(text) => Plain::Text(text.to_owned()),
        firemq::Value::Bin(bytes) => Plain::Bytes(bytes.to_vec()),
        firemq::Value::Array(items) => {
            Plain::List(items.iter().map(|item| of_fire_value(&item)).collect())
        }
        firemq::Value::Map(map) => Plain::Map(of_map(map)),
        firemq::Value::Ext { data, .. } => match value.timestamp_s() {
            Some(seconds) => Plain::Whole(seconds.into()),
            None => Plain::Bytes(data.to_vec()),
        },
    }
}
