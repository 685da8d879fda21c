//! What a channel's peer has received and not settled, by delivery tag.
//!
//! Tags only grow, and most are settled in order, so the entries stand in a ring: the tag minus
//! that of the first is usually the index. Settled entries inside stay as holes until there are
//! more of them than others.

use std::collections::VecDeque;

use tanda_engine::{MessageId, QueueId, SettleItem, SettleQueue, Settlement};

/// Holes that do not matter.
const HOLES_MIN: usize = 1024;

/// A message the peer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeldMessage {
    /// Which.
    pub(crate) id: MessageId,
    /// Where it was taken from.
    pub(crate) queue: QueueId,
    /// The token of the consumer that got it; [`HeldMessage::GET`] for `basic.get`,
    /// [`HeldMessage::LOST`] when the broker took it back.
    pub(crate) consumer: u32,
    /// Whom the broker gave it to, [`tanda_engine::DeliveryBatch::holder`]: nobody else's lease is
    /// meant.
    pub(crate) holder: u32,
}

impl HeldMessage {
    /// No consumer has this token.
    pub(crate) const GET: u32 = 0;

    /// Nor this one. Somebody else may have the message by now: what the peer says of it counts no
    /// more.
    pub(crate) const LOST: u32 = u32::MAX;

    /// What it costs to remember one, in bytes.
    pub(crate) const BYTES: usize = size_of::<Entry>();

    /// Its settlement, by the queue's number.
    #[inline]
    pub(crate) const fn settled(&self, settlement: Settlement) -> SettleItem {
        SettleItem {
            queue: SettleQueue::Held {
                queue: self.queue,
                holder: self.holder,
            },
            id: self.id,
            settlement,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    tag: u64,
    /// `None`: settled.
    message: Option<HeldMessage>,
}

/// See the module. The first entry is never a hole.
#[derive(Debug, Default)]
pub(crate) struct Unacked {
    entries: VecDeque<Entry>,
    holes: usize,
}

impl Unacked {
    /// How many messages are held.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.holes
    }

    /// Bytes it takes to remember them.
    pub(crate) fn held_bytes(&self) -> usize {
        self.entries.len() * HeldMessage::BYTES
    }

    /// Adds the newest; its tag is above all others.
    pub(crate) fn push(&mut self, tag: u64, message: HeldMessage) {
        debug_assert!(self.entries.back().is_none_or(|last| last.tag < tag));
        self.entries.push_back(Entry {
            tag,
            message: Some(message),
        });
    }

    fn position(&self, tag: u64) -> Option<usize> {
        let first = self.entries.front()?.tag;
        let guess = usize::try_from(tag.checked_sub(first)?).ok()?;
        if self.entries.get(guess).is_some_and(|it| it.tag == tag) {
            return Some(guess);
        }
        self.entries.binary_search_by_key(&tag, |it| it.tag).ok()
    }

    /// Whether the message of this tag is held.
    pub(crate) fn contains(&self, tag: u64) -> bool {
        self.position(tag)
            .and_then(|at| self.entries.get(at))
            .is_some_and(|entry| entry.message.is_some())
    }

    /// Takes one out.
    pub(crate) fn take(&mut self, tag: u64) -> Option<HeldMessage> {
        let at = self.position(tag)?;
        let message = self.entries.get_mut(at)?.message.take()?;
        self.holes += 1;
        self.trim();
        Some(message)
    }

    /// Takes all up to and including `tag` out, in order.
    pub(crate) fn take_upto(&mut self, tag: u64, mut each: impl FnMut(u64, HeldMessage)) {
        while self.entries.front().is_some_and(|entry| entry.tag <= tag) {
            match self.entries.pop_front() {
                Some(Entry {
                    tag,
                    message: Some(message),
                }) => each(tag, message),
                Some(_) => self.holes -= 1,
                None => {}
            }
        }
        self.trim();
    }

    /// Drops those that the peer holds no longer; returns how many these are.
    pub(crate) fn forget(&mut self, is_gone: impl Fn(&HeldMessage) -> bool) -> usize {
        let before = self.holes;
        for entry in &mut self.entries {
            if entry.message.as_ref().is_some_and(&is_gone) {
                entry.message = None;
                self.holes += 1;
            }
        }
        let gone = self.holes - before;
        self.trim();
        gone
    }

    /// The broker took back what a consumer had; the peer does not know it yet. Returns how many
    /// these are.
    pub(crate) fn lose(&mut self, consumer: u32) -> usize {
        let messages = self.entries.iter_mut();
        let messages = messages.filter_map(|entry| entry.message.as_mut());
        let lost = messages.filter(|message| message.consumer == consumer);
        lost.map(|message| message.consumer = HeldMessage::LOST)
            .count()
    }

    /// Puts back what was taken, in any order.
    pub(crate) fn put_back(&mut self, messages: Vec<(u64, HeldMessage)>) {
        let mut all: Vec<Entry> = self.entries.drain(..).collect();
        all.retain(|entry| entry.message.is_some());
        all.extend(messages.into_iter().map(|(tag, message)| Entry {
            tag,
            message: Some(message),
        }));
        all.sort_by_key(|entry| entry.tag);
        self.holes = 0;
        self.entries = all.into();
    }

    /// All that are held, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = HeldMessage> {
        self.entries.iter().filter_map(|entry| entry.message)
    }

    /// Holes at the front go at once, those inside when they are most.
    fn trim(&mut self) {
        while self.entries.front().is_some_and(|it| it.message.is_none()) {
            self.entries.pop_front();
            self.holes -= 1;
        }
        if self.holes > HOLES_MIN && self.holes > self.entries.len() / 2 {
            self.entries.retain(|entry| entry.message.is_some());
            self.holes = 0;
        }
        if self.entries.is_empty() && self.entries.capacity() > HOLES_MIN {
            self.entries = VecDeque::new();
        }
    }

    /// Panics when the count of holes is wrong.
    pub(crate) fn assert_invariants(&self) {
        let holes = self.entries.iter().filter(|it| it.message.is_none());
        assert_eq!(holes.count(), self.holes, "holes among unacked deliveries");
        let first = self.entries.front();
        assert!(
            first.is_none_or(|entry| entry.message.is_some()),
            "the first is held"
        );
        let tags: Vec<u64> = self.entries.iter().map(|entry| entry.tag).collect();
        assert!(tags.is_sorted(), "tags grow");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(n: u64) -> HeldMessage {
        HeldMessage {
            id: MessageId(u128::from(n)),
            queue: QueueId(1),
            consumer: 7,
            holder: 1,
        }
    }

    fn with(count: u64) -> Unacked {
        let mut unacked = Unacked::default();
        for tag in 1..=count {
            unacked.push(tag, message(tag));
        }
        unacked
    }

    #[test]
    fn each_tag_is_taken_once() {
        let mut unacked = with(5);
        assert_eq!(unacked.take(3), Some(message(3)));
        assert_eq!(unacked.take(3), None);
        assert_eq!(unacked.take(6), None);
        assert_eq!(unacked.take(0), None);
        assert_eq!(unacked.len(), 4);
        let mut taken = Vec::new();
        unacked.take_upto(4, |tag, _| taken.push(tag));
        assert_eq!(taken, [1, 2, 4]);
        assert!(unacked.contains(5) && !unacked.contains(4));
        unacked.put_back(vec![(4, message(4)), (1, message(1))]);
        unacked.assert_invariants();
        assert_eq!(unacked.len(), 3);
        assert_eq!(unacked.take(4), Some(message(4)));
    }

    #[test]
    fn what_is_forgotten_is_held_no_longer() {
        let mut unacked = with(5);
        assert_eq!(unacked.forget(|message| message.id.0 % 2 == 1), 3);
        unacked.assert_invariants();
        assert_eq!(unacked.len(), 2);
        assert!(unacked.contains(2) && !unacked.contains(3));
        assert_eq!(unacked.forget(|_| false), 0);
        assert_eq!(unacked.forget(|_| true), 2);
        assert_eq!(unacked.held_bytes(), 0);
    }

    #[test]
    fn one_that_is_never_settled_does_not_keep_the_place_of_all_after_it() {
        let mut unacked = with(20_000);
        for tag in 2..=20_000 {
            assert_eq!(unacked.take(tag), Some(message(tag)), "{tag}");
        }
        unacked.assert_invariants();
        assert!(unacked.held_bytes() < 4 * HOLES_MIN * HeldMessage::BYTES);
        unacked.push(20_001, message(20_001));
        assert_eq!(unacked.take(20_001), Some(message(20_001)));
        assert_eq!(unacked.take(1), Some(message(1)));
        assert_eq!(unacked.held_bytes(), 0);
    }
}
