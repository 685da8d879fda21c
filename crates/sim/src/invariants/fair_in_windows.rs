//! Turns are fair: in every window of deliveries, keys that have messages all along are served as
//! their weights say, within one round.
//!
//! Source: fairness, "deficit round robin in messages: a key's turn adds `weight * quantum`; each
//! delivery costs 1"; "weights hold in every short window".
//!
//! Judged where clients can know it: in what one consumer gets of a queue at rest, in one instant,
//! with nothing new coming. A key has messages there until the last one of it has come.

use std::collections::{BTreeMap, BTreeSet};

use crate::failure::{Check, Violation};
use crate::history::{Drained, Grouping, History, Sent, ThrottleDraw};

pub(crate) const NAME: &str = "turns are fair in every window";

/// Per key: its weight, and where in the sequence its messages stand.
type Keys<'a> = BTreeMap<&'a str, (u64, Vec<usize>)>;

/// What came out of each queue while it was drained, in order.
pub(crate) fn when_drained(history: &History, quantum: u32) -> Check {
    for (name, facts) in &history.queues {
        // Groups, scripts and purges hide from clients what was there.
        // .. and what waits for room is not there.
        let is_throttled = facts.throttle.as_ref().is_some_and(ThrottleDraw::is_quick);
        if is_throttled || facts.draw.grouping != Grouping::None || facts.draw.script.classifies {
            continue;
        }
        let of_queue = history.drained.iter().filter(|it| it.queue == *name);
        let first = of_queue.clone().next().map(|it| it.leased_at);
        let sequence: Vec<&Drained> = of_queue
            .take_while(|it| Some(it.leased_at) == first)
            .collect();
        let keys = keys_of(history, &sequence)?;
        for (a, (weight, places)) in &keys {
            for (b, (other_weight, other_places)) in &keys {
                if a == b {
                    continue;
                }
                let turns = (
                    weight * u64::from(quantum),
                    other_weight * u64::from(quantum),
                );
                compare(turns, (places, other_places)).map_err(|what| Violation {
                    invariant: NAME,
                    what: format!(
                        "in {name:?} key {a:?} of weight {weight} got too much beside key {b:?} of \
                         weight {other_weight}, quantum {quantum}: {what}"
                    ),
                })?;
            }
        }
    }
    Ok(())
}

/// Keys whose weight is known: it was the same for all messages that may be its newest.
fn keys_of<'a>(history: &'a History, sequence: &[&'a Drained]) -> Result<Keys<'a>, Violation> {
    let mut keys = Keys::new();
    let mut unclear = BTreeSet::new();
    for (place, drained) in sequence.iter().enumerate() {
        let message = history.message(drained.id)?;
        let sent = history.sent(message.tag)?;
        let key = sent.fairness_key.as_deref().unwrap_or_default();
        let weight = u64::from(sent.weight.unwrap_or(1).max(1));
        let same = |other: &Sent| {
            let is_of_key = other.queue == sent.queue
                && other.fairness_key.as_deref().unwrap_or_default() == key;
            !is_of_key || u64::from(other.weight.unwrap_or(1).max(1)) == weight
        };
        if unclear.contains(key) {
            continue;
        }
        if !keys.contains_key(key) && !history.sent.iter().all(same) {
            unclear.insert(key);
            continue;
        }
        keys.entry(key)
            .or_insert_with(|| (weight, Vec::new()))
            .1
            .push(place);
    }
    Ok(keys)
}

/// While both have messages, the first may have begun one turn more than the other has ended, in
/// any window: what it got, in turns, is at most one more than what the other got.
fn compare(turns: (u64, u64), places: (&[usize], &[usize])) -> Result<(), String> {
    let (a, b) = places;
    let both_until = a.last().min(b.last()).copied().unwrap_or(0);
    let mut worst = (0_i128, 0, 0);
    // The excess of the first within a window, times both turns: the largest over all windows is
    // found in one pass.
    let (mut excess, mut from) = (0_i128, 0);
    let mut all: Vec<(usize, bool)> = a.iter().map(|place| (*place, true)).collect();
    all.extend(b.iter().map(|place| (*place, false)));
    all.sort_unstable();
    for (place, is_a) in all {
        if place > both_until {
            break;
        }
        if excess <= 0 {
            (excess, from) = (0, place);
        }
        excess += if is_a {
            i128::from(turns.1)
        } else {
            -i128::from(turns.0)
        };
        if excess > worst.0 {
            worst = (excess, from, place);
        }
    }
    let most = i128::from(turns.0) * i128::from(turns.1);
    if worst.0 <= most {
        return Ok(());
    }
    Err(format!(
        "from delivery {} to {} it was {} turns ahead; its deliveries {a:?}, the other's {b:?}",
        worst.1,
        worst.2,
        worst.0 / most.max(1)
    ))
}
