//! The types of header fields, strictly read and shortly written.
//!
//! Owns: which MessagePack values a field of each type takes, and its zero value, which is left
//! out when written. Refuses to know: which header has which field.

use super::ReplyCode;
use super::syntax::{SyntaxError, SyntaxErrorKind};
use super::token::{self, Token, skip, text};
use super::value::{RawMap, Value, wrong_type};
use crate::cursor::Reader;

/// A value of a header field.
pub(super) trait Field<'a>: Sized + Default {
    /// Reads one value that is not nil.
    fn read(r: &mut Reader<'a>) -> Result<Self, SyntaxError>;

    /// Whether it is the value that an omitted field has.
    fn is_zero(&self) -> bool;

    /// Appends it.
    fn write(&self, out: &mut Vec<u8>);
}

/// A fixed set of named fields in a map.
pub(super) trait Fields<'a>: Sized {
    /// Reads the map at the front of `r`.
    fn read_map(r: &mut Reader<'a>) -> Result<Self, SyntaxError>;

    /// Appends the map, without the fields that are zero.
    fn write_map(&self, out: &mut Vec<u8>);
}

/// Reads a whole header: its map, and nothing after it. No bytes are an empty map.
#[inline]
pub(super) fn read_header<'a, H: Fields<'a> + Default>(header: &'a [u8]) -> Result<H, SyntaxError> {
    if header.is_empty() {
        return Ok(H::default());
    }
    let mut r = Reader::new(header);
    let fields = H::read_map(&mut r)?;
    match r.remaining() {
        0 => Ok(fields),
        count => Err(SyntaxError::new(
            r.offset(),
            SyntaxErrorKind::TrailingBytes { count },
        )),
    }
}

/// Reads the start of a map of fields and returns how many entries follow.
#[inline]
pub(super) fn read_count(r: &mut Reader<'_>) -> Result<u32, SyntaxError> {
    let before = *r;
    let token = Token::read(r)?;
    let Token::Map(count) = token else {
        return Err(wrong_type(&before, "map", &token));
    };
    Ok(count)
}

/// Reads the key of a field, which must be text.
#[inline]
pub(super) fn read_key<'a>(r: &mut Reader<'a>) -> Result<&'a [u8], SyntaxError> {
    let before = *r;
    let token = Token::read(r)?;
    let Token::Str(key) = token else {
        let found = token.type_name();
        let kind = SyntaxErrorKind::KeyNotText { found };
        return Err(SyntaxError::new(before.offset(), kind));
    };
    Ok(key)
}

/// Reads the value of the field `name`; nil is the same as leaving the field out.
#[inline]
pub(super) fn read_field<'a, F: Field<'a>>(
    r: &mut Reader<'a>,
    name: &'static str,
) -> Result<F, SyntaxError> {
    if r.rest().first() == Some(&NIL) {
        skip(r, 1, 0)?;
        return Ok(F::default());
    }
    F::read(r).map_err(|error| error.in_field(name))
}

/// Passes over a field that nobody knows, its key already read.
#[cold]
pub(super) fn skip_unknown(r: &mut Reader<'_>, key: &[u8]) -> Result<(), SyntaxError> {
    text(r, key)?;
    skip(r, 1, 0)
}

/// The byte of nil.
const NIL: u8 = 0xc0;

/// The value of one uint field of a header that need not decode as a whole, for the `rid` or `seq`
/// of an error answer. `None` when it is absent, no uint, or behind bytes that are no MessagePack.
#[must_use]
pub fn peek_uint(header: &[u8], name: &str) -> Option<u64> {
    let mut r = Reader::new(header);
    let mut found = None;
    for _ in 0..read_count(&mut r).ok()? {
        let Ok(key) = Value::read(&mut r, 0) else {
            return found;
        };
        match Value::read(&mut r, 0) {
            Ok(Value::Uint(value)) if key == Value::Str(name) => found = Some(value),
            Ok(_) => {}
            Err(_) => return found,
        }
    }
    found
}

impl<'a> Field<'a> for u64 {
    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, SyntaxError> {
        let before = *r;
        let token = Token::read(r)?;
        let Token::Uint(value) = token else {
            return Err(wrong_type(&before, "uint", &token));
        };
        Ok(value)
    }

    #[inline]
    fn is_zero(&self) -> bool {
        *self == 0
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        token::write_uint(out, *self);
    }
}

/// A uint that must fit a smaller type.
fn read_small<T: TryFrom<u64>>(r: &mut Reader<'_>, value_max: u64) -> Result<T, SyntaxError> {
    let before = *r;
    let value = u64::read(r)?;
    T::try_from(value).map_err(|_too_large| {
        let kind = SyntaxErrorKind::OutOfRange { value, value_max };
        SyntaxError::new(before.offset(), kind)
    })
}

impl<'a> Field<'a> for u8 {
    fn read(r: &mut Reader<'a>) -> Result<Self, SyntaxError> {
        read_small(r, Self::MAX.into())
    }

    fn is_zero(&self) -> bool {
        *self == 0
    }

    fn write(&self, out: &mut Vec<u8>) {
        token::write_uint(out, (*self).into());
    }
}

impl<'a> Field<'a> for ReplyCode {
    fn read(r: &mut Reader<'a>) -> Result<Self, SyntaxError> {
        read_small(r, u16::MAX.into()).map(Self::from_wire)
    }

    fn is_zero(&self) -> bool {
        *self == Self::ABSENT
    }

    fn write(&self, out: &mut Vec<u8>) {
        token::write_uint(out, self.to_wire().into());
    }
}

impl<'a> Field<'a> for bool {
    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, SyntaxError> {
        let before = *r;
        let token = Token::read(r)?;
        let Token::Bool(value) = token else {
            return Err(wrong_type(&before, "bool", &token));
        };
        Ok(value)
    }

    #[inline]
    fn is_zero(&self) -> bool {
        !self
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        token::write_bool(out, *self);
    }
}

impl<'a> Field<'a> for &'a str {
    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, SyntaxError> {
        let before = *r;
        let token = Token::read(r)?;
        let Token::Str(bytes) = token else {
            return Err(wrong_type(&before, "str", &token));
        };
        text(r, bytes)
    }

    #[inline]
    fn is_zero(&self) -> bool {
        self.is_empty()
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        token::write_str(out, self);
    }
}

/// An array of texts; only in the handshake, so it may allocate: 16 bytes for each byte at most.
impl<'a> Field<'a> for Vec<&'a str> {
    fn read(r: &mut Reader<'a>) -> Result<Self, SyntaxError> {
        let before = *r;
        let token = Token::read(r)?;
        let Token::Array(count) = token else {
            return Err(wrong_type(&before, "array of str", &token));
        };
        (0..count).map(|_| <&str>::read(r)).collect()
    }

    fn is_zero(&self) -> bool {
        self.is_empty()
    }

    fn write(&self, out: &mut Vec<u8>) {
        token::write_array_len(out, u32::try_from(self.len()).unwrap_or(u32::MAX));
        for text in self {
            text.write(out);
        }
    }
}

impl<'a> Field<'a> for RawMap<'a> {
    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, SyntaxError> {
        RawMap::read(r)
    }

    #[inline]
    fn is_zero(&self) -> bool {
        self.is_empty()
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }
}

/// A field of a later version, kept so that its presence can be answered.
impl<'a> Field<'a> for Option<Value<'a>> {
    fn read(r: &mut Reader<'a>) -> Result<Self, SyntaxError> {
        Value::read(r, 0).map(Some)
    }

    fn is_zero(&self) -> bool {
        self.is_none()
    }

    fn write(&self, out: &mut Vec<u8>) {
        if let Some(value) = self {
            value.encode(out);
        }
    }
}
