//! Bodies of requests: one JSON object each.

use axum::{body::Bytes, http::StatusCode};
use serde_json::{Map, Value};
use tanda_engine::{TopologyCode, TopologyError};

use super::problem::Problem;

/// The object that a body is; an empty body is an empty one. The content type does not matter:
/// RabbitMQ asks for none either.
pub(super) fn object(body: &Bytes) -> Result<Map<String, Value>, Problem> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_slice(body) {
        Ok(Value::Object(object)) => Ok(object),
        // Not what it says: a password may be in it.
        Ok(_) => Err(bad("the body is no JSON object")),
        Err(error) => {
            let (line, column) = (error.line(), error.column());
            Err(bad(format!(
                "the body is no JSON (line {line}, column {column})"
            )))
        }
    }
}

/// A text that must be there.
pub(super) fn text<'a>(object: &'a Map<String, Value>, key: &str) -> Result<&'a str, Problem> {
    let found = object.get(key).and_then(Value::as_str);
    found.ok_or_else(|| bad(format!("the body has no text {key:?}")))
}

/// Something in a request is wrong.
pub(super) fn bad(message: impl Into<String>) -> Problem {
    let hint = "docs/http-api.md says what it takes";
    Problem::new(StatusCode::BAD_REQUEST, "bad_request", message, hint)
}

/// The engine refused; `not_found` says what is not there.
pub(super) fn refused(error: TopologyError, not_found: impl FnOnce() -> Problem) -> Problem {
    match error.code {
        TopologyCode::Storage => Problem::storage_full(),
        TopologyCode::NotFound => not_found(),
        TopologyCode::AccessRefused
        | TopologyCode::ResourceLocked
        | TopologyCode::PreconditionFailed
        | TopologyCode::WrongType
        | TopologyCode::NotAllowed
        | TopologyCode::NotImplemented
        | TopologyCode::ResourceError
        | TopologyCode::Internal
        | TopologyCode::CommandInvalid => bad(error.text),
    }
}
