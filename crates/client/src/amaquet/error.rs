//! What can go wrong, and what it means for the request that was made.

use std::fmt;
use std::io;
use std::sync::Arc;

use tanda_wire::amaquet::ErrorCode;
use tanda_wire::amaquet::frame::PayloadTooLarge;

use crate::tls::{self, TlsError, TlsProblem};

/// The server's refusal of a request, or its reason to end something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Why, for programs, as it came: a later server may have more codes.
    pub code: String,
    /// Why, for people.
    pub message: String,
    /// When to try again, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

impl Refusal {
    /// The code, when this client knows it.
    #[must_use]
    pub fn known_code(&self) -> Option<ErrorCode> {
        ErrorCode::from_name(&self.code)
    }

    /// Whether the same request may succeed later without being changed.
    #[must_use]
    pub fn retryable(&self) -> bool {
        matches!(
            self.known_code(),
            Some(ErrorCode::Overloaded | ErrorCode::Timeout)
        )
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)?;
        match self.retry_after_ms {
            Some(ms) => write!(f, " (try again in {ms} ms)"),
            None => Ok(()),
        }
    }
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestError {
    /// The server refused it.
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
    TooLarge {
        /// Its size in bytes.
        payload_bytes: usize,
        /// The server's limit.
        payload_bytes_max: u32,
    },
}

impl RequestError {
    /// The server's refusal, if it is one.
    #[must_use]
    pub const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::ConnectionLost { .. } | Self::InvalidReply { .. } | Self::TooLarge { .. } => None,
        }
    }

    /// The code of a refusal, when this client knows it.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        self.refusal().and_then(Refusal::known_code)
    }

    /// Whether the same request may succeed later without being changed. Check
    /// [`outcome_unknown`](Self::outcome_unknown) before doing twice what must happen once.
    #[must_use]
    pub fn retryable(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.retryable(),
            Self::ConnectionLost { .. } => true,
            Self::InvalidReply { .. } | Self::TooLarge { .. } => false,
        }
    }

    /// Whether the request may have taken effect although it failed.
    #[must_use]
    pub fn outcome_unknown(&self) -> bool {
        match self {
            Self::ConnectionLost {
                outcome_unknown, ..
            } => *outcome_unknown,
            Self::InvalidReply { .. } => true,
            Self::Refused(refusal) => refusal.known_code() == Some(ErrorCode::Internal),
            Self::TooLarge { .. } => false,
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

impl From<PayloadTooLarge> for RequestError {
    fn from(error: PayloadTooLarge) -> Self {
        Self::TooLarge {
            payload_bytes: error.payload_bytes,
            payload_bytes_max: error.payload_bytes_max,
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
            Self::TooLarge {
                payload_bytes,
                payload_bytes_max,
            } => write!(
                f,
                "nothing was sent: a request of {payload_bytes} bytes is over the server's limit \
                 of {payload_bytes_max} (amaquet.limits.max_payload)"
            ),
        }
    }
}

impl std::error::Error for RequestError {}

/// Why no connection could be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// The settings for TLS cannot be made.
    Tls(TlsError),
    /// The address could not be resolved or reached, or the connection broke in the handshake.
    Io(io::Error),
    /// Connecting and the handshake took longer than the connect timeout.
    TimedOut {
        /// The timeout in milliseconds.
        timeout_ms: u64,
    },
    /// The server asks for an API key, and none was given.
    KeyWanted,
    /// The server refused the greeting or the API key.
    Refused(Refusal),
    /// The peer does not answer as an Amaquet server does.
    NotAmaquet {
        /// What was wrong with its answer.
        reason: String,
    },
    /// The server does not prove to be the node that was asked for. No API key was shown to it.
    NotGenuine {
        /// What is wrong with its proof.
        reason: String,
    },
    /// The API key is larger than the server takes.
    TooLarge(PayloadTooLarge),
}

impl ConnectError {
    /// What TLS did not like, when the server was reached and TLS failed.
    #[must_use]
    pub fn tls_problem(&self) -> Option<TlsProblem> {
        match self {
            Self::Io(error) => tls::problem(error).map(TlsProblem::of),
            Self::Tls(_)
            | Self::TimedOut { .. }
            | Self::KeyWanted
            | Self::Refused(_)
            | Self::NotAmaquet { .. }
            | Self::NotGenuine { .. }
            | Self::TooLarge(_) => None,
        }
    }

    /// Whether connecting with the same settings may succeed later.
    #[must_use]
    pub fn retryable(&self) -> bool {
        match self {
            Self::Io(error) => tls::problem(error).is_none(),
            Self::TimedOut { .. } => true,
            Self::Refused(refusal) => refusal.retryable(),
            Self::Tls(_)
            | Self::KeyWanted
            | Self::NotAmaquet { .. }
            | Self::NotGenuine { .. }
            | Self::TooLarge(_) => false,
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tls(error) => error.fmt(f),
            Self::Io(error) => match tls::problem(error) {
                Some(problem) => write!(f, "no TLS connection: {problem}"),
                None => write!(f, "cannot connect: {error}"),
            },
            Self::TimedOut { timeout_ms } => write!(f, "no connection within {timeout_ms} ms"),
            Self::KeyWanted => f.write_str("the server asks for an API key"),
            Self::Refused(refusal) => write!(f, "handshake refused: {refusal}"),
            Self::NotAmaquet { reason } => {
                write!(f, "the peer is not an Amaquet server: {reason}")
            }
            Self::NotGenuine { reason } => {
                write!(f, "the server does not prove who it is: {reason}")
            }
            Self::TooLarge(error) => write!(f, "the API key cannot be sent: {error}"),
        }
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Tls(error) => Some(error),
            Self::TooLarge(error) => Some(error),
            Self::TimedOut { .. }
            | Self::KeyWanted
            | Self::Refused(_)
            | Self::NotAmaquet { .. }
            | Self::NotGenuine { .. } => None,
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
    /// The server ended it, or refused to open it again after a reconnect.
    Ended(Refusal),
    /// This client has subscribed to the same key and channel again.
    Replaced,
    /// The connection ended and the client does not reconnect.
    ConnectionLost {
        /// What ended it.
        reason: Arc<str>,
    },
    /// An event came that cannot be read.
    InvalidEvent {
        /// What is wrong with it.
        reason: Arc<str>,
    },
}

impl fmt::Display for SubscriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(refusal) => write!(f, "subscription ended: {refusal}"),
            Self::Replaced => f.write_str(
                "this client subscribed to the same key and channel again, which replaced this \
                 subscription",
            ),
            Self::ConnectionLost { reason } => write!(f, "subscription lost: {reason}"),
            Self::InvalidEvent { reason } => write!(f, "unreadable event: {reason}"),
        }
    }
}

impl std::error::Error for SubscriptionError {}
