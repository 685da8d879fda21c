//! What keys, messages and events hold.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use tanda_wire::amaquet::json::{Json, JsonError, Writer};
use tanda_wire::amaquet::payload::PayloadError;
use tanda_wire::amaquet::{self as wire};

use super::command::Argument;

/// JSON, a text, or bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// JSON.
    Json(JsonText),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Bytes),
}

/// The text of one JSON value, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonText(String);

impl JsonText {
    /// Checks a text.
    ///
    /// # Errors
    /// When it is no JSON, or has an integer of more than 64 bits.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        let json = Json::parse(text.as_bytes())?;
        Ok(Self(json.text().to_owned()))
    }

    /// The JSON that an argument is written as.
    pub fn of(value: impl Argument) -> Self {
        let mut text = Vec::new();
        value.write(&mut Writer::new(&mut text));
        // What is written is UTF-8.
        Self(String::from_utf8(text).unwrap_or_default())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value.
    ///
    /// # Errors
    /// Never, as it was checked.
    pub fn value(&self) -> Result<Json<'_>, JsonError> {
        Json::parse(self.0.as_bytes())
    }
}

impl fmt::Display for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Payload {
    /// A payload of type json.
    ///
    /// # Errors
    /// When the text is no JSON, or has an integer of more than 64 bits.
    pub fn json(text: &str) -> Result<Self, JsonError> {
        JsonText::parse(text).map(Self::Json)
    }

    /// A payload of type text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A payload of type bytes.
    #[must_use]
    pub fn bytes(bytes: impl Into<Bytes>) -> Self {
        Self::Bytes(bytes.into())
    }

    /// What it holds, without its type.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Json(json) => json.0.as_bytes(),
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    /// The text that it is; `None` for bytes.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Json(json) => Some(&json.0),
            Self::Text(text) => Some(text),
            Self::Bytes(_) => None,
        }
    }

    /// The payload that a JSON value stands for.
    pub(crate) fn of(value: Json<'_>) -> Result<Self, PayloadError> {
        Ok(match wire::Payload::of(value)? {
            wire::Payload::Json(text) => Self::Json(JsonText(text.into_owned())),
            wire::Payload::Text(text) => Self::Text(text.into_owned()),
            wire::Payload::Bytes(bytes) => Self::Bytes(Bytes::from(bytes.into_owned())),
        })
    }

    pub(crate) fn write(&self, out: &mut Writer<'_>) {
        match self {
            Self::Json(json) => wire::Payload::Json(Cow::Borrowed(&json.0)).write(out),
            Self::Text(text) => wire::Payload::Text(Cow::Borrowed(text)).write(out),
            Self::Bytes(bytes) => wire::Payload::Bytes(Cow::Borrowed(bytes)).write(out),
        }
    }
}

impl From<&str> for Payload {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Payload {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Self::bytes(bytes)
    }
}

impl From<&[u8]> for Payload {
    fn from(bytes: &[u8]) -> Self {
        Self::bytes(bytes.to_vec())
    }
}

impl From<JsonText> for Payload {
    fn from(json: JsonText) -> Self {
        Self::Json(json)
    }
}
