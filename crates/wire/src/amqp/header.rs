//! The content header (§2.3.5.2), which follows a method with content.
//!
//! ```text
//! u16 class | u16 weight | u64 body size | property flags | property values
//! ```

use super::basic;
use super::properties::Properties;
use crate::cursor::{DecodeError, Reader};

/// Bytes before the properties.
pub const CONTENT_HEADER_BYTES: usize = 12;

/// The payload of a header frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentHeader<'a> {
    /// The class of the method before it. The properties were read as those of class 60, the only
    /// one with content; a session refuses others.
    pub class_id: u16,
    /// Must be 0; RabbitMQ answers others as an unexpected frame.
    pub weight: u16,
    /// The bytes of body that follow, in all frames.
    pub body_size: u64,
    /// The properties.
    pub properties: Properties<'a>,
}

impl<'a> ContentHeader<'a> {
    /// Reads the payload of a header frame. Bytes behind the last property are refused, as
    /// RabbitMQ refuses them.
    ///
    /// # Errors
    /// When it does not follow the layout; offsets count from the start of the payload.
    #[inline]
    pub fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(payload);
        let fixed: [u8; CONTENT_HEADER_BYTES] = r.array("content header")?;
        let [c0, c1, w0, w1, size @ ..] = fixed;
        let properties = Properties::decode(r.rest()).map_err(|error| DecodeError {
            offset: error.offset + CONTENT_HEADER_BYTES,
            kind: error.kind,
        })?;
        Ok(Self {
            class_id: u16::from_be_bytes([c0, c1]),
            weight: u16::from_be_bytes([w0, w1]),
            body_size: u64::from_be_bytes(size),
            properties,
        })
    }
}

/// The bytes before the properties of class `basic`.
#[inline]
#[must_use]
pub const fn content_header_prefix(body_size: u64) -> [u8; CONTENT_HEADER_BYTES] {
    let [c0, c1] = basic::CLASS.to_be_bytes();
    let [s0, s1, s2, s3, s4, s5, s6, s7] = body_size.to_be_bytes();
    [c0, c1, 0, 0, s0, s1, s2, s3, s4, s5, s6, s7]
}
