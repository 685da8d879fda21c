//! `redelivered` is set on whatever was delivered from this queue before, as long as the process
//! lives and after it was killed, and after a power loss where a confirm of later shows that the
//! delivery was on disk.
//!
//! Source: `firemq.md`, `deliver`; `broker-model`, durability: leases are "fast", "what was
//! delivered is remembered in unsynced ranges, so `redelivered` is right after all but a power
//! loss".

use crate::failure::{Check, ensure};
use crate::history::amqp::{Arrived, Copy};

pub(crate) const NAME: &str = "redelivered is never missing";

pub(crate) fn on_delivery(message: &Arrived, copy: &Copy) -> Check {
    let visit = (message.queue.clone(), message.deaths());
    let was_here = copy.delivered.contains_key(&visit);
    // Its channel may have been closed after this had left, and the message given to another, whose
    // delivery came sooner.
    let is_late = message.holder.is_some_and(|holder| holder.is_unsure);
    ensure(!was_here || message.is_redelivered || is_late, NAME, || {
        format!(
            "message {} came from {:?} before, and now as if it were new",
            message.tag, message.queue
        )
    })
}
