//! Strings on their way into a script.
//!
//! ```text
//! names    u16 name_bytes (little-endian) of each header, then all names
//! values   u16 value_bytes of each header, then all values, then whatever else the hook takes
//! ```
//!
//! So the script's side reads lengths from a buffer and cuts the texts out of one string, which
//! costs a fraction of what a call from outside costs for each of them. Names are handed over only
//! when they are not those of a message before.

/// A message's strings in the form above; its memory is reused.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    names: Vec<u8>,
    values: Vec<u8>,
    headers: usize,
}

impl Packed {
    /// Begins with the headers of `content`: big-endian `u16 count`, then `u16 length, name, u16
    /// length, value` each; what follows them is ignored. Malformed ones end early.
    pub(crate) fn begin(&mut self, content: &[u8]) {
        self.names.clear();
        self.values.clear();
        self.headers = 0;
        for (name, value) in headers(content) {
            self.names.extend_from_slice(&name.bytes.to_le_bytes());
            self.values.extend_from_slice(&value.bytes.to_le_bytes());
            self.headers += 1;
        }
        for (name, value) in headers(content) {
            self.names.extend_from_slice(name.text);
            self.values.extend_from_slice(value.text);
        }
    }

    /// Adds one more text to the values; its length goes beside.
    pub(crate) fn push(&mut self, text: &[u8]) {
        self.values.extend_from_slice(text);
    }

    /// Names of the headers.
    pub(crate) fn names(&self) -> &[u8] {
        &self.names
    }

    /// Values of the headers and what was added.
    pub(crate) fn values(&self) -> &[u8] {
        &self.values
    }

    /// How many headers there are.
    pub(crate) const fn headers(&self) -> usize {
        self.headers
    }

    /// Where the texts of the values begin.
    pub(crate) const fn values_at(&self) -> usize {
        2 * self.headers
    }
}

#[derive(Clone, Copy)]
struct Text<'a> {
    bytes: u16,
    text: &'a [u8],
}

fn headers(content: &[u8]) -> impl Iterator<Item = (Text<'_>, Text<'_>)> {
    let (mut left, mut rest) = take_u16(content).unwrap_or((0, content));
    std::iter::from_fn(move || {
        left = left.checked_sub(1)?;
        let (name, after_name) = take_text(rest)?;
        let (value, after_value) = take_text(after_name)?;
        rest = after_value;
        Some((name, value))
    })
}

fn take_u16(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<2>()?;
    Some((u16::from_be_bytes(*head), rest))
}

fn take_text(bytes: &[u8]) -> Option<(Text<'_>, &[u8])> {
    let (bytes, rest) = take_u16(bytes)?;
    let (text, rest) = rest.split_at_checked(usize::from(bytes))?;
    Some((Text { bytes, text }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_headers_end_early_and_lengths_still_agree() {
        let content = [0, 3, 0, 1, b'a', 0, 2, b'b', b'c', 0, 9, b'd'];
        for end in 0..=content.len() {
            let mut packed = Packed::default();
            packed.begin(&content[..end]);
            packed.push(b"key");
            assert_eq!(packed.headers(), usize::from(end >= 9), "{end}");
            let texts = packed.values().get(packed.values_at()..).unwrap();
            let expected: &[u8] = if end >= 9 { b"bckey" } else { b"key" };
            assert_eq!(texts, expected, "{end}");
        }
    }
}
