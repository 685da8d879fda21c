//! What can go wrong, and what it means for the request that was made.
//!
//! Owns: the errors of every operation, and the two questions a caller asks of them: may the same
//! request succeed later, and may it have taken effect although it failed.
//! Refuses to know: how requests travel.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;

use tanda_wire::fila::error::META_RETRY_AFTER_MS;
use tanda_wire::fila::{EncodeError, ErrorCode};

use crate::throttle::InvalidThrottle;
use crate::tls::{self, TlsProblem};

/// The server's refusal of a request, or of one item of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// Why, for programs.
    pub code: ErrorCode,
    /// Why, for people. Items of a batch carry a code only; their text is then the code's name.
    pub message: String,
    /// More for programs, such as `leader_addr`. Keys without a known meaning are kept. Empty for
    /// items of a batch.
    pub metadata: BTreeMap<String, String>,
}

impl Rejection {
    /// A refusal that came as a code alone, as those in result frames do.
    #[must_use]
    pub fn from_code(code: ErrorCode) -> Self {
        Self {
            code,
            message: code.name().to_owned(),
            metadata: BTreeMap::new(),
        }
    }

    /// Whether the same request may succeed later without being changed.
    #[must_use]
    pub const fn retryable(&self) -> bool {
        code_is_retryable(self.code)
    }

    /// How long the server asks to wait before the next try, in milliseconds.
    #[must_use]
    pub fn retry_after_ms(&self) -> Option<u64> {
        self.metadata.get(META_RETRY_AFTER_MS)?.parse().ok()
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message == self.code.name() {
            write!(f, "{}", self.code)
        } else {
            write!(f, "{}: {}", self.code, self.message)
        }
    }
}

/// Whether a code speaks of a state that passes: load, elections, a disk that is full.
const fn code_is_retryable(code: ErrorCode) -> bool {
    match code {
        ErrorCode::ChannelFull
        | ErrorCode::NotLeader
        | ErrorCode::NodeNotReady
        | ErrorCode::ScriptTimeout
        | ErrorCode::StorageError
        | ErrorCode::AuthStateStale => true,
        ErrorCode::Ok
        | ErrorCode::QueueNotFound
        | ErrorCode::MessageNotFound
        | ErrorCode::QueueAlreadyExists
        | ErrorCode::LuaCompilationError
        | ErrorCode::NotADLQ
        | ErrorCode::ParentQueueNotFound
        | ErrorCode::InvalidConfigValue
        | ErrorCode::Unauthorized
        | ErrorCode::Forbidden
        | ErrorCode::UnsupportedVersion
        | ErrorCode::InvalidFrame
        | ErrorCode::ApiKeyNotFound
        | ErrorCode::CreditExhausted
        | ErrorCode::ThrottleConflict
        | ErrorCode::ScriptError
        | ErrorCode::OrderingKeyMissing
        | ErrorCode::ReservedQueueName
        | ErrorCode::InvalidThrottle
        | ErrorCode::ThrottleNotFound
        | ErrorCode::ImmutableSetting
        | ErrorCode::NodeNotFound
        | ErrorCode::InternalError
        | ErrorCode::Unknown(_) => false,
    }
}

/// Why a request failed: sends, settlements, subscriptions and administration alike.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestError {
    /// The server refused it; nothing took effect.
    Rejected(Rejection),
    /// The connection ended before the answer came.
    ConnectionLost {
        /// `true`: the request had been handed to the connection and may have taken effect.
        /// `false`: it was never sent.
        outcome_unknown: bool,
        /// What ended the connection.
        reason: Arc<str>,
    },
    /// An answer came that this client cannot read, so the request may have taken effect.
    InvalidReply {
        /// What was wrong with it.
        reason: Arc<str>,
    },
    /// A value does not fit the protocol; nothing was sent.
    Unencodable(EncodeError),
    /// A throttle of the subscription that no server takes; nothing was sent.
    InvalidThrottle(InvalidThrottle),
}

impl RequestError {
    /// The code of a refusal; `InvalidFrame` for an answer that cannot be read.
    #[must_use]
    pub const fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Rejected(rejection) => Some(rejection.code),
            Self::InvalidReply { .. } => Some(ErrorCode::InvalidFrame),
            Self::InvalidThrottle(_) => Some(ErrorCode::InvalidThrottle),
            Self::ConnectionLost { .. } | Self::Unencodable(_) => None,
        }
    }

    /// The metadata of a refusal, with every key the server sent.
    #[must_use]
    pub const fn metadata(&self) -> Option<&BTreeMap<String, String>> {
        match self {
            Self::Rejected(rejection) => Some(&rejection.metadata),
            Self::ConnectionLost { .. }
            | Self::InvalidReply { .. }
            | Self::Unencodable(_)
            | Self::InvalidThrottle(_) => None,
        }
    }

    /// Whether the same request may succeed later without being changed. Check
    /// [`outcome_unknown`](Self::outcome_unknown) before doing twice what must happen once.
    #[must_use]
    pub const fn retryable(&self) -> bool {
        match self {
            Self::Rejected(rejection) => rejection.retryable(),
            Self::ConnectionLost { .. } => true,
            Self::InvalidReply { .. } | Self::Unencodable(_) | Self::InvalidThrottle(_) => false,
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
            Self::Rejected(_) | Self::Unencodable(_) | Self::InvalidThrottle(_) => false,
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

    pub(crate) fn from_code(code: ErrorCode) -> Self {
        Self::Rejected(Rejection::from_code(code))
    }
}

impl From<InvalidThrottle> for RequestError {
    fn from(error: InvalidThrottle) -> Self {
        Self::InvalidThrottle(error)
    }
}

impl From<EncodeError> for RequestError {
    fn from(error: EncodeError) -> Self {
        Self::Unencodable(error)
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(rejection) => rejection.fmt(f),
            Self::ConnectionLost {
                outcome_unknown: true,
                reason,
            } => {
                write!(
                    f,
                    "connection lost, the request may have taken effect: {reason}"
                )
            }
            Self::ConnectionLost {
                outcome_unknown: false,
                reason,
            } => {
                write!(f, "no connection, the request was not sent: {reason}")
            }
            Self::InvalidReply { reason } => {
                write!(
                    f,
                    "unreadable answer, the request may have taken effect: {reason}"
                )
            }
            Self::Unencodable(error) => write!(f, "nothing was sent: {error}"),
            Self::InvalidThrottle(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RequestError {}

/// Why no connection could be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// The address could not be resolved or reached, or the connection broke in the handshake.
    Io(io::Error),
    /// Connecting and the handshake took longer than the connect timeout.
    TimedOut {
        /// The timeout in milliseconds.
        timeout_ms: u64,
    },
    /// The server refused the handshake, for its version or its API key.
    Rejected(Rejection),
    /// The peer does not answer as a Fila server does.
    NotFila {
        /// What was wrong with its answer.
        reason: String,
    },
    /// The API key does not fit the protocol.
    Unencodable(EncodeError),
}

impl ConnectError {
    /// What TLS did not like, when the server was reached and TLS failed.
    #[must_use]
    pub fn tls_problem(&self) -> Option<TlsProblem> {
        match self {
            Self::Io(error) => tls::problem(error).map(TlsProblem::of),
            Self::TimedOut { .. }
            | Self::Rejected(_)
            | Self::NotFila { .. }
            | Self::Unencodable(_) => None,
        }
    }

    /// Whether connecting with the same settings may succeed later.
    #[must_use]
    pub fn retryable(&self) -> bool {
        match self {
            Self::Io(error) => tls::problem(error).is_none(),
            Self::TimedOut { .. } => true,
            Self::Rejected(rejection) => rejection.retryable(),
            Self::NotFila { .. } | Self::Unencodable(_) => false,
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => match tls::problem(error) {
                Some(problem) => write!(f, "no TLS connection: {problem}"),
                None => write!(f, "cannot connect: {error}"),
            },
            Self::TimedOut { timeout_ms } => write!(f, "no connection within {timeout_ms} ms"),
            Self::Rejected(rejection) => write!(f, "handshake refused: {rejection}"),
            Self::NotFila { reason } => write!(f, "the peer is not a Fila server: {reason}"),
            Self::Unencodable(error) => write!(f, "the API key cannot be sent: {error}"),
        }
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Unencodable(error) => Some(error),
            Self::TimedOut { .. } | Self::Rejected(_) | Self::NotFila { .. } => None,
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
    Rejected(Rejection),
    /// The connection ended and the client does not reconnect.
    ConnectionLost {
        /// What ended it.
        reason: Arc<str>,
    },
    /// A delivery frame could not be read.
    InvalidDelivery {
        /// What was wrong with it.
        reason: Arc<str>,
    },
    /// An unlimited subscription was read more slowly than the server sent. What does not fit the
    /// buffer is delivered again when its leases end. A prefetch avoids this.
    BufferFull {
        /// The bound in bytes.
        buffer_bytes_max: usize,
    },
}

impl fmt::Display for SubscriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(rejection) => write!(f, "subscription ended: {rejection}"),
            Self::ConnectionLost { reason } => write!(f, "subscription lost: {reason}"),
            Self::InvalidDelivery { reason } => write!(f, "unreadable delivery: {reason}"),
            Self::BufferFull { buffer_bytes_max } => {
                write!(
                    f,
                    "more than {buffer_bytes_max} bytes of deliveries were not read in time"
                )
            }
        }
    }
}

impl std::error::Error for SubscriptionError {}
