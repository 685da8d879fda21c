//! What Amaquet's clients are promised.
//!
//! Source: `docs/amaquet.md` and the commands' own descriptions: a write that was answered is
//! there, an item is popped once and goes back to its place when nobody heard of it, tokens only
//! grow, a lock has one holder, a message that was acknowledged stays gone.

use tanda_engine::Millis;

use crate::failure::{Check, Violation, ensure};
use crate::history::amaquet::{Amaquet, Granted, LEASE_MS, Queued, There};

pub(crate) const NAME: &str = "Amaquet's keys, queues and topics are as answered";

/// Something that no promise has a better name for.
pub(crate) fn of(what: String) -> Violation {
    Violation {
        invariant: NAME,
        what,
    }
}

/// What was read or answered is not older than what was known before it was asked, and was sent.
pub(crate) fn in_bounds(key: &str, found: u64, (floor, issued): (u64, u64)) -> Check {
    ensure((floor..=issued).contains(&found), NAME, || {
        format!("{key} is {found}: at least {floor} was answered, {issued} was sent")
    })
}

/// No two additions have one result.
pub(crate) fn once(key: &str, value: u64, is_new: bool) -> Check {
    ensure(is_new, NAME, || {
        format!("two additions to {key} are answered with {value}")
    })
}

/// An item that comes was pushed, and had not come before.
pub(crate) fn popped(list: &str, item: &str, before: Option<There>) -> Check {
    let is_fine = matches!(before, Some(There::Maybe | There::Yes));
    ensure(is_fine, NAME, || {
        format!("{item} comes out of {list}, where it was {before:?}")
    })
}

/// Tokens only grow, and a lock has one holder at a time.
pub(crate) fn granted(lock: &str, newest: u64, known: &[Granted], new: Granted) -> Check {
    ensure(new.token > newest, NAME, || {
        format!("{lock} was granted as {new:?} after a token of {newest}")
    })?;
    let other = known.iter().find(|it| {
        let overlap = it.at < new.ends_at && new.at < it.ends_at;
        let was_free = it.is_released && it.at <= new.at;
        it.token == new.token || overlap && !was_free
    });
    ensure(other.is_none(), NAME, || {
        format!("{lock} was granted as {new:?}, and is held: {other:?}")
    })
}

/// A lock that was held is given back.
pub(crate) fn released(lock: &str, now: Millis, ends_at: Millis, code: &str) -> Check {
    ensure(now >= ends_at, NAME, || {
        format!("at {now:?} {lock}, held until {ends_at:?}, cannot be given back: {code}")
    })
}

/// A message that comes was sent, is not acknowledged, and is leased to nobody else. Who asked
/// before its acknowledgement was answered may hear of it later.
pub(crate) fn taken(
    (text, id): (&str, &str),
    known: Option<&Queued>,
    until: Millis,
    acked: u64,
) -> Check {
    let Some(known) = known else {
        return Err(of(format!("nobody sent {text:?}")));
    };
    let is_gone = known.there == There::No && known.gone_at <= acked;
    ensure(!is_gone, NAME, || {
        format!("{text} was acknowledged, and comes again")
    })?;
    let is_same = known.id.as_ref().is_none_or(|known| known == id);
    ensure(is_same, NAME, || format!("{text} is {known:?}, and {id}"))?;
    let apart = |other: &Millis| other.0.abs_diff(until.0) >= LEASE_MS;
    ensure(known.leased_until.iter().all(apart), NAME, || {
        format!("{text} is leased until {until:?}, and {known:?}")
    })
}

/// Events of one publisher come in order, each once, and were published.
pub(crate) fn event(from: &str, number: u64, (last, issued): (u64, u64)) -> Check {
    ensure(number > last && number <= issued, NAME, || {
        format!("event {number} of {from} comes after {last}; {issued} were published")
    })
}

/// Once lists and the queue are empty.
pub(crate) fn when_drained(amaquet: &Amaquet) -> Check {
    for (list, listed) in &amaquet.lists {
        let left = listed.items.iter().filter(|(_, it)| **it == There::Yes);
        let left: Vec<_> = left.map(|(item, _)| item).collect();
        ensure(left.len() as u64 <= listed.lost_pops, NAME, || {
            let pops = listed.lost_pops;
            format!("{left:?} did not come out of {list}; {pops} pops were not answered")
        })?;
    }
    let mut queued = amaquet.queued.iter();
    let lost = queued.find(|(_, it)| it.there == There::Yes && it.acks_open == 0);
    ensure(lost.is_none(), NAME, || {
        format!("a message did not come out of the queue: {lost:?}")
    })
}
