//! The identity of a message.

use std::fmt;
use std::str::FromStr;

/// A message's ID: a UUIDv7 made by the broker, which never changes, also across a redrive.
///
/// IDs of one queue increase. Text form and parsing follow RFC 9562:
/// `0190163d-8694-739b-aea5-966c26f8ad91`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId([u8; 16]);

/// Offsets in the text form where a hyphen stands.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];
/// Length of the text form.
const TEXT_LEN: usize = 36;

impl MessageId {
    /// The ID of these bytes, in network byte order.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes in network byte order.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// When the message was enqueued, in Unix milliseconds: the first 48 bits of a UUIDv7.
    #[must_use]
    pub const fn enqueued_at_ms(&self) -> u64 {
        (u128::from_be_bytes(self.0) >> 80) as u64
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = u128::from_be_bytes(self.0);
        let mut digits_left = 32;
        for at in 0..TEXT_LEN {
            if HYPHENS.contains(&at) {
                f.write_str("-")?;
            } else {
                digits_left -= 1;
                write!(f, "{:x}", (value >> (4 * digits_left)) & 0xf)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not a UUID of 32 hexadecimal digits in the 8-4-4-4-12 form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseMessageIdError;

impl fmt::Display for ParseMessageIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message ID looks like 0190163d-8694-739b-aea5-966c26f8ad91")
    }
}

impl std::error::Error for ParseMessageIdError {}

impl FromStr for MessageId {
    type Err = ParseMessageIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() != TEXT_LEN {
            return Err(ParseMessageIdError);
        }
        let mut value = 0_u128;
        for (at, byte) in text.bytes().enumerate() {
            if HYPHENS.contains(&at) {
                if byte != b'-' {
                    return Err(ParseMessageIdError);
                }
            } else {
                let digit = char::from(byte).to_digit(16).ok_or(ParseMessageIdError)?;
                value = (value << 4) | u128::from(digit);
            }
        }
        Ok(Self(value.to_be_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_agree() {
        let text = "0190163d-8694-739b-aea5-966c26f8ad91";
        let id: MessageId = text.parse().unwrap();
        assert_eq!(id.as_bytes()[..4], [0x01, 0x90, 0x16, 0x3d]);
        assert_eq!(id.to_string(), text);
        assert_eq!(id.enqueued_at_ms(), 0x0190_163d_8694);
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "",
            "0190163d8694739baea5966c26f8ad91",
            "0190163d-8694-739b-aea5-966c26f8ad9g",
        ] {
            assert_eq!(
                text.parse::<MessageId>(),
                Err(ParseMessageIdError),
                "{text}"
            );
        }
        let signed = "+190163d-8694-739b-aea5-966c26f8ad91";
        assert_eq!(signed.parse::<MessageId>(), Err(ParseMessageIdError));
    }
}
