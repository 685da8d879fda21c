//! JSON (RFC 8259) as texts that are checked once and read in place.
//!
//! A library that builds values was not taken: it rounds integers beyond 64 bits unless all of the
//! program pays for numbers kept as text, and it would give back another text than came.

mod noted;
mod number;
mod read;
mod scan;
mod text;
mod write;

use core::fmt;

pub use noted::NotedObject;
pub use number::Number;
pub use read::{Array, Object};
pub use write::Writer;

/// Most arrays and objects inside each other.
pub const DEPTH_MAX: usize = 128;
/// Longest number, in bytes.
pub const NUMBER_BYTES_MAX: usize = 512;

/// One value: its text, checked, without space around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<'a>(&'a str);

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonKind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number.
    Number,
    /// A text.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl JsonKind {
    /// Its name with its article, for messages.
    #[must_use]
    pub const fn described(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "a bool",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }
}

/// Why bytes are no JSON, or none that is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonError {
    /// Where, in bytes from the start.
    pub at: usize,
    /// What is wrong there.
    pub problem: JsonProblem,
}

/// What is wrong with a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonProblem {
    /// It is not UTF-8.
    Utf8,
    /// It ends within a value, or there is none.
    End,
    /// A byte that cannot be here.
    Unexpected {
        /// The byte.
        found: u8,
    },
    /// More than [`DEPTH_MAX`] arrays and objects inside each other.
    Depth,
    /// A number of more than [`NUMBER_BYTES_MAX`] bytes.
    NumberLength,
    /// An integer beyond 64 bits, or a number beyond a double.
    NumberRange,
    /// A backslash before something that it may not stand before.
    Escape,
    /// Half of a surrogate pair.
    Surrogate,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match self.problem {
            JsonProblem::Utf8 => write!(f, "byte {at} is not UTF-8"),
            JsonProblem::End => write!(f, "the JSON ends too early, at byte {at}"),
            JsonProblem::Unexpected { found } => {
                let found = [found];
                let found = found.escape_ascii();
                write!(f, "\"{found}\" at byte {at} is not what JSON has there")
            }
            JsonProblem::Depth => write!(
                f,
                "more than {DEPTH_MAX} arrays and objects inside each other at byte {at}"
            ),
            JsonProblem::NumberLength => write!(
                f,
                "the number at byte {at} is longer than {NUMBER_BYTES_MAX} bytes"
            ),
            JsonProblem::NumberRange => write!(
                f,
                "the number at byte {at} does not fit (integers have 64 bits, others are doubles)"
            ),
            JsonProblem::Escape => write!(f, "an escape that JSON does not have at byte {at}"),
            JsonProblem::Surrogate => write!(f, "half of a surrogate pair at byte {at}"),
        }
    }
}

impl core::error::Error for JsonError {}

fn utf8(bytes: &[u8]) -> Result<&str, JsonError> {
    core::str::from_utf8(bytes).map_err(|error| JsonError {
        at: error.valid_up_to(),
        problem: JsonProblem::Utf8,
    })
}

impl<'a> Json<'a> {
    /// The value that these bytes are, with space around it or not.
    ///
    /// # Errors
    /// `JsonError` when they are none, or one that is not taken.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, JsonError> {
        let text = utf8(bytes)?;
        let span = scan::whole(text.as_bytes(), |_| {})?;
        Ok(Self(text.get(span).unwrap_or_default()))
    }

    /// The text of a value that is known to be one.
    const fn known(text: &'a str) -> Self {
        Self(text)
    }

    /// Its text.
    #[must_use]
    pub const fn text(self) -> &'a str {
        self.0
    }

    /// What it is.
    #[must_use]
    pub fn kind(self) -> JsonKind {
        match self.0.as_bytes().first() {
            Some(b'n') | None => JsonKind::Null,
            Some(b't' | b'f') => JsonKind::Bool,
            Some(b'"') => JsonKind::String,
            Some(b'[') => JsonKind::Array,
            Some(b'{') => JsonKind::Object,
            Some(_) => JsonKind::Number,
        }
    }
}
