//! The envelope of answers (`Response payload`).
//!
//! ```text
//! {"ok":true,"result":{}}
//! {"ok":false,"error":{"code":"NOT_FOUND","message":"key not found"}}
//! ```

use super::ErrorCode;
use super::frame::{Header, PayloadTooLarge, write_frame};
use super::json::{Json, Writer};

/// Longest message of an error, in bytes: what clients send is echoed shortened.
pub const MESSAGE_BYTES_MAX: usize = 1024;

/// An error as it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The code.
    pub code: ErrorCode,
    /// What happened, naming field, value and limit.
    pub message: String,
    /// When to try again, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

impl Failure {
    /// One without a time.
    #[must_use]
    pub const fn new(code: ErrorCode, message: String) -> Self {
        Self {
            code,
            message,
            retry_after_ms: None,
        }
    }
}

/// An answer, as a client reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer<'a> {
    /// It went well.
    Result(Json<'a>),
    /// It did not.
    Failure {
        /// The code, as it is written: a later server may have more.
        code: String,
        /// What happened.
        message: String,
        /// When to try again, in milliseconds.
        retry_after_ms: Option<u64>,
    },
}

/// Appends a frame that says that it went well; `write` writes the result.
///
/// # Errors
/// When the answer is over the limit: nothing of it is left in `out`.
pub fn write_result(
    out: &mut Vec<u8>,
    header: Header,
    payload_bytes_max: u32,
    write: impl FnOnce(&mut Writer<'_>),
) -> Result<(), PayloadTooLarge> {
    write_frame(out, header, payload_bytes_max, |out| {
        Writer::new(out).object(|out| {
            out.key("ok").bool(true);
            write(out.key("result"));
        });
    })
}

/// Appends a frame that says what went wrong. Its payload is at most about six times
/// [`MESSAGE_BYTES_MAX`].
pub fn write_failure(out: &mut Vec<u8>, header: Header, failure: &Failure) {
    let written = write_frame(out, header, u32::MAX, |out| {
        Writer::new(out).object(|out| {
            out.key("ok").bool(false);
            out.key("error").object(|out| {
                out.key("code").str(failure.code.name());
                out.key("message").str(bounded(&failure.message));
                if let Some(ms) = failure.retry_after_ms {
                    out.key("retry_after_ms").u64(ms);
                }
            });
        });
    });
    debug_assert!(written.is_ok(), "a short message is no long payload");
}

fn bounded(message: &str) -> &str {
    let end = (0..=MESSAGE_BYTES_MAX).rev();
    let end = end.into_iter().find_map(|end| message.get(..end));
    if message.len() <= MESSAGE_BYTES_MAX {
        message
    } else {
        end.unwrap_or_default()
    }
}

/// Reads an answer; `None` when it is none.
#[must_use]
pub fn read(payload: &[u8]) -> Option<Answer<'_>> {
    let (mut ok, mut result, mut error) = (None, None, None);
    for (key, value) in Json::parse(payload).ok()?.as_object()? {
        match &*key {
            "ok" => ok = value.as_bool(),
            "result" => result = Some(value),
            "error" => error = Some(value),
            _ => {}
        }
    }
    if ok? {
        return result.map(Answer::Result);
    }
    let (mut code, mut message, mut retry_after_ms) = (None, None, None);
    for (key, value) in error?.as_object()? {
        match &*key {
            "code" => code = value.as_str(),
            "message" => message = value.as_str(),
            "retry_after_ms" => retry_after_ms = value.as_u64(),
            _ => {}
        }
    }
    Some(Answer::Failure {
        code: code?.into_owned(),
        message: message.unwrap_or_default().into_owned(),
        retry_after_ms,
    })
}
