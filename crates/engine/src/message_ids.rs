//! Message ids: UUIDv7, increasing.

use crate::{MessageId, Millis};

/// Makes ids that only grow: within a millisecond the random part counts up.
#[derive(Debug)]
pub(crate) struct MessageIds {
    last: Millis,
    /// `rand_b` of the newest id.
    tail: u64,
    random: SplitMix,
}

/// Bits of `rand_b`, and the room left in them for counting up within one millisecond.
const TAIL_BITS: u32 = 62;
const TAIL_START_BITS: u32 = 61;

impl MessageIds {
    pub(crate) const fn new(seed: u64) -> Self {
        Self {
            last: Millis(0),
            tail: 0,
            random: SplitMix(seed),
        }
    }

    /// Ids made from now on are newer than every id of that time.
    pub(crate) const fn start_after(&mut self, newest: Millis) {
        if newest.0 >= self.last.0 {
            self.last = Millis(newest.0.saturating_add(1));
            self.restart();
        }
    }

    /// The time of the newest id, or what it must be newer than.
    pub(crate) const fn newest(&self) -> Millis {
        self.last
    }

    const fn restart(&mut self) {
        self.tail = self.random.next() >> (64 - TAIL_START_BITS);
    }

    /// The next id. Its time is `now`, or the last id's when that is later.
    pub(crate) const fn next(&mut self, now: Millis) -> MessageId {
        if now.0 > self.last.0 {
            self.last = now;
            self.restart();
        } else {
            self.tail += 1;
        }
        let time = (self.last.0 as u128 & 0xffff_ffff_ffff) << 80;
        let version = 7_u128 << 76;
        let variant = 2_u128 << TAIL_BITS;
        MessageId(time | version | variant | self.tail as u128)
    }
}

/// A small deterministic generator (SplitMix64): ids need to be unique, not secret.
#[derive(Debug)]
struct SplitMix(u64);

impl SplitMix {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_grow_whatever_the_clock_does() {
        let mut ids = MessageIds::new(7);
        ids.start_after(Millis(1_000));
        let mut last = ids.next(Millis(1_000));
        assert!(last.enqueued_at() > Millis(1_000));
        for now in [1_001, 1_001, 900, 1_500, 1_500, 1_400, 2_000] {
            let id = ids.next(Millis(now));
            assert!(id > last, "{id} after {last}");
            assert_eq!(id.to_string().as_bytes()[14], b'7', "version of {id}");
            assert!(
                matches!(id.to_string().as_bytes()[19], b'8'..=b'b'),
                "variant of {id}"
            );
            assert_eq!(MessageId::parse(&id.to_string()), Some(id));
            last = id;
        }
        assert_eq!(last.enqueued_at(), Millis(2_000));
    }
}
