//! Tables of AMQP as maps of FireMQ.

use super::entries::amqp_entries;
use super::scalar::{Scalar, Shape, amqp_shape, decimal_float};
use super::{Limit, MapError};
use crate::amqp::{self, Table};
use crate::firemq::Value;
use crate::firemq::writer::{ArrayWriter, MapWriter};

/// Appends the map that a table becomes: the bytes of a [`crate::firemq::RawMap`].
///
/// `bytes_max` bounds the table and the map.
///
/// # Errors
/// `Table` when the table breaks its layout, or `TooLarge`.
pub fn write_fire_map(
    out: &mut Vec<u8>,
    table: Table<'_>,
    bytes_max: usize,
) -> Result<(), MapError> {
    let limit = Limit::new(out.len(), bytes_max);
    limit.check_input(table.as_bytes())?;
    let result = write_entries(out, table, limit);
    limit.or_take_back(out, result)
}

fn write_entries(out: &mut Vec<u8>, table: Table<'_>, limit: Limit) -> Result<(), MapError> {
    let mut map = MapWriter::begin(out);
    for entry in amqp_entries(table) {
        let (key, value) = entry?;
        write_value(map.key(&key), &value, limit)?;
    }
    map.finish();
    Ok(())
}

fn write_value(out: &mut Vec<u8>, value: &amqp::Value<'_>, limit: Limit) -> Result<(), MapError> {
    match amqp_shape(value) {
        Shape::Scalar(scalar) => fire_scalar(&scalar).encode(out),
        Shape::Array(items) => {
            let mut array = ArrayWriter::begin(out);
            for item in items {
                write_value(array.slot(), &item?.value, limit)?;
            }
            array.finish();
        }
        Shape::Map(table) => write_entries(out, table, limit)?,
    }
    limit.check_output(out.len())
}

fn fire_scalar<'a>(scalar: &Scalar<'a>) -> Value<'a> {
    match *scalar {
        Scalar::Nil => Value::Nil,
        Scalar::Bool(value) => Value::Bool(value),
        Scalar::Uint(value) | Scalar::Timestamp(value) => Value::Uint(value),
        Scalar::Int(value) => Value::Int(value),
        Scalar::F32(value) => Value::F32(value),
        Scalar::F64(value) => Value::F64(value),
        Scalar::Decimal { scale, value } => Value::F64(decimal_float(scale, value)),
        Scalar::Text(bytes) => core::str::from_utf8(bytes).map_or(Value::Bin(bytes), Value::Str),
        Scalar::Bin(bytes) => Value::Bin(bytes),
    }
}
