//! The entries of maps and tables, keys as text, repeated keys once.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::json;
use super::scalar::{Shape, bytes_text, fire_shape};
use crate::cursor::DecodeError;
use crate::{amqp, firemq};

/// The entries of a map of FireMQ: of a repeated key only the last.
pub(super) fn fire_entries(
    map: firemq::RawMap<'_>,
) -> impl Iterator<Item = (Cow<'_, str>, firemq::Value<'_>)> {
    let mut last = BTreeMap::new();
    for (at, (key, _)) in map.iter().enumerate() {
        last.insert(key_text(&key), at);
    }
    map.iter()
        .enumerate()
        .filter_map(move |(at, (key, value))| {
            let key = key_text(&key);
            (last.get(&key) == Some(&at)).then_some((key, value))
        })
}

/// The entries of a table of AMQP: of a repeated key only the first.
pub(super) fn amqp_entries(
    table: amqp::Table<'_>,
) -> impl Iterator<Item = Result<(Cow<'_, str>, amqp::Value<'_>), DecodeError>> {
    let mut seen = BTreeSet::new();
    table.iter().filter_map(move |entry| match entry {
        Ok(entry) => seen
            .insert(entry.key.as_bytes())
            .then(|| Ok((bytes_text(entry.key.as_bytes()), entry.value))),
        Err(error) => Some(Err(error)),
    })
}

/// A key as text: a map's may be of any type.
fn key_text<'a>(key: &firemq::Value<'a>) -> Cow<'a, str> {
    match fire_shape(key) {
        Shape::Scalar(scalar) => scalar.text(),
        Shape::Array(_) | Shape::Map(_) => Cow::Owned(json::fire_text(key)),
    }
}
