//! Requests about queues that go by themselves, and what a goodbye says of such a queue.

use super::link::Said;
use super::{AmqpClient, Call, Cx};
use crate::failure::Violation;
use crate::history::amqp::{Change, Door};
use crate::invariants::amqp::lives;

/// The broker answers a goodbye after so long, whether it has done everything or not.
const GOODBYE_MS_MAX: u64 = 10_000;

impl Call {
    /// The queue that it is about.
    const fn queue(&self) -> Option<&String> {
        match self {
            Self::Change(Change::Queue(name) | Change::Delete(name))
            | Self::Look(name)
            | Self::Consume(_, name)
            | Self::Get(name) => Some(name),
            Self::Change(Change::Bind(binding) | Change::Unbind(binding)) => Some(&binding.queue),
            Self::Change(Change::Exchange(_))
            | Self::Name(_)
            | Self::Select
            | Self::Qos
            | Self::Cancel(_)
            | Self::Recover
            | Self::Purge
            | Self::Barrier(_)
            | Self::Commit(..)
            | Self::Rollback(..) => None,
        }
    }
}

impl AmqpClient {
    /// What was asked ends the channel if it is refused, before the client knows.
    pub(super) fn is_at_risk(&self, cx: &Cx<'_>) -> bool {
        let queues = &cx.history.amqp.queues;
        let name = self.channel.call.as_ref().and_then(Call::queue);
        let queue = name.and_then(|name| queues.get(name));
        self.door == Door::Amqp && queue.is_some_and(|queue| queue.draw.has_life())
    }

    /// It is at risk, or not any more.
    pub(super) fn on_risk(&self, cx: &mut Cx<'_>, is_unsure: bool) {
        for id in self.channel.held.values() {
            cx.history.amqp.on_unsure((id, self.conn), is_unsure);
        }
    }

    /// What was asked was refused with this code, as the queue is gone or is another's. False when
    /// it is about something else.
    pub(super) fn was_refused(&mut self, code: u16, cx: &mut Cx<'_>) -> Result<bool, Violation> {
        let is_of_life = code == lives::NOT_FOUND || code == lives::RESOURCE_LOCKED;
        let name = self.channel.call.as_ref().and_then(Call::queue);
        let amqp = &mut cx.history.amqp;
        let is_mortal = |name: &&String| {
            let queue = amqp.queues.get(*name);
            queue.is_some_and(|queue| queue.draw.has_life())
        };
        let Some(name) = name.filter(is_mortal).filter(|_| is_of_life).cloned() else {
            return Ok(false);
        };
        let has_consumer = self.channel.consumers.values().any(|it| *it == name);
        let asked = self.channel.asked;
        match self.channel.call.take() {
            Some(Call::Change(change)) => amqp.on_change_refused(&change),
            Some(Call::Consume(tag, _)) => {
                amqp.on_not_consuming(&name, &tag, self.conn);
                self.channel.credit.remove(&tag);
            }
            _ => {}
        }
        amqp.on_refused((&name, code), asked, has_consumer)?;
        Ok(true)
    }

    /// What is said after the client's goodbye.
    pub(super) fn on_last_words(&mut self, said: &Said, cx: &mut Cx<'_>) {
        if !matches!(said, Said::Goodbye | Said::Closed(..)) {
            return;
        }
        // Who is closed for another reason gets no answer of its own.
        let left = self.left.take().filter(|_| matches!(said, Said::Goodbye));
        if let Some(asked) = left
            && cx.now < asked.at.after_ms(GOODBYE_MS_MAX)
        {
            cx.history.amqp.on_goodbye(asked);
        }
    }
}
