//! The fields of an object, by the names that are wanted of it.

use std::borrow::Cow;

use super::argument::{Argument, ArgumentLimits};
use super::error::{FieldProblem, RequestError};
use super::spec::ArgumentSpec;
use crate::amaquet::json::{Json, JsonKind};

/// Most arguments of a command.
pub(super) const ARGUMENTS_MAX: usize = 16;

/// Values of the arguments of one command, in the order of its table. What is not wanted is not
/// kept, so that an object with a million fields costs no memory.
#[derive(Debug)]
pub(super) struct Fields<'a, 'l> {
    specs: &'static [ArgumentSpec],
    values: [Option<Json<'a>>; ARGUMENTS_MAX],
    limits: &'l ArgumentLimits,
}

impl<'a, 'l> Fields<'a, 'l> {
    pub(super) fn of(
        fields: impl Iterator<Item = (Cow<'a, str>, Json<'a>)>,
        specs: &'static [ArgumentSpec],
        limits: &'l ArgumentLimits,
    ) -> Self {
        let mut values = [None; ARGUMENTS_MAX];
        for (key, value) in fields {
            let named = specs.iter().zip(&mut values);
            if let Some((_, place)) = named.into_iter().find(|(spec, _)| spec.name == key) {
                *place = Some(value);
            }
        }
        Self {
            specs,
            values,
            limits,
        }
    }

    fn value(&self, name: &str) -> Option<Json<'a>> {
        let mut named = self.specs.iter().zip(&self.values);
        named
            .find(|(spec, _)| spec.name == name)
            .and_then(|(_, value)| *value)
    }

    /// An argument that must be there.
    pub(super) fn required<T: Argument<'a>>(&self, name: &str) -> Result<T, RequestError> {
        let read = match self.value(name) {
            Some(value) => T::read(value, self.limits),
            None => Err(RequestError::here(FieldProblem::Missing {
                wanted: T::TYPE,
            })),
        };
        read.map_err(|error| error.within(name))
    }

    /// An argument that may be left out, or be null.
    pub(super) fn optional<T: Argument<'a>>(&self, name: &str) -> Result<Option<T>, RequestError> {
        match self.value(name) {
            Some(value) if value.kind() != JsonKind::Null => {
                let read = T::read(value, self.limits).map_err(|error| error.within(name))?;
                Ok(Some(read))
            }
            _ => Ok(None),
        }
    }
}
