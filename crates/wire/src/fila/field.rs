//! The primitives of `Encoding Primitives`, in both directions.
//!
//! Owns: how a string, an optional or a list looks on the wire, in both directions.
//! Refuses to know: which frame holds which field.

use core::fmt;

use crate::cursor::{DecodeError, Reader};

/// The most bytes a `string` can hold.
pub const STRING_BYTES_MAX: usize = u16::MAX as usize;

/// A value that does not fit the length or count prefix the layout gives it.
///
/// The output then holds a part of the value; callers that append frames cut it off again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncodeError {
    /// The layout type, such as `string`.
    pub what: &'static str,
    /// Its length in bytes or items.
    pub len: usize,
    /// The most the prefix can say.
    pub len_max: usize,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, len, len_max } = self;
        write!(
            f,
            "{what} of length {len} is too long for the protocol: {len_max} at most"
        )
    }
}

impl core::error::Error for EncodeError {}

/// A value with one fixed layout.
pub trait Field<'a>: Sized {
    /// The least bytes any value of this type takes.
    const SIZE_MIN: usize;

    /// Reads one value from the front of `r`.
    ///
    /// # Errors
    /// When the bytes do not follow the layout.
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError>;

    /// Appends the value.
    ///
    /// # Errors
    /// When a part of it does not fit its prefix.
    fn write(&self, out: &mut Vec<u8>) -> Result<(), EncodeError>;

    /// The bytes `write` appends.
    fn size(&self) -> usize;
}

macro_rules! integer_field {
    ($($ty:ty, $read:ident;)*) => {$(
        impl<'a> Field<'a> for $ty {
            const SIZE_MIN: usize = size_of::<Self>();

            #[inline]
            fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
                r.$read()
            }

            #[inline]
            fn write(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
                out.extend_from_slice(&self.to_be_bytes());
                Ok(())
            }

            fn size(&self) -> usize {
                size_of::<Self>()
            }
        }
    )*};
}

integer_field! {
    u8, u8;
    u16, u16_be;
    u32, u32_be;
    u64, u64_be;
    i64, i64_be;
}

impl<'a> Field<'a> for bool {
    const SIZE_MIN: usize = 1;

    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        r.bool("bool")
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        out.push(u8::from(*self));
        Ok(())
    }

    fn size(&self) -> usize {
        1
    }
}

/// `uuid`: 16 raw bytes.
impl<'a> Field<'a> for [u8; 16] {
    const SIZE_MIN: usize = 16;

    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        r.array("uuid")
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        out.extend_from_slice(self);
        Ok(())
    }

    fn size(&self) -> usize {
        16
    }
}

/// `string`: `u16` length, then UTF-8.
impl<'a> Field<'a> for &'a str {
    const SIZE_MIN: usize = 2;

    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let len = r.u16_be()?;
        r.utf8(usize::from(len), "string")
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        write_string(out, self)
    }

    fn size(&self) -> usize {
        2 + self.len()
    }
}

/// `bytes`: `u32` length, then raw bytes.
impl<'a> Field<'a> for &'a [u8] {
    const SIZE_MIN: usize = 4;

    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let len = r.u32_be()?;
        r.slice(len as usize, "bytes")
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        write_bytes(out, self, "bytes")
    }

    fn size(&self) -> usize {
        4 + self.len()
    }
}

/// `optional<T>`: a presence byte, then the value if present.
impl<'a, T: Field<'a>> Field<'a> for Option<T> {
    const SIZE_MIN: usize = 1;

    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        if r.bool("presence byte")? {
            T::read(r).map(Some)
        } else {
            Ok(None)
        }
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match self {
            None => {
                out.push(0);
                Ok(())
            }
            Some(value) => {
                out.push(1);
                value.write(out)
            }
        }
    }

    fn size(&self) -> usize {
        1 + self.as_ref().map_or(0, Field::size)
    }
}

/// A list with a `u32` count: batch items and admin results.
impl<'a, T: Field<'a>> Field<'a> for Vec<T> {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let count = r.u32_be()? as usize;
        read_items(r, count)
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let count = prefix_u32(self.len(), "list")?;
        out.extend_from_slice(&count.to_be_bytes());
        self.iter().try_for_each(|item| item.write(out))
    }

    fn size(&self) -> usize {
        4 + self.iter().map(Field::size).sum::<usize>()
    }
}

pub(crate) fn read_items<'a, T: Field<'a>>(
    r: &mut Reader<'a>,
    count: usize,
) -> Result<Vec<T>, DecodeError> {
    // The count is the sender's claim. Only after this check may it size an allocation.
    r.check_count(count, T::SIZE_MIN, "items")?;
    let mut items = Vec::with_capacity(count);
    for _ in 0..count {
        items.push(T::read(r)?);
    }
    Ok(items)
}

/// A length as a `u16` prefix.
///
/// # Errors
/// When it does not fit.
#[inline]
pub(crate) fn prefix_u16(len: usize, what: &'static str) -> Result<u16, EncodeError> {
    let error = EncodeError {
        what,
        len,
        len_max: u16::MAX as usize,
    };
    u16::try_from(len).ok().ok_or(error)
}

/// A length as a `u32` prefix.
///
/// # Errors
/// When it does not fit.
#[inline]
pub(crate) fn prefix_u32(len: usize, what: &'static str) -> Result<u32, EncodeError> {
    let error = EncodeError {
        what,
        len,
        len_max: u32::MAX as usize,
    };
    u32::try_from(len).ok().ok_or(error)
}

/// Appends a `string`.
///
/// # Errors
/// When it is longer than [`STRING_BYTES_MAX`].
#[inline]
pub fn write_string(out: &mut Vec<u8>, text: &str) -> Result<(), EncodeError> {
    let len = prefix_u16(text.len(), "string")?;
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

/// Appends a `u32` length and the bytes.
#[inline]
pub(crate) fn write_bytes(
    out: &mut Vec<u8>,
    bytes: &[u8],
    what: &'static str,
) -> Result<(), EncodeError> {
    let len = prefix_u32(bytes.len(), what)?;
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}

/// One entry of a `map<string,string>`.
impl<'a> Field<'a> for (&'a str, &'a str) {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok((Field::read(r)?, Field::read(r)?))
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        write_string(out, self.0)?;
        write_string(out, self.1)
    }

    fn size(&self) -> usize {
        4 + self.0.len() + self.1.len()
    }
}
