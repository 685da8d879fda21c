//! Fila's headers, which are texts, from and to properties and headers of AMQP and FireMQ.

use std::borrow::Cow;

use super::entries::{amqp_entries, fire_entries};
use super::properties::{DELIVERY_MODE_PERSISTENT, FireMessage};
use super::scalar::{Shape, amqp_shape, bytes_text, fire_shape};
use super::{Limit, MapError, json};
use crate::amqp::{self, LongStr, PropertyValues, ShortStr, Table, TableWriter};
use crate::fila::{Headers, MessageId};
use crate::firemq::writer::MapWriter;
use crate::firemq::{self, Value};

/// A header of Fila.
type Pair<'a> = (Cow<'a, str>, Cow<'a, str>);

/// Headers of Fila in the making.
struct Pairs<'a> {
    pairs: Vec<Pair<'a>>,
    /// Of all names and values.
    bytes: usize,
    limit: Limit,
}

impl<'a> Pairs<'a> {
    const fn new(limit: Limit) -> Self {
        Self {
            pairs: Vec::new(),
            bytes: 0,
            limit,
        }
    }

    fn push(&mut self, name: Cow<'a, str>, value: Cow<'a, str>) -> Result<(), MapError> {
        self.bytes = self.bytes.saturating_add(name.len() + value.len());
        self.limit.check(self.bytes)?;
        self.pairs.push((name, value));
        Ok(())
    }

    /// Adds a property that is a text, unless it is empty.
    fn text(&mut self, name: &'static str, value: &'a str) -> Result<(), MapError> {
        if value.is_empty() {
            return Ok(());
        }
        self.push(name.into(), value.into())
    }

    /// Adds a property that is a number, unless it is 0.
    fn number(&mut self, name: &'static str, value: u64) -> Result<(), MapError> {
        if value == 0 {
            return Ok(());
        }
        self.push(name.into(), value.to_string().into())
    }

    fn write(self, out: &mut Vec<u8>) -> Result<(), MapError> {
        let start = out.len();
        let pairs = self.pairs.iter();
        let written = Headers::encode_pairs(out, pairs.map(|(name, value)| (name, value)));
        if written.is_err() {
            out.truncate(start);
        }
        Ok(written?)
    }
}

/// Appends the headers that a FireMQ message has for Fila's consumers: the bytes of a
/// [`Headers`].
///
/// `bytes_max` bounds the message's headers and the result.
///
/// # Errors
/// `TooLarge`, or `Fila` for a name or value of more than 65,535 bytes.
pub fn write_fila_headers_of_fire(
    out: &mut Vec<u8>,
    message: &FireMessage<'_>,
    bytes_max: usize,
) -> Result<(), MapError> {
    let limit = Limit::new(0, bytes_max);
    limit.check_input(message.headers.as_bytes())?;
    let props = message.props.fields();
    let mut pairs = Pairs::new(limit);
    if message.persistent {
        pairs.number("amqp.delivery_mode", DELIVERY_MODE_PERSISTENT.into())?;
    }
    pairs.text("amqp.content_type", props.content_type)?;
    pairs.text("amqp.content_encoding", props.content_encoding)?;
    pairs.number("amqp.priority", props.priority.into())?;
    pairs.text("amqp.correlation_id", props.correlation_id)?;
    pairs.text("amqp.reply_to", props.reply_to)?;
    pairs.number("amqp.expiration", props.expiration_ms)?;
    pairs.text("amqp.message_id", props.message_id)?;
    pairs.number("amqp.timestamp", props.timestamp_s)?;
    pairs.text("amqp.type", props.kind)?;
    pairs.text("amqp.user_id", props.user_id)?;
    pairs.text("amqp.app_id", props.app_id)?;
    for (name, value) in fire_entries(message.headers) {
        let text = match fire_shape(&value) {
            Shape::Scalar(scalar) => scalar.text(),
            Shape::Array(_) | Shape::Map(_) => {
                let mut text = String::new();
                json::write_fire(&mut text, &value, limit)?;
                text.into()
            }
        };
        pairs.push(name, text)?;
    }
    pairs.write(out)
}

/// Appends the headers that an AMQP message has for Fila's consumers: the bytes of a [`Headers`].
///
/// `bytes_max` bounds the properties and the result.
///
/// # Errors
/// `Table` when the headers break their layout, `TooLarge`, or `Fila` for a name or value of more
/// than 65,535 bytes.
pub fn write_fila_headers_of_amqp(
    out: &mut Vec<u8>,
    properties: &amqp::Properties<'_>,
    bytes_max: usize,
) -> Result<(), MapError> {
    let limit = Limit::new(0, bytes_max);
    limit.check_input(properties.raw())?;
    let values = properties.values();
    let mut pairs = Pairs::new(limit);
    for (name, value) in property_texts(&values) {
        if let Some(value) = value {
            pairs.push(name.into(), value)?;
        }
    }
    for entry in amqp_entries(values.headers.unwrap_or_default()) {
        let (name, value) = entry?;
        let text = match amqp_shape(&value) {
            Shape::Scalar(scalar) => scalar.text(),
            Shape::Array(_) | Shape::Map(_) => {
                let mut text = String::new();
                json::write_amqp(&mut text, &value, limit)?;
                text.into()
            }
        };
        pairs.push(name, text)?;
    }
    pairs.write(out)
}

/// The properties as texts, headers aside. What is there but empty or 0 stays there.
fn property_texts<'a>(values: &PropertyValues<'a>) -> [(&'static str, Option<Cow<'a, str>>); 13] {
    let text = |value: Option<ShortStr<'a>>| value.map(|value| bytes_text(value.as_bytes()));
    let number = |value: Option<u64>| value.map(|value| value.to_string().into());
    [
        ("amqp.content_type", text(values.content_type)),
        ("amqp.content_encoding", text(values.content_encoding)),
        (
            "amqp.delivery_mode",
            number(values.delivery_mode.map(u64::from)),
        ),
        ("amqp.priority", number(values.priority.map(u64::from))),
        ("amqp.correlation_id", text(values.correlation_id)),
        ("amqp.reply_to", text(values.reply_to)),
        ("amqp.expiration", text(values.expiration)),
        ("amqp.message_id", text(values.message_id)),
        ("amqp.timestamp", number(values.timestamp)),
        ("amqp.type", text(values.message_type)),
        ("amqp.user_id", text(values.user_id)),
        ("amqp.app_id", text(values.app_id)),
        ("amqp.cluster_id", text(values.cluster_id)),
    ]
}

/// What a message enqueued by Fila says of itself, for consumers of AMQP and FireMQ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilaMessage<'a> {
    /// Its ID, which becomes the message-id: the UUID as text.
    pub message_id: MessageId,
    /// When it was stored, in milliseconds since 1970.
    pub enqueued_at_ms: u64,
    /// Its headers, which stay texts.
    pub headers: Headers<'a>,
}

impl FilaMessage<'_> {
    /// Appends its properties for AMQP: what [`amqp::Properties::decode`] reads. It is persistent.
    /// Headers with names longer than 255 bytes are left out, see [`super`].
    ///
    /// # Errors
    /// `TooLarge`, when headers or properties are larger than `bytes_max`.
    pub fn write_amqp_properties(
        &self,
        out: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<(), MapError> {
        let limit = Limit::new(out.len(), bytes_max);
        limit.check_input(self.headers.as_bytes())?;
        let mut entries = Vec::new();
        let mut writer = TableWriter::new(&mut entries);
        for (name, value) in self.first_headers() {
            if let Ok(name) = ShortStr::try_from(name) {
                writer.value(name, &amqp::Value::LongString(LongStr::try_from(value)?));
            }
        }
        let headers = Table::new(&entries)?;
        let message_id = uuid_text(&self.message_id);
        let values = PropertyValues {
            headers: (!headers.is_empty()).then_some(headers),
            delivery_mode: Some(DELIVERY_MODE_PERSISTENT),
            message_id: Some(ShortStr::clip(&message_id)),
            timestamp: Some(self.enqueued_at_s()),
            ..PropertyValues::default()
        };
        values.encode(out);
        limit.or_take_back(out, Ok(()))
    }

    /// Appends its `props` for FireMQ: the bytes of a [`firemq::Props`].
    pub fn write_fire_props(&self, out: &mut Vec<u8>) {
        let message_id = uuid_text(&self.message_id);
        let props = firemq::Properties {
            message_id: &message_id,
            timestamp_s: self.enqueued_at_s(),
            ..firemq::Properties::default()
        };
        props.encode(out);
    }

    /// Appends its `headers` for FireMQ: the bytes of a [`firemq::RawMap`].
    ///
    /// # Errors
    /// `TooLarge`, when the headers are larger than `bytes_max` in either protocol.
    pub fn write_fire_headers(&self, out: &mut Vec<u8>, bytes_max: usize) -> Result<(), MapError> {
        let limit = Limit::new(out.len(), bytes_max);
        limit.check_input(self.headers.as_bytes())?;
        let mut map = MapWriter::begin(out);
        for (name, value) in self.first_headers() {
            map.entry(name, &Value::Str(value));
        }
        map.finish();
        limit.or_take_back(out, Ok(()))
    }

    /// The headers without those whose name came before.
    fn first_headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut seen = std::collections::BTreeSet::new();
        self.headers
            .iter()
            .filter(move |(name, _)| seen.insert(*name))
    }

    const fn enqueued_at_s(&self) -> u64 {
        self.enqueued_at_ms / 1000
    }
}

/// A UUID as text: 32 lower-case digits in five groups (RFC 9562, section 4).
fn uuid_text(id: &MessageId) -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(*id));
    let mut text = String::with_capacity(36);
    for (at, digit) in digits.chars().enumerate() {
        if matches!(at, 8 | 12 | 16 | 20) {
            text.push('-');
        }
        text.push(digit);
    }
    text
}
