//! The neutral form of a message's headers and body.
//!
//! Layout (big-endian): `u16 count`, `count` times `u16 length, name, u16 length, value`, then
//! `u32 length, payload`. It is kept as the bytes in which it came, from socket to disk to socket;
//! headers are looked at only when a key asks for them.
//!
//! What a script says of a message follows its payload in the same bytes: `u16 count`, `count`
//! times `u16 length, name, u16 length, value`. So it goes wherever the content goes; consumers
//! are not shown it.

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

    /// Where attributes begin, which may be beyond these bytes; `None` when the headers, or the
    /// payload's length behind them, are cut short.
    pub(crate) fn attributes_at(self) -> Option<usize> {
        let (count, mut rest) = take_u16(self.bytes)?;
        for _ in 0..u32::from(count) * 2 {
            rest = take_string(rest)?.1;
        }
        let (len, rest) = rest.split_first_chunk::<4>()?;
        let payload_at = self.bytes.len() - rest.len();
        payload_at.checked_add(u32::from_be_bytes(*len) as usize)
    }

    /// The payload.
    ///
    /// # Errors
    /// `ContentError` when the bytes are cut short.
    pub fn payload(self) -> Result<&'a [u8], ContentError> {
        self.split().map(|(payload, _)| payload)
    }

    /// The payload and what follows it.
    fn split(self) -> Result<(&'a [u8], &'a [u8]), ContentError> {
        let (count, mut rest) = take_u16(self.bytes).ok_or(ContentError)?;
        for _ in 0..u32::from(count) * 2 {
            rest = take_string(rest).ok_or(ContentError)?.1;
        }
        let (len, rest) = rest.split_first_chunk::<4>().ok_or(ContentError)?;
        rest.split_at_checked(u32::from_be_bytes(*len) as usize)
            .ok_or(ContentError)
    }

    /// The producer's part of the bytes: headers and payload. All of them when they are malformed.
    #[must_use]
    pub fn without_attributes(self) -> &'a [u8] {
        let after = self.split().map_or(0, |(_, after)| after.len());
        let len = self.bytes.len() - after;
        self.bytes.get(..len).unwrap_or(self.bytes)
    }

    /// The attributes that a script gave the message, in the order it gave them; none when none
    /// did. Ends early at malformed bytes.
    pub fn attributes(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let after = self.split().map_or(&[][..], |(_, after)| after);
        Content::new(after).headers()
    }

    /// The value of the attribute called `name`.
    #[must_use]
    pub fn attribute(self, name: &[u8]) -> Option<&'a [u8]> {
        let mut all = self.attributes();
        all.find(|(n, _)| *n == name).map(|(_, value)| value)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_follow_the_payload_and_are_not_part_of_it() {
        let plain = b"\0\x01\0\x01h\0\x02vv\0\0\0\x03abc";
        let content = Content::new(plain);
        assert_eq!(content.payload(), Ok(&b"abc"[..]));
        assert_eq!(content.without_attributes(), plain);
        assert_eq!(content.attributes().count(), 0);
        let with = [&plain[..], b"\0\x02\0\x01a\0\x011\0\x01b\0\0"].concat();
        let content = Content::new(&with);
        assert_eq!(content.without_attributes(), plain);
        assert_eq!(content.payload(), Ok(&b"abc"[..]));
        assert_eq!(content.header(b"h"), Some(&b"vv"[..]));
        assert_eq!(content.attribute(b"a"), Some(&b"1"[..]));
        assert_eq!(content.attribute(b"b"), Some(&b""[..]));
        assert_eq!(content.attribute(b"h"), None);
        for len in 0..plain.len() {
            let cut = Content::new(&plain[..len]);
            assert_eq!(cut.without_attributes(), &plain[..len]);
            assert_eq!(cut.attributes().count(), 0);
        }
    }
}
