//! Arguments: field tables as they came, their one order, and when two of them are the same.

use tanda_wire::amqp::{Table, Value};

use crate::{TopologyCode, TopologyError};

/// Longest arguments of one exchange or binding.
pub(super) const BYTES_MAX: usize = 64 << 10;

/// The table of these bytes, checked.
pub(super) fn table(args: &[u8]) -> Result<Table<'_>, TopologyError> {
    let refused = |text| TopologyError::new(TopologyCode::PreconditionFailed, text);
    if args.len() > BYTES_MAX {
        let len = args.len();
        let text = format!("arguments of {len} bytes, more than {BYTES_MAX}");
        return Err(refused(text));
    }
    let table = Table::new(args).map_err(|error| refused(format!("invalid arguments: {error}")))?;
    let checked = table.validate();
    checked.map_err(|error| refused(format!("invalid arguments: {error}")))?;
    Ok(table)
}

/// The same entries by key, so that equal arguments are equal bytes. Entries of one key keep their
/// order.
pub(super) fn canonical(table: Table<'_>) -> Box<[u8]> {
    let mut entries: Vec<_> = table.iter().map_while(Result::ok).collect();
    entries.sort_by_key(|entry| entry.key.as_bytes());
    let parts: Vec<_> = entries.iter().map(|entry| entry.raw).collect();
    parts.concat().into()
}

/// Whether two values count as one: numbers of any width by what they are, others by type and
/// value.
pub(super) fn is_same(a: &Value<'_>, b: &Value<'_>) -> bool {
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64()) {
        return a == b;
    }
    match (float(a), float(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b).is_eq(),
        (None, None) => a == b,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

const fn float(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::F32(number) => Some(*number as f64),
        Value::F64(number) => Some(*number),
        Value::Bool(_)
        | Value::I8(_)
        | Value::U8(_)
        | Value::I16(_)
        | Value::U16(_)
        | Value::I32(_)
        | Value::U32(_)
        | Value::I64(_)
        | Value::Decimal { .. }
        | Value::LongString(_)
        | Value::Bytes(_)
        | Value::Array(_)
        | Value::Timestamp(_)
        | Value::Table(_)
        | Value::Void => None,
    }
}

/// An argument as RabbitMQ speaks of it.
pub(super) fn said(value: &Value<'_>) -> String {
    match value {
        Value::LongString(text) | Value::Bytes(text) => {
            String::from_utf8_lossy(text.as_bytes()).into_owned()
        }
        Value::Bool(truth) => truth.to_string(),
        Value::F32(number) => number.to_string(),
        Value::F64(number) => number.to_string(),
        Value::Timestamp(number) => number.to_string(),
        Value::Decimal { scale, value } => format!("{{{scale},{value}}}"),
        Value::Void => "undefined".to_owned(),
        Value::Array(_) => "[..]".to_owned(),
        Value::Table(_) => "[..]".to_owned(),
        Value::I8(_)
        | Value::U8(_)
        | Value::I16(_)
        | Value::U16(_)
        | Value::I32(_)
        | Value::U32(_)
        | Value::I64(_) => {
            let number = value.as_i64();
            number.map_or_else(String::new, |number| number.to_string())
        }
    }
}

/// One side of a comparison, with its type when the other side has none.
fn described(value: Option<&Value<'_>>) -> String {
    value.map_or_else(
        || "none".to_owned(),
        |value| {
            let (said, name) = (said(value), value.type_name());
            format!("the value '{said}' of type '{name}'")
        },
    )
}

/// Refuses an argument that is not as it was declared. `of` names what was declared.
pub(super) fn check_same(
    (current, received): (Table<'_>, Table<'_>),
    key: &str,
    of: &str,
) -> Result<(), TopologyError> {
    let current = current.find(key.as_bytes()).ok().flatten();
    let received = received.find(key.as_bytes()).ok().flatten();
    let (was, is) = match (&current, &received) {
        (None, None) => return Ok(()),
        (Some(was), Some(is)) if is_same(was, is) || said(was) == said(is) => return Ok(()),
        (Some(was), Some(is)) => (format!("'{}'", said(was)), format!("'{}'", said(is))),
        (was, is) => (described(was.as_ref()), described(is.as_ref())),
    };
    Err(inequivalent(key, of, (&was, &is)))
}

/// The refusal of what is declared otherwise than it is. Both sides come as they are shown.
pub(super) fn inequivalent(
    key: &str,
    of: &str,
    (current, received): (&str, &str),
) -> TopologyError {
    let text =
        format!("inequivalent arg '{key}' for {of}: received {received} but current is {current}");
    TopologyError::new(TopologyCode::PreconditionFailed, text)
}
