//! Messages of other doors as AMQP delivers them.
//!
//! | from | exchange, routing key | properties |
//! |---|---|---|
//! | Fila | "", the queue | headers as texts, the rest from what the broker knows |
//! | FireMQ | as published | as [`tanda_wire::mapping`] says, persistent or not as it was |
//! | AMQP | as published | as they came |
//!
//! What does not fit the peer's frames is not delivered to it: properties cannot be split, and a
//! client that agreed on small frames ends a connection that brings it a larger one.

use tanda_engine::{Content, DeliveryBatch, DeliveryItem, Form};
use tanda_wire::amqp::{Properties, Property, ShortStr, Table, TableWriter, Value};
use tanda_wire::fila::headers::Headers;
use tanda_wire::mapping::{FilaMessage, FireMessage, write_amqp_properties};

use super::Unfit;
use crate::envelope::Envelope;

/// A message in AMQP's terms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message<'a> {
    /// Exchange and routing key as short strings.
    pub(crate) names: &'a [u8],
    /// Property flags and values.
    pub(crate) properties: &'a [u8],
    /// The body.
    pub(crate) body: &'a [u8],
}

/// What converted messages are made in; reused between them.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    names: Vec<u8>,
    properties: Vec<u8>,
    counted: Vec<u8>,
}

/// The header that says how often a message came back.
const COUNT: &str = "x-delivery-count";

/// Converts a message for AMQP, and says how often it came back. Its properties get
/// `properties_max` bytes.
///
/// # Errors
/// They would need more.
pub(crate) fn to_amqp<'a>(
    batch: &'a DeliveryBatch,
    item: &DeliveryItem,
    properties_max: usize,
    scratch: &'a mut Scratch,
) -> Result<Message<'a>, Unfit> {
    let Scratch {
        names,
        properties,
        counted,
    } = scratch;
    names.clear();
    properties.clear();
    counted.clear();
    let mut message = match item.form {
        Form::Fila => of_fila(batch, item, properties_max, (names, properties))?,
        Form::Amqp | Form::Fire => of_envelope(batch, item, properties_max, (names, properties))?,
    };
    let returns = batch.returns(item);
    if returns > 0 && count(message.properties, returns, counted) {
        message.properties = counted;
    }
    if message.properties.len() > properties_max {
        return Err(Unfit);
    }
    Ok(message)
}

/// Appends properties with the header that says how often the message came back; false and nothing
/// where they cannot be read.
fn count(properties: &[u8], returns: u32, out: &mut Vec<u8>) -> bool {
    let Ok(old) = Properties::decode(properties) else {
        return false;
    };
    let mut headers = Vec::new();
    let mut writer = TableWriter::new(&mut headers);
    let copied = writer.copy_without(old.headers().unwrap_or_default(), &[COUNT.as_bytes()]);
    writer.value(ShortStr::clip(COUNT), &Value::I64(returns.into()));
    let (Ok(()), Ok(headers)) = (copied, Table::new(&headers)) else {
        return false;
    };
    old.with(out, Property::Headers(headers));
    true
}

fn of_fila<'a>(
    batch: &'a DeliveryBatch,
    item: &DeliveryItem,
    properties_max: usize,
    (names, properties): (&'a mut Vec<u8>, &'a mut Vec<u8>),
) -> Result<Message<'a>, Unfit> {
    let bytes = batch.content(item);
    let key = ShortStr::clip(&batch.queue);
    names.extend_from_slice(&[0, u8::try_from(key.len()).unwrap_or(u8::MAX)]);
    names.extend_from_slice(key.as_bytes());
    let message = FilaMessage {
        message_id: item.id.to_bytes(),
        enqueued_at_ms: item.id.enqueued_at().0,
        headers: Headers::decode(bytes).unwrap_or_default(),
    };
    message.write_amqp_properties(properties, properties_max)?;
    Ok(Message {
        names,
        properties,
        body: Content::new(item.form, bytes).payload().unwrap_or_default(),
    })
}

/// A message of AMQP or FireMQ.
fn of_envelope<'a>(
    batch: &'a DeliveryBatch,
    item: &DeliveryItem,
    properties_max: usize,
    (names, properties): (&'a mut Vec<u8>, &'a mut Vec<u8>),
) -> Result<Message<'a>, Unfit> {
    let Some(envelope) = Envelope::read(batch.content(item)) else {
        names.extend_from_slice(&[0, 0]);
        properties.extend_from_slice(&[0, 0]);
        return Ok(Message {
            names,
            properties,
            body: &[],
        });
    };
    let properties = if item.form == Form::Fire {
        let message = FireMessage::decode(envelope.properties);
        write_amqp_properties(properties, &message, properties_max)?;
        properties
    } else {
        envelope.properties
    };
    Ok(Message {
        names: envelope.names,
        properties,
        body: envelope.body,
    })
}
