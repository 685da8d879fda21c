//! What a connection tells, and why it ends.

use std::fmt;

use bytes::Bytes;
use tanda_wire::cursor::DecodeError;
use tanda_wire::fila::Opcode;
use tanda_wire::fila::continuation::ReassemblyError;
use tanda_wire::fila::control::HandshakeOk;
use tanda_wire::fila::frame::FrameError;

use crate::error::Rejection;

/// What happened, in the order it did.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<C> {
    /// The handshake was accepted; requests may be made.
    Ready(HandshakeOk),
    /// The handshake was refused; the server closes.
    Refused(Rejection),
    /// The answer to a request. For `Consume` it says that the subscription stands.
    Answer {
        /// The request's ID.
        request_id: u32,
        /// What the request was made with.
        context: C,
        /// The body of the answer, whose opcode is the one that answers the request's.
        body: Bytes,
    },
    /// A request failed.
    Failed {
        /// What the request was made with.
        context: C,
        /// Why.
        failure: Failure,
    },
    /// Messages for a subscription.
    Delivery {
        /// The ID of its `Consume` request.
        request_id: u32,
        /// How many messages the body claims to hold.
        messages: u32,
        /// The body.
        body: Bytes,
    },
    /// A subscription ended without being cancelled.
    SubscriptionEnded {
        /// The ID of its `Consume` request.
        request_id: u32,
        /// Why.
        failure: Failure,
    },
    /// A refusal that belongs to no request: it tells why the server is about to close.
    Complaint(Rejection),
    /// The server takes no more requests and closes after the answers it owes.
    Closing,
}

/// Why a request or subscription failed while its connection lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The server refused it.
    Rejected(Rejection),
    /// Its answer is not one this client knows, or cannot be read.
    InvalidFrame(String),
}

/// Why a connection cannot go on. The caller closes the socket.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A length that no frame can have.
    Frame(FrameError),
    /// A body in parts that do not fit, or is too large.
    Reassembly(ReassemblyError),
    /// A flag that version 1 does not have.
    ReservedFlags {
        /// The flags.
        flags: u8,
    },
    /// A frame that may not come before the handshake was answered.
    BeforeHandshake {
        /// The frame's opcode.
        opcode: Opcode,
    },
    /// The server chose a version the client did not offer.
    Version {
        /// The version it chose.
        negotiated: u16,
    },
    /// A frame the connection depends on could not be read.
    Decode {
        /// Its opcode.
        opcode: Opcode,
        /// What was wrong.
        error: DecodeError,
    },
    /// The peer was silent for too long.
    Silent,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frame(error) => error.fmt(f),
            Self::Reassembly(error) => error.fmt(f),
            Self::ReservedFlags { flags } => write!(f, "a frame has unknown flags: {flags:#04x}"),
            Self::BeforeHandshake { opcode } => {
                write!(f, "{opcode} came before the handshake was answered")
            }
            Self::Version { negotiated } => {
                write!(
                    f,
                    "the server chose version {negotiated}, which was not offered"
                )
            }
            Self::Decode { opcode, error } => write!(f, "{opcode} cannot be read: {error}"),
            Self::Silent => f.write_str("the server did not answer a ping"),
        }
    }
}

impl std::error::Error for ProtocolError {}

impl From<FrameError> for ProtocolError {
    fn from(error: FrameError) -> Self {
        Self::Frame(error)
    }
}

impl From<ReassemblyError> for ProtocolError {
    fn from(error: ReassemblyError) -> Self {
        Self::Reassembly(error)
    }
}
