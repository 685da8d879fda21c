//! Any MessagePack value, borrowed; arrays and maps stay the bytes they came in.
//!
//! Owns: walking such bytes. Refuses to know: what a key or a value means.

use super::syntax::{SyntaxError, SyntaxErrorKind};
use super::token::{self, Token, skip, text};
use crate::cursor::Reader;

/// The ext type of MessagePack's own timestamps.
pub const TIMESTAMP_EXT: i8 = -1;

/// An empty map on the wire.
const EMPTY_MAP: &[u8] = &[0x80];
/// An empty array on the wire.
const EMPTY_ARRAY: &[u8] = &[0x90];

/// One value. An integer is `Int` only when it is negative, whatever its encoding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// Nothing; as a header field the same as being absent.
    Nil,
    /// True or false.
    Bool(bool),
    /// An integer that is not negative.
    Uint(u64),
    /// A negative integer.
    Int(i64),
    /// A short float.
    F32(f32),
    /// A long float.
    F64(f64),
    /// Text.
    Str(&'a str),
    /// Bytes.
    Bin(&'a [u8]),
    /// An array.
    Array(RawArray<'a>),
    /// A map.
    Map(RawMap<'a>),
    /// An application's own type, or a timestamp.
    Ext {
        /// Its type: negative ones belong to MessagePack.
        kind: i8,
        /// Its bytes.
        data: &'a [u8],
    },
}

macro_rules! from {
    ($($type:ty => |$value:ident| $of:expr;)*) => {$(
        impl<'a> From<$type> for Value<'a> {
            fn from($value: $type) -> Self {
                $of
            }
        }
    )*};
}

from! {
    bool => |value| Self::Bool(value);
    u64 => |value| Self::Uint(value);
    u32 => |value| Self::Uint(value.into());
    u16 => |value| Self::Uint(value.into());
    u8 => |value| Self::Uint(value.into());
    i64 => |value| u64::try_from(value).map_or(Self::Int(value), Self::Uint);
    i32 => |value| i64::from(value).into();
    f32 => |value| Self::F32(value);
    f64 => |value| Self::F64(value);
    &'a str => |value| Self::Str(value);
    &'a [u8] => |value| Self::Bin(value);
    RawArray<'a> => |value| Self::Array(value);
    RawMap<'a> => |value| Self::Map(value);
}

impl<'a> Value<'a> {
    /// Reads one whole value from the front of `r`, all inside it checked.
    pub(super) fn read(r: &mut Reader<'a>, depth: usize) -> Result<Self, SyntaxError> {
        let before = *r;
        Ok(match Token::read(r)? {
            Token::Nil => Self::Nil,
            Token::Bool(value) => Self::Bool(value),
            Token::Uint(value) => Self::Uint(value),
            Token::Int(value) => Self::Int(value),
            Token::F32(value) => Self::F32(value),
            Token::F64(value) => Self::F64(value),
            Token::Str(bytes) => Self::Str(text(r, bytes)?),
            Token::Bin(bytes) => Self::Bin(bytes),
            Token::Ext(kind, data) => Self::Ext { kind, data },
            Token::Array(count) => {
                skip(r, count.into(), depth + 1)?;
                Self::Array(RawArray {
                    raw: r.since(&before),
                })
            }
            Token::Map(count) => {
                skip(r, u64::from(count) * 2, depth + 1)?;
                Self::Map(RawMap {
                    raw: r.since(&before),
                })
            }
        })
    }

    /// Appends it, scalars in their shortest encoding.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Nil => token::write_nil(out),
            Self::Bool(value) => token::write_bool(out, value),
            Self::Uint(value) => token::write_uint(out, value),
            Self::Int(value) => token::write_int(out, value),
            Self::F32(value) => token::write_f32(out, value),
            Self::F64(value) => token::write_f64(out, value),
            Self::Str(value) => token::write_str(out, value),
            Self::Bin(value) => token::write_bin(out, value),
            Self::Array(value) => out.extend_from_slice(value.raw),
            Self::Map(value) => out.extend_from_slice(value.raw),
            Self::Ext { kind, data } => token::write_ext(out, kind, data),
        }
    }

    /// The whole seconds since 1970 of a timestamp, which is an ext of its own type and of three
    /// layouts; `None` for all other values.
    /// Source: MessagePack specification, `Timestamp extension type`.
    #[must_use]
    pub fn timestamp_s(&self) -> Option<i64> {
        let Self::Ext {
            kind: TIMESTAMP_EXT,
            data,
        } = *self
        else {
            return None;
        };
        if let Ok(seconds) = <[u8; 4]>::try_from(data) {
            return Some(u32::from_be_bytes(seconds).into());
        }
        if let Ok(both) = <[u8; 8]>::try_from(data) {
            // 30 bits of nanoseconds, then 34 bits of seconds.
            let seconds = u64::from_be_bytes(both) & ((1 << 34) - 1);
            return i64::try_from(seconds).ok();
        }
        match *data {
            [_, _, _, _, a, b, c, d, e, f, g, h] => {
                Some(i64::from_be_bytes([a, b, c, d, e, f, g, h]))
            }
            _ => None,
        }
    }

    /// The name of its type, as the specification writes it.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Nil => "nil",
            Self::Bool(_) => "bool",
            Self::Uint(_) | Self::Int(_) => "int",
            Self::F32(_) | Self::F64(_) => "float",
            Self::Str(_) => "str",
            Self::Bin(_) => "bin",
            Self::Array(_) => "array",
            Self::Map(_) => "map",
            Self::Ext { .. } => "ext",
        }
    }
}

/// A checked map, borrowed: all its bytes, the marker included.
///
/// Keys may be of any type, may repeat (the last counts), and keep their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawMap<'a> {
    raw: &'a [u8],
}

impl Default for RawMap<'_> {
    fn default() -> Self {
        Self { raw: EMPTY_MAP }
    }
}

impl<'a> RawMap<'a> {
    /// Checks a map that fills all of `bytes`; no bytes are an empty map.
    ///
    /// # Errors
    /// When it is no map, not well-formed, nested too deep, holds text that is not UTF-8, or does
    /// not fill the bytes.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, SyntaxError> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let mut r = Reader::new(bytes);
        let map = Self::read(&mut r)?;
        match r.remaining() {
            0 => Ok(map),
            count => {
                let kind = SyntaxErrorKind::TrailingBytes { count };
                Err(SyntaxError::new(r.offset(), kind))
            }
        }
    }

    /// Takes bytes that were the [`RawMap::as_bytes`] of a checked map before, such as stored
    /// headers. Others do no harm here (entries end where they stop making sense), but would be
    /// written into a frame as they are.
    #[must_use]
    pub const fn from_checked(bytes: &'a [u8]) -> Self {
        if bytes.is_empty() {
            return Self { raw: EMPTY_MAP };
        }
        Self { raw: bytes }
    }

    #[inline]
    pub(super) fn read(r: &mut Reader<'a>) -> Result<Self, SyntaxError> {
        let before = *r;
        let token = Token::read(r)?;
        let Token::Map(count) = token else {
            return Err(wrong_type(&before, "map", &token));
        };
        skip(r, u64::from(count) * 2, 1)?;
        Ok(Self {
            raw: r.since(&before),
        })
    }

    /// The map on the wire, its marker included.
    #[inline]
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.raw
    }

    /// How many entries there are, repeated keys included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().left
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.raw == EMPTY_MAP || self.len() == 0
    }

    /// The entries in order, as (key, value).
    #[must_use]
    pub fn iter(&self) -> MapIter<'a> {
        let mut reader = Reader::new(self.raw);
        let left = match Token::read(&mut reader) {
            Ok(Token::Map(count)) => count as usize,
            _ => 0,
        };
        MapIter { left, reader }
    }

    /// The value of the last entry with this text as its key. Reads the whole map.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<Value<'a>> {
        self.iter()
            .filter(|(name, _)| *name == Value::Str(key))
            .last()
            .map(|(_, value)| value)
    }
}

impl<'a> IntoIterator for RawMap<'a> {
    type Item = (Value<'a>, Value<'a>);
    type IntoIter = MapIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The entries of a [`RawMap`].
#[derive(Debug, Clone)]
pub struct MapIter<'a> {
    left: usize,
    reader: Reader<'a>,
}

impl<'a> Iterator for MapIter<'a> {
    type Item = (Value<'a>, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        // The map was checked when it was made, so this only fails for `from_checked` misused.
        let key = Value::read(&mut self.reader, 1).ok();
        let value = Value::read(&mut self.reader, 1).ok();
        let entry = key.zip(value);
        if entry.is_none() {
            self.left = 0;
        }
        entry
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }
}

/// A checked array, borrowed: all its bytes, the marker included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawArray<'a> {
    raw: &'a [u8],
}

impl Default for RawArray<'_> {
    fn default() -> Self {
        Self { raw: EMPTY_ARRAY }
    }
}

impl<'a> RawArray<'a> {
    /// The array on the wire, its marker included.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.raw
    }

    /// How many items there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().left
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The items in order.
    #[must_use]
    pub fn iter(&self) -> ArrayIter<'a> {
        let mut reader = Reader::new(self.raw);
        let left = match Token::read(&mut reader) {
            Ok(Token::Array(count)) => count as usize,
            _ => 0,
        };
        ArrayIter { left, reader }
    }
}

impl<'a> IntoIterator for RawArray<'a> {
    type Item = Value<'a>;
    type IntoIter = ArrayIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The items of a [`RawArray`].
#[derive(Debug, Clone)]
pub struct ArrayIter<'a> {
    left: usize,
    reader: Reader<'a>,
}

impl<'a> Iterator for ArrayIter<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let item = Value::read(&mut self.reader, 1).ok();
        if item.is_none() {
            self.left = 0;
        }
        item
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }
}

/// The error of a value that is not of its field's type; `before` stands at the value.
#[cold]
pub(super) fn wrong_type(
    before: &Reader<'_>,
    expected: &'static str,
    found: &Token<'_>,
) -> SyntaxError {
    let kind = SyntaxErrorKind::WrongType {
        expected,
        found: found.type_name(),
    };
    SyntaxError::new(before.offset(), kind)
}
