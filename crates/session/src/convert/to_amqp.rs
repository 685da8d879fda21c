//! Messages of other doors as AMQP delivers them.
//!
//! | from | exchange, routing key | properties |
//! |---|---|---|
//! | Fila | "", the queue | headers as strings, message-id = UUID, timestamp = enqueued at, delivery-mode 2 |
//! | FireMQ | as published | the table of its document |

use tanda_engine::{Content, DeliveryBatch, DeliveryItem, Form};
use tanda_wire::amqp::{LongStr, PropertyValues, ShortStr, Table, TableWriter, Value};

use crate::envelope::Envelope;

/// Properties of a message without any.
const NO_PROPERTIES: &[u8] = &[0, 0];

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
    headers: Vec<u8>,
}

/// Converts a message that another door brought.
pub(crate) fn to_amqp<'a>(
    batch: &'a DeliveryBatch,
    item: &DeliveryItem,
    scratch: &'a mut Scratch,
) -> Message<'a> {
    let bytes = batch.content(item);
    scratch.names.clear();
    scratch.properties.clear();
    match item.form {
        Form::Fila => of_fila(batch, item, bytes, scratch),
        Form::Amqp | Form::Fire => of_envelope(bytes, scratch),
    }
}

fn of_fila<'a>(
    batch: &'a DeliveryBatch,
    item: &DeliveryItem,
    bytes: &'a [u8],
    scratch: &'a mut Scratch,
) -> Message<'a> {
    let Scratch {
        names,
        properties,
        headers,
    } = scratch;
    let content = Content::new(item.form, bytes);
    names.push(0);
    let key = ShortStr::clip(&batch.queue);
    names.push(u8::try_from(key.len()).unwrap_or(u8::MAX));
    names.extend_from_slice(key.as_bytes());
    headers.clear();
    let mut writer = TableWriter::new(headers);
    for (name, value) in content.headers() {
        let name = String::from_utf8_lossy(&name);
        if let Ok(value) = LongStr::new(&value) {
            writer.value(ShortStr::clip(&name), &Value::LongString(value));
        }
    }
    let id = uuid_text(item.id.to_bytes());
    let values = PropertyValues {
        headers: Table::new(headers).ok().filter(|table| !table.is_empty()),
        delivery_mode: Some(2),
        message_id: Some(ShortStr::clip(&id)),
        timestamp: Some(item.id.enqueued_at().0 / 1_000),
        ..PropertyValues::default()
    };
    values.encode(properties);
    Message {
        names,
        properties,
        body: content.payload().unwrap_or_default(),
    }
}

/// An envelope whose properties are another protocol's.
fn of_envelope<'a>(bytes: &'a [u8], scratch: &'a mut Scratch) -> Message<'a> {
    match Envelope::read(bytes) {
        Some(envelope) => Message {
            names: envelope.names,
            properties: NO_PROPERTIES,
            body: envelope.body,
        },
        None => {
            scratch.names.extend_from_slice(&[0, 0]);
            Message {
                names: &scratch.names,
                properties: NO_PROPERTIES,
                body: &[],
            }
        }
    }
}

/// The text of a UUID: 32 hexadecimal digits in five groups.
fn uuid_text(bytes: [u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_has_five_groups() {
        let bytes = core::array::from_fn(|at| u8::try_from(at * 17).unwrap());
        assert_eq!(uuid_text(bytes), "00112233-4455-6677-8899-aabbccddeeff");
    }
}
