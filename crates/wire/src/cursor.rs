//! Reading integers and slices from a byte slice, front to back, and saying exactly what was wrong.
//!
//! Owns: the position, the bounds checks, and the one decode error of this crate.
//! Refuses to know: what the bytes mean; length prefixes and text rules belong to each protocol.

use core::fmt;

/// Why bytes could not be decoded, and where.
///
/// `offset` is in bytes from the start of the slice the reader was made from. Every kind means the
/// sender broke the layout, so a session answers all of them alike; the text says what to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeError {
    /// Bytes from the start of the decoded body to the value at fault.
    pub offset: usize,
    /// What was wrong there.
    pub kind: DecodeErrorKind,
}

/// What was wrong with the bytes at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeErrorKind {
    /// A value needs more bytes than are left.
    Truncated {
        /// The layout type of the value, such as `string`.
        what: &'static str,
        /// Bytes the value needs.
        need: usize,
        /// Bytes left.
        have: usize,
    },
    /// A text field does not hold UTF-8.
    InvalidUtf8 {
        /// The layout type of the value.
        what: &'static str,
        /// How many of its bytes are valid UTF-8.
        valid_up_to: usize,
    },
    /// A byte that must be 0 or 1 holds something else.
    InvalidBool {
        /// `bool` or `presence byte`.
        what: &'static str,
        /// The byte found.
        value: u8,
    },
    /// A count promises more items than the bytes left could hold.
    CountTooLarge {
        /// What is counted.
        what: &'static str,
        /// The promised number of items.
        count: usize,
        /// The least bytes that many items need.
        need: usize,
        /// Bytes left.
        have: usize,
    },
    /// A value begins with a tag that names no layout.
    UnknownTag {
        /// What the tag belongs to.
        what: &'static str,
        /// The tag found.
        tag: u8,
    },
    /// Values stand in values more levels deep than anyone reads.
    TooDeep {
        /// The most levels.
        depth_max: u8,
    },
    /// Flags are set that name no value, so what follows them cannot be read.
    UnknownFlags {
        /// What the flags belong to.
        what: &'static str,
        /// The flag word found.
        flags: u16,
    },
    /// Bytes follow the last value of a layout that ends there.
    TrailingBytes {
        /// How many.
        have: usize,
    },
    /// The body is too long for the 32-bit offsets that batches carry.
    BodyTooLarge {
        /// Its length in bytes.
        len: usize,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.offset;
        match self.kind {
            DecodeErrorKind::Truncated { what, need, have } => write!(
                f,
                "{what} of {need} bytes at offset {at} runs past the end: {have} bytes left"
            ),
            DecodeErrorKind::InvalidUtf8 { what, valid_up_to } => write!(
                f,
                "{what} at offset {at} is not UTF-8: only its first {valid_up_to} bytes are valid"
            ),
            DecodeErrorKind::InvalidBool { what, value } => {
                write!(f, "{what} at offset {at} is {value}: it must be 0 or 1")
            }
            DecodeErrorKind::CountTooLarge {
                what,
                count,
                need,
                have,
            } => write!(
                f,
                "a count of {count} {what} at offset {at} needs at least {need} bytes: \
                 {have} bytes left"
            ),
            DecodeErrorKind::UnknownTag { what, tag } => {
                write!(
                    f,
                    "{what} at offset {at} is 0x{tag:02X}: no layout has this tag"
                )
            }
            DecodeErrorKind::TooDeep { depth_max } => {
                write!(
                    f,
                    "the value at offset {at} is nested more than {depth_max} levels deep"
                )
            }
            DecodeErrorKind::UnknownFlags { what, flags } => {
                write!(
                    f,
                    "{what} at offset {at} are 0x{flags:04X}: some name no value"
                )
            }
            DecodeErrorKind::TrailingBytes { have } => {
                write!(f, "{have} bytes at offset {at} follow the last value")
            }
            DecodeErrorKind::BodyTooLarge { len } => {
                write!(f, "a body of {len} bytes is larger than {} bytes", u32::MAX)
            }
        }
    }
}

impl core::error::Error for DecodeError {}

/// A position in a byte slice that only moves forward.
///
/// A failed read leaves the position where it was or at the start of the value at fault; after an
/// error the reader is of no further use.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
    total: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the front of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            total: bytes.len(),
        }
    }

    /// Bytes consumed so far.
    #[inline]
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.total - self.rest.len()
    }

    /// Bytes not yet consumed.
    #[inline]
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The bytes not yet consumed.
    #[inline]
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The bytes between an earlier copy of this reader and its present position.
    #[inline]
    #[must_use]
    pub fn since(&self, earlier: &Self) -> &'a [u8] {
        let len = earlier.rest.len().saturating_sub(self.rest.len());
        earlier.rest.get(..len).unwrap_or_default()
    }

    /// An error of `kind` at the present position.
    #[cold]
    #[must_use]
    pub const fn error(&self, kind: DecodeErrorKind) -> DecodeError {
        DecodeError {
            offset: self.offset(),
            kind,
        }
    }

    #[cold]
    const fn truncated(&self, what: &'static str, need: usize) -> DecodeError {
        self.error(DecodeErrorKind::Truncated {
            what,
            need,
            have: self.rest.len(),
        })
    }

    /// The next `N` bytes by value; `what` names them in the error.
    ///
    /// # Errors
    /// `Truncated` when fewer than `N` bytes are left.
    #[inline]
    pub const fn array<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<[u8; N], DecodeError> {
        match self.rest.split_first_chunk::<N>() {
            Some((head, tail)) => {
                self.rest = tail;
                Ok(*head)
            }
            None => Err(self.truncated(what, N)),
        }
    }

    /// The next `len` bytes, borrowed; `what` names them in the error.
    ///
    /// # Errors
    /// `Truncated` when fewer than `len` bytes are left.
    #[inline]
    pub const fn slice(&mut self, len: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        match self.rest.split_at_checked(len) {
            Some((head, tail)) => {
                self.rest = tail;
                Ok(head)
            }
            None => Err(self.truncated(what, len)),
        }
    }

    /// The next `len` bytes as UTF-8 text, borrowed.
    ///
    /// # Errors
    /// `Truncated`, or `InvalidUtf8`.
    #[inline]
    pub fn utf8(&mut self, len: usize, what: &'static str) -> Result<&'a str, DecodeError> {
        let before = *self;
        let bytes = self.slice(len, what)?;
        match core::str::from_utf8(bytes) {
            Ok(text) => Ok(text),
            Err(e) => Err(before.error(DecodeErrorKind::InvalidUtf8 {
                what,
                valid_up_to: e.valid_up_to(),
            })),
        }
    }

    /// One byte.
    ///
    /// # Errors
    /// `Truncated` when no byte is left.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array::<1>("u8").map(|[byte]| byte)
    }

    /// A big-endian `u16`.
    ///
    /// # Errors
    /// `Truncated` when fewer than 2 bytes are left.
    #[inline]
    pub fn u16_be(&mut self) -> Result<u16, DecodeError> {
        self.array("u16").map(u16::from_be_bytes)
    }

    /// A big-endian `u32`.
    ///
    /// # Errors
    /// `Truncated` when fewer than 4 bytes are left.
    #[inline]
    pub fn u32_be(&mut self) -> Result<u32, DecodeError> {
        self.array("u32").map(u32::from_be_bytes)
    }

    /// A big-endian `u64`.
    ///
    /// # Errors
    /// `Truncated` when fewer than 8 bytes are left.
    #[inline]
    pub fn u64_be(&mut self) -> Result<u64, DecodeError> {
        self.array("u64").map(u64::from_be_bytes)
    }

    /// A big-endian signed `i64`.
    ///
    /// # Errors
    /// `Truncated` when fewer than 8 bytes are left.
    #[inline]
    pub fn i64_be(&mut self) -> Result<i64, DecodeError> {
        self.array("i64").map(i64::from_be_bytes)
    }

    /// A byte that must be 0 or 1; `what` names it in the error.
    ///
    /// # Errors
    /// `Truncated`, or `InvalidBool` for any other value.
    #[inline]
    pub fn bool(&mut self, what: &'static str) -> Result<bool, DecodeError> {
        let before = *self;
        match self.array::<1>(what)? {
            [0] => Ok(false),
            [1] => Ok(true),
            [value] => Err(before.error(DecodeErrorKind::InvalidBool { what, value })),
        }
    }

    /// Refuses a count whose items cannot fit in the bytes left, so that nothing is ever
    /// allocated for items that are not there. `item_bytes_min` is the least size of one item.
    ///
    /// # Errors
    /// `CountTooLarge`.
    #[inline]
    pub const fn check_count(
        &self,
        count: usize,
        item_bytes_min: usize,
        what: &'static str,
    ) -> Result<(), DecodeError> {
        let need = count.saturating_mul(item_bytes_min);
        if need > self.rest.len() {
            let have = self.rest.len();
            return Err(self.error(DecodeErrorKind::CountTooLarge {
                what,
                count,
                need,
                have,
            }));
        }
        Ok(())
    }
}
