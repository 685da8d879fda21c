//! Payloads of what is no command: objects with a few fields.

use std::borrow::Cow;

use tanda_wire::amaquet::command::{FieldProblem, RequestError, ValueType};
use tanda_wire::amaquet::envelope::Failure;
use tanda_wire::amaquet::json::{Json, JsonKind};

/// The fields of a payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a>(Json<'a>);

impl<'a> Fields<'a> {
    /// Reads a payload.
    ///
    /// # Errors
    /// It is no object.
    pub(super) fn read(payload: &'a [u8]) -> Result<Self, Failure> {
        let json = Json::parse(payload).map_err(|error| refused(&RequestError::Json(error)))?;
        if json.kind() == JsonKind::Object {
            return Ok(Self(json));
        }
        let found = json.kind();
        Err(refused(&RequestError::NotAnObject { found }))
    }

    /// A field that may be left out, or be null. Of several the last counts.
    pub(super) fn optional(self, name: &str) -> Option<Json<'a>> {
        let fields = self.0.as_object().into_iter().flatten();
        let named = fields.filter(|(key, _)| key == name);
        let (_, value) = named.last()?;
        Some(value).filter(|value| value.kind() != JsonKind::Null)
    }

    /// A text.
    ///
    /// # Errors
    /// It is missing, or no text.
    pub(super) fn text(self, name: &str) -> Result<Cow<'a, str>, Failure> {
        self.required(name, ValueType::String, Json::as_str)
    }

    /// An integer.
    ///
    /// # Errors
    /// It is missing, or no such integer.
    pub(super) fn u64(self, name: &str) -> Result<u64, Failure> {
        self.required(name, ValueType::U64, Json::as_u64)
    }

    fn required<T>(
        self,
        name: &str,
        wanted: ValueType,
        read: impl FnOnce(Json<'a>) -> Option<T>,
    ) -> Result<T, Failure> {
        match self.optional(name) {
            None => Err(bad_field(name, FieldProblem::Missing { wanted })),
            Some(value) => read(value).ok_or_else(|| mistyped(name, wanted, value)),
        }
    }
}

/// A field of another type than is wanted.
pub(super) fn mistyped(name: &str, wanted: ValueType, value: Json<'_>) -> Failure {
    let found = value.kind();
    let text = value.text();
    let shown = match found {
        JsonKind::Number => text.get(..text.len().min(64)).unwrap_or_default(),
        JsonKind::Null | JsonKind::Bool | JsonKind::String | JsonKind::Array | JsonKind::Object => {
            ""
        }
    };
    let value = shown.to_owned();
    bad_field(
        name,
        FieldProblem::Mistyped {
            wanted,
            found,
            value,
        },
    )
}

/// A value that is not allowed.
pub(super) fn out_of_limits(name: &str, found: impl Into<String>, limits: &str) -> Failure {
    let (found, limits) = (found.into(), limits.to_owned());
    bad_field(name, FieldProblem::OutOfLimits { found, limits })
}

fn bad_field(name: &str, problem: FieldProblem) -> Failure {
    let path = name.to_owned();
    refused(&RequestError::Field { path, problem })
}

/// An item of an array makes no sense.
pub(super) fn refused_within(array: &str, at: usize, error: RequestError) -> Failure {
    let error = match error {
        RequestError::Field { path, problem } => RequestError::Field {
            path: format!("{array}[{at}].{path}"),
            problem,
        },
        other @ (RequestError::Json(_)
        | RequestError::NotAnObject { .. }
        | RequestError::UnknownCommand { .. }) => other,
    };
    refused(&error)
}

/// A request that makes no sense.
pub(super) fn refused(error: &RequestError) -> Failure {
    Failure::new(error.code(), error.to_string())
}
