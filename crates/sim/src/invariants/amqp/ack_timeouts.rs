//! A consumer that does not acknowledge in time loses what it holds: at rest, nothing of a queue
//! with such a time is held for longer.
//!
//! Source: `broker-model`, in flight: "AMQP's acknowledgement timeout returns the messages and
//! cancels that consumer"; RabbitMQ, "Delivery Acknowledgement Timeout". That nobody loses a
//! message before its time is checked with `one_place`.

use tanda_engine::Millis;

use crate::failure::{Check, ensure};

pub(crate) const NAME: &str = "AMQP acknowledgements that do not come end";

/// Consumers that can lose what they hold, one after another.
const CONSUMERS_MAX: u64 = 50;

/// Nobody has settled anything since, and so many messages are still held.
pub(crate) fn at_rest(since: Millis, now: Millis, timeout_ms: u64, held: u64) -> Check {
    let until = since.after_ms(timeout_ms * CONSUMERS_MAX);
    ensure(held == 0 || now <= until, NAME, || {
        format!("{held} messages are held at {now:?}, all since before {since:?}")
    })
}
