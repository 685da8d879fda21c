//! Payloads: JSON, text or bytes.

use core::fmt;
use std::borrow::Cow;

use super::json::{Json, JsonKind, Writer};
use crate::base64::{self, Base64Error};

/// A payload. What is JSON stays the text that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload<'a> {
    /// The text of one JSON value, checked.
    Json(Cow<'a, str>),
    /// A text.
    Text(Cow<'a, str>),
    /// Bytes.
    Bytes(Cow<'a, [u8]>),
}

/// Why an object with `type` and `data` is no payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PayloadError {
    /// `type` is none of the three.
    Type {
        /// What it is, shortened.
        found: String,
    },
    /// `data` is no string, as `type` wants.
    Data {
        /// The type.
        payload_type: &'static str,
        /// What it is.
        found: JsonKind,
    },
    /// `data` is no base64.
    Base64(Base64Error),
}

impl fmt::Display for PayloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type { found } => write!(
                f,
                "type is {found}, not \"json\", \"text\" or \"bytes\" \
                 (an object with type and data is a payload)"
            ),
            Self::Data {
                payload_type,
                found,
            } => write!(
                f,
                "data of type \"{payload_type}\" is {}, not a string",
                found.described()
            ),
            Self::Base64(error) => write!(f, "data of type \"bytes\": {error}"),
        }
    }
}

impl core::error::Error for PayloadError {}

/// The beginning of a value, for messages.
fn shortened(value: Json<'_>) -> String {
    const CHARACTERS: usize = 32;
    let text = value.text();
    match text.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

impl<'a> Payload<'a> {
    /// The payload that a value stands for: an object with `type` and `data` says so itself, any
    /// other value is its own data.
    ///
    /// # Errors
    /// `PayloadError` when `type` and `data` do not fit each other.
    pub fn of(value: Json<'a>) -> Result<Self, PayloadError> {
        let (mut payload_type, mut data) = (None, None);
        for (key, field) in value.as_object().into_iter().flatten() {
            match &*key {
                "type" => payload_type = Some(field),
                "data" => data = Some(field),
                _ => {}
            }
        }
        let (Some(payload_type), Some(data)) = (payload_type, data) else {
            return Ok(Self::Json(Cow::Borrowed(value.text())));
        };
        let string = |payload_type: &'static str| {
            let found = data.kind();
            data.as_str().ok_or(PayloadError::Data {
                payload_type,
                found,
            })
        };
        match payload_type.as_str().as_deref() {
            Some("json") => Ok(Self::Json(Cow::Borrowed(data.text()))),
            Some("text") => Ok(Self::Text(string("text")?)),
            Some("bytes") => {
                let bytes = base64::decode(&string("bytes")?).map_err(PayloadError::Base64)?;
                Ok(Self::Bytes(Cow::Owned(bytes)))
            }
            _ => Err(PayloadError::Type {
                found: shortened(payload_type),
            }),
        }
    }

    /// Its type on the wire.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Json(_) => "json",
            Self::Text(_) => "text",
            Self::Bytes(_) => "bytes",
        }
    }

    /// Bytes of what it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Json(text) | Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    /// Whether it holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends it, with its type.
    pub fn write(&self, out: &mut Writer<'_>) {
        out.object(|out| {
            out.key("type").str(self.type_name());
            let out = out.key("data");
            match self {
                Self::Json(text) => out.raw(text),
                Self::Text(text) => out.str(text),
                Self::Bytes(bytes) => out.quoted(|out| base64::encode(out, bytes)),
            }
        });
    }
}
