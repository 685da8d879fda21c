//! Requests the engine has not answered, by the token that the answer carries.
//!
//! Tokens are given in order and answered nearly in order, so they stand in a ring.

use std::collections::VecDeque;

/// Consumers have tokens with this bit, requests have not.
pub(crate) const CONSUMER_BIT: u32 = 1 << 31;

/// The token of requests whose answer nobody waits for.
pub(crate) const NO_ANSWER: u32 = u32::MAX;

/// A consumer's token that is not in use and was not for long. `made` counts those given.
pub(crate) fn consumer_token(made: &mut u32, is_used: impl Fn(u32) -> bool) -> u32 {
    loop {
        *made = made.wrapping_add(1);
        let token = *made | CONSUMER_BIT;
        if token != NO_ANSWER && !is_used(token) {
            return token;
        }
    }
}

/// What a session remembers of a request.
pub(crate) trait Awaited {
    /// Bytes of messages in it.
    fn published_bytes(&self) -> usize;

    /// Its answer must come before the peer hears that the connection is closed.
    fn delays_close(&self) -> bool;
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Pending<W> {
    /// The token of the first entry.
    first: u32,
    entries: VecDeque<Option<W>>,
    /// Bytes of messages in them.
    published_bytes: usize,
}

impl<W> Default for Pending<W> {
    fn default() -> Self {
        Self {
            first: 0,
            entries: VecDeque::new(),
            published_bytes: 0,
        }
    }
}

impl<W: Awaited> Pending<W> {
    /// Tokens from the oldest that waits to the newest.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of messages in requests that wait.
    pub(crate) const fn published_bytes(&self) -> usize {
        self.published_bytes
    }

    /// Gives a token.
    pub(crate) fn insert(&mut self, waiting: W) -> u32 {
        self.published_bytes += waiting.published_bytes();
        let offset = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.entries.push_back(Some(waiting));
        self.first.wrapping_add(offset) & !CONSUMER_BIT
    }

    /// The answer to a token has come.
    pub(crate) fn remove(&mut self, token: u32) -> Option<W> {
        if token & CONSUMER_BIT != 0 {
            return None;
        }
        let offset = token.wrapping_sub(self.first) & !CONSUMER_BIT;
        let waiting = self.entries.get_mut(offset as usize)?.take()?;
        while self.entries.front().is_some_and(Option::is_none) {
            self.entries.pop_front();
            self.first = self.first.wrapping_add(1) & !CONSUMER_BIT;
        }
        self.published_bytes -= waiting.published_bytes();
        Some(waiting)
    }

    /// Whether an answer is due that must come before the answer to a close.
    pub(crate) fn delays_close(&self) -> bool {
        let mut all = self.entries.iter();
        all.any(|entry| entry.as_ref().is_some_and(Awaited::delays_close))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages of so many bytes.
    #[derive(Debug)]
    struct Messages(usize);

    impl Awaited for Messages {
        fn published_bytes(&self) -> usize {
            self.0
        }

        fn delays_close(&self) -> bool {
            self.0 == 0
        }
    }

    #[test]
    fn tokens_are_answered_once_in_any_order() {
        let mut pending = Pending {
            first: CONSUMER_BIT - 2,
            ..Pending::default()
        };
        let tokens: Vec<u32> = (0..4).map(|_| pending.insert(Messages(1))).collect();
        assert_eq!(tokens, [0x7FFF_FFFE, 0x7FFF_FFFF, 0, 1]);
        assert!(pending.remove(0).is_some());
        assert!(pending.remove(0).is_none());
        assert_eq!(pending.len(), 4);
        assert!(pending.remove(0x7FFF_FFFE).is_some());
        assert!(pending.remove(0x7FFF_FFFF).is_some());
        assert_eq!(pending.len(), 1);
        assert!(pending.remove(NO_ANSWER).is_none());
        assert!(pending.remove(5).is_none());
        assert!(pending.remove(1).is_some());
        assert_eq!(pending.len(), 0);
    }

    #[test]
    fn consumers_have_tokens_of_their_own() {
        let mut made = CONSUMER_BIT - 3;
        assert_eq!(consumer_token(&mut made, |_| false), 0xFFFF_FFFE);
        // The one that means no answer is passed over, and what is in use.
        let next = consumer_token(&mut made, |token| token == CONSUMER_BIT);
        assert_eq!(next, CONSUMER_BIT | 1);
    }

    #[test]
    fn bytes_of_messages_are_counted_while_they_wait() {
        let mut pending = Pending::default();
        let token = pending.insert(Messages(5));
        assert_eq!(pending.published_bytes(), 5);
        assert!(!pending.delays_close());
        pending.insert(Messages(0));
        assert!(pending.delays_close());
        pending.remove(token).unwrap();
        assert_eq!(pending.published_bytes(), 0);
    }
}
