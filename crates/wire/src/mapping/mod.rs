//! What a message of one protocol is in another.
//!
//! Owns: values, headers and properties across AMQP, FireMQ and Fila. Refuses to know: which
//! message goes where, routing keys and bodies.
//!
//! | FireMQ | AMQP | Fila, as text |
//! |---|---|---|
//! | nil | `V` | `null` |
//! | bool | `t` | `true`, `false` |
//! | int | `l`; above 2^63-1 `S`, its digits | digits |
//! | float | `d` | shortest decimal that reads back: `1.5`, `2.0`, `1e300`, `NaN` |
//! | str | `S` | as it is |
//! | bin | `x` | as it is when UTF-8, else base64 |
//! | array, map | `A`, `F` | JSON, with bytes as above and what is no number as null |
//! | timestamp | `T`, its whole seconds; before 1970 `l` | whole seconds |
//! | other ext | `x`, its data | like bin |
//! | int | `b`, `B`, `s`, `u`, `I`, `i`, `l`, `T` | digits |
//! | float, of the same width | `f`, `d` | as above |
//! | float | `D` | exact decimal: `12.34` |
//! | bin | `S` that is not UTF-8 | base64 |
//!
//! A key that is not text becomes the text of the last column; nested ones too. A key of a table
//! that is not UTF-8 becomes base64. A key longer than 255 bytes has no place in a table, and a cut
//! one would be another key: the entry is left out. The same holds for a property longer than 255
//! bytes. Of a repeated key the one that counts is kept: the last of a map, the first of a table.
//!
//! An expiration of 0 or a timestamp of 0 is what FireMQ has for none, so AMQP's is lost; so are
//! an expiration that is no number, `cluster-id`, and delivery modes other than 2, persistent.
//!
//! Fila's headers from the others: the properties, named `amqp.content_type` and so on, before the
//! application's headers, so that those cannot pretend to be properties (the first of a name
//! counts).
//!
//! Every function takes the most bytes its result may have, and refuses inputs that are larger than
//! that, too: so no message can make a door of another protocol use memory out of proportion.
//! When it fails, `out` is as it was.

use core::fmt;

use crate::amqp::TooLong;
use crate::cursor::DecodeError;
use crate::fila::EncodeError;

mod amqp_to_fire;
mod entries;
mod fila;
mod fire_to_amqp;
mod json;
mod properties;
mod scalar;
mod texts;

pub use amqp_to_fire::write_fire_map;
pub use fila::FilaMessage;
pub use fire_to_amqp::write_amqp_table;
pub use properties::{FireMessage, write_amqp_properties, write_fire_props};
pub use texts::{
    TextPair, amqp_text, amqp_texts, fire_text, fire_texts, write_fila_headers_of_amqp,
    write_fila_headers_of_fire,
};

/// Why a message has no form in another protocol: its consumers there are not offered it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MapError {
    /// A table breaks its layout.
    Table(DecodeError),
    /// Headers, or what would become of them, are larger than the limit.
    TooLarge {
        /// The limit in bytes.
        bytes_max: usize,
    },
    /// A text or array is longer than a field of AMQP.
    TooLong(TooLong),
    /// A name or value is longer than a string of Fila, or there are too many.
    Fila(EncodeError),
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(error) => write!(f, "a table of the headers is malformed: {error}"),
            Self::TooLarge { bytes_max } => {
                write!(
                    f,
                    "the headers are larger than the {bytes_max} bytes they may have here"
                )
            }
            Self::TooLong(error) => write!(f, "a header does not fit AMQP: {error}"),
            Self::Fila(error) => write!(f, "a header does not fit Fila: {error}"),
        }
    }
}

impl core::error::Error for MapError {}

impl From<DecodeError> for MapError {
    fn from(error: DecodeError) -> Self {
        Self::Table(error)
    }
}

impl From<TooLong> for MapError {
    fn from(error: TooLong) -> Self {
        Self::TooLong(error)
    }
}

impl From<EncodeError> for MapError {
    fn from(error: EncodeError) -> Self {
        Self::Fila(error)
    }
}

/// A limit on how far an output may grow.
#[derive(Debug, Clone, Copy)]
struct Limit {
    /// Where the output of this function begins.
    start: usize,
    bytes_max: usize,
}

impl Limit {
    const fn new(start: usize, bytes_max: usize) -> Self {
        Self { start, bytes_max }
    }

    /// Whether an input may be looked at.
    const fn check_input(&self, bytes: &[u8]) -> Result<(), MapError> {
        self.check(bytes.len())
    }

    /// Whether what was written so far, up to the length `out_len`, still fits.
    const fn check_output(&self, out_len: usize) -> Result<(), MapError> {
        self.check(out_len.saturating_sub(self.start))
    }

    const fn check(&self, bytes: usize) -> Result<(), MapError> {
        if bytes > self.bytes_max {
            return Err(MapError::TooLarge {
                bytes_max: self.bytes_max,
            });
        }
        Ok(())
    }

    /// Takes back what was written when it came to nothing.
    fn or_take_back(
        &self,
        out: &mut Vec<u8>,
        result: Result<(), MapError>,
    ) -> Result<(), MapError> {
        let result = result.and_then(|()| self.check_output(out.len()));
        if result.is_err() {
            out.truncate(self.start);
        }
        result
    }
}
