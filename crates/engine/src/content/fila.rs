//! Fila's layout: headers as pairs of text, then the payload.

/// A content in Fila's layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fila<'a>(pub(super) &'a [u8]);

impl<'a> Fila<'a> {
    pub(super) fn headers(self) -> Pairs<'a> {
        Pairs::new(self.0)
    }

    /// Where attributes begin, which may be beyond these bytes.
    pub(super) fn attributes_at(self) -> Option<usize> {
        let rest = self.behind_headers()?;
        let (len, rest) = rest.split_first_chunk::<4>()?;
        let payload_at = self.0.len() - rest.len();
        payload_at.checked_add(u32::from_be_bytes(*len) as usize)
    }

    /// The payload and what follows it.
    pub(super) fn split(self) -> Option<(&'a [u8], &'a [u8])> {
        let (len, rest) = self.behind_headers()?.split_first_chunk::<4>()?;
        rest.split_at_checked(u32::from_be_bytes(*len) as usize)
    }

    fn behind_headers(self) -> Option<&'a [u8]> {
        let (count, mut rest) = take_u16(self.0)?;
        for _ in 0..u32::from(count) * 2 {
            rest = take_string(rest)?.1;
        }
        Some(rest)
    }
}

/// Pairs of strings behind their count: headers of Fila, and attributes. Ends early at malformed
/// bytes.
#[derive(Clone, Debug)]
pub(crate) struct Pairs<'a> {
    left: u16,
    rest: &'a [u8],
}

impl<'a> Pairs<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let (left, rest) = take_u16(bytes).unwrap_or((0, bytes));
        Self { left, rest }
    }

    /// The value of the last pair called `name`.
    pub(crate) fn named(self, name: &[u8]) -> Option<&'a [u8]> {
        let named = self.filter(|(n, _)| *n == name);
        named.last().map(|(_, value)| value)
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let (name, after_name) = take_string(self.rest)?;
        let (value, after_value) = take_string(after_name)?;
        self.rest = after_value;
        Some((name, value))
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
