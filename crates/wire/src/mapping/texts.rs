//! What messages of AMQP and FireMQ say of themselves as texts: the headers of Fila.

use std::borrow::Cow;

use super::entries::{amqp_entries, fire_entries};
use super::properties::{DELIVERY_MODE_PERSISTENT, FireMessage};
use super::scalar::{Shape, amqp_shape, bytes_text, fire_shape};
use super::{Limit, MapError, json};
use crate::amqp::{self, PropertyValues, ShortStr};
use crate::fila::Headers;
use crate::firemq;

/// A name and a value.
pub type TextPair<'a> = (Cow<'a, str>, Cow<'a, str>);

/// The headers that a FireMQ message has for Fila, as names and values; its properties first.
///
/// `bytes_max` bounds the message's headers, and all names and values together.
///
/// # Errors
/// `TooLarge`.
pub fn fire_texts<'a>(
    message: &FireMessage<'a>,
    bytes_max: usize,
) -> Result<Vec<TextPair<'a>>, MapError> {
    let limit = Limit::new(0, bytes_max);
    limit.check_input(message.headers.as_bytes())?;
    let props = message.props.fields();
    let delivery_mode = if message.persistent {
        DELIVERY_MODE_PERSISTENT
    } else {
        0
    };
    let mut pairs = Pairs::new(limit);
    pairs.text("amqp.content_type", props.content_type)?;
    pairs.text("amqp.content_encoding", props.content_encoding)?;
    pairs.number("amqp.delivery_mode", delivery_mode.into())?;
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
        pairs.push(name, fire_text(&value, bytes_max)?)?;
    }
    Ok(pairs.pairs)
}

/// The headers that an AMQP message has for Fila, as names and values; its properties first.
///
/// `bytes_max` bounds the properties, and all names and values together.
///
/// # Errors
/// `Table` when the headers break their layout, or `TooLarge`.
pub fn amqp_texts<'a>(
    properties: &amqp::Properties<'a>,
    bytes_max: usize,
) -> Result<Vec<TextPair<'a>>, MapError> {
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
        pairs.push(name, amqp_text(&value, bytes_max)?)?;
    }
    Ok(pairs.pairs)
}

/// A value of FireMQ as the value of a header of Fila.
///
/// # Errors
/// `TooLarge`, when the text of an array or map is larger than `bytes_max`.
pub fn fire_text<'a>(
    value: &firemq::Value<'a>,
    bytes_max: usize,
) -> Result<Cow<'a, str>, MapError> {
    match fire_shape(value) {
        Shape::Scalar(scalar) => Ok(scalar.text()),
        Shape::Array(_) | Shape::Map(_) => {
            let mut text = String::new();
            json::write_fire(&mut text, value, Limit::new(0, bytes_max))?;
            Ok(text.into())
        }
    }
}

/// A value of AMQP as the value of a header of Fila.
///
/// # Errors
/// `Table` when a table or array in it breaks its layout, or `TooLarge` when its text is larger
/// than `bytes_max`.
pub fn amqp_text<'a>(value: &amqp::Value<'a>, bytes_max: usize) -> Result<Cow<'a, str>, MapError> {
    match amqp_shape(value) {
        Shape::Scalar(scalar) => Ok(scalar.text()),
        Shape::Array(_) | Shape::Map(_) => {
            let mut text = String::new();
            json::write_amqp(&mut text, value, Limit::new(0, bytes_max))?;
            Ok(text.into())
        }
    }
}

/// Appends the headers that a FireMQ message has for Fila's consumers: the bytes of a
/// [`Headers`].
///
/// # Errors
/// Those of [`fire_texts`], or `Fila` for a name or value of more than 65,535 bytes.
pub fn write_fila_headers_of_fire(
    out: &mut Vec<u8>,
    message: &FireMessage<'_>,
    bytes_max: usize,
) -> Result<(), MapError> {
    write_pairs(out, &fire_texts(message, bytes_max)?)
}

/// Appends the headers that an AMQP message has for Fila's consumers: the bytes of a [`Headers`].
///
/// # Errors
/// Those of [`amqp_texts`], or `Fila` for a name or value of more than 65,535 bytes.
pub fn write_fila_headers_of_amqp(
    out: &mut Vec<u8>,
    properties: &amqp::Properties<'_>,
    bytes_max: usize,
) -> Result<(), MapError> {
    write_pairs(out, &amqp_texts(properties, bytes_max)?)
}

fn write_pairs(out: &mut Vec<u8>, pairs: &[TextPair<'_>]) -> Result<(), MapError> {
    let start = out.len();
    let pairs = pairs.iter().map(|(name, value)| (name, value));
    let written = Headers::encode_pairs(out, pairs);
    if written.is_err() {
        out.truncate(start);
    }
    Ok(written?)
}

/// Headers of Fila in the making.
struct Pairs<'a> {
    pairs: Vec<TextPair<'a>>,
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
