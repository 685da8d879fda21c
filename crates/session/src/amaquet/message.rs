//! Messages on their way in, in the envelope that every door can read.

use std::collections::BTreeMap;

use tanda_engine::{Form, PublishItem, Span};
use tanda_wire::amaquet::Payload;
use tanda_wire::amaquet::command::{FieldProblem, RequestError, TextFields};
use tanda_wire::amqp::{LongStr, PropertyValues, ShortStr, Table, TableWriter, Value};

use crate::batch::position;
use crate::convert::to_amaquet::content_type;
use crate::envelope::Envelope;

/// Longest name of a header, exchange, routing key, in bytes.
pub(super) const NAME_BYTES_MAX: usize = 255;

/// AMQP's number for messages that are written to disk.
const PERSISTENT: u8 = 2;

/// Where a message goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address<'a> {
    pub(super) exchange: &'a str,
    pub(super) key: &'a str,
}

/// Appends the envelope of a message whose names are no longer than [`NAME_BYTES_MAX`].
///
/// # Errors
/// A header cannot be one of AMQP's.
pub(super) fn write_message(
    data: &mut Vec<u8>,
    address: Address<'_>,
    payload: &Payload<'_>,
    headers: &TextFields<'_>,
) -> Result<PublishItem, RequestError> {
    let table = header_table(headers)?;
    let headers = Table::new(&table).unwrap_or(Table::EMPTY);
    let values = PropertyValues {
        content_type: Some(ShortStr::clip(content_type(payload))),
        headers: (!headers.is_empty()).then_some(headers),
        delivery_mode: Some(PERSISTENT),
        ..PropertyValues::default()
    };
    let start = data.len();
    let (exchange, key) = (address.exchange.as_bytes(), address.key.as_bytes());
    Envelope::write_names(data, exchange, key);
    data.extend_from_slice(&position(values.encoded_size()).to_be_bytes());
    values.encode(data);
    let body: &[u8] = match payload {
        Payload::Json(text) | Payload::Text(text) => text.as_bytes(),
        Payload::Bytes(bytes) => bytes,
    };
    data.extend_from_slice(&position(body.len()).to_be_bytes());
    data.extend_from_slice(body);
    Ok(PublishItem {
        content: span_since(data, start),
        form: Form::Amqp,
        ..PublishItem::default()
    })
}

/// Appends a text.
pub(super) fn append(data: &mut Vec<u8>, text: &str) -> Span {
    let start = data.len();
    data.extend_from_slice(text.as_bytes());
    span_since(data, start)
}

fn span_since(data: &[u8], start: usize) -> Span {
    Span {
        start: position(start),
        len: position(data.len() - start),
    }
}

/// The entries of a table of AMQP; of headers with the same name the last counts.
fn header_table(headers: &TextFields<'_>) -> Result<Vec<u8>, RequestError> {
    let mut table = Vec::new();
    if headers.0.is_empty() {
        return Ok(table);
    }
    let mut last = BTreeMap::new();
    for (at, (name, _)) in headers.0.iter().enumerate() {
        last.insert(&**name, at);
    }
    let mut writer = TableWriter::new(&mut table);
    for (at, (name, value)) in headers.0.iter().enumerate() {
        if last.get(&**name) != Some(&at) {
            continue;
        }
        let (Ok(name), Ok(value)) = (ShortStr::try_from(&**name), LongStr::try_from(&**value))
        else {
            return Err(RequestError::Field {
                path: "headers".to_owned(),
                problem: FieldProblem::OutOfLimits {
                    found: format!("with a name of {} bytes", name.len()),
                    limits: format!("with names of at most {NAME_BYTES_MAX} bytes"),
                },
            });
        };
        writer.value(name, &Value::LongString(value));
    }
    Ok(table)
}
