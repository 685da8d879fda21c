//! Why a header was refused: always a syntax error (502), never fatal by itself.

use core::fmt;

use super::ReplyCode;
use crate::cursor::DecodeError;

/// What is wrong with a header, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyntaxError {
    /// Bytes from the start of the header to the value at fault.
    pub offset: usize,
    /// The map inside the header that holds `field`, such as `props`; `None` for the header itself.
    pub within: Option<&'static str>,
    /// The field at fault; `None` when it is the header itself or a field nobody knows.
    pub field: Option<&'static str>,
    /// What is wrong with it.
    pub kind: SyntaxErrorKind,
}

/// What is wrong with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyntaxErrorKind {
    /// Bytes that are no MessagePack.
    Malformed(DecodeError),
    /// The one byte that MessagePack never uses, `0xc1`.
    ReservedByte,
    /// A value of another type than the field has.
    WrongType {
        /// The type of the field.
        expected: &'static str,
        /// The type that was found.
        found: &'static str,
    },
    /// A number the field has no room for.
    OutOfRange {
        /// The number found.
        value: u64,
        /// The largest the field takes.
        value_max: u64,
    },
    /// A key of the header, of `props`, `auth` or `server` that is not text.
    KeyNotText {
        /// The type that was found.
        found: &'static str,
    },
    /// Arrays and maps inside each other beyond the limit.
    TooDeep {
        /// The limit.
        depth_max: usize,
    },
    /// Bytes after the end of the header's map.
    TrailingBytes {
        /// How many.
        count: usize,
    },
}

impl SyntaxError {
    /// The reply code that answers it.
    pub const CODE: ReplyCode = ReplyCode::SyntaxError;

    pub(super) const fn new(offset: usize, kind: SyntaxErrorKind) -> Self {
        Self {
            offset,
            within: None,
            field: None,
            kind,
        }
    }

    /// The same error, known to be in this field: the field itself, or the map around it.
    #[cold]
    pub(super) const fn in_field(mut self, name: &'static str) -> Self {
        if self.field.is_none() {
            self.field = Some(name);
        } else {
            self.within = Some(name);
        }
        self
    }
}

impl From<DecodeError> for SyntaxError {
    #[cold]
    fn from(error: DecodeError) -> Self {
        Self::new(error.offset, SyntaxErrorKind::Malformed(error))
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.within, self.field) {
            (Some(within), Some(field)) => write!(f, "field {within}.{field}: ")?,
            (_, Some(field)) => write!(f, "field {field}: ")?,
            (_, None) => f.write_str("header: ")?,
        }
        let at = self.offset;
        match self.kind {
            SyntaxErrorKind::Malformed(error) => write!(f, "{error}"),
            SyntaxErrorKind::ReservedByte => {
                write!(
                    f,
                    "the byte 0xc1 at offset {at} starts no MessagePack value"
                )
            }
            SyntaxErrorKind::WrongType { expected, found } => {
                write!(f, "{found} at offset {at} where {expected} belongs")
            }
            SyntaxErrorKind::OutOfRange { value, value_max } => {
                write!(f, "{value} at offset {at} is larger than {value_max}")
            }
            SyntaxErrorKind::KeyNotText { found } => {
                write!(f, "a key at offset {at} is {found}: it must be str")
            }
            SyntaxErrorKind::TooDeep { depth_max } => write!(
                f,
                "more than {depth_max} arrays and maps inside each other at offset {at}"
            ),
            SyntaxErrorKind::TrailingBytes { count } => {
                write!(f, "{count} bytes after the end of its map at offset {at}")
            }
        }
    }
}

impl core::error::Error for SyntaxError {}
