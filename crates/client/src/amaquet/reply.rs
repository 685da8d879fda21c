//! Results of commands.

use bytes::Bytes;
use tanda_wire::amaquet::json::Json;

use super::error::RequestError;
use super::payload::Payload;

/// The result of a command: a JSON object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    json: Bytes,
}

impl Reply {
    pub(crate) const fn new(json: Bytes) -> Self {
        Self { json }
    }

    /// The result as it came.
    #[must_use]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.json).unwrap_or_default()
    }

    /// A field; `None` when it is missing.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Json<'_>> {
        let fields = Json::parse(&self.json).ok()?.as_object()?;
        fields
            .filter(|(key, _)| key == name)
            .last()
            .map(|(_, it)| it)
    }

    /// A field, read by a function.
    pub(crate) fn read<'a, T>(
        &'a self,
        name: &str,
        read: impl FnOnce(Json<'a>) -> Option<T>,
    ) -> Result<T, RequestError> {
        let value = self.field(name).and_then(read);
        value.ok_or_else(|| {
            RequestError::invalid_reply(format_args!("the result has no usable {name:?}"))
        })
    }

    /// A text.
    ///
    /// # Errors
    /// `InvalidReply` when the field is missing or of another type; so with all of these.
    pub fn string(&self, name: &str) -> Result<String, RequestError> {
        self.read(name, |it| it.as_str().map(String::from))
    }

    /// A bool.
    ///
    /// # Errors
    /// As [`string`](Self::string).
    pub fn bool(&self, name: &str) -> Result<bool, RequestError> {
        self.read(name, Json::as_bool)
    }

    /// An integer that is not below zero.
    ///
    /// # Errors
    /// As [`string`](Self::string).
    pub fn u64(&self, name: &str) -> Result<u64, RequestError> {
        self.read(name, Json::as_u64)
    }

    /// An integer.
    ///
    /// # Errors
    /// As [`string`](Self::string).
    pub fn i64(&self, name: &str) -> Result<i64, RequestError> {
        self.read(name, Json::as_i64)
    }

    /// A number.
    ///
    /// # Errors
    /// As [`string`](Self::string).
    pub fn f64(&self, name: &str) -> Result<f64, RequestError> {
        self.read(name, |it| it.as_number()?.double())
    }

    /// A payload.
    ///
    /// # Errors
    /// As [`string`](Self::string).
    pub fn payload(&self, name: &str) -> Result<Payload, RequestError> {
        self.read(name, |it| Payload::of(it).ok())
    }

    /// Texts.
    ///
    /// # Errors
    /// As [`string`](Self::string).
    pub fn strings(&self, name: &str) -> Result<Vec<String>, RequestError> {
        self.read(name, |it| {
            it.as_array()?
                .map(|it| it.as_str().map(String::from))
                .collect()
        })
    }

    /// Payloads.
    ///
    /// # Errors
    /// As [`string`](Self::string).
    pub fn payloads(&self, name: &str) -> Result<Vec<Payload>, RequestError> {
        self.read(name, |it| {
            it.as_array()?.map(|it| Payload::of(it).ok()).collect()
        })
    }
}

/// A field of an object that is part of a result.
pub(crate) fn field<'a>(object: Json<'a>, name: &str) -> Option<Json<'a>> {
    let mut fields = object.as_object()?;
    fields.find(|(key, _)| key == name).map(|(_, value)| value)
}

/// A text of such an object.
pub(crate) fn text(object: Json<'_>, name: &str) -> Option<String> {
    field(object, name)?.as_str().map(String::from)
}
