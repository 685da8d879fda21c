//! Messages go to the queues that exchanges give them to.

use crate::engine::{Cx, Engine};
use crate::incoming::{Incoming, Keys};
use crate::queues::QueueIndex;
use crate::script::{NewAnswer, UNDECIDED};
use crate::topology::LastRoute;
use crate::watch::Seen;
use crate::{Content, PublishBatch, PublishError, PublishItem, PublishResult, PublishTarget};

impl Engine {
    pub(crate) fn publish_routed(
        &mut self,
        cx: &mut Cx<'_>,
        new: (&PublishItem, &PublishBatch, usize),
        route: &mut LastRoute,
        answer: &mut NewAnswer,
    ) -> Result<PublishResult, PublishError> {
        let (item, batch, at) = new;
        let is_topic = item.target == PublishTarget::Topic;
        if is_topic {
            let content = Content::new(item.form, item.content.of(&batch.data));
            self.open_published_topic(cx, (batch.vhost, content.exchange()))?;
        }
        self.find_route(batch, item, route);
        let stored = match route.queues()? {
            [] => PublishResult::Unroutable,
            _ if self.storage_full => return Err(PublishError::Storage),
            [index] if self.queues.at(*index).is_dead_letter() => {
                return Err(PublishError::ReservedQueueName);
            }
            [index] => self.take_one(cx, *index, new, answer)?,
            several => self.store_in_each(cx, several, new, answer)?,
        };
        if route.watches.is_empty() && !is_topic {
            return Ok(stored);
        }
        let told = self.tell_of(cx, (item, batch), &route.watches);
        if !is_topic {
            return Ok(watched(stored, told));
        }
        let queues = match (route.queues()?, stored) {
            (_, PublishResult::Unroutable | PublishResult::Duplicate(_)) => 0,
            ([_], _) => 1,
            _ => answer.stored_in,
        };
        let receivers = told + queues;
        if stored == UNDECIDED {
            answer.note_sent(at, receivers);
            return Ok(stored);
        }
        Ok(PublishResult::Sent { receivers })
    }

    /// A message that was taken passes watches; returns how many took it.
    pub(crate) fn tell_of(
        &mut self,
        cx: &mut Cx<'_>,
        (item, batch): (&PublishItem, &PublishBatch),
        seen: &[Seen],
    ) -> u32 {
        if seen.is_empty() {
            return 0;
        }
        let content = Content::new(item.form, item.content.of(&batch.data));
        let mut keys = vec![content.routing_key()];
        let extra = batch.extra_keys_of(item);
        keys.extend(extra.iter().map(|span| span.text(&batch.data)));
        self.tell_watches(cx, content, &keys, seen)
    }

    /// Stores a message in queues that take it, unless they remember it.
    pub(crate) fn store_in_targets(
        &mut self,
        cx: &mut Cx<'_>,
        targets: Vec<(QueueIndex, Option<Keys>)>,
        new: (&PublishItem, &PublishBatch, usize),
        answer: &mut NewAnswer,
    ) -> Result<PublishResult, PublishError> {
        let (item, batch, _) = new;
        let incoming = Incoming::new(item, &batch.data);
        let (mut stored, mut duplicate, mut body) = (None, None, None);
        let mut waits = false;
        for (index, keys) in targets {
            let Some(keys) = keys else {
                self.finish_store(cx);
                self.wait_for_script(index, new, answer);
                waits = true;
                continue;
            };
            if let Some(id) = self.remembered(cx, index, keys.dedup) {
                duplicate = duplicate.or(Some(id));
                continue;
            }
            self.finish_store(cx);
            let id = self.store_message(cx, index, &incoming, &keys, body);
            let at = self.finish_store(cx);
            body = body.or(at);
            stored = stored.or(Some(id));
        }
        let stored = stored.map(PublishResult::Stored);
        stored
            .or_else(|| duplicate.map(PublishResult::Duplicate))
            .or_else(|| waits.then_some(UNDECIDED))
            .ok_or(PublishError::QueueNotFound)
    }

    /// One body for several queues: every queue that takes the message gets it, also when another
    /// one refuses; then it is refused. Queues with scripts decide later, each on its own, with a
    /// body of their own.
    fn store_in_each(
        &mut self,
        cx: &mut Cx<'_>,
        queues: &[QueueIndex],
        new: (&PublishItem, &PublishBatch, usize),
        answer: &mut NewAnswer,
    ) -> Result<PublishResult, PublishError> {
        // One record: a start may move the newest records, and what points from one into another
        // would then point nowhere.
        self.atomically(cx, |engine, cx| {
            engine.store_in_several(cx, queues, new, answer)
        })
    }

    fn store_in_several(
        &mut self,
        cx: &mut Cx<'_>,
        queues: &[QueueIndex],
        new: (&PublishItem, &PublishBatch, usize),
        answer: &mut NewAnswer,
    ) -> Result<PublishResult, PublishError> {
        let (item, batch, _) = new;
        let incoming = Incoming::new(item, &batch.data);
        let (mut stored, mut duplicate, mut body) = (None, None, None);
        let (mut waits, mut refused) = (false, None);
        answer.stored_in = 0;
        for index in queues {
            let id = self.queues.at(*index).identity.id;
            let (index, keys) = match self.check_target(cx, id, &incoming) {
                Ok(taken) => taken,
                Err(error) => {
                    self.refuse(*index, &incoming, error);
                    refused = refused.or(Some(error));
                    continue;
                }
            };
            self.finish_store(cx);
            let Some(keys) = keys else {
                self.wait_for_script(index, new, answer);
                waits = true;
                answer.stored_in += 1;
                continue;
            };
            if let Some(id) = self.remembered(cx, index, keys.dedup) {
                duplicate = duplicate.or(Some(id));
                continue;
            }
            let id = self.store_message(cx, index, &incoming, &keys, body);
            let at = self.finish_store(cx);
            body = body.or(at);
            stored = stored.or(Some(id));
            answer.stored_in += 1;
        }
        if let Some(error) = refused {
            return Err(error);
        }
        let stored = stored.map(PublishResult::Stored);
        let stored = stored.or_else(|| duplicate.map(PublishResult::Duplicate));
        Ok(stored
            .or_else(|| waits.then_some(UNDECIDED))
            .unwrap_or(PublishResult::Unroutable))
    }
}

/// What became of a message that so many watches took as well.
pub(crate) fn watched(stored: PublishResult, receivers: u32) -> PublishResult {
    match stored {
        PublishResult::Unroutable => PublishResult::Sent { receivers },
        PublishResult::Stored(_)
        | PublishResult::Duplicate(_)
        | PublishResult::Sent { .. }
        | PublishResult::Refused(_) => stored,
    }
}
