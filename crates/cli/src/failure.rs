//! How a command fails: what was wrong, with the value, what to do, and the exit code.

use std::{fmt, io, process::ExitCode};

use tanda_client::{ConnectError, ErrorCode, RequestError};

use crate::note::note;

/// A command that did not do what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line asks for something that makes no sense.
    Usage(String),
    /// There is no such queue, message or key.
    NotFound(String),
    /// The broker refused, or an answer cannot be used.
    Refused(String),
    /// The Fila door cannot be reached.
    Connect {
        /// Where it was expected.
        addr: String,
        /// What happened.
        source: ConnectError,
    },
    /// A file, a process or the system failed.
    Io {
        /// What was tried.
        action: String,
        /// What the system said.
        source: io::Error,
    },
    /// Standard output cannot be written. When its reader is gone, that is no failure of ours.
    Output(io::Error),
}

/// For both doors: what most often is the reason.
pub(crate) const IS_IT_RUNNING: &str = "is `tanda serve` running?";

impl Failure {
    pub(crate) fn io(action: impl Into<String>, source: io::Error) -> Self {
        let action = action.into();
        Self::Io { action, source }
    }

    /// A request over Fila that failed; `action` completes "cannot ...".
    pub(crate) fn request(action: impl fmt::Display, error: &RequestError) -> Self {
        let text = format!("cannot {action}: {}", explain(error));
        if error.code().is_some_and(is_absence) {
            Self::NotFound(text)
        } else {
            Self::Refused(text)
        }
    }

    /// Says it on standard error and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        if let Self::Output(error) = self
            && error.kind() == io::ErrorKind::BrokenPipe
        {
            return ExitCode::SUCCESS;
        }
        note(self);
        ExitCode::from(match self {
            Self::Usage(_) => 2,
            Self::NotFound(_) => 3,
            Self::Refused(_) | Self::Connect { .. } | Self::Io { .. } | Self::Output(_) => 1,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::NotFound(text) | Self::Refused(text) => f.write_str(text),
            Self::Connect { addr, source } => {
                write!(f, "cannot reach the Fila door at {addr}: {}", cause(source))?;
                if source.retryable() {
                    return write!(
                        f,
                        "; {IS_IT_RUNNING} --addr HOST:PORT (or TANDA_ADDR) names another place"
                    );
                }
                if matches!(source, ConnectError::NotFila { .. }) {
                    f.write_str("; another program listens there, or it is another door")?;
                }
                Ok(())
            }
            Self::Io { action, source } => write!(f, "cannot {action}: {source}"),
            Self::Output(error) => write!(f, "cannot write to standard output: {error}"),
        }
    }
}

/// The error without a second "cannot connect".
fn cause(error: &ConnectError) -> String {
    if let ConnectError::Io(error) = error {
        return error.to_string();
    }
    error.to_string()
}

fn is_absence(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::QueueNotFound
            | ErrorCode::MessageNotFound
            | ErrorCode::ParentQueueNotFound
            | ErrorCode::NodeNotFound
            | ErrorCode::ApiKeyNotFound
            | ErrorCode::ThrottleNotFound
    )
}

/// An error of the client with what to do about it. Most refusals of Fila are a code without a
/// text.
pub(crate) fn explain(error: &RequestError) -> String {
    let Some(code) = error.code() else {
        return error.to_string();
    };
    let Some(hint) = hint(code) else {
        return error.to_string();
    };
    format!("{hint} ({error})")
}

fn hint(code: ErrorCode) -> Option<&'static str> {
    let found = HINTS.iter().find(|(known, _)| *known == code);
    found.map(|(_, hint)| *hint)
}

const HINTS: &[(ErrorCode, &str)] = &[
    (
        ErrorCode::QueueNotFound,
        "there is no such queue; `tanda queue list` shows those there are, `tanda queue create` \
         makes one",
    ),
    (
        ErrorCode::MessageNotFound,
        "the message is not leased any more: its lease ended, or it was settled before",
    ),
    (
        ErrorCode::QueueAlreadyExists,
        "a queue of this name, or its dead-letter queue, exists already; `tanda queue update` \
         changes one",
    ),
    (
        ErrorCode::ReservedQueueName,
        "names ending in .dlq belong to dead-letter queues, which are made, changed and removed \
         with their queue, and get their messages from it",
    ),
    (ErrorCode::NotADLQ, "it is not a dead-letter queue"),
    (
        ErrorCode::InvalidConfigValue,
        "the broker does not take one of the values, or has as many of these as its limits allow",
    ),
    (
        ErrorCode::OrderingKeyMissing,
        "the queue keeps an order by key, and the message lacks a part of the key",
    ),
    (
        ErrorCode::ChannelFull,
        "the broker has too much waiting; try again in a moment",
    ),
    (
        ErrorCode::StorageError,
        "the broker cannot write to its disk; `tanda health` names the cause",
    ),
    (
        ErrorCode::InvalidFrame,
        "the broker cannot read the request; a message may be larger than limits.max_message",
    ),
];

#[cfg(test)]
mod tests {
    use tanda_client::Rejection;

    use super::*;

    #[test]
    fn a_missing_queue_is_not_found_and_says_what_to_do() {
        let error = RequestError::Rejected(Rejection::from_code(ErrorCode::QueueNotFound));
        let failure = Failure::request("send to \"q\"", &error);
        assert!(matches!(failure, Failure::NotFound(_)));
        let text = failure.to_string();
        assert!(text.starts_with("cannot send to \"q\": there is no such queue"));
    }

    #[test]
    fn a_refused_connection_names_the_address_and_the_likely_reason() {
        let failure = Failure::Connect {
            addr: "127.0.0.1:1".to_owned(),
            source: ConnectError::Io(io::ErrorKind::ConnectionRefused.into()),
        };
        let text = failure.to_string();
        assert!(
            text.contains("127.0.0.1:1") && text.contains(IS_IT_RUNNING),
            "{text}"
        );
    }
}
