//! Why a request is refused before anybody looks at what it asks for.

use core::fmt;

use super::spec::ValueType;
use crate::amaquet::ErrorCode;
use crate::amaquet::json::{JsonError, JsonKind};
use crate::amaquet::payload::PayloadError;

/// A request that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestError {
    /// It is no JSON.
    Json(JsonError),
    /// It is no object.
    NotAnObject {
        /// What it is.
        found: JsonKind,
    },
    /// No command has this name.
    UnknownCommand {
        /// The name, shortened.
        name: String,
    },
    /// One of its fields is at fault.
    Field {
        /// The way to it: `messages[3].payload`.
        path: String,
        /// What is wrong with it.
        problem: FieldProblem,
    },
}

/// What is wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldProblem {
    /// It is not there.
    Missing {
        /// What is wanted.
        wanted: ValueType,
    },
    /// It is of another type.
    Mistyped {
        /// What is wanted.
        wanted: ValueType,
        /// What it is.
        found: JsonKind,
        /// Its value, shortened, where that tells more.
        value: String,
    },
    /// Its value is not one of those that are allowed.
    OutOfLimits {
        /// The value, or its size.
        found: String,
        /// What is allowed.
        limits: String,
    },
    /// It is no payload.
    Payload(PayloadError),
}

impl RequestError {
    /// A fault of the field that is being read; its place is put around it on the way out.
    pub(super) const fn here(problem: FieldProblem) -> Self {
        Self::Field {
            path: String::new(),
            problem,
        }
    }

    /// Values or sizes that are not allowed.
    pub(super) fn out_of_limits(found: impl Into<String>, limits: impl Into<String>) -> Self {
        Self::here(FieldProblem::OutOfLimits {
            found: found.into(),
            limits: limits.into(),
        })
    }

    /// The same fault, within a field.
    pub(super) fn within(self, field: &str) -> Self {
        let Self::Field { path, problem } = self else {
            return self;
        };
        let dot = if path.is_empty() || path.starts_with('[') {
            ""
        } else {
            "."
        };
        Self::Field {
            path: format!("{field}{dot}{path}"),
            problem,
        }
    }

    /// The same fault, within an item of an array.
    pub(super) fn within_item(self, index: usize) -> Self {
        self.within(&format!("[{index}]"))
    }

    /// The code that answers it.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::UnknownCommand { .. } => ErrorCode::UnknownCommand,
            Self::Json(_) | Self::NotAnObject { .. } | Self::Field { .. } => ErrorCode::BadRequest,
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => write!(f, "the payload is no JSON: {error}"),
            Self::NotAnObject { found } => {
                write!(f, "the payload is {}, not an object", found.described())
            }
            Self::UnknownCommand { name } => {
                write!(
                    f,
                    "there is no command \"{name}\"; server.commands lists them all"
                )
            }
            Self::Field { path, problem } => write!(f, "{path} {problem}"),
        }
    }
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { wanted } => {
                write!(f, "is missing; it must be {}", wanted.described())
            }
            Self::Mistyped {
                wanted,
                found,
                value,
            } => {
                write!(f, "is {}", found.described())?;
                if !value.is_empty() {
                    write!(f, ", {value}")?;
                }
                write!(f, "; it must be {}", wanted.described())
            }
            Self::OutOfLimits { found, limits } => write!(f, "is {found}; it must be {limits}"),
            Self::Payload(error) => write!(f, "is no payload: {error}"),
        }
    }
}

impl core::error::Error for RequestError {}

/// The beginning of a text, for messages.
pub(super) fn shortened(text: &str) -> String {
    const CHARACTERS: usize = 64;
    match text.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
