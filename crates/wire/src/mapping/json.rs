//! Arrays and maps as JSON text.
//!
//! What is no number in JSON (infinities, NaN) is null. Numbers keep all their digits, also beyond
//! the 53 bits that some readers of JSON stop at.

use super::entries::{amqp_entries, fire_entries};
use super::scalar::{Scalar, Shape, amqp_shape, bytes_text, fire_shape};
use super::{Limit, MapError};
use crate::{amqp, firemq};

/// A key of FireMQ that is an array or a map. Its text is at most six times as long as its bytes,
/// which the caller has bounded.
pub(super) fn fire_text(value: &firemq::Value<'_>) -> String {
    let mut out = String::new();
    let unlimited = Limit::new(0, usize::MAX);
    match write_fire(&mut out, value, unlimited) {
        Ok(()) => out,
        Err(_) => String::new(),
    }
}

/// Appends a value of FireMQ.
pub(super) fn write_fire(
    out: &mut String,
    value: &firemq::Value<'_>,
    limit: Limit,
) -> Result<(), MapError> {
    limit.check_output(out.len())?;
    match fire_shape(value) {
        Shape::Scalar(scalar) => write_scalar(out, &scalar),
        Shape::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                write_comma(out, at);
                write_fire(out, &item, limit)?;
            }
            out.push(']');
        }
        Shape::Map(map) => {
            out.push('{');
            for (at, (key, value)) in fire_entries(map).enumerate() {
                write_comma(out, at);
                write_key(out, &key);
                write_fire(out, &value, limit)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

/// Appends a value of AMQP.
pub(super) fn write_amqp(
    out: &mut String,
    value: &amqp::Value<'_>,
    limit: Limit,
) -> Result<(), MapError> {
    limit.check_output(out.len())?;
    match amqp_shape(value) {
        Shape::Scalar(scalar) => write_scalar(out, &scalar),
        Shape::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                write_comma(out, at);
                write_amqp(out, &item?.value, limit)?;
            }
            out.push(']');
        }
        Shape::Map(table) => {
            out.push('{');
            for (at, entry) in amqp_entries(table).enumerate() {
                let (key, value) = entry?;
                write_comma(out, at);
                write_key(out, &key);
                write_amqp(out, &value, limit)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

fn write_comma(out: &mut String, at: usize) {
    if at > 0 {
        out.push(',');
    }
}

fn write_key(out: &mut String, key: &str) {
    write_text(out, key);
    out.push(':');
}

fn write_scalar(out: &mut String, scalar: &Scalar<'_>) {
    match scalar {
        Scalar::Text(bytes) | Scalar::Bin(bytes) => write_text(out, &bytes_text(bytes)),
        Scalar::F32(value) if !value.is_finite() => out.push_str("null"),
        Scalar::F64(value) if !value.is_finite() => out.push_str("null"),
        Scalar::Nil
        | Scalar::Bool(_)
        | Scalar::Uint(_)
        | Scalar::Int(_)
        | Scalar::F32(_)
        | Scalar::F64(_)
        | Scalar::Decimal { .. }
        | Scalar::Timestamp(_) => out.push_str(&scalar.text()),
    }
}

/// A text in quotes (RFC 8259, section 7).
fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..=' ' if character != ' ' => {
                out.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}
