//! What can go wrong, and what it means for the request that was made.
//!
//! Owns: the errors of every operation, and the two questions a caller asks of them: may the same
//! request succeed later, and may it have taken effect although it failed.
//! Refuses to know: how requests travel.

use std::fmt;
use std::io;
use std::sync::Arc;

use tanda_wire::firemq::frame::FrameTooLarge;
use tanda_wire::firemq::{ReplyCode, Scheme, UrlError};

use crate::tls::{self, TlsError, TlsProblem};

/// The server's refusal of a request or of a message, or its reason to end something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Why, for programs.
    pub code: ReplyCode,
    /// Why, for people.
    pub message: String,
}

impl Refusal {
    /// A refusal with this code and text.
    pub fn new(code: ReplyCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// Whether the same request may succeed later without being changed: the server shuts down, is
    /// out of a resource, or something is used by another connection.
    #[must_use]
    pub const fn retryable(&self) -> bool {
        match self.code {
            ReplyCode::ConnectionForced | ReplyCode::ResourceLocked | ReplyCode::ResourceError => {
                true
            }
            ReplyCode::Success
            | ReplyCode::NoRoute
            | ReplyCode::AccessRefused
            | ReplyCode::NotFound
            | ReplyCode::PreconditionFailed
            | ReplyCode::FrameError
            | ReplyCode::SyntaxError
            | ReplyCode::CommandInvalid
            | ReplyCode::NotAllowed
            | ReplyCode::NotImplemented
            | ReplyCode::InternalError
            | ReplyCode::Unknown(_) => false,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.is_empty() {
            write!(f, "{}", self.code)
        } else {
            write!(f, "{}: {}", self.code, self.message)
        }
    }
}

/// Why a request or a publish failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestError {
    /// The server refused it; nothing took effect. A message may be in some of its queues.
    Refused(Refusal),
    /// The connection ended before the answer came.
    ConnectionLost {
        /// `true`: the request had been handed to the connection and may have taken effect.
        /// `false`: it was never sent.
        outcome_unknown: bool,
        /// What ended the connection.
        reason: Arc<str>,
    },
    /// An answer came that does not belong to the request, which may have taken effect.
    InvalidReply {
        /// What was wrong with it.
        reason: Arc<str>,
    },
    /// It is larger than the server takes; nothing was sent.
    TooLarge(FrameTooLarge),
    /// The delivery is of a connection that was lost: the server has put the message back into its
    /// queue, and delivers it again. Nothing was sent.
    StaleDelivery,
    /// The delivery is settled already, by itself or by a later one with `multiple`, or needs no
    /// settlement. Nothing was sent.
    AlreadySettled,
    /// A message cannot be mandatory when nobody waits for its confirm. Nothing was sent.
    MandatoryUnconfirmed,
    /// The client has declared so many things that it does not remember more of them for the next
    /// connection. Nothing was sent.
    TooManyDeclared {
        /// The limit.
        max: usize,
    },
}

impl RequestError {
    /// The code of a refusal.
    #[must_use]
    pub const fn code(&self) -> Option<ReplyCode> {
        match self {
            Self::Refused(refusal) => Some(refusal.code),
            Self::ConnectionLost { .. }
            | Self::InvalidReply { .. }
            | Self::TooLarge(_)
            | Self::StaleDelivery
            | Self::AlreadySettled
            | Self::MandatoryUnconfirmed
            | Self::TooManyDeclared { .. } => None,
        }
    }

    /// The server's text of a refusal; empty for everything else.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Refused(refusal) => &refusal.message,
            Self::ConnectionLost { .. }
            | Self::InvalidReply { .. }
            | Self::TooLarge(_)
            | Self::StaleDelivery
            | Self::AlreadySettled
            | Self::MandatoryUnconfirmed
            | Self::TooManyDeclared { .. } => "",
        }
    }

    /// Whether the same request may succeed later without being changed. Check
    /// [`outcome_unknown`](Self::outcome_unknown) before doing twice what must happen once.
    #[must_use]
    pub const fn retryable(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.retryable(),
            Self::ConnectionLost { .. } => true,
            Self::InvalidReply { .. }
            | Self::TooLarge(_)
            | Self::StaleDelivery
            | Self::AlreadySettled
            | Self::MandatoryUnconfirmed
            | Self::TooManyDeclared { .. } => false,
        }
    }

    /// Whether the request may have taken effect although it failed.
    #[must_use]
    pub const fn outcome_unknown(&self) -> bool {
        match self {
            Self::ConnectionLost {
                outcome_unknown, ..
            } => *outcome_unknown,
            Self::InvalidReply { .. } => true,
            Self::Refused(_)
            | Self::TooLarge(_)
            | Self::StaleDelivery
            | Self::AlreadySettled
            | Self::MandatoryUnconfirmed
            | Self::TooManyDeclared { .. } => false,
        }
    }

    pub(crate) fn lost(outcome_unknown: bool, reason: &Arc<str>) -> Self {
        Self::ConnectionLost {
            outcome_unknown,
            reason: Arc::clone(reason),
        }
    }

    /// The task behind the client is gone, with its runtime or because the client was closed.
    pub(crate) fn closed(outcome_unknown: bool) -> Self {
        Self::ConnectionLost {
            outcome_unknown,
            reason: Arc::from("the client is closed"),
        }
    }

    pub(crate) fn invalid_reply(reason: impl fmt::Display) -> Self {
        Self::InvalidReply {
            reason: Arc::from(reason.to_string()),
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::ConnectionLost {
                outcome_unknown: true,
                reason,
            } => write!(
                f,
                "connection lost, the request may have taken effect: {reason}"
            ),
            Self::ConnectionLost {
                outcome_unknown: false,
                reason,
            } => write!(f, "no connection, the request was not sent: {reason}"),
            Self::InvalidReply { reason } => write!(
                f,
                "unreadable answer, the request may have taken effect: {reason}"
            ),
            Self::TooLarge(error) => write!(f, "nothing was sent: {error}"),
            Self::StaleDelivery => f.write_str(
                "the delivery is of a connection that was lost: its message comes again, \
                 and is to be settled then",
            ),
            Self::AlreadySettled => f.write_str("the delivery is settled already"),
            Self::MandatoryUnconfirmed => f.write_str(
                "a mandatory message comes back before its confirm: publish it with one",
            ),
            Self::TooManyDeclared { max } => write!(
                f,
                "the client has declared {max} exchanges, queues and bindings, which is the most \
                 it declares again after a reconnect: delete some, or use more clients"
            ),
        }
    }
}

impl std::error::Error for RequestError {}

/// Why no connection could be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL cannot be read.
    Url(UrlError),
    /// The URL asks for a WebSocket, which this client does not speak.
    WebSocket {
        /// `ws` or `wss`.
        scheme: Scheme,
    },
    /// The settings for TLS cannot be made.
    Tls(TlsError),
    /// The address could not be resolved or reached, or the connection broke in the handshake.
    Io(io::Error),
    /// Connecting and the handshake took longer than the connect timeout.
    TimedOut {
        /// The timeout in milliseconds.
        timeout_ms: u64,
    },
    /// The server refused the handshake, for the user, the password or the virtual host.
    Refused(Refusal),
    /// The peer does not answer as a FireMQ server does.
    NotFireMq {
        /// What was wrong with its answer.
        reason: String,
    },
    /// User, password and virtual host do not fit the protocol.
    TooLarge(FrameTooLarge),
}

impl ConnectError {
    /// What TLS did not like, when the server was reached and TLS failed.
    #[must_use]
    pub fn tls_problem(&self) -> Option<TlsProblem> {
        match self {
            Self::Io(error) => tls::problem(error).map(TlsProblem::of),
            Self::Url(_)
            | Self::WebSocket { .. }
            | Self::Tls(_)
            | Self::TimedOut { .. }
            | Self::Refused(_)
            | Self::NotFireMq { .. }
            | Self::TooLarge(_) => None,
        }
    }

    /// Whether connecting with the same settings may succeed later.
    #[must_use]
    pub fn retryable(&self) -> bool {
        match self {
            Self::Io(error) => tls::problem(error).is_none(),
            Self::TimedOut { .. } => true,
            // A server whose log failed is as good as new after its restart.
            Self::Refused(refusal) => {
                refusal.retryable() || refusal.code == ReplyCode::InternalError
            }
            Self::Url(_)
            | Self::WebSocket { .. }
            | Self::Tls(_)
            | Self::NotFireMq { .. }
            | Self::TooLarge(_) => false,
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(error) => error.fmt(f),
            Self::WebSocket { scheme } => write!(
                f,
                "this client does not speak {}://, use {}:// and its port",
                scheme.name(),
                if scheme.is_tls() { "fires" } else { "fire" }
            ),
            Self::Tls(error) => error.fmt(f),
            Self::Io(error) => match tls::problem(error) {
                Some(problem) => write!(f, "no TLS connection: {problem}"),
                None => write!(f, "cannot connect: {error}"),
            },
            Self::TimedOut { timeout_ms } => write!(f, "no connection within {timeout_ms} ms"),
            Self::Refused(refusal) => write!(f, "handshake refused: {refusal}"),
            Self::NotFireMq { reason } => write!(f, "the peer is not a FireMQ server: {reason}"),
            Self::TooLarge(error) => write!(f, "user and password cannot be sent: {error}"),
        }
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Url(error) => Some(error),
            Self::Tls(error) => Some(error),
            Self::TooLarge(error) => Some(error),
            Self::WebSocket { .. }
            | Self::TimedOut { .. }
            | Self::Refused(_)
            | Self::NotFireMq { .. } => None,
        }
    }
}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Why a subscription ended without being cancelled. Nothing more comes from it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubscriptionError {
    /// The server ended it, for example because its queue was deleted, or refused to open it again
    /// after a reconnect.
    Cancelled(Refusal),
    /// After a reconnect its queue, or a binding of the queue, could not be declared again, so that
    /// it would miss messages.
    NotRestored {
        /// What could not be declared again.
        what: Arc<str>,
        /// Why.
        refusal: Refusal,
    },
    /// The connection ended and the client does not reconnect.
    ConnectionLost {
        /// What ended it.
        reason: Arc<str>,
    },
    /// The server sent more messages than it had credit for.
    TooManyDelivered,
}

impl fmt::Display for SubscriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled(refusal) => write!(f, "subscription ended: {refusal}"),
            Self::NotRestored { what, refusal } => {
                write!(f, "{what} could not be declared again: {refusal}")
            }
            Self::ConnectionLost { reason } => write!(f, "subscription lost: {reason}"),
            Self::TooManyDelivered => {
                f.write_str("the server sent more messages than it had credit for")
            }
        }
    }
}

impl std::error::Error for SubscriptionError {}
