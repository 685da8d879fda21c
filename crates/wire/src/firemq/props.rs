//! The `props` map of a message: checked bytes that pass through, and their fields on demand.

use super::field::{Field, Fields, read_header};
use super::header_struct::header_struct;
use super::syntax::SyntaxError;
use super::value::RawMap;
use crate::cursor::Reader;

header_struct! {
    /// The fields of a message's properties; an absent one is empty or 0.
    #[derive(Debug, Copy, Eq)]
    pub struct Properties<'a> {
        /// What the body is.
        content_type: &'a str,
        /// How the body is packed.
        content_encoding: &'a str,
        /// Which request it answers.
        correlation_id: &'a str,
        /// Where answers go.
        reply_to: &'a str,
        /// How long it may wait, in milliseconds; 0 is forever.
        expiration_ms: u64 = "expiration",
        /// The application's own id.
        message_id: &'a str,
        /// When it was made, in seconds since 1970; 0 says nothing.
        timestamp_s: u64 = "timestamp",
        /// What kind of message it is.
        kind: &'a str = "type",
        /// Who published it; the server checks it when set.
        user_id: &'a str,
        /// Which application published it.
        app_id: &'a str,
        /// 0 to 255.
        priority: u8,
    }
}

impl<'a> Properties<'a> {
    /// Appends them as a map, without those that are zero: the bytes of a [`Props`].
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.write_map(out);
    }
}

/// A checked `props` map, borrowed: known keys have their types, unknown keys are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Props<'a> {
    map: RawMap<'a>,
}

impl<'a> Props<'a> {
    /// Checks a map that fills all of `bytes`; no bytes are an empty map.
    ///
    /// # Errors
    /// When it is no map with text keys, or a property has the wrong type.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, SyntaxError> {
        read_header::<Properties<'_>>(bytes)?;
        Ok(Self::from_checked(bytes))
    }

    /// Takes bytes that were the [`Props::as_bytes`] of a checked map before, such as stored
    /// properties. Others would be written into a frame as they are.
    #[must_use]
    pub const fn from_checked(bytes: &'a [u8]) -> Self {
        Self {
            map: RawMap::from_checked(bytes),
        }
    }

    /// The map on the wire, its marker included.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.map.as_bytes()
    }

    /// Whether it is an empty map.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Its fields.
    #[must_use]
    pub fn fields(&self) -> Properties<'a> {
        // The map was checked when it was made, so this only fails for `from_checked` misused.
        read_header(self.map.as_bytes()).unwrap_or_default()
    }
}

impl<'a> Field<'a> for Props<'a> {
    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, SyntaxError> {
        let before = *r;
        Properties::read_map(r)?;
        Ok(Self::from_checked(r.since(&before)))
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
