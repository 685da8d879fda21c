//! Random numbers: one seed, one stream per concern.
//!
//! A stream's draws depend on the seed and the stream's name only, so a change in how one concern
//! draws leaves the others as they were.

/// One stream (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// The stream `name` of `seed`.
    pub(crate) fn stream(seed: u64, name: &str) -> Self {
        let mut stream = Self { state: seed };
        for byte in name.bytes() {
            stream.state ^= u64::from(byte);
            stream.draw();
        }
        stream
    }

    /// Any number.
    pub(crate) const fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 to `bound - 1`; 0 for a bound of 0.
    pub(crate) const fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        self.draw() % bound
    }

    /// An index into something of this length.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }

    /// From `low` to `high`, both included.
    pub(crate) const fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True once in `of` draws.
    pub(crate) const fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    /// True in `percent` of 100 draws.
    pub(crate) const fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of `items`; `None` when there are none.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.index(items.len()))
    }

    /// A length that is mostly small, sometimes up to `max`, and often 1.
    pub(crate) fn length(&mut self, max: usize) -> usize {
        let bits = u64::from(u64::BITS - (max as u64).leading_zeros());
        let shift = self.below(bits + 1);
        let below = (1_u64 << shift.min(40)).min(max as u64).max(1);
        1 + self.index(usize::try_from(below).unwrap_or(max))
    }
}
