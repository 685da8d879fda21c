//! The encoding primitives of `Encoding Primitives`, and the macro that lays them out in a body.
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

fn read_items<'a, T: Field<'a>>(r: &mut Reader<'a>, count: usize) -> Result<Vec<T>, DecodeError> {
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

/// Layouts that share their Rust type with another one; a body names them with `as`.
pub(crate) mod layout {
    /// `text`: `u32` length, then UTF-8.
    pub(crate) mod text {
        use crate::cursor::{DecodeError, Reader};
        use crate::fila::field::{EncodeError, write_bytes};

        pub(crate) const SIZE_MIN: usize = 4;

        pub(crate) fn read<'a>(r: &mut Reader<'a>) -> Result<&'a str, DecodeError> {
            let len = r.u32_be()?;
            r.utf8(len as usize, "text")
        }

        pub(crate) fn write(value: &str, out: &mut Vec<u8>) -> Result<(), EncodeError> {
            write_bytes(out, value.as_bytes(), "text")
        }

        pub(crate) const fn size(value: &str) -> usize {
            4 + value.len()
        }
    }

    /// `optional<text>`.
    pub(crate) mod optional_text {
        use super::text;
        use crate::cursor::{DecodeError, Reader};
        use crate::fila::field::EncodeError;

        pub(crate) const SIZE_MIN: usize = 1;

        pub(crate) fn read<'a>(r: &mut Reader<'a>) -> Result<Option<&'a str>, DecodeError> {
            if r.bool("presence byte")? {
                text::read(r).map(Some)
            } else {
                Ok(None)
            }
        }

        pub(crate) fn write(value: &Option<&str>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
            out.push(u8::from(value.is_some()));
            value.map_or(Ok(()), |script| text::write(script, out))
        }

        pub(crate) fn size(value: &Option<&str>) -> usize {
            1 + value.map_or(0, text::size)
        }
    }

    /// A `string` for people, cut at [`STRING_BYTES_MAX`](super::STRING_BYTES_MAX) when longer:
    /// an error must reach its reader even when its text is too long.
    pub(crate) mod clipped {
        use crate::cursor::{DecodeError, Reader};
        use crate::fila::field::{EncodeError, Field, STRING_BYTES_MAX, write_string};

        pub(crate) const SIZE_MIN: usize = 2;

        fn clip(value: &str) -> &str {
            let end = value.floor_char_boundary(STRING_BYTES_MAX);
            value.get(..end).unwrap_or_default()
        }

        pub(crate) fn read<'a>(r: &mut Reader<'a>) -> Result<&'a str, DecodeError> {
            Field::read(r)
        }

        pub(crate) fn write(value: &str, out: &mut Vec<u8>) -> Result<(), EncodeError> {
            write_string(out, clip(value))
        }

        pub(crate) fn size(value: &str) -> usize {
            2 + clip(value).len()
        }
    }

    /// A list with a `u16` count.
    pub(crate) mod list_u16 {
        use crate::cursor::{DecodeError, Reader};
        use crate::fila::field::{EncodeError, Field, prefix_u16, read_items};

        pub(crate) const SIZE_MIN: usize = 2;

        pub(crate) fn read<'a, T: Field<'a>>(r: &mut Reader<'a>) -> Result<Vec<T>, DecodeError> {
            let count = r.u16_be()?;
            read_items(r, usize::from(count))
        }

        pub(crate) fn write<'a, T: Field<'a>>(
            items: &[T],
            out: &mut Vec<u8>,
        ) -> Result<(), EncodeError> {
            let count = prefix_u16(items.len(), "list")?;
            out.extend_from_slice(&count.to_be_bytes());
            items.iter().try_for_each(|item| item.write(out))
        }

        pub(crate) fn size<'a, T: Field<'a>>(items: &[T]) -> usize {
            2 + items.iter().map(Field::size).sum::<usize>()
        }
    }
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

/// Declares structs whose fields stand on the wire in the order written.
///
/// `struct Name<'a>: Opcode { .. }` is the body of a frame and gets `decode`, `encode`,
/// `encoded_size` and `OPCODE`; without the opcode it is a part of one. `field: Type as layout`
/// picks a layout of `field::layout` where the type alone does not say it.
macro_rules! wire_struct {
    ($(
        $(#[$meta:meta])*
        pub struct $Name:ident $(<$lt:lifetime>)? $(: $op:ident)? {
            $( $(#[$fmeta:meta])* $field:ident : $ty:ty $(as $layout:ident)? ),* $(,)?
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct $Name $(<$lt>)? {
            $( $(#[$fmeta])* pub $field: $ty, )*
        }

        wire_struct!(@impls $Name $(<$lt>)? $(: $op)? {
            $( $field: $ty $(as $layout)?, )*
        });
    )*};

    (@impls $Name:ident<$lt:lifetime> $(: $op:ident)? { $($fields:tt)* }) => {
        impl<$lt> $crate::fila::field::Field<$lt> for $Name<$lt> {
            wire_struct!(@field $lt { $($fields)* });
        }

        $(
            impl<$lt> $crate::fila::Body<$lt> for $Name<$lt> {
                const OPCODE: $crate::fila::Opcode = $crate::fila::Opcode::$op;
            }

            impl<$lt> $Name<$lt> {
                wire_struct!(@inherent $lt);
            }
        )?
    };

    (@impls $Name:ident $(: $op:ident)? { $($fields:tt)* }) => {
        impl<'a> $crate::fila::field::Field<'a> for $Name {
            wire_struct!(@field 'a { $($fields)* });
        }

        $(
            impl $crate::fila::Body<'_> for $Name {
                const OPCODE: $crate::fila::Opcode = $crate::fila::Opcode::$op;
            }

            impl $Name {
                wire_struct!(@inherent '_);
            }
        )?
    };

    (@field $lt:lifetime {}) => {
        const SIZE_MIN: usize = 0;

        fn read(
            _: &mut $crate::cursor::Reader<$lt>,
        ) -> Result<Self, $crate::cursor::DecodeError> {
            Ok(Self {})
        }

        fn write(&self, _: &mut Vec<u8>) -> Result<(), $crate::fila::EncodeError> {
            Ok(())
        }

        fn size(&self) -> usize {
            0
        }
    };

    (@field $lt:lifetime { $( $field:ident : $ty:ty $(as $layout:ident)? , )* }) => {
        const SIZE_MIN: usize = 0 $( + wire_struct!(@min $lt $ty $(as $layout)?) )*;

        fn read(
            r: &mut $crate::cursor::Reader<$lt>,
        ) -> Result<Self, $crate::cursor::DecodeError> {
            $( let $field = wire_struct!(@read r $ty $(as $layout)?)?; )*
            Ok(Self { $( $field, )* })
        }

        fn write(&self, out: &mut Vec<u8>) -> Result<(), $crate::fila::EncodeError> {
            let Self { $( $field, )* } = self;
            $( wire_struct!(@write $field out $ty $(as $layout)?)?; )*
            Ok(())
        }

        fn size(&self) -> usize {
            let Self { $( $field, )* } = self;
            [$( wire_struct!(@size $field $ty $(as $layout)?), )*].iter().sum::<usize>()
        }
    };

    (@inherent $lt:lifetime) => {
        /// Reads the body of a frame; bytes after the last known field are ignored.
        ///
        /// # Errors
        /// When the body does not follow the layout.
        pub fn decode(body: &$lt [u8]) -> Result<Self, $crate::cursor::DecodeError> {
            $crate::fila::field::Field::read(&mut $crate::cursor::Reader::new(body))
        }

        /// Appends the body, without the frame's length and header.
        ///
        /// # Errors
        /// When a field is longer than its length prefix can say; `out` then ends in a part of
        /// the body.
        pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), $crate::fila::EncodeError> {
            $crate::fila::field::Field::write(self, out)
        }

        /// The bytes `encode` appends.
        #[must_use]
        pub fn encoded_size(&self) -> usize {
            $crate::fila::field::Field::size(self)
        }
    };

    (@min $lt:lifetime $ty:ty) => { <$ty as $crate::fila::field::Field<$lt>>::SIZE_MIN };
    (@min $lt:lifetime $ty:ty as $layout:ident) => {
        $crate::fila::field::layout::$layout::SIZE_MIN
    };
    (@read $r:ident $ty:ty) => { <$ty as $crate::fila::field::Field<'_>>::read($r) };
    (@read $r:ident $ty:ty as $layout:ident) => {
        $crate::fila::field::layout::$layout::read($r)
    };
    (@write $field:ident $out:ident $ty:ty) => {
        <$ty as $crate::fila::field::Field<'_>>::write($field, $out)
    };
    (@write $field:ident $out:ident $ty:ty as $layout:ident) => {
        $crate::fila::field::layout::$layout::write($field, $out)
    };
    (@size $field:ident $ty:ty) => {
        <$ty as $crate::fila::field::Field<'_>>::size($field)
    };
    (@size $field:ident $ty:ty as $layout:ident) => {
        $crate::fila::field::layout::$layout::size($field)
    };
}

pub(crate) use wire_struct;
