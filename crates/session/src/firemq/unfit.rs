//! Messages that fit no frame of the peer, and how long they are kept from it.
//!
//! They stay in their queue for others. Each time the peer is offered one again, which costs
//! reading it, the pause grows.

use std::collections::BTreeMap;

use tanda_engine::MessageId;

/// The first pause.
const PAUSE_MS: u64 = 1_000;
/// The longest one.
const PAUSE_MS_MAX: u64 = 60_000;
/// Messages that are remembered; when there are more, all begin anew.
const REMEMBERED_MAX: usize = 1_024;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Unfit {
    pauses: BTreeMap<MessageId, u64>,
}

impl Unfit {
    /// How long a message is to be kept from the peer this time.
    pub(super) fn pause_ms(&mut self, id: MessageId) -> u64 {
        if self.pauses.len() >= REMEMBERED_MAX && !self.pauses.contains_key(&id) {
            self.pauses.clear();
        }
        let next = self.pauses.entry(id).or_insert(PAUSE_MS);
        let pause_ms = *next;
        *next = (pause_ms * 2).min(PAUSE_MS_MAX);
        pause_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_are_bounded_as_is_what_is_remembered() {
        let mut unfit = Unfit::default();
        let id = |n: u64| MessageId::from_bytes(u128::from(n).to_be_bytes());
        let pauses: Vec<_> = (0..8).map(|_| unfit.pause_ms(id(1))).collect();
        let expected = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000];
        assert_eq!(pauses, expected);
        for n in 2..5_000 {
            assert_eq!(unfit.pause_ms(id(n)), PAUSE_MS);
            assert!(unfit.pauses.len() <= REMEMBERED_MAX);
        }
    }
}
