//! MessagePack one token at a time: a scalar as it is, an array or map as its count.
//!
//! Owns: reading and writing tokens on this crate's cursor, with the marker table and the encoders
//! of `rmp`. Refuses to know: headers and their fields.

use rmp::{Marker, encode};

use super::syntax::{SyntaxError, SyntaxErrorKind};
use crate::cursor::{DecodeError, DecodeErrorKind, Reader};

/// How many arrays and maps may stand inside each other in the value of a field, the outermost
/// included.
pub const DEPTH_MAX: usize = 64;

/// One token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Token<'a> {
    Nil,
    Bool(bool),
    /// Any integer that is not negative, whatever its encoding.
    Uint(u64),
    /// A negative integer.
    Int(i64),
    F32(f32),
    F64(f64),
    /// The bytes of a text, not yet checked to be UTF-8.
    Str(&'a [u8]),
    Bin(&'a [u8]),
    Ext(i8, &'a [u8]),
    /// That many values follow, and there are bytes for them.
    Array(u32),
    /// That many pairs follow, and there are bytes for them.
    Map(u32),
}

impl<'a> Token<'a> {
    /// Reads the next token.
    #[inline]
    pub(super) fn read(r: &mut Reader<'a>) -> Result<Self, SyntaxError> {
        let before = *r;
        Ok(match Marker::from_u8(r.u8()?) {
            Marker::FixPos(value) => Self::Uint(value.into()),
            Marker::FixNeg(value) => Self::Int(value.into()),
            Marker::Null => Self::Nil,
            Marker::True => Self::Bool(true),
            Marker::False => Self::Bool(false),
            Marker::U8 => Self::Uint(r.u8()?.into()),
            Marker::U16 => Self::Uint(r.u16_be()?.into()),
            Marker::U32 => Self::Uint(r.u32_be()?.into()),
            Marker::U64 => Self::Uint(r.u64_be()?),
            Marker::I8 => Self::signed(r.u8()?.cast_signed().into()),
            Marker::I16 => Self::signed(r.u16_be()?.cast_signed().into()),
            Marker::I32 => Self::signed(r.u32_be()?.cast_signed().into()),
            Marker::I64 => Self::signed(r.i64_be()?),
            Marker::F32 => Self::F32(f32::from_bits(r.u32_be()?)),
            Marker::F64 => Self::F64(f64::from_bits(r.u64_be()?)),
            Marker::FixStr(len) => Self::Str(r.slice(len.into(), "str")?),
            Marker::FixArray(count) => Self::array(count.into(), r)?,
            Marker::FixMap(count) => Self::map(count.into(), r)?,
            Marker::Reserved => {
                let kind = SyntaxErrorKind::ReservedByte;
                return Err(SyntaxError::new(before.offset(), kind));
            }
            Marker::Str8 => Self::Str(bytes8(r, "str")?),
            Marker::Str16 => Self::Str(bytes16(r, "str")?),
            Marker::Str32 => Self::Str(bytes32(r, "str")?),
            Marker::Bin8 => Self::Bin(bytes8(r, "bin")?),
            Marker::Bin16 => Self::Bin(bytes16(r, "bin")?),
            Marker::Bin32 => Self::Bin(bytes32(r, "bin")?),
            Marker::Array16 => Self::array(r.u16_be()?.into(), r)?,
            Marker::Array32 => Self::array(r.u32_be()?, r)?,
            Marker::Map16 => Self::map(r.u16_be()?.into(), r)?,
            Marker::Map32 => Self::map(r.u32_be()?, r)?,
            Marker::FixExt1 => Self::ext(1, r)?,
            Marker::FixExt2 => Self::ext(2, r)?,
            Marker::FixExt4 => Self::ext(4, r)?,
            Marker::FixExt8 => Self::ext(8, r)?,
            Marker::FixExt16 => Self::ext(16, r)?,
            Marker::Ext8 => Self::ext(r.u8()?.into(), r)?,
            Marker::Ext16 => Self::ext(r.u16_be()?.into(), r)?,
            Marker::Ext32 => Self::ext(r.u32_be()?, r)?,
        })
    }

    const fn signed(value: i64) -> Self {
        if value < 0 {
            Self::Int(value)
        } else {
            Self::Uint(value.cast_unsigned())
        }
    }

    fn ext(len: u32, r: &mut Reader<'a>) -> Result<Self, SyntaxError> {
        let kind = r.u8()?.cast_signed();
        Ok(Self::Ext(kind, r.slice(len as usize, "ext")?))
    }

    fn array(count: u32, r: &Reader<'a>) -> Result<Self, SyntaxError> {
        r.check_count(count as usize, 1, "array items")?;
        Ok(Self::Array(count))
    }

    fn map(count: u32, r: &Reader<'a>) -> Result<Self, SyntaxError> {
        r.check_count(count as usize, 2, "map entries")?;
        Ok(Self::Map(count))
    }

    /// The name of its type, as the specification writes it.
    pub(super) const fn type_name(&self) -> &'static str {
        match self {
            Self::Nil => "nil",
            Self::Bool(_) => "bool",
            Self::Uint(_) => "uint",
            Self::Int(_) => "negative int",
            Self::F32(_) | Self::F64(_) => "float",
            Self::Str(_) => "str",
            Self::Bin(_) => "bin",
            Self::Ext(..) => "ext",
            Self::Array(_) => "array",
            Self::Map(_) => "map",
        }
    }
}

fn bytes8<'a>(r: &mut Reader<'a>, what: &'static str) -> Result<&'a [u8], DecodeError> {
    let len = r.u8()?;
    r.slice(len.into(), what)
}

fn bytes16<'a>(r: &mut Reader<'a>, what: &'static str) -> Result<&'a [u8], DecodeError> {
    let len = r.u16_be()?;
    r.slice(len.into(), what)
}

fn bytes32<'a>(r: &mut Reader<'a>, what: &'static str) -> Result<&'a [u8], DecodeError> {
    let len = r.u32_be()?;
    r.slice(len as usize, what)
}

/// The text of a [`Token::Str`] that `r` has just passed.
#[inline]
pub(super) fn text<'a>(r: &Reader<'a>, bytes: &'a [u8]) -> Result<&'a str, SyntaxError> {
    match core::str::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) => {
            let mut error = SyntaxError::from(r.error(DecodeErrorKind::InvalidUtf8 {
                what: "str",
                valid_up_to: error.valid_up_to(),
            }));
            error.offset = error.offset.saturating_sub(bytes.len());
            Err(error)
        }
    }
}

/// Passes over `count` values and all in them, checking each. Work is bounded by the bytes, since
/// every value takes at least one.
///
/// `depth` is how many arrays and maps stand around these values.
pub(super) fn skip(r: &mut Reader<'_>, count: u64, depth: usize) -> Result<(), SyntaxError> {
    if depth > DEPTH_MAX {
        let kind = SyntaxErrorKind::TooDeep {
            depth_max: DEPTH_MAX,
        };
        return Err(SyntaxError::new(r.offset(), kind));
    }
    for _ in 0..count {
        match Token::read(r)? {
            Token::Str(bytes) => text(r, bytes).map(|_| ())?,
            Token::Array(items) => skip(r, items.into(), depth + 1)?,
            Token::Map(pairs) => skip(r, u64::from(pairs) * 2, depth + 1)?,
            Token::Nil
            | Token::Bool(_)
            | Token::Uint(_)
            | Token::Int(_)
            | Token::F32(_)
            | Token::F64(_)
            | Token::Bin(_)
            | Token::Ext(..) => {}
        }
    }
    Ok(())
}

/// Writing to a `Vec` cannot fail; `rmp` reports errors for writers that can.
#[inline]
fn written<T, E>(result: Result<T, E>) {
    debug_assert!(result.is_ok(), "a Vec takes all bytes");
}

pub(super) fn write_nil(out: &mut Vec<u8>) {
    written(encode::write_nil(out));
}

pub(super) fn write_bool(out: &mut Vec<u8>, value: bool) {
    written(encode::write_bool(out, value));
}

#[inline]
pub(super) fn write_uint(out: &mut Vec<u8>, value: u64) {
    written(encode::write_uint(out, value));
}

pub(super) fn write_int(out: &mut Vec<u8>, value: i64) {
    written(encode::write_sint(out, value));
}

pub(super) fn write_f32(out: &mut Vec<u8>, value: f32) {
    written(encode::write_f32(out, value));
}

pub(super) fn write_f64(out: &mut Vec<u8>, value: f64) {
    written(encode::write_f64(out, value));
}

/// Text of 4 GiB or more cannot be written right; the frame around it is refused for its length.
#[inline]
pub(super) fn write_str(out: &mut Vec<u8>, value: &str) {
    written(encode::write_str(out, value));
}

pub(super) fn write_bin(out: &mut Vec<u8>, value: &[u8]) {
    written(encode::write_bin(out, value));
}

/// An ext of 4 GiB or more cannot be written right, like text.
pub(super) fn write_ext(out: &mut Vec<u8>, kind: i8, data: &[u8]) {
    let len = u32::try_from(data.len()).unwrap_or(u32::MAX);
    written(encode::write_ext_meta(out, len, kind));
    out.extend_from_slice(data);
}

#[inline]
pub(super) fn write_map_len(out: &mut Vec<u8>, count: u32) {
    written(encode::write_map_len(out, count));
}

pub(super) fn write_array_len(out: &mut Vec<u8>, count: u32) {
    written(encode::write_array_len(out, count));
}
