//! The headers map of a message (`map<string,string>`), kept as bytes until someone asks.

use super::field::{EncodeError, Field, prefix_u16, write_string};
use super::frame::write_at;
use crate::cursor::{DecodeError, Reader};

/// No headers, for writers that want an iterator of pairs.
pub const NO_HEADERS: [(&str, &str); 0] = [];

/// An empty map on the wire.
const EMPTY: &[u8] = &[0, 0];

/// A checked headers map, borrowed: the `u16` count and the entries.
///
/// Names may repeat; order is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers<'a> {
    /// Count and entries, known to follow the layout.
    raw: &'a [u8],
}

impl Default for Headers<'_> {
    fn default() -> Self {
        Self { raw: EMPTY }
    }
}

impl<'a> Headers<'a> {
    /// Checks a map that fills all of `bytes` or stands at their front.
    ///
    /// # Errors
    /// When it does not follow the layout.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Self::read(&mut Reader::new(bytes))
    }

    /// The map on the wire, its count included.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.raw
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.raw
            .first_chunk()
            .map_or(0, |count| usize::from(u16::from_be_bytes(*count)))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries in order.
    #[must_use]
    pub fn iter(&self) -> HeadersIter<'a> {
        HeadersIter {
            left: self.len(),
            reader: Reader::new(self.raw.get(2..).unwrap_or_default()),
        }
    }

    /// The value of the first entry of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&'a str> {
        self.iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    }

    /// Appends a map of these pairs.
    ///
    /// # Errors
    /// More than 65,535 pairs, or a name or value longer than 65,535 bytes; `out` then ends in a
    /// part of the map.
    pub fn encode_pairs<K: AsRef<str>, V: AsRef<str>>(
        out: &mut Vec<u8>,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Result<(), EncodeError> {
        let count_at = out.len();
        out.extend_from_slice(EMPTY);
        let mut count = 0_usize;
        for (name, value) in pairs {
            write_string(out, name.as_ref())?;
            write_string(out, value.as_ref())?;
            count += 1;
        }
        let count = prefix_u16(count, "headers")?;
        write_at(out, count_at, &count.to_be_bytes());
        Ok(())
    }
}

impl<'a> IntoIterator for Headers<'a> {
    type Item = (&'a str, &'a str);
    type IntoIter = HeadersIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &Headers<'a> {
    type Item = (&'a str, &'a str);
    type IntoIter = HeadersIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> Field<'a> for Headers<'a> {
    const SIZE_MIN: usize = 2;

    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let before = *r;
        let count = r.u16_be()?;
        r.check_count(usize::from(count), 4, "headers")?;
        for _ in 0..count {
            <(&str, &str)>::read(r)?;
        }
        Ok(Self {
            raw: r.since(&before),
        })
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        out.extend_from_slice(self.raw);
        Ok(())
    }

    fn size(&self) -> usize {
        self.raw.len()
    }
}

/// The entries of a [`Headers`].
#[derive(Debug, Clone)]
pub struct HeadersIter<'a> {
    left: usize,
    reader: Reader<'a>,
}

impl<'a> Iterator for HeadersIter<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        // The map was checked when it was made, so this never fails.
        Field::read(&mut self.reader).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for HeadersIter<'_> {}
