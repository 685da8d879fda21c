//! At most one message of an ordering group is in flight, and they go in order of arrival.
//!
//! Source: ordering, "at most one message per group is in flight; the next goes only after ack or
//! dead-letter"; "arrival order decides inside a group". In flight is what consumers hold: from the
//! delivery's lease until a settlement is sent or the lease ends.

use crate::failure::{Check, Violation};
use crate::history::{History, Holding, MessageFacts};

pub(crate) const NAME: &str = "one message of a group at a time, in order";

/// Compares the newest lease of `id` with all others of its group.
pub(crate) fn on_delivery(history: &History, id: u128) -> Check {
    let message = history.message(id)?;
    let sent = history.sent(message.tag)?;
    let (Some(newest), Some(group)) = (message.holdings.last(), &sent.group) else {
        return Ok(());
    };
    if !newest.is_main || history.queue(&sent.queue)?.is_scratch {
        return Ok(());
    }
    for (other_id, other) in &history.messages {
        let other_sent = history.sent(other.tag)?;
        let same_group = other_sent.queue == sent.queue && other_sent.group.as_ref() == Some(group);
        if *other_id == id || !same_group {
            continue;
        }
        for holding in other.holdings.iter().filter(|holding| holding.is_main) {
            let newest = (id, message, newest);
            compare(newest, (*other_id, other, holding)).map_err(|what| Violation {
                invariant: NAME,
                what: format!("group {group:?}: {what}"),
            })?;
        }
    }
    Ok(())
}

type Lease<'a> = (u128, &'a MessageFacts, &'a Holding);

fn compare(a: Lease<'_>, b: Lease<'_>) -> Result<(), String> {
    let (first, second) = if b.2.leased_at < a.2.leased_at {
        (b, a)
    } else {
        (a, b)
    };
    let (first_id, first_message, first_lease) = first;
    let (second_id, second_message, second_lease) = second;
    let released = first_message.released_min(first_lease);
    let at_once = first_lease.leased_at == second_lease.leased_at
        && second_message.released_min(second_lease) <= first_lease.leased_at;
    if released > second_lease.leased_at && !at_once {
        return Err(format!(
            "{first_id:032x} was leased at {:?} until {released:?} at the earliest, and \
             {second_id:032x} at {:?}",
            first_lease.leased_at, second_lease.leased_at
        ));
    }
    let in_order = first_lease.redrives > 0
        || second_lease.redrives > 0
        || first_lease.leased_at == second_lease.leased_at
        || first_id < second_id;
    if in_order {
        return Ok(());
    }
    Err(format!(
        "{first_id:032x} was leased at {:?}, before {second_id:032x}, which came earlier, at {:?}",
        first_lease.leased_at, second_lease.leased_at
    ))
}
