//! What was acknowledged does not come back: not while the process lives, once the broker has
//! surely taken the acknowledgement; never, once a transaction with it was committed.
//!
//! Source: `broker-model`, durability of acks: "fast", so a crash may undo one; transactions,
//! "all or nothing also after a crash".

use crate::failure::{Check, ensure};
use crate::history::amqp::{Arrived, Copy};

pub(crate) const NAME: &str = "an acknowledged AMQP message stays gone";

pub(crate) fn on_delivery(message: &Arrived, copy: &Copy) -> Check {
    ensure(!copy.is_gone && !copy.is_gone_for_good, NAME, || {
        format!(
            "message {} came from {:?} again, although it was acknowledged: {copy:?}",
            message.tag, message.queue
        )
    })
}
