//! How a command fails: what was wrong, with the value, what to do, and the exit code.

use std::{fmt, io, process::ExitCode};

use tanda_client::{ConnectError, ErrorCode, RequestError, SubscriptionError};

use crate::{note::note, output::printable};

mod connect;
mod hints;

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
        /// Whether an API key was given.
        has_key: bool,
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

/// Where the address of a queue's leader stands in a refusal.
const LEADER_ADDR: &str = "leader_addr";

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

    /// A subscription that ended by itself.
    pub(crate) fn subscription(error: &SubscriptionError) -> Self {
        let SubscriptionError::Rejected(rejection) = error else {
            return Self::Refused(error.to_string());
        };
        let text = explain(&RequestError::Rejected(rejection.clone()));
        Self::Refused(format!("the subscription ended: {text}"))
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
            Self::Connect {
                addr,
                has_key,
                source,
            } => connect::explain(f, addr, *has_key, source),
            Self::Io { action, source } => write!(f, "cannot {action}: {source}"),
            Self::Output(error) => write!(f, "cannot write to standard output: {error}"),
        }
    }
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

/// An error of the client with what to do about it.
pub(crate) fn explain(error: &RequestError) -> String {
    let Some(hint) = error.code().and_then(hints::of) else {
        return error.to_string();
    };
    // This one says more than the code.
    if let RequestError::InvalidThrottle(problem) = error {
        return problem.to_string();
    }
    match error
        .metadata()
        .and_then(|metadata| metadata.get(LEADER_ADDR))
    {
        Some(leader) => format!(
            "{hint}; call it: --addr {} ({error})",
            printable(leader.as_bytes())
        ),
        None => format!("{hint} ({error})"),
    }
}

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
    fn the_leader_is_named() {
        let mut rejection = Rejection::from_code(ErrorCode::NotLeader);
        let leader = "10.0.0.2:5555".to_owned();
        rejection.metadata.insert(LEADER_ADDR.to_owned(), leader);
        let text = explain(&RequestError::Rejected(rejection));
        assert!(text.contains("--addr 10.0.0.2:5555"), "{text}");
    }
}
