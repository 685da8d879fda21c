//! Maps of FireMQ as tables of AMQP.

use super::entries::fire_entries;
use super::scalar::{Scalar, Shape, decimal_float, fire_shape};
use super::{Limit, MapError};
use crate::amqp::{LongStr, ShortStr, TableWriter, Value};
use crate::firemq::{self, RawMap};

/// Appends the entries of the table that a map becomes: what [`crate::amqp::Table::new`] takes.
/// Entries whose key is longer than 255 bytes are left out, see [`super`].
///
/// `bytes_max` bounds the map and the table.
///
/// # Errors
/// `TooLarge`, or `TooLong`.
pub fn write_amqp_table(
    out: &mut Vec<u8>,
    map: RawMap<'_>,
    bytes_max: usize,
) -> Result<(), MapError> {
    let limit = Limit::new(out.len(), bytes_max);
    limit.check_input(map.as_bytes())?;
    let result = write_entries(out, map, limit);
    limit.or_take_back(out, result)
}

fn write_entries(out: &mut Vec<u8>, map: RawMap<'_>, limit: Limit) -> Result<(), MapError> {
    for (key, value) in fire_entries(map) {
        let Ok(key) = ShortStr::new(key.as_bytes()) else {
            continue;
        };
        TableWriter::new(out).raw_value(key, &[]);
        write_value(out, &value, limit)?;
        limit.check_output(out.len())?;
    }
    Ok(())
}

/// Appends tag and value.
fn write_value(out: &mut Vec<u8>, value: &firemq::Value<'_>, limit: Limit) -> Result<(), MapError> {
    match fire_shape(value) {
        Shape::Scalar(scalar) => write_scalar(out, &scalar),
        Shape::Array(items) => write_nested(out, b'A', |out| {
            for item in items {
                write_value(out, &item, limit)?;
                limit.check_output(out.len())?;
            }
            Ok(())
        }),
        Shape::Map(map) => write_nested(out, b'F', |out| write_entries(out, map, limit)),
    }
}

/// Appends a tag, a length, and what `inner` appends. The limit keeps the length far below 4 GiB.
fn write_nested(
    out: &mut Vec<u8>,
    tag: u8,
    inner: impl FnOnce(&mut Vec<u8>) -> Result<(), MapError>,
) -> Result<(), MapError> {
    out.push(tag);
    let length_at = out.len();
    out.extend_from_slice(&[0; 4]);
    inner(out)?;
    let len = out.len().saturating_sub(length_at + 4);
    let len = u32::try_from(len).unwrap_or(u32::MAX);
    if let Some(place) = out.get_mut(length_at..length_at + 4) {
        place.copy_from_slice(&len.to_be_bytes());
    }
    Ok(())
}

fn write_scalar(out: &mut Vec<u8>, scalar: &Scalar<'_>) -> Result<(), MapError> {
    let value = match *scalar {
        Scalar::Nil => Value::Void,
        Scalar::Bool(value) => Value::Bool(value),
        Scalar::Uint(value) => match i64::try_from(value) {
            Ok(value) => Value::I64(value),
            Err(_) => {
                Value::text(&value.to_string()).write(out);
                return Ok(());
            }
        },
        Scalar::Int(value) => Value::I64(value),
        Scalar::F32(value) => Value::F64(value.into()),
        Scalar::F64(value) => Value::F64(value),
        Scalar::Decimal { scale, value } => Value::F64(decimal_float(scale, value)),
        Scalar::Text(bytes) => Value::LongString(LongStr::new(bytes)?),
        Scalar::Bin(bytes) => Value::Bytes(LongStr::new(bytes)?),
        Scalar::Timestamp(seconds) => Value::Timestamp(seconds),
    };
    value.write(out);
    Ok(())
}
