//! Numbers from a seed (SplitMix64).

/// A stream of numbers; the same seed gives the same stream.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The stream of a seed.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 when there is none.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = (bound as u64).max(1);
        usize::try_from(self.next() % bound).unwrap_or_default()
    }

    /// A byte; often one that stands for "none", "one", "all" in formats.
    pub(crate) fn byte(&mut self) -> u8 {
        let [kind, raw, ..] = self.next().to_be_bytes();
        match kind % 8 {
            0 => 0,
            1 => 1,
            2 => 0xFF,
            3 => 0x80,
            _ => raw,
        }
    }
}
