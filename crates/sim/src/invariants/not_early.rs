//! Nothing is delivered before its time, and a lease is as long as the queue says.
//!
//! Source: message life, "`enqueued_at + delay_ms` is the not-before time; it survives redrive";
//! "`retry_after_ms` on a nack replaces the delay"; settled details, "`lease_expires_at` =
//! `leased_at` + visibility timeout exactly".

use tanda_engine::Millis;
use tanda_wire::fila::delivery::DeliveryMessage;

use crate::failure::{Check, ensure};
use crate::history::{History, enqueued_at, main_of};

pub(crate) const NAME: &str = "nothing is early";

pub(crate) fn on_delivery(history: &History, now: Millis, message: &DeliveryMessage<'_>) -> Check {
    let id = u128::from_be_bytes(message.meta.message_id);
    let facts = history.message(id)?;
    let sent = history.sent(facts.tag)?;
    let leased_at = Millis(message.meta.leased_at_ms);
    let due_at = enqueued_at(id).after_ms(sent.delay_ms.unwrap_or(0));
    ensure(leased_at >= due_at, NAME, || {
        format!("{id:032x} is due at {due_at:?} and was leased at {leased_at:?}")
    })?;
    ensure(leased_at <= now, NAME, || {
        format!("{id:032x} came at {now:?} with a lease of {leased_at:?}")
    })?;
    let queue = history.queue(message.queue)?;
    let (_, is_dead_letter) = main_of(message.queue);
    // A crash of a fast queue may forget the nack.
    if let Some((known_at, floor, redrives)) = facts.retry_floor
        && queue.is_committed()
        && !queue.draw.script.decides
    {
        let is_next = leased_at > known_at && message.meta.redrive_count == redrives;
        ensure(
            !is_next || is_dead_letter || leased_at >= floor,
            NAME,
            || format!("{id:032x} was to be retried at {floor:?} and was leased at {leased_at:?}"),
        )?;
    }
    let length_ms = leased_at.until(Millis(message.meta.lease_expires_at_ms));
    let is_known = queue.is_scratch || queue.lease_ms.contains(&length_ms);
    ensure(is_known, NAME, || {
        format!(
            "{id:032x} of {:?} was leased for {length_ms} ms; the queue was set to {:?}",
            message.queue, queue.lease_ms
        )
    })
}
