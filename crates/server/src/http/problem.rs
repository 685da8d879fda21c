//! What is answered when something is wrong.

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::json;

use crate::ask::AskError;

/// An answer other than success: `{"error": {"code", "message", "hint"}}`.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    /// Stable: programs decide by it.
    code: &'static str,
    message: String,
    /// What to do.
    hint: String,
}

impl Problem {
    pub(super) fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            hint: hint.into(),
        }
    }

    pub(super) fn queue_not_found(name: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "queue_not_found",
            format!("there is no queue named {name:?}"),
            "GET /api/tanda/queues lists the queues",
        )
    }

    pub(super) fn busy() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "busy",
            "the broker has too many requests waiting",
            "try again in a moment",
        )
    }

    pub(super) fn stopped() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "stopped",
            "the broker is shutting down or does not answer",
            "try again; if it stays so, look at the broker's log",
        )
    }

    pub(super) fn storage_full() -> Self {
        Self::new(
            StatusCode::INSUFFICIENT_STORAGE,
            "storage_full",
            "the disk is full, so nothing is made",
            "free space on the disk of the data directory",
        )
    }

    pub(super) fn storage_failed() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "storage_failed",
            "the broker's log failed, so nothing can be changed or confirmed",
            "GET /api/tanda/health names the cause; restart the broker once the disk is sound",
        )
    }
}

impl From<AskError> for Problem {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Busy => Self::busy(),
            AskError::Stopped => Self::stopped(),
            AskError::StorageFailed => Self::storage_failed(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let error = json!({"code": self.code, "message": self.message, "hint": self.hint});
        (self.status, Json(json!({ "error": error }))).into_response()
    }
}
