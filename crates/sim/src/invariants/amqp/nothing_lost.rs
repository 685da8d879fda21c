//! A persistent message that was confirmed, or whose transaction was committed, is in every durable
//! queue it was routed to, or among the dead letters of that queue, until somebody acknowledges it.
//!
//! Source: `broker-model`, publisher confirms: "the message is in every queue it was routed to, and
//! on disk when it is persistent and the queue durable. Never before." `firemq.md`, `confirm`.

use crate::failure::{Check, ensure};
use crate::history::amqp::Amqp;

pub(crate) const NAME: &str = "nothing that AMQP confirmed is lost";

/// Everything that was there has come out.
pub(crate) fn when_drained(history: &Amqp) -> Check {
    for (tag, sent) in history.sent.iter().enumerate() {
        for queue in &sent.must {
            let copy = history.copies.get(&(tag, queue.clone()));
            let was_drained = copy.is_some_and(|copy| copy.drained.is_some());
            let is_lost = !was_drained && history.must_be_there(tag, queue)?;
            ensure(!is_lost, NAME, || {
                format!(
                    "message {tag} was {:?} and is not in {queue:?}: {copy:?}",
                    sent.outcome
                )
            })?;
        }
    }
    Ok(())
}
