//! Inputs as scripts: bytes that decide one thing after the other.
//!
//! Own and not a crate's, because stored inputs keep their meaning only while the reading of them
//! stays as it is.

/// Reads decisions off the front of an input. At its end everything is 0 and empty.
#[derive(Clone, Copy, Debug)]
pub struct Script<'a> {
    rest: &'a [u8],
}

impl<'a> Script<'a> {
    /// The script of an input.
    #[must_use]
    pub const fn new(input: &'a [u8]) -> Self {
        Self { rest: input }
    }

    /// Whether all is read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// One byte.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else {
            return 0;
        };
        self.rest = rest;
        *first
    }

    /// Two bytes, big-endian.
    pub fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// Four bytes, big-endian.
    pub fn u32(&mut self) -> u32 {
        u32::from_be_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    /// Eight bytes, big-endian.
    pub fn u64(&mut self) -> u64 {
        u64::from(self.u32()) << 32 | u64::from(self.u32())
    }

    /// One of `count` things; 0 when there is none. Takes one byte, two for more than 256.
    pub fn pick(&mut self, count: usize) -> usize {
        let drawn = if count > 256 {
            usize::from(self.u16())
        } else {
            usize::from(self.byte())
        };
        drawn % count.max(1)
    }

    /// The next `len` bytes, or what is left.
    pub fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at_checked(len).unwrap_or((self.rest, &[]));
        self.rest = rest;
        taken
    }

    /// A byte that says how many follow, and those.
    pub fn short(&mut self) -> &'a [u8] {
        let len = usize::from(self.byte());
        self.bytes(len)
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_ends_in_zeros() {
        let mut script = Script::new(&[7, 0, 5, 2, 8, 9, 1]);
        assert_eq!(script.pick(4), 3);
        assert_eq!(script.u16(), 5);
        assert_eq!(script.short(), [8, 9]);
        assert!(!script.is_empty());
        assert_eq!(script.u32(), 1 << 24);
        assert!(script.is_empty());
        assert_eq!((script.pick(3), script.byte(), script.pick(0)), (0, 0, 0));
        assert_eq!(script.short(), [0_u8; 0]);
    }
}
