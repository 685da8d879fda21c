//! Messages of other doors as AMQP delivers them.
//!
//! | from | exchange, routing key | properties |
//! |---|---|---|
//! | Fila | "", the queue | headers as texts, the rest from what the broker knows |
//! | FireMQ | as published | as [`tanda_wire::mapping`] says, persistent or not as it was |
//!
//! What does not fit the peer's frames is delivered without its headers.

use tanda_engine::{Content, DeliveryBatch, DeliveryItem, Form};
use tanda_wire::amqp::ShortStr;
use tanda_wire::fila::headers::Headers;
use tanda_wire::firemq::RawMap;
use tanda_wire::mapping::{FilaMessage, FireMessage, write_amqp_properties};

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
}

/// Converts a message that another door brought. Its properties get `properties_max` bytes.
pub(crate) fn to_amqp<'a>(
    batch: &'a DeliveryBatch,
    item: &DeliveryItem,
    properties_max: usize,
    scratch: &'a mut Scratch,
) -> Message<'a> {
    let bytes = batch.content(item);
    scratch.names.clear();
    scratch.properties.clear();
    match item.form {
        Form::Fila => of_fila(batch, item, properties_max, scratch),
        Form::Amqp | Form::Fire => of_envelope(bytes, properties_max, scratch),
    }
}

fn of_fila<'a>(
    batch: &'a DeliveryBatch,
    item: &DeliveryItem,
    properties_max: usize,
    scratch: &'a mut Scratch,
) -> Message<'a> {
    let Scratch { names, properties } = scratch;
    let bytes = batch.content(item);
    let key = ShortStr::clip(&batch.queue);
    names.extend_from_slice(&[0, u8::try_from(key.len()).unwrap_or(u8::MAX)]);
    names.extend_from_slice(key.as_bytes());
    let message = FilaMessage {
        message_id: item.id.to_bytes(),
        enqueued_at_ms: item.id.enqueued_at().0,
        headers: Headers::decode(bytes).unwrap_or_default(),
    };
    if message
        .write_amqp_properties(properties, properties_max)
        .is_err()
    {
        let message = FilaMessage {
            headers: Headers::default(),
            ..message
        };
        without_headers(properties, |out| {
            message.write_amqp_properties(out, usize::MAX)
        });
    }
    Message {
        names,
        properties,
        body: Content::new(item.form, bytes).payload().unwrap_or_default(),
    }
}

/// An envelope whose properties are those of FireMQ.
fn of_envelope<'a>(
    bytes: &'a [u8],
    properties_max: usize,
    scratch: &'a mut Scratch,
) -> Message<'a> {
    let Scratch { names, properties } = scratch;
    let Some(envelope) = Envelope::read(bytes) else {
        names.extend_from_slice(&[0, 0]);
        properties.extend_from_slice(&[0, 0]);
        return Message {
            names,
            properties,
            body: &[],
        };
    };
    let message = FireMessage::decode(envelope.properties);
    if write_amqp_properties(properties, &message, properties_max).is_err() {
        let message = FireMessage {
            headers: RawMap::default(),
            ..message
        };
        without_headers(properties, |out| {
            write_amqp_properties(out, &message, usize::MAX)
        });
    }
    Message {
        names: envelope.names,
        properties,
        body: envelope.body,
    }
}

/// Writes properties again, after their headers were too large.
fn without_headers<E>(properties: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) {
    properties.clear();
    if write(properties).is_err() {
        properties.clear();
        properties.extend_from_slice(&[0, 0]);
    }
}
