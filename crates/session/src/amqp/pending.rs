//! Requests the engine has not answered, by the token that the answer carries.
//!
//! Tokens are given in order and answered nearly in order, so they stand in a ring.

use std::collections::VecDeque;

use bytes::Bytes;
use tanda_engine::Settlement;
use tanda_wire::amqp::MethodId;

use super::batch::Segment;
use super::unacked::HeldMessage;

/// Consumers have tokens with this bit, requests have not.
pub(super) const CONSUMER_BIT: u32 = 1 << 31;

/// The token of requests whose answer nobody waits for.
pub(super) const NO_ANSWER: u32 = u32::MAX;

/// What an answer belongs to.
#[derive(Debug)]
pub(super) enum Waiting {
    /// Messages.
    Publish(Published),
    /// Settlements, of which the peer hears nothing.
    Settle,
    /// A method of a channel, which takes no other before the answer.
    Call {
        /// The channel.
        channel: u16,
        /// Its method.
        method: MethodId,
        /// The peer wants no answer.
        no_wait: bool,
        /// What is to be done with the answer.
        call: Call,
    },
    /// `connection.open`.
    Vhost,
    /// Something that has to be gone before `connection.close` is answered.
    Closing,
}

/// What is to be done with the answer to a method.
#[derive(Debug)]
pub(super) enum Call {
    /// `exchange.declare`.
    DeclareExchange,
    /// `exchange.delete`.
    DeleteExchange,
    /// `exchange.bind`.
    BindExchange,
    /// `exchange.unbind`.
    UnbindExchange,
    /// `queue.declare`.
    DeclareQueue {
        /// It becomes this connection's.
        exclusive: bool,
    },
    /// `queue.declare` of an address for replies, which is only looked for.
    FindReplyQueue {
        /// The address.
        name: String,
    },
    /// `queue.delete`.
    DeleteQueue,
    /// `queue.purge`.
    Purge,
    /// `queue.bind`.
    BindQueue,
    /// `queue.unbind`.
    UnbindQueue,
    /// `basic.get`.
    Get {
        /// It needs no acknowledgement.
        no_ack: bool,
        /// From where.
        queue: String,
    },
    /// `basic.cancel`: an answer that comes after all deliveries.
    Cancel {
        /// The consumer's.
        token: u32,
        /// Its tag.
        tag: Box<str>,
    },
    /// `basic.consume` of direct replies: its queue is being made.
    MakeReplyQueue {
        /// Its tag.
        tag: Box<str>,
    },
    /// `basic.publish` in a transaction: its exchange is being looked for.
    FindExchange {
        /// The exchange.
        exchange: Vec<u8>,
    },
    /// `tx.commit`.
    Commit {
        /// The messages.
        published: Published,
        /// The settlements, for the case that nothing comes of it.
        settled: Vec<(u64, HeldMessage, Settlement)>,
    },
}

/// Messages on their way.
#[derive(Debug, Default)]
pub(super) struct Published {
    /// Their envelopes.
    pub(super) data: Bytes,
    /// Where they stand and whose they are.
    pub(super) segments: Vec<Segment>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// The token of the first entry.
    first: u32,
    entries: VecDeque<Option<Waiting>>,
    /// Bytes of messages in them.
    published_bytes: usize,
}

impl Pending {
    /// Tokens from the oldest that waits to the newest.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of messages in requests that wait.
    pub(super) const fn published_bytes(&self) -> usize {
        self.published_bytes
    }

    /// Gives a token.
    pub(super) fn insert(&mut self, waiting: Waiting) -> u32 {
        self.published_bytes += bytes_of(&waiting);
        let offset = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.entries.push_back(Some(waiting));
        self.first.wrapping_add(offset) & !CONSUMER_BIT
    }

    /// The answer to a token has come.
    pub(super) fn remove(&mut self, token: u32) -> Option<Waiting> {
        if token & CONSUMER_BIT != 0 {
            return None;
        }
        let offset = token.wrapping_sub(self.first) & !CONSUMER_BIT;
        let waiting = self.entries.get_mut(offset as usize)?.take()?;
        while self.entries.front().is_some_and(Option::is_none) {
            self.entries.pop_front();
            self.first = self.first.wrapping_add(1) & !CONSUMER_BIT;
        }
        self.published_bytes -= bytes_of(&waiting);
        Some(waiting)
    }

    /// Whether an answer is due that must come before `connection.close-ok`.
    pub(super) fn delays_close(&self) -> bool {
        let mut all = self.entries.iter();
        all.any(|entry| matches!(entry, Some(Waiting::Closing)))
    }
}

const fn bytes_of(waiting: &Waiting) -> usize {
    match waiting {
        Waiting::Publish(published) => published.data.len(),
        Waiting::Settle | Waiting::Call { .. } | Waiting::Vhost | Waiting::Closing => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_answered_once_in_any_order() {
        let mut pending = Pending {
            first: CONSUMER_BIT - 2,
            ..Pending::default()
        };
        let tokens: Vec<u32> = (0..4).map(|_| pending.insert(Waiting::Settle)).collect();
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
    fn bytes_of_messages_are_counted_while_they_wait() {
        let mut pending = Pending::default();
        let published = Published {
            data: Bytes::from_static(b"12345"),
            segments: Vec::new(),
        };
        let token = pending.insert(Waiting::Publish(published));
        assert_eq!(pending.published_bytes(), 5);
        pending.remove(token).unwrap();
        assert_eq!(pending.published_bytes(), 0);
    }
}
