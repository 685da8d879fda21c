//! One value of a field table or field array: a tag, and what the tag says follows.
//!
//! The tags are those that RabbitMQ reads (its errata, section 3), which differ from the
//! specification's (§4.2.1): `s` is a 16-bit number, `l` and `L` are both signed. Not read are `U`,
//! and all other letters.

use super::field::{checked_long, read_long, write_long};
use super::strings::LongStr;
use super::table::{Array, Table};
use crate::cursor::{DecodeError, DecodeErrorKind, Reader};

/// A value, borrowed.
///
/// Numbers keep their width and sign, so that a value read and written is the same; only `L` is
/// written as `l`. Text is not checked, and neither are timestamps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// `t`: any octet but 0 is true.
    Bool(bool),
    /// `b`.
    I8(i8),
    /// `B`.
    U8(u8),
    /// `s`.
    I16(i16),
    /// `u`.
    U16(u16),
    /// `I`.
    I32(i32),
    /// `i`.
    U32(u32),
    /// `l`, and `L`.
    I64(i64),
    /// `f`.
    F32(f32),
    /// `d`.
    F64(f64),
    /// `D`: `value` divided by ten to the power of `scale`.
    Decimal {
        /// Digits behind the point.
        scale: u8,
        /// All digits.
        value: i32,
    },
    /// `S`: usually text.
    LongString(LongStr<'a>),
    /// `x`: bytes that are not text.
    Bytes(LongStr<'a>),
    /// `A`.
    Array(Array<'a>),
    /// `T`: seconds since 1970, by convention.
    Timestamp(u64),
    /// `F`.
    Table(Table<'a>),
    /// `V`: nothing.
    Void,
}

impl<'a> Value<'a> {
    /// Text as a value; what does not fit is cut off.
    #[must_use]
    pub const fn text(text: &'a str) -> Self {
        Self::LongString(LongStr::clip(text))
    }

    /// Its tag.
    #[must_use]
    pub const fn tag(&self) -> u8 {
        match self {
            Self::Bool(_) => b't',
            Self::I8(_) => b'b',
            Self::U8(_) => b'B',
            Self::I16(_) => b's',
            Self::U16(_) => b'u',
            Self::I32(_) => b'I',
            Self::U32(_) => b'i',
            Self::I64(_) => b'l',
            Self::F32(_) => b'f',
            Self::F64(_) => b'd',
            Self::Decimal { .. } => b'D',
            Self::LongString(_) => b'S',
            Self::Bytes(_) => b'x',
            Self::Array(_) => b'A',
            Self::Timestamp(_) => b'T',
            Self::Table(_) => b'F',
            Self::Void => b'V',
        }
    }

    /// RabbitMQ's name of the type, as in its answers about arguments that differ.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Bool(_) => "bool",
            Self::I8(_) => "byte",
            Self::U8(_) => "unsignedbyte",
            Self::I16(_) => "short",
            Self::U16(_) => "unsignedshort",
            Self::I32(_) => "signedint",
            Self::U32(_) => "unsignedint",
            Self::I64(_) => "long",
            Self::F32(_) => "float",
            Self::F64(_) => "double",
            Self::Decimal { .. } => "decimal",
            Self::LongString(_) => "longstr",
            Self::Bytes(_) => "binary",
            Self::Array(_) => "array",
            Self::Timestamp(_) => "timestamp",
            Self::Table(_) => "table",
            Self::Void => "void",
        }
    }

    /// Its number, when it is an integer of any width.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        Some(match self {
            Self::I8(number) => (*number).into(),
            Self::U8(number) => (*number).into(),
            Self::I16(number) => (*number).into(),
            Self::U16(number) => (*number).into(),
            Self::I32(number) => (*number).into(),
            Self::U32(number) => (*number).into(),
            Self::I64(number) => *number,
            Self::Bool(_)
            | Self::F32(_)
            | Self::F64(_)
            | Self::Decimal { .. }
            | Self::LongString(_)
            | Self::Bytes(_)
            | Self::Array(_)
            | Self::Timestamp(_)
            | Self::Table(_)
            | Self::Void => return None,
        })
    }

    /// Its bytes, when it is a long string.
    #[must_use]
    pub const fn as_long_string(&self) -> Option<&'a [u8]> {
        if let Self::LongString(bytes) = self {
            Some(bytes.as_bytes())
        } else {
            None
        }
    }

    /// Reads tag and value from the front of `r`. `depth` is that of the table or array they stand
    /// in.
    ///
    /// # Errors
    /// When the bytes end before the value does, the tag names no type, or a table or array stands
    /// too deep.
    pub(super) fn read(r: &mut Reader<'a>, depth: u8) -> Result<Self, DecodeError> {
        let before = *r;
        let tag = r.u8()?;
        Ok(match tag {
            b'S' => Self::LongString(checked_long(r, "long string", LongStr::new)?),
            b'I' => Self::I32(r.array("i32").map(i32::from_be_bytes)?),
            b'l' | b'L' => Self::I64(r.i64_be()?),
            b't' => Self::Bool(r.u8()? != 0),
            b'T' => Self::Timestamp(r.u64_be()?),
            b'F' => Self::Table(Table::nested(read_long(r, "table")?, &before, depth)?),
            b'A' => Self::Array(Array::nested(read_long(r, "array")?, &before, depth)?),
            b'V' => Self::Void,
            b'b' => Self::I8(r.array("i8").map(i8::from_be_bytes)?),
            b'B' => Self::U8(r.u8()?),
            b's' => Self::I16(r.array("i16").map(i16::from_be_bytes)?),
            b'u' => Self::U16(r.u16_be()?),
            b'i' => Self::U32(r.u32_be()?),
            b'f' => Self::F32(r.array("f32").map(f32::from_be_bytes)?),
            b'd' => Self::F64(r.array("f64").map(f64::from_be_bytes)?),
            b'D' => Self::Decimal {
                scale: r.u8()?,
                value: r.array("i32").map(i32::from_be_bytes)?,
            },
            b'x' => Self::Bytes(checked_long(r, "bytes", LongStr::new)?),
            _ => {
                return Err(before.error(DecodeErrorKind::UnknownTag {
                    what: "tag of a field value",
                    tag,
                }));
            }
        })
    }

    /// Appends tag and value.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(self.tag());
        match self {
            Self::Bool(value) => out.push(u8::from(*value)),
            Self::I8(value) => out.extend_from_slice(&value.to_be_bytes()),
            Self::U8(value) => out.push(*value),
            Self::I16(value) => out.extend_from_slice(&value.to_be_bytes()),
            Self::U16(value) => out.extend_from_slice(&value.to_be_bytes()),
            Self::I32(value) => out.extend_from_slice(&value.to_be_bytes()),
            Self::U32(value) => out.extend_from_slice(&value.to_be_bytes()),
            Self::I64(value) => out.extend_from_slice(&value.to_be_bytes()),
            Self::F32(value) => out.extend_from_slice(&value.to_be_bytes()),
            Self::F64(value) => out.extend_from_slice(&value.to_be_bytes()),
            Self::Decimal { scale, value } => {
                out.push(*scale);
                out.extend_from_slice(&value.to_be_bytes());
            }
            Self::LongString(bytes) | Self::Bytes(bytes) => write_long(out, bytes.as_bytes()),
            Self::Array(array) => write_long(out, array.as_bytes()),
            Self::Timestamp(value) => out.extend_from_slice(&value.to_be_bytes()),
            Self::Table(table) => write_long(out, table.as_bytes()),
            Self::Void => {}
        }
    }
}
