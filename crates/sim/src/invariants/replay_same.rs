//! The same files give the same state, however often they are opened.
//!
//! Source: `docs/formats/log.md`, "Recovery": replay draws nothing, and a start that was
//! interrupted can be repeated.

use std::collections::BTreeMap;

use tanda_engine::MessagePlace;

use crate::failure::{Check, ensure};
use crate::history::amqp::{Amqp, origin_of};
use crate::world::{Emptied, Places};

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

/// AMQP's queues on two copies of one disk, opened at the same time: one gives what the other does.
pub(crate) fn equal_amqp(first: &Emptied, second: &Emptied) -> Check {
    ensure(first == second, NAME, || {
        format!("{first:?} in one copy and {second:?} in the other")
    })
}

/// AMQP's queues on one copy that was opened, killed and opened again: where nothing leaves by
/// itself, as many messages come out.
pub(crate) fn as_many_amqp(history: &Amqp, first: &Emptied, again: &Emptied) -> Check {
    ensure(first.found == again.found, NAME, || {
        format!(
            "{:?}, and after one more start {:?}",
            first.found, again.found
        )
    })?;
    let count = |emptied: &Emptied| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for (queue, taken) in &emptied.taken {
            *counts.entry(origin_of(queue).to_owned()).or_default() += taken.len();
        }
        counts.retain(|queue, _| !history.leaves_by_time(queue));
        counts
    };
    let (first, again) = (count(first), count(again));
    ensure(first == again, NAME, || {
        format!("{first:?}, and after one more start {again:?}")
    })
}
