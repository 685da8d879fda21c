//! Deduplication keys: remembered while their message is in the queue or its dead-letter queue,
//! and for a window after it left.

use std::collections::VecDeque;

use ahash::RandomState;
use hashbrown::HashMap;

use crate::{Lsn, MessageId, Millis};

/// What is remembered of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Remembered {
    id: MessageId,
    /// Where the message was stored: that part of the log must stay while the key does.
    at: Lsn,
}

/// All keys of a queue and its dead-letter queue.
#[derive(Debug)]
pub(crate) struct Dedup {
    by_key: HashMap<u128, Remembered, RandomState>,
    key_of: HashMap<MessageId, u128, RandomState>,
    /// Keys whose message left, in the order they left.
    left: VecDeque<(Millis, u128, MessageId)>,
}

impl Dedup {
    pub(crate) fn new(hasher: &RandomState) -> Self {
        Self {
            by_key: HashMap::with_hasher(hasher.clone()),
            key_of: HashMap::with_hasher(hasher.clone()),
            left: VecDeque::new(),
        }
    }

    /// The message a key is remembered from.
    pub(crate) fn find(&self, key: u128) -> Option<MessageId> {
        self.by_key.get(&key).map(|remembered| remembered.id)
    }

    /// Keys remembered now.
    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Remembers the key of a message stored at `at`. Returns where the message was stored from
    /// which the key was remembered so far (only in replay, which knows no clock).
    pub(crate) fn insert(&mut self, key: u128, id: MessageId, at: Lsn) -> Option<Lsn> {
        self.key_of.insert(id, key);
        self.by_key
            .insert(key, Remembered { id, at })
            .map(|before| before.at)
    }

    /// The message left the queue and its dead-letter queue.
    pub(crate) fn on_left(&mut self, id: MessageId, now: Millis) {
        if let Some(key) = self.key_of.remove(&id) {
            self.left.push_back((now, key, id));
        }
    }

    /// When the next key is forgotten.
    pub(crate) fn next_end(&self, window_ms: u64) -> Option<Millis> {
        self.left.front().map(|(at, _, _)| at.after_ms(window_ms))
    }

    /// Forgets the next key whose window has passed; returns where its message was stored.
    pub(crate) fn pop_ended(&mut self, window_ms: u64, now: Millis) -> Option<Lsn> {
        loop {
            self.next_end(window_ms).filter(|end| *end <= now)?;
            let (_, key, id) = self.left.pop_front()?;
            if self.find(key) == Some(id) {
                let remembered = self.by_key.remove(&key)?;
                self.give_back();
                return Some(remembered.at);
            }
        }
    }

    fn give_back(&mut self) {
        const KEPT: usize = 64;
        if self.by_key.is_empty() {
            self.by_key.shrink_to(KEPT);
            self.key_of.shrink_to(KEPT);
            self.left.shrink_to(KEPT);
        }
    }

    /// Where the messages of all remembered keys were stored, in no order.
    pub(crate) fn places(&self) -> impl Iterator<Item = Lsn> {
        self.by_key.values().map(|remembered| remembered.at)
    }

    /// Panics when the two directions disagree.
    pub(crate) fn assert_invariants(&self) {
        let there = self
            .key_of
            .iter()
            .all(|(id, key)| self.find(*key) == Some(*id));
        assert!(there, "a message's key is not remembered");
        assert!(
            self.by_key.len() <= self.key_of.len() + self.left.len(),
            "keys nobody will forget"
        );
    }
}
