//! Why a measurement could not be made.

use std::{fmt, io};

use tanda_wire::cursor::DecodeError;
use tanda_wire::fila::{EncodeError, ErrorCode};

/// What stopped the program or one workload.
#[derive(Debug)]
pub(crate) enum BenchError {
    /// A system call failed; the text says what it was for.
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The server's binary is not there, or did not start.
    Server(String),
    /// The server sent what the protocol does not allow here.
    Protocol(String),
    /// The server refused what a workload needs.
    Refused {
        /// The request.
        what: &'static str,
        /// Its answer.
        code: ErrorCode,
        /// Its words.
        message: String,
    },
    /// A workload did not get done what it must within its time.
    Stuck(String),
    /// The bare log failed.
    Log(String),
}

impl BenchError {
    /// Turns an [`io::Error`] into one of ours; for `map_err`.
    pub(crate) fn io(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }

    /// The same for errors of `rustix`.
    pub(crate) fn os(doing: &'static str) -> impl FnOnce(rustix::io::Errno) -> Self {
        move |source| Self::Io {
            doing,
            source: source.into(),
        }
    }
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { doing, source } => write!(f, "{doing}: {source}"),
            Self::Server(text) | Self::Protocol(text) | Self::Stuck(text) | Self::Log(text) => {
                f.write_str(text)
            }
            Self::Refused {
                what,
                code,
                message,
            } => write!(f, "the server refused {what}: {} ({message})", code.name()),
        }
    }
}

impl std::error::Error for BenchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Server(_)
            | Self::Protocol(_)
            | Self::Refused { .. }
            | Self::Stuck(_)
            | Self::Log(_) => None,
        }
    }
}

impl From<DecodeError> for BenchError {
    fn from(error: DecodeError) -> Self {
        Self::Protocol(format!(
            "the server sent a body that does not parse: {error}"
        ))
    }
}

impl From<EncodeError> for BenchError {
    fn from(error: EncodeError) -> Self {
        Self::Protocol(error.to_string())
    }
}
