//! Messages enqueued by Fila, whose headers are texts, for AMQP and FireMQ.

use std::collections::BTreeSet;

use super::properties::DELIVERY_MODE_PERSISTENT;
use super::{Limit, MapError};
use crate::amqp::{self, LongStr, PropertyValues, ShortStr, Table, TableWriter};
use crate::fila::{Headers, MessageId};
use crate::firemq::writer::MapWriter;
use crate::firemq::{self, Value};

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
        let mut seen = BTreeSet::new();
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
