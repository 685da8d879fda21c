//! A message is never delivered long after it has expired.
//!
//! Source: `broker-model`: "expired messages leave by index, wherever they are"; `docs/amqp.md`.
//! While everything is at rest, a delivery is made and received at once: only those are judged. The
//! deaths that `x-death` tells of are judged with that header.

use tanda_engine::Millis;

use crate::failure::{Check, ensure};
use crate::history::amqp::{Amqp, Arrived};

pub(crate) const NAME: &str = "expired messages are not delivered";

/// A pass of the node has a budget, and the clock goes on between them.
const STEP_MS: u64 = 1_000;

pub(crate) fn on_delivery(history: &Amqp, now: Millis, message: &Arrived) -> Check {
    if !history.is_draining || !message.deaths.is_empty() {
        return Ok(());
    }
    let Some(end) = history.expires_by(message.tag, &message.queue) else {
        return Ok(());
    };
    ensure(now <= end.after_ms(STEP_MS), NAME, || {
        format!(
            "message {} came from {:?} at {now:?}, and expired at {end:?} at the latest",
            message.tag, message.queue
        )
    })
}
