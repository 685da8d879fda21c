//! What the answers of the engine are waited for.

use tanda_engine::Settlement;
use tanda_wire::amqp::MethodId;

use super::channel::Published;
use crate::pending::{self, Awaited};
use crate::unacked::HeldMessage;

/// Requests the engine has not answered.
pub(super) type Pending = pending::Pending<Waiting>;

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
    DeclareQueue,
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

impl Awaited for Waiting {
    fn published_bytes(&self) -> usize {
        match self {
            Self::Publish(published) => published.data.len(),
            Self::Settle | Self::Call { .. } | Self::Vhost | Self::Closing => 0,
        }
    }

    fn delays_close(&self) -> bool {
        matches!(self, Self::Closing)
    }
}
