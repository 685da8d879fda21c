//! Nothing confirmed is lost.
//!
//! Source: message life, "an accepted enqueue is on disk before its result is sent"; a duplicate's
//! answer promises the same of the original.

use crate::failure::{Check, ensure};
use crate::history::History;

pub(crate) const NAME: &str = "nothing confirmed is lost";

/// When all queues are empty, every confirmed message was acked or purged by somebody.
pub(crate) fn when_drained(history: &History) -> Check {
    for (id, message) in &history.messages {
        let sent = history.sent(message.tag)?;
        if history.queue(&sent.queue)?.is_scratch {
            continue;
        }
        ensure(!history.must_be_there(*id), NAME, || {
            format!(
                "{id:032x} (message {}) was confirmed in {:?} and is not there; delivered {} \
                 times before",
                message.tag,
                sent.queue,
                message.holdings.len()
            )
        })?;
    }
    Ok(())
}
