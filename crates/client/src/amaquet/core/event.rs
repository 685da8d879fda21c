//! What a connection has to say.

use std::fmt;

use bytes::Bytes;
use tanda_wire::amaquet::{FrameError, Kind, Opcode};

use crate::amaquet::error::Refusal;

/// Something that came from the server.
#[derive(Debug)]
pub(crate) enum Event<C> {
    /// A request was answered: its result as JSON, or the refusal.
    Answered {
        /// What was kept for it.
        context: C,
        /// The answer.
        answer: Result<Bytes, Refusal>,
    },
    /// An event of a subscription.
    Told {
        /// The request that made the subscription.
        subscription: u64,
        /// What it says.
        payload: Bytes,
    },
    /// The server ended a subscription.
    Ended {
        /// The request that made the subscription.
        subscription: u64,
        /// Why.
        refusal: Refusal,
    },
}

/// Why a connection cannot go on.
#[derive(Debug)]
pub(crate) enum ProtocolError {
    /// A frame that cannot be trusted.
    Frame(FrameError),
    /// An answer without the envelope of answers.
    Envelope {
        /// The request it answers.
        request_id: u64,
    },
    /// An answer to nothing that was asked.
    Unasked {
        /// What it is.
        kind: Kind,
        /// What it answers.
        opcode: Opcode,
        /// The request it names.
        request_id: u64,
    },
    /// A failure of the connection as a whole.
    Refused(Refusal),
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frame(error) => error.fmt(f),
            Self::Envelope { request_id } => {
                write!(f, "the answer to request {request_id} cannot be read")
            }
            Self::Unasked {
                kind,
                opcode,
                request_id,
            } => write!(
                f,
                "a frame ({}, {opcode}) for request {request_id}, which was never made",
                kind.name()
            ),
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}
