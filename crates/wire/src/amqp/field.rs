//! The elementary domains that method arguments and properties are made of (§4.2.5).
//!
//! Owns: integers, short and long strings and tables in both directions, and packed bits.
//! Refuses to know: which method holds which field.

use super::strings::{LongStr, ShortStr, TooLong, long_prefix};
use super::table::Table;
use crate::cursor::{DecodeError, DecodeErrorKind, Reader};

/// A value with one layout. Writing cannot fail: what fits the layout is part of the type.
pub trait Field<'a>: Sized {
    /// Reads one value from the front of `r`.
    ///
    /// # Errors
    /// When the bytes end before the value does.
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError>;

    /// Appends the value.
    fn write(&self, out: &mut Vec<u8>);

    /// The bytes `write` appends.
    fn size(&self) -> usize;
}

macro_rules! integer_field {
    ($($ty:ty, $read:ident;)*) => {$(
        impl<'a> Field<'a> for $ty {
            #[inline]
            fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
                r.$read()
            }

            #[inline]
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }

            #[inline]
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
}

/// `shortstr`: one byte of length, then bytes.
impl<'a> Field<'a> for ShortStr<'a> {
    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let len = r.u8()?;
        r.slice(usize::from(len), "short string")
            .map(ShortStr::of_field)
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.prefix());
        out.extend_from_slice(self.as_bytes());
    }

    #[inline]
    fn size(&self) -> usize {
        1 + self.len()
    }
}

/// `longstr`: four bytes of length, then bytes.
impl<'a> Field<'a> for LongStr<'a> {
    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        checked_long(r, "long string", LongStr::new)
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        write_long(out, self.as_bytes());
    }

    #[inline]
    fn size(&self) -> usize {
        4 + self.len()
    }
}

/// `table`: four bytes of length, then entries.
impl<'a> Field<'a> for Table<'a> {
    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        checked_long(r, "table", Table::new)
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        write_long(out, self.as_bytes());
    }

    #[inline]
    fn size(&self) -> usize {
        4 + self.as_bytes().len()
    }
}

/// Bytes behind a four-byte length.
#[inline]
pub(super) fn read_long<'a>(
    r: &mut Reader<'a>,
    what: &'static str,
) -> Result<&'a [u8], DecodeError> {
    let len = r.u32_be()?;
    r.slice(len as usize, what)
}

/// Appends a checked long field.
#[inline]
pub(super) fn write_long(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&long_prefix(bytes).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// A long field as the type that bounds it. Over the limit is only what a payload of a gibibyte
/// holds, which counts as running past the end.
#[inline]
pub(super) fn checked_long<'a, T>(
    r: &mut Reader<'a>,
    what: &'static str,
    new: impl FnOnce(&'a [u8]) -> Result<T, TooLong>,
) -> Result<T, DecodeError> {
    let before = *r;
    let bytes = read_long(r, what)?;
    new(bytes).map_err(|TooLong { len, len_max, .. }| {
        before.error(DecodeErrorKind::Truncated {
            what,
            need: len,
            have: len_max,
        })
    })
}

/// Bits as an octet, the first in its lowest bit (§4.2.5.2).
#[inline]
pub(super) fn pack_bits<const N: usize>(bits: [bool; N]) -> u8 {
    const { assert!(N <= 8, "an octet holds 8 bits") };
    bits.iter()
        .rev()
        .fold(0, |octet, bit| octet << 1 | u8::from(*bit))
}

/// The bits of an octet; those that name nothing are ignored, as RabbitMQ ignores them.
#[inline]
pub(super) fn unpack_bits<const N: usize>(octet: u8) -> [bool; N] {
    const { assert!(N <= 8, "an octet holds 8 bits") };
    core::array::from_fn(|at| octet & (1 << at) != 0)
}
