//! What both protocols have in common: values that are no arrays and no maps.

use std::borrow::Cow;

use crate::{amqp, firemq};

/// A value without values in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scalar<'a> {
    Nil,
    Bool(bool),
    Uint(u64),
    /// Negative.
    Int(i64),
    F32(f32),
    F64(f64),
    Decimal {
        scale: u8,
        value: i32,
    },
    /// Meant as text; of AMQP it may be any bytes.
    Text(&'a [u8]),
    Bin(&'a [u8]),
    /// Seconds since 1970.
    Timestamp(u64),
}

/// A value, told apart by what is in it.
pub(super) enum Shape<'a, Array, Map> {
    Scalar(Scalar<'a>),
    Array(Array),
    Map(Map),
}

pub(super) type FireShape<'a> = Shape<'a, firemq::RawArray<'a>, firemq::RawMap<'a>>;
pub(super) type AmqpShape<'a> = Shape<'a, amqp::Array<'a>, amqp::Table<'a>>;

/// The shape of a value of FireMQ.
pub(super) fn fire_shape<'a>(value: &firemq::Value<'a>) -> FireShape<'a> {
    Shape::Scalar(match *value {
        firemq::Value::Nil => Scalar::Nil,
        firemq::Value::Bool(value) => Scalar::Bool(value),
        firemq::Value::Uint(value) => Scalar::Uint(value),
        firemq::Value::Int(value) => Scalar::Int(value),
        firemq::Value::F32(value) => Scalar::F32(value),
        firemq::Value::F64(value) => Scalar::F64(value),
        firemq::Value::Str(text) => Scalar::Text(text.as_bytes()),
        firemq::Value::Bin(bytes) => Scalar::Bin(bytes),
        firemq::Value::Ext { data, .. } => match value.timestamp_s() {
            Some(seconds) => u64::try_from(seconds).map_or(Scalar::Int(seconds), Scalar::Timestamp),
            None => Scalar::Bin(data),
        },
        firemq::Value::Array(items) => return Shape::Array(items),
        firemq::Value::Map(entries) => return Shape::Map(entries),
    })
}

/// The shape of a value of AMQP.
pub(super) fn amqp_shape<'a>(value: &amqp::Value<'a>) -> AmqpShape<'a> {
    Shape::Scalar(match *value {
        amqp::Value::Void => Scalar::Nil,
        amqp::Value::Bool(value) => Scalar::Bool(value),
        amqp::Value::I8(value) => integer(value.into()),
        amqp::Value::U8(value) => Scalar::Uint(value.into()),
        amqp::Value::I16(value) => integer(value.into()),
        amqp::Value::U16(value) => Scalar::Uint(value.into()),
        amqp::Value::I32(value) => integer(value.into()),
        amqp::Value::U32(value) => Scalar::Uint(value.into()),
        amqp::Value::I64(value) => integer(value),
        amqp::Value::F32(value) => Scalar::F32(value),
        amqp::Value::F64(value) => Scalar::F64(value),
        amqp::Value::Decimal { scale, value } => Scalar::Decimal { scale, value },
        amqp::Value::LongString(text) => Scalar::Text(text.as_bytes()),
        amqp::Value::Bytes(bytes) => Scalar::Bin(bytes.as_bytes()),
        amqp::Value::Timestamp(seconds) => Scalar::Timestamp(seconds),
        amqp::Value::Array(items) => return Shape::Array(items),
        amqp::Value::Table(entries) => return Shape::Map(entries),
    })
}

fn integer(value: i64) -> Scalar<'static> {
    u64::try_from(value).map_or(Scalar::Int(value), Scalar::Uint)
}

impl<'a> Scalar<'a> {
    /// Its text.
    pub(super) fn text(&self) -> Cow<'a, str> {
        Cow::Owned(match *self {
            Self::Nil => return Cow::Borrowed("null"),
            Self::Bool(value) => value.to_string(),
            Self::Uint(value) | Self::Timestamp(value) => value.to_string(),
            Self::Int(value) => value.to_string(),
            Self::F32(value) => format!("{value:?}"),
            Self::F64(value) => format!("{value:?}"),
            Self::Decimal { scale, value } => decimal_text(scale, value),
            Self::Text(bytes) | Self::Bin(bytes) => return bytes_text(bytes),
        })
    }
}

/// Bytes as they are when they are text, else as base64. Two different ones stay different, which
/// matters for names and correlation ids.
pub(super) fn bytes_text(bytes: &[u8]) -> Cow<'_, str> {
    match core::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(base64(bytes)),
    }
}

/// The nearest float of a decimal.
pub(super) fn decimal_float(scale: u8, value: i32) -> f64 {
    // The decimal point is exact in text, and the float nearest to text is what `parse` gives.
    decimal_text(scale, value).parse().unwrap_or_default()
}

/// All digits of a decimal, with `scale` of them behind the point.
fn decimal_text(scale: u8, value: i32) -> String {
    let digits = value.unsigned_abs().to_string();
    let sign = if value < 0 { "-" } else { "" };
    let behind = usize::from(scale);
    if behind == 0 {
        return format!("{sign}{digits}");
    }
    let padded = format!("{digits:0>width$}", width = behind + 1);
    let (whole, fraction) = padded.split_at(padded.len().saturating_sub(behind));
    format!("{sign}{whole}.{fraction}")
}

/// Standard base64 with padding (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3).saturating_mul(4));
    for group in bytes.chunks(3) {
        let mut bits = [0; 4];
        for (to, from) in bits.iter_mut().skip(1).zip(group) {
            *to = *from;
        }
        let bits = u32::from_be_bytes(bits);
        for at in 0..4 {
            let letter = LETTERS.get((bits >> (18 - 6 * at) & 63) as usize);
            let letter = letter.filter(|_| at <= group.len());
            text.push(letter.copied().map_or('=', char::from));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{base64, decimal_float, decimal_text};

    #[test]
    fn base64_of_the_standard() {
        let cases = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (bytes, text) in cases {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xbf]), "+/+/");
    }

    #[test]
    fn decimals() {
        let cases = [
            (0, 1234, "1234", 1234.0),
            (2, 1234, "12.34", 12.34),
            (2, -5, "-0.05", -0.05),
            (4, 1234, "0.1234", 0.1234),
            (1, i32::MIN, "-214748364.8", -214_748_364.8),
            (3, 0, "0.000", 0.0),
        ];
        for (scale, value, text, float) in cases {
            assert_eq!(decimal_text(scale, value), text);
            assert!((decimal_float(scale, value) - float).abs() < f64::EPSILON);
        }
        assert!(decimal_float(255, i32::MAX) > 0.0);
    }
}
