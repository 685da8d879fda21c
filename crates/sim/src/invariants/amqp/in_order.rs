//! Messages of one channel come out of a queue in the order in which they went in, also those that
//! were given back, and also after a restart; with priorities, those of one priority do.
//!
//! Source: AMQP 0-9-1, section 4.7; `broker-model`: "FIFO, or `x-max-priority`; a requeued message
//! returns to its old place".

use std::collections::BTreeMap;

use crate::failure::{Check, ensure};
use crate::history::amqp::{Amqp, Dead};

pub(crate) const NAME: &str = "AMQP queues keep their order";

/// A message came while its queue was drained by one consumer, all of it ready before.
pub(crate) fn when_drained(history: &Amqp) -> Check {
    for (queue, tags) in &history.drained {
        let draw = &history.queue(queue)?.draw;
        if queue.ends_with(".dead") || matches!(draw.dead, Some(Dead::Return(_))) {
            // Who has died comes later, or comes again.
            continue;
        }
        let mut last: BTreeMap<(u64, u8), usize> = BTreeMap::new();
        let mut highest = u8::MAX;
        for tag in tags {
            let sent = history.published(*tag)?;
            let priority = sent.priority.min(draw.max_priority.unwrap_or(0));
            ensure(priority <= highest, NAME, || {
                format!("{tag} of {priority} came out of {queue:?} after {highest}: {tags:?}")
            })?;
            highest = priority;
            let before = last.insert((sent.stream, priority), *tag);
            ensure(before.is_none_or(|before| before < *tag), NAME, || {
                format!("{tag} came out of {queue:?} after {before:?}: {tags:?}")
            })?;
        }
    }
    Ok(())
}
