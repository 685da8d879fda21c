//! The neutral form of a message's headers and body.
//!
//! Layout (big-endian): `u16 count`, `count` times `u16 length, name, u16 length, value`, then
//! `u32 length, payload`. It is kept as the bytes in which it came, from socket to disk to socket;
//! headers are looked at only when a key asks for them.

/// Why bytes are not a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentError;

/// A view on a content's bytes.
#[derive(Clone, Copy, Debug)]
pub struct Content<'a> {
    bytes: &'a [u8],
}

impl<'a> Content<'a> {
    /// Views `bytes`; nothing is checked until it is asked for.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The headers, in the order they were given; ends early at malformed bytes.
    pub fn headers(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let count = take_u16(self.bytes);
        let (mut left, mut rest) = count.map_or((0, self.bytes), |(n, rest)| (n, rest));
        core::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            left -= 1;
            let (name, after_name) = take_string(rest)?;
            let (value, after_value) = take_string(after_name)?;
            rest = after_value;
            Some((name, value))
        })
    }

    /// The value of the last header called `name`.
    #[must_use]
    pub fn header(self, name: &[u8]) -> Option<&'a [u8]> {
        self.headers()
            .filter(|(n, _)| *n == name)
            .last()
            .map(|(_, value)| value)
    }

    /// The payload.
    ///
    /// # Errors
    /// `ContentError` when the bytes are cut short.
    pub fn payload(self) -> Result<&'a [u8], ContentError> {
        let (count, mut rest) = take_u16(self.bytes).ok_or(ContentError)?;
        for _ in 0..u32::from(count) * 2 {
            rest = take_string(rest).ok_or(ContentError)?.1;
        }
        let (len, rest) = rest.split_first_chunk::<4>().ok_or(ContentError)?;
        rest.get(..u32::from_be_bytes(*len) as usize)
            .ok_or(ContentError)
    }
}

fn take_u16(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<2>()?;
    Some((u16::from_be_bytes(*head), rest))
}

fn take_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = take_u16(bytes)?;
    rest.split_at_checked(usize::from(len))
}
