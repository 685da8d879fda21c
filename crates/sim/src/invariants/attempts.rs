//! Attempts count every delivery of a committed queue once, and end at the queue's limit.
//!
//! Source: message life, "`attempt_count` is 1 on the first delivery", "`max_attempts` deliveries
//! in total"; delivery durability, "attempts never exceed the limit across a crash".

use tanda_wire::fila::delivery::DeliveryMessage;

use crate::failure::{Check, ensure};
use crate::history::{History, main_of};

pub(crate) const NAME: &str = "attempts are counted and limited";

pub(crate) fn on_delivery(history: &mut History, message: &DeliveryMessage<'_>) -> Check {
    let id = u128::from_be_bytes(message.meta.message_id);
    let (redrives, attempt) = (message.meta.redrive_count, message.meta.attempt_count);
    let name = message.queue;
    let queue = history.queue(name)?;
    ensure(attempt > 0, NAME, || format!("{id:032x}: attempt 0"))?;
    let is_scratch = queue.is_scratch;
    ensure(is_scratch || redrives <= queue.redrives, NAME, || {
        format!(
            "{id:032x}: redriven {redrives} times, but only {} redrives of {name:?} were sent",
            queue.redrives
        )
    })?;
    if !queue.is_committed() {
        return Ok(());
    }
    let max = queue.attempts_max;
    // A script decides without the limit.
    let is_limited = !main_of(name).1 && !queue.draw.script.decides;
    ensure(!is_limited || attempt <= max, NAME, || {
        format!("{id:032x}: attempt {attempt} in {name:?}, which allows {max}")
    })?;
    let is_new = history
        .messages
        .get_mut(&id)
        .is_none_or(|facts| facts.attempts.insert((redrives, attempt)));
    ensure(is_new, NAME, || {
        format!("{id:032x}: attempt {attempt} after {redrives} redrives was delivered twice")
    })
}
