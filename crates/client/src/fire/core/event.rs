//! What a connection tells, and why it ends.

use std::fmt;

use tanda_wire::firemq::frame::FrameError;
use tanda_wire::firemq::{Op, SyntaxError};

use super::received::{Received, Returned};
use crate::fire::error::Refusal;

/// What the server said in `welcome`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ready {
    /// The server's name and version.
    pub server: String,
    /// The connection's name in the server's management.
    pub connection: String,
    /// Seconds between heartbeats; 0: there are none.
    pub heartbeat_s: u64,
    /// The largest frame the server takes, in bytes.
    pub frame_bytes_max: u32,
}

/// The reply to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It was done.
    Done {
        /// The queue's name; for `declare_queue`, else empty.
        name: String,
        /// Messages in the queue, deleted or purged.
        messages: u64,
        /// Consumers of the queue; for `declare_queue`.
        consumers: u64,
    },
    /// The queue has no message; for `get`.
    Empty,
    /// A message that was asked for.
    Got {
        /// Messages still ready in the queue.
        remaining: u64,
        /// The message.
        received: Received,
    },
}

/// What happened, in the order it did.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<C> {
    /// The handshake was accepted; requests may be made.
    Ready(Ready),
    /// The handshake was refused; the server closes.
    Refused(Refusal),
    /// A request was answered.
    Answered {
        /// What it was made with.
        context: C,
        /// The reply.
        answer: Answer,
    },
    /// A request was refused.
    Failed {
        /// What it was made with.
        context: C,
        /// Why.
        refusal: Refusal,
    },
    /// The server has taken a message.
    Confirmed {
        /// What it was published with.
        context: C,
        /// The message, when it was mandatory and no queue received it.
        returned: Option<Box<Returned>>,
    },
    /// The server has refused a message.
    Rejected {
        /// What it was published with.
        context: C,
        /// Why.
        refusal: Refusal,
    },
    /// A mandatory message came back that was published without asking for a confirm.
    Returned(Box<Returned>),
    /// A message for a subscription.
    Delivery {
        /// The subscription.
        sub: u64,
        /// The message.
        received: Received,
    },
    /// The server ended a subscription.
    Cancelled {
        /// The subscription.
        sub: u64,
        /// Why.
        refusal: Refusal,
    },
    /// Whether publishers are to pause.
    Flow {
        /// Whether they are.
        pause: bool,
    },
    /// A refusal that belongs to no request.
    Complaint(Refusal),
    /// The server closes; what is not answered by now will not be.
    Closing(Refusal),
}

/// Why a connection cannot go on. The caller closes the socket.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// Bytes that are no frame.
    Frame(FrameError),
    /// A header that cannot be read.
    Header {
        /// The frame's op.
        op: Op,
        /// What is wrong with it.
        error: SyntaxError,
    },
    /// A frame that may not come now, or never comes from a server.
    Unexpected {
        /// The frame's op.
        op: Op,
    },
    /// The server chose a version the client did not offer.
    Version {
        /// The version it chose.
        ver: u64,
    },
    /// A confirm of a publish that was never sent.
    UnknownConfirm {
        /// The number it names.
        seq: u64,
    },
    /// The server ends the connection with this error.
    Fatal(Refusal),
    /// The server has closed the connection in order.
    Closed(Refusal),
    /// Nothing came for two heartbeats.
    Silent,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frame(error) => error.fmt(f),
            Self::Header { op, error } => write!(f, "{op} cannot be read: {error}"),
            Self::Unexpected { op } => write!(f, "{op} may not come here"),
            Self::Version { ver } => {
                write!(f, "the server chose version {ver}, which was not offered")
            }
            Self::UnknownConfirm { seq } => {
                write!(f, "the server confirms publish {seq}, which was not sent")
            }
            Self::Fatal(refusal) => write!(f, "the server ended the connection: {refusal}"),
            Self::Closed(refusal) => write!(f, "the server closed the connection: {refusal}"),
            Self::Silent => f.write_str("the server was silent for two heartbeats"),
        }
    }
}

impl std::error::Error for ProtocolError {}

impl From<FrameError> for ProtocolError {
    fn from(error: FrameError) -> Self {
        Self::Frame(error)
    }
}
