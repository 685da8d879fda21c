//! The same files give the same state, however often they are opened.
//!
//! Source: `docs/formats/log.md`, "Recovery": replay draws nothing, and a start that was
//! interrupted can be repeated.

use tanda_engine::MessagePlace;

use crate::failure::{Check, ensure};
use crate::world::Places;

pub(crate) const NAME: &str = "replay gives the same state";

/// Two copies of one disk, opened at the same time.
pub(crate) fn equal(first: &Places, second: &Places) -> Check {
    for ((id, first), second) in first.iter().zip(second.values()) {
        ensure(first == second, NAME, || {
            format!("{id:032x} is {first:?} in one copy and {second:?} in the other")
        })?;
    }
    ensure(first.len() == second.len(), NAME, || {
        format!("{} answers, then {}", first.len(), second.len())
    })
}

/// One copy, opened, killed and opened again: time has passed, so places may differ, but nothing
/// came or went.
pub(crate) fn as_many(first: &Places, again: &Places) -> Check {
    let is_there = |places: &[MessagePlace; 2]| {
        let [main, dead_letters] = places;
        *main != MessagePlace::Unknown || *dead_letters != MessagePlace::Unknown
    };
    for ((id, first), again) in first.iter().zip(again.values()) {
        ensure(is_there(first) == is_there(again), NAME, || {
            format!("{id:032x} is {first:?}, and after one more start {again:?}")
        })?;
    }
    Ok(())
}
