//! Short and long strings: bytes with a length prefix of one byte or four.
//!
//! Neither is text for sure: the specification asks for UTF-8 in short strings (§4.2.5.3), and
//! clients send other bytes in both. Whether such a name is refused is the reader's decision, so
//! both types hold bytes and check text only when asked. What fits the prefix is part of the type,
//! so that writing one cannot fail.

use core::{fmt, str};

/// The most bytes of a short string (§4.2.5.3).
pub const SHORT_STRING_BYTES_MAX: usize = u8::MAX as usize;

/// The most bytes of one long string or table.
///
/// The prefix allows 4 GiB less one byte. A quarter of it is more than any frame carries, and
/// three such fields, the most a method has, still fit the 32-bit size of a frame.
pub const LONG_FIELD_BYTES_MAX: usize = 1 << 30;

const _: () = assert!(3 * LONG_FIELD_BYTES_MAX < u32::MAX as usize);

/// Bytes that do not fit the field they were meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong {
    /// The type of the field.
    pub what: &'static str,
    /// Their number.
    pub len: usize,
    /// The most that fit.
    pub len_max: usize,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, len, len_max } = self;
        write!(f, "a {what} of {len} bytes is too long: {len_max} at most")
    }
}

impl core::error::Error for TooLong {}

/// At most 255 bytes, usually a name.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShortStr<'a> {
    /// At most [`SHORT_STRING_BYTES_MAX`].
    bytes: &'a [u8],
}

impl<'a> ShortStr<'a> {
    /// No bytes.
    pub const EMPTY: Self = Self { bytes: &[] };

    /// All of `bytes`.
    ///
    /// # Errors
    /// More than [`SHORT_STRING_BYTES_MAX`].
    pub const fn new(bytes: &'a [u8]) -> Result<Self, TooLong> {
        if bytes.len() > SHORT_STRING_BYTES_MAX {
            return Err(TooLong {
                what: "short string",
                len: bytes.len(),
                len_max: SHORT_STRING_BYTES_MAX,
            });
        }
        Ok(Self { bytes })
    }

    /// As much of `text` as fits, in whole characters: for literals, and for texts to be read by
    /// people, which may lose their end.
    #[must_use]
    pub const fn clip(text: &'a str) -> Self {
        let end = text.floor_char_boundary(SHORT_STRING_BYTES_MAX);
        let (bytes, _) = text.as_bytes().split_at(end);
        Self { bytes }
    }

    /// What [`super::field`] has read behind a one-byte length.
    #[inline]
    pub(super) const fn of_field(bytes: &'a [u8]) -> Self {
        debug_assert!(bytes.len() <= SHORT_STRING_BYTES_MAX);
        Self { bytes }
    }

    /// The bytes.
    #[inline]
    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// The bytes as text.
    ///
    /// # Errors
    /// When they are not UTF-8.
    #[inline]
    pub const fn to_str(self) -> Result<&'a str, str::Utf8Error> {
        str::from_utf8(self.bytes)
    }

    /// How many bytes.
    #[inline]
    #[must_use]
    pub const fn len(self) -> usize {
        self.bytes.len()
    }

    /// The length as its prefix.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the type holds at most 255 bytes"
    )]
    pub(super) const fn prefix(self) -> u8 {
        self.bytes.len() as u8
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }
}

/// Shows what is not printable ASCII as escapes.
impl fmt::Display for ShortStr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes.escape_ascii().fmt(f)
    }
}

impl fmt::Debug for ShortStr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl<'a> TryFrom<&'a str> for ShortStr<'a> {
    type Error = TooLong;

    fn try_from(text: &'a str) -> Result<Self, TooLong> {
        Self::new(text.as_bytes())
    }
}

/// At most [`LONG_FIELD_BYTES_MAX`] bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LongStr<'a> {
    /// At most [`LONG_FIELD_BYTES_MAX`].
    bytes: &'a [u8],
}

impl<'a> LongStr<'a> {
    /// All of `bytes`.
    ///
    /// # Errors
    /// More than [`LONG_FIELD_BYTES_MAX`].
    pub const fn new(bytes: &'a [u8]) -> Result<Self, TooLong> {
        match long_field(bytes, "long string") {
            Ok(bytes) => Ok(Self { bytes }),
            Err(error) => Err(error),
        }
    }

    /// As much of `text` as fits, in whole characters; a literal always does.
    #[must_use]
    pub const fn clip(text: &'a str) -> Self {
        let end = text.floor_char_boundary(LONG_FIELD_BYTES_MAX);
        let (bytes, _) = text.as_bytes().split_at(end);
        Self { bytes }
    }

    /// The bytes.
    #[inline]
    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// The bytes as text.
    ///
    /// # Errors
    /// When they are not UTF-8.
    #[inline]
    pub const fn to_str(self) -> Result<&'a str, str::Utf8Error> {
        str::from_utf8(self.bytes)
    }

    /// How many bytes.
    #[inline]
    #[must_use]
    pub const fn len(self) -> usize {
        self.bytes.len()
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }
}

/// Only the length: long strings carry passwords.
impl fmt::Debug for LongStr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LongStr({} bytes)", self.len())
    }
}

impl<'a> TryFrom<&'a str> for LongStr<'a> {
    type Error = TooLong;

    fn try_from(text: &'a str) -> Result<Self, TooLong> {
        Self::new(text.as_bytes())
    }
}

/// Bytes that fit a field with a four-byte length.
pub(super) const fn long_field<'a>(
    bytes: &'a [u8],
    what: &'static str,
) -> Result<&'a [u8], TooLong> {
    if bytes.len() > LONG_FIELD_BYTES_MAX {
        return Err(TooLong {
            what,
            len: bytes.len(),
            len_max: LONG_FIELD_BYTES_MAX,
        });
    }
    Ok(bytes)
}

/// The length of a checked long field as its prefix.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "LONG_FIELD_BYTES_MAX is less than 2^32"
)]
pub(super) const fn long_prefix(bytes: &[u8]) -> u32 {
    debug_assert!(bytes.len() <= LONG_FIELD_BYTES_MAX);
    bytes.len() as u32
}
