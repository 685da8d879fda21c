//! What the properties and headers of a published message say to the broker.
//!
//! Headers stay in the bytes they came in; only `BCC`, which nobody may see, and a pseudo address
//! for replies make new ones.

use tanda_engine::{Form, PublishItem, PublishTarget, Span};
use tanda_wire::amqp::{
    Edit, Properties, Property, ReplyCode, ShortStr, Table, TableWriter, Value,
};

use super::fault::Fault;
use crate::batch::position;
use crate::login::Identity;

/// Where replies go directly (RabbitMQ's direct reply-to).
pub(super) const REPLY_TO: &str = "amq.rabbitmq.reply-to";

/// The largest `expiration` in milliseconds, as RabbitMQ has it: some 49 days.
const EXPIRATION_MS_MAX: u64 = u32::MAX as u64;

/// What a message is checked against.
pub(super) struct Publisher<'a> {
    /// Who publishes.
    pub(super) identity: &'a dyn Identity,
    /// The queue for replies to this channel, if it consumes them.
    pub(super) reply_queue: Option<&'a str>,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Ranges count from the start of the properties.
    pub(super) item: PublishItem,
    /// More routing keys, in the properties.
    pub(super) cc: Vec<Span>,
    /// More routing keys, which are not in the properties any more.
    pub(super) bcc: Vec<Vec<u8>>,
    /// A fairness key that is a number in the headers.
    pub(super) number_key: Option<String>,
    /// The properties to pass on, when they are not those that came.
    pub(super) rewritten: Option<Vec<u8>>,
}

/// Checks the properties of a message.
///
/// # Errors
/// What RabbitMQ refuses, with its texts.
#[inline]
pub(super) fn check(raw: Properties<'_>, publisher: &Publisher<'_>) -> Result<Found, Fault> {
    let mut found = Found {
        item: PublishItem {
            target: PublishTarget::Route,
            form: Form::Amqp,
            priority: raw.priority().unwrap_or(0),
            transient: raw.delivery_mode() != Some(2),
            ..PublishItem::default()
        },
        ..Found::default()
    };
    // Flags of what has to be looked at; most messages have none of them.
    if let Some(expiration) = raw.expiration() {
        found.item.ttl_ms = Some(check_expiration(expiration)?);
    }
    if let Some(user) = raw.user_id() {
        check_user(user, publisher.identity)?;
    }
    let reply_to = raw
        .reply_to()
        .filter(|to| to.as_bytes() == REPLY_TO.as_bytes());
    if let Some(headers) = raw.headers() {
        read_headers(headers, raw, &mut found)?;
    }
    if reply_to.is_some() || !found.bcc.is_empty() {
        rewrite(raw, reply_to.is_some(), publisher, &mut found)?;
    }
    Ok(found)
}

/// Passes on other properties than those that came: ranges are found again in the new ones.
#[cold]
fn rewrite(
    raw: Properties<'_>,
    is_reply: bool,
    publisher: &Publisher<'_>,
    found: &mut Found,
) -> Result<(), Fault> {
    let mut entries = Vec::new();
    let mut set = Vec::new();
    if is_reply {
        let Some(queue) = publisher.reply_queue else {
            return Err(Fault::precondition("fast reply consumer does not exist"));
        };
        set.push(Property::ReplyTo(ShortStr::clip(queue)));
    }
    let headers = raw.headers();
    if let Some(headers) = headers {
        let mut writer = TableWriter::new(&mut entries);
        let without_bcc = |entry: &tanda_wire::amqp::table::Entry<'_>| {
            if entry.key.as_bytes() == b"BCC" {
                Edit::Remove
            } else {
                Edit::Keep
            }
        };
        let copied = writer.copy_edited(headers, without_bcc);
        copied.map_err(|error| Fault::of_layout("headers", error))?;
        let table = Table::new(&entries);
        let table = table.map_err(|error| Fault::new(ReplyCode::SyntaxError, error.to_string()))?;
        set.push(Property::Headers(table));
    }
    let mut out = Vec::new();
    raw.edited(&mut out, &set, &[]);
    let bcc = core::mem::take(&mut found.bcc);
    found.cc.clear();
    found.item.fairness_key = Span::default();
    found.item.idempotency_key = None;
    let properties = Properties::decode(&out);
    let properties = properties.map_err(|error| Fault::of_layout("properties", error))?;
    if let Some(headers) = properties.headers() {
        read_headers(headers, properties, found)?;
    }
    found.bcc = bcc;
    found.rewritten = Some(out);
    Ok(())
}

fn read_headers(
    headers: Table<'_>,
    properties: Properties<'_>,
    found: &mut Found,
) -> Result<(), Fault> {
    for entry in headers {
        let entry = entry.map_err(|error| Fault::of_layout("headers", error))?;
        if let Value::Table(table) = entry.value {
            table
                .validate()
                .map_err(|error| Fault::of_layout("headers", error))?;
        }
        if let Value::Array(array) = entry.value {
            array
                .validate()
                .map_err(|error| Fault::of_layout("headers", error))?;
        }
        match entry.key.as_bytes() {
            [b'x', b'-', ..] => read_extension(entry.key, &entry.value, properties, found),
            b"CC" => {
                for key in keys("CC", &entry.value)? {
                    found.cc.push(span_in(properties, key));
                }
            }
            b"BCC" => {
                let keys = keys("BCC", &entry.value)?;
                found.bcc.extend(keys.into_iter().map(<[u8]>::to_vec));
            }
            _ => {}
        }
    }
    Ok(())
}

/// What Tanda's own headers say. Values that mean nothing are no error: such headers may be
/// somebody else's.
fn read_extension(
    key: ShortStr<'_>,
    value: &Value<'_>,
    properties: Properties<'_>,
    found: &mut Found,
) {
    let text = value.as_long_string();
    let text = text.filter(|text| core::str::from_utf8(text).is_ok());
    let number = value.as_i64().and_then(|number| u64::try_from(number).ok());
    let item = &mut found.item;
    match key.as_bytes() {
        b"x-fairness-key" => {
            if let Some(text) = text {
                item.fairness_key = span_in(properties, text);
            } else if let Some(number) = value.as_i64() {
                found.number_key = Some(number.to_string());
            }
        }
        b"x-idempotency-key" => {
            if let Some(text) = text {
                item.idempotency_key = Some(span_in(properties, text));
            }
        }
        b"x-weight" => {
            let weight = number.and_then(|number| u32::try_from(number).ok());
            item.weight = weight.unwrap_or(item.weight);
        }
        b"x-delay" => item.delay_ms = number.unwrap_or(item.delay_ms),
        _ => {}
    }
}

/// The keys in a `CC` or `BCC` header.
fn keys<'a>(name: &str, value: &Value<'a>) -> Result<Vec<&'a [u8]>, Fault> {
    let refused = |value: &Value<'_>| {
        let kind = value.type_name();
        Fault::precondition(format!(
            "invalid message: {{unacceptable_type_in_header,\"{name}\",{kind}}}"
        ))
    };
    let Value::Array(array) = value else {
        return Err(refused(value));
    };
    let mut keys = Vec::new();
    for item in *array {
        let item = item.map_err(|error| Fault::of_layout("headers", error))?;
        let key = item.value.as_long_string();
        keys.push(key.ok_or_else(|| refused(&item.value))?);
    }
    Ok(keys)
}

/// Where a part of the properties stands in them.
fn span_in(properties: Properties<'_>, part: &[u8]) -> Span {
    let start = part.as_ptr().addr() - properties.raw().as_ptr().addr();
    Span {
        start: position(start),
        len: position(part.len()),
    }
}

/// `expiration` is a number of milliseconds as decimal text.
fn check_expiration(expiration: ShortStr<'_>) -> Result<u64, Fault> {
    let shown = String::from_utf8_lossy(expiration.as_bytes());
    let invalid = |why: &str| Fault::precondition(format!("invalid expiration '{shown}': {why}"));
    let (negative, digits) = match expiration.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    let count = digits
        .iter()
        .take_while(|digit| digit.is_ascii_digit())
        .count();
    let (number, rest) = digits.split_at_checked(count).unwrap_or((digits, &[]));
    if number.is_empty() {
        return Err(invalid("no_integer"));
    }
    if !rest.is_empty() {
        let rest = String::from_utf8_lossy(rest);
        return Err(invalid(&format!("{{leftover_string,\"{rest}\"}}")));
    }
    let text = core::str::from_utf8(number).unwrap_or_default();
    let shown_number = text.trim_start_matches('0');
    let shown_number = if shown_number.is_empty() {
        "0"
    } else {
        shown_number
    };
    match text.parse::<u64>() {
        Ok(0) => Ok(0),
        _ if negative => Err(invalid(&format!("{{value_negative,-{shown_number}}}"))),
        Ok(ms) if ms <= EXPIRATION_MS_MAX => Ok(ms),
        _ => Err(invalid(&format!("{{value_too_big,{shown_number}}}"))),
    }
}

fn check_user(user: ShortStr<'_>, identity: &dyn Identity) -> Result<(), Fault> {
    let name = identity.name();
    if user.as_bytes() == name.as_bytes() || identity.may_impersonate() {
        return Ok(());
    }
    Err(Fault::precondition(format!(
        "user_id property set to '{}' but authenticated user was '{name}'",
        String::from_utf8_lossy(user.as_bytes())
    )))
}
