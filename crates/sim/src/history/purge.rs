//! Purges: which messages may be gone without an ack.

use tanda_engine::Millis;

use super::{History, enqueued_at, main_of};

/// A purge of a queue or its dead-letter queue.
#[derive(Clone, Debug)]
pub(crate) struct Purge {
    /// The queue's own name.
    queue: String,
    sent_at: Millis,
    /// When its end was known.
    ended_at: Option<Millis>,
}

impl History {
    /// A purge is on its way.
    pub(crate) fn on_purge_sent(&mut self, now: Millis, name: &str) {
        self.purges.push(Purge {
            queue: main_of(name).0.to_owned(),
            sent_at: now,
            ended_at: None,
        });
    }

    /// The newest purge came to its end, answered or with the process.
    pub(crate) fn on_purge_ended(&mut self, now: Millis) {
        if let Some(purge) = self.purges.last_mut() {
            purge.ended_at.get_or_insert(now);
        }
    }

    /// When a purge may have taken this message, at the earliest.
    pub(crate) fn purged_at_min(&self, id: u128) -> Option<Millis> {
        let message = self.messages.get(&id)?;
        let queue = &self.sent.get(message.tag)?.queue;
        let of_queue = self.purges.iter().filter(|purge| purge.queue == *queue);
        let came_at = enqueued_at(id);
        let later = of_queue.filter(|purge| purge.ended_at.is_none_or(|at| at >= came_at));
        later.map(|purge| purge.sent_at).min()
    }

    /// It was confirmed, and nothing known has taken it away.
    pub(crate) fn must_be_there(&self, id: u128) -> bool {
        self.messages.get(&id).is_some_and(|message| {
            message.is_confirmed && message.ack_sent.is_none() && self.purged_at_min(id).is_none()
        })
    }
}
