//! What the answers of the engine are waited for.

use crate::batch;
use crate::pending::{self, Awaited};

/// Requests the engine has not answered.
pub(super) type Pending = pending::Pending<Waiting>;

/// Whether messages are to be confirmed.
pub(super) type Confirmed = bool;

/// Messages of one read.
pub(super) type Batch = batch::Batch<Confirmed>;

/// Messages whose envelopes follow each other.
pub(super) type Segment = batch::Segment<Confirmed>;

/// Messages on their way.
pub(super) type Published = batch::Published<Confirmed>;

/// What an answer belongs to.
#[derive(Debug)]
pub(super) enum Waiting {
    /// Messages.
    Publish(Published),
    /// Settlements, of which the peer hears nothing.
    Settle,
    /// A request of the peer.
    Call {
        /// Its number.
        rid: u64,
        /// What is to be done with the answer.
        call: Call,
    },
    /// Which virtual host it is.
    Vhost,
    /// Something that has to be gone before `close` is answered.
    Closing,
}

/// What is to be done with the answer to a request.
#[derive(Debug)]
pub(super) enum Call {
    /// `declare_exchange`, `bind`.
    Make,
    /// `declare_queue`.
    DeclareQueue,
    /// `delete_exchange`.
    DeleteExchange,
    /// `delete_queue`.
    DeleteQueue,
    /// `unbind`.
    Unbind,
    /// `purge_queue`.
    Purge,
    /// `get`.
    Get {
        /// It needs no acknowledgement.
        no_ack: bool,
        /// From where.
        queue: String,
    },
    /// `unsubscribe`: an answer that comes after all deliveries.
    Unsubscribe {
        /// The subscription's.
        token: u32,
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
