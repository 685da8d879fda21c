//! Properties of FireMQ and AMQP as each other.

use super::fire_to_amqp::write_amqp_table;
use super::scalar::bytes_text;
use super::{Limit, MapError};
use crate::amqp::{self, PropertyValues, ShortStr, Table};
use crate::firemq::writer::MapWriter;
use crate::firemq::{Props, RawMap, Value};

/// The delivery mode of messages that outlive a restart.
pub(super) const DELIVERY_MODE_PERSISTENT: u8 = 2;

/// What a FireMQ message says of itself, beside its exchange and key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FireMessage<'a> {
    /// Its `persistent`.
    pub persistent: bool,
    /// Its `props`.
    pub props: Props<'a>,
    /// Its `headers`.
    pub headers: RawMap<'a>,
}

/// The bit of [`FireMessage::head`] that says persistent.
const PERSISTENT: u32 = 1 << 31;

impl<'a> FireMessage<'a> {
    /// The four bytes before the `props` of a message that is kept: their length, and whether it is
    /// persistent in the highest bit.
    #[must_use]
    pub fn head(persistent: bool, props_bytes: usize) -> [u8; 4] {
        let len = u32::try_from(props_bytes).map_or(PERSISTENT - 1, |len| len & !PERSISTENT);
        debug_assert_eq!(len as usize, props_bytes, "props fit a frame");
        (len | if persistent { PERSISTENT } else { 0 }).to_be_bytes()
    }

    /// Appends what is kept of it: [`FireMessage::head`], then `props`, then `headers`.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        let props = self.props.as_bytes();
        out.extend_from_slice(&Self::head(self.persistent, props.len()));
        out.extend_from_slice(props);
        out.extend_from_slice(self.headers.as_bytes());
    }

    /// Reads what [`FireMessage::encode`] wrote, without a look into the maps; a transient message
    /// without properties when the bytes are cut short.
    #[inline]
    #[must_use]
    pub fn decode(kept: &'a [u8]) -> Self {
        let parts = kept.split_first_chunk::<4>().and_then(|(head, rest)| {
            let head = u32::from_be_bytes(*head);
            let (props, headers) = rest.split_at_checked((head & !PERSISTENT) as usize)?;
            Some((head & PERSISTENT != 0, props, headers))
        });
        let (persistent, props, headers) = parts.unwrap_or_default();
        Self {
            persistent,
            props: Props::from_checked(props),
            headers: RawMap::from_checked(headers),
        }
    }
}

/// Appends the properties that a FireMQ message has in AMQP: what [`amqp::Properties::decode`]
/// reads. Properties longer than 255 bytes are left out, see [`super`].
///
/// # Errors
/// Those of [`write_amqp_table`].
pub fn write_amqp_properties(
    out: &mut Vec<u8>,
    message: &FireMessage<'_>,
    bytes_max: usize,
) -> Result<(), MapError> {
    let limit = Limit::new(out.len(), bytes_max);
    let mut entries = Vec::new();
    write_amqp_table(&mut entries, message.headers, bytes_max)?;
    let headers = Table::new(&entries)?;
    let props = message.props.fields();
    let expiration = props.expiration_ms.to_string();
    let values = PropertyValues {
        content_type: short(props.content_type),
        content_encoding: short(props.content_encoding),
        headers: (!headers.is_empty()).then_some(headers),
        delivery_mode: message.persistent.then_some(DELIVERY_MODE_PERSISTENT),
        priority: (props.priority != 0).then_some(props.priority),
        correlation_id: short(props.correlation_id),
        reply_to: short(props.reply_to),
        expiration: (props.expiration_ms != 0)
            .then_some(expiration.as_str())
            .and_then(short),
        message_id: short(props.message_id),
        timestamp: (props.timestamp_s != 0).then_some(props.timestamp_s),
        message_type: short(props.kind),
        user_id: short(props.user_id),
        app_id: short(props.app_id),
        cluster_id: None,
    };
    values.encode(out);
    limit.or_take_back(out, Ok(()))
}

/// A property, if there is one and it fits.
fn short(text: &str) -> Option<ShortStr<'_>> {
    let text = ShortStr::try_from(text).ok()?;
    (!text.is_empty()).then_some(text)
}

/// Appends the `props` that AMQP properties become: the bytes of a [`Props`]. Their headers are
/// for [`super::write_fire_map`].
pub fn write_fire_props(out: &mut Vec<u8>, properties: &amqp::Properties<'_>) {
    let values = properties.values();
    let texts = [
        ("content_type", values.content_type),
        ("content_encoding", values.content_encoding),
        ("correlation_id", values.correlation_id),
        ("reply_to", values.reply_to),
        ("message_id", values.message_id),
        ("type", values.message_type),
        ("user_id", values.user_id),
        ("app_id", values.app_id),
    ];
    let numbers = [
        ("expiration", values.expiration.and_then(expiration_ms)),
        ("timestamp", values.timestamp),
        ("priority", values.priority.map(u64::from)),
    ];
    let mut map = MapWriter::begin(out);
    for (key, text) in texts {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            map.entry(key, &Value::Str(&bytes_text(text.as_bytes())));
        }
    }
    for (key, number) in numbers {
        if let Some(number) = number.filter(|number| *number != 0) {
            map.entry(key, &Value::Uint(number));
        }
    }
    map.finish();
}

/// The milliseconds of an expiration; `None` when it is no number.
fn expiration_ms(text: ShortStr<'_>) -> Option<u64> {
    let digits = text.as_bytes().iter().all(u8::is_ascii_digit);
    text.to_str().ok().filter(|_| digits)?.parse().ok()
}
