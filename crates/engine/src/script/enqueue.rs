//! New messages wait for `on_enqueue` and are stored as it says.

use super::classify::{self, Faulted};
use super::hooks::Waiting;
use super::{
    CallContent, Classification, EnqueueCall, JOB_BYTES, JOB_CALLS, NewAnswer, Purpose,
    ScriptFault, ScriptJob, ScriptTask, no_result,
};
use crate::engine::{Cx, Engine};
use crate::incoming::{Incoming, NewParked};
use crate::moves::Move;
use crate::on_publish::LastTarget;
use crate::queue::Unclassified;
use crate::queues::QueueIndex;
use crate::record::MoveReason;
use crate::topology::LastRoute;
use crate::{
    KeyKind, MessageId, PublishBatch, PublishError, PublishItem, PublishResult, PublishTarget,
    QueueId, ScriptFailure, Span,
};

/// What a message costs while it waits, besides its bytes.
const WAITING_BYTES: usize = 256;

impl Engine {
    /// All messages of a batch that have to wait for scripts find room. A queue for which nothing
    /// waits takes any number.
    pub(crate) fn has_room_to_wait(&mut self, batch: &PublishBatch) -> bool {
        let (mut target, mut route) = (LastTarget::default(), LastRoute::default());
        let mut more: Vec<(QueueIndex, usize, usize)> = Vec::new();
        let mut count = |index: QueueIndex, bytes: usize| {
            let known = more.iter_mut().find(|(other, ..)| *other == index);
            match known {
                Some((_, messages, sum)) => {
                    *messages += 1;
                    *sum += bytes;
                }
                None => more.push((index, 1, bytes)),
            }
        };
        for item in &batch.items {
            let bytes = item.content.len as usize + WAITING_BYTES;
            match item.target {
                PublishTarget::Refused(_) => {}
                PublishTarget::Route | PublishTarget::Topic => {
                    self.find_route(batch, item, &mut route);
                    for index in route.queues().unwrap_or_default() {
                        count(*index, bytes);
                    }
                }
                PublishTarget::Name(name) => {
                    if let Ok(index) = self.publish_target(&mut target, name, batch) {
                        count(index, bytes);
                    }
                }
                PublishTarget::Queues(routes) => {
                    let ids = crate::on_publish::routes_of(batch, routes).iter();
                    for index in ids.filter_map(|id| self.queues.index_of(*id)) {
                        count(index, bytes);
                    }
                }
            }
        }
        let limits = &self.config.limits;
        more.into_iter().all(|(index, messages, bytes)| {
            let Some(hooks) = &self.queues.at(index).hooks else {
                return true;
            };
            let held = hooks.held;
            !hooks.holds_publishes()
                || held.messages == 0
                || (held.messages + messages <= limits.script_waiting_max
                    && held.bytes + bytes <= limits.script_waiting_bytes_max)
        })
    }

    /// A message whose deduplication key no script can change, and that is remembered.
    pub(crate) fn early_duplicate(
        &mut self,
        cx: &Cx<'_>,
        index: QueueIndex,
        new: &Incoming<'_>,
    ) -> Option<MessageId> {
        if self.queues.at(index).config.dedup_needs_script() {
            return None;
        }
        let dedup = self.dedup_of(index, new);
        self.remembered(cx, index, dedup)
    }

    /// A message waits for its queue's script, or for others that do.
    pub(crate) fn wait_for_script(
        &mut self,
        index: QueueIndex,
        (item, batch, at): (&PublishItem, &PublishBatch, usize),
        answer: &mut NewAnswer,
    ) {
        let owed = self.scripts.answers.owe(answer, at);
        let Some(hooks) = &mut self.queues.at_mut(index).hooks else {
            return;
        };
        let bytes = item.content.len as usize + WAITING_BYTES;
        let (item, data) = if bytes.saturating_mul(batch.items.len()) < batch.data.len() / 2 {
            // It must not keep all of a frame that is mostly others' bytes.
            own(item, &batch.data)
        } else {
            (*item, batch.data.clone())
        };
        hooks.held.messages += 1;
        hooks.held.bytes += bytes;
        hooks.waiting.push_back(Waiting {
            owed,
            item,
            data,
            bytes,
        });
        self.touch(index);
    }

    /// The next new messages go to the host; without a script they are stored as they are.
    pub(super) fn begin_enqueue(&mut self, cx: &mut Cx<'_>, index: QueueIndex) {
        let queue = self.queues.at_mut(index);
        let id = queue.identity.id;
        let Some(hooks) = &mut queue.hooks else {
            return;
        };
        if hooks.out.publish || hooks.waiting.is_empty() {
            return;
        }
        let (mut items, mut bytes) = (Vec::new(), 0);
        while items.len() < JOB_CALLS
            && let Some(next) = hooks.waiting.front()
            && (items.is_empty() || bytes + next.bytes <= JOB_BYTES)
            && let Some(next) = hooks.waiting.pop_front()
        {
            bytes += next.bytes;
            items.push(next);
        }
        if hooks.scripts.on_enqueue.is_none() {
            let unchanged = items.iter().map(|_| Ok(Classification::default()));
            let results = unchanged.collect();
            return self.store_decided(cx, index, items, (results, 0));
        }
        hooks.out.publish = true;
        let calls = items.iter().map(call_of).collect();
        let purpose = Purpose::Publish(id, items);
        self.send_job_of(index, ScriptTask::Enqueue(calls), purpose);
    }

    pub(super) fn on_enqueue_done(
        &mut self,
        cx: &mut Cx<'_>,
        queue: QueueId,
        (items, job): (Vec<Waiting>, &ScriptJob),
        results: Vec<Result<Classification, ScriptFault>>,
    ) {
        let Some(index) = self.queues.index_of(queue) else {
            return;
        };
        let queue = self.queues.at_mut(index);
        let version = classify::version_of(queue, &job.scripts);
        if let Some(hooks) = &mut queue.hooks {
            hooks.out.publish = false;
        }
        self.store_decided(cx, index, items, (results, version));
    }

    /// Stores messages as their results say, and answers for them. `version` is that of the script
    /// that was run; 0 = none, or not the present one.
    fn store_decided(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        items: Vec<Waiting>,
        (results, version): (Vec<Result<Classification, ScriptFault>>, u64),
    ) {
        if let Some(hooks) = &mut self.queues.at_mut(index).hooks {
            for item in &items {
                hooks.held.messages -= 1;
                hooks.held.bytes -= item.bytes;
            }
        }
        let mut results = results.into_iter();
        let mut decided = Vec::with_capacity(items.len());
        for item in items {
            let result = results.next().unwrap_or_else(|| Err(no_result()));
            let stored = self.store_as_decided(cx, index, &item, (result, version));
            decided.push((item.owed, stored.unwrap_or_else(PublishResult::Refused)));
        }
        self.finish_store(cx);
        self.dead_letter_unclassified(cx, index);
        let after = cx.journal.end();
        for (owed, result) in decided {
            self.decide_publish(cx, owed, result, after);
        }
        self.touch(index);
    }

    fn store_as_decided(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        waiting: &Waiting,
        (result, version): (Result<Classification, ScriptFault>, u64),
    ) -> Result<PublishResult, PublishError> {
        if self.storage_full {
            return Err(PublishError::Storage);
        }
        let mut new = Incoming::new(&waiting.item, &waiting.data);
        let result = result.and_then(classify::checked);
        match result {
            Ok(classification) => {
                let attributes = classify::attributes_of(&classification);
                new.attributes = &attributes;
                if let Some(key) = &classification.fairness_key {
                    new.key = key;
                }
                new.weight = classification.weight.unwrap_or(new.weight);
                self.store_one(cx, index, &new)
            }
            Err(fault) => {
                let faulted = Faulted::of(fault);
                self.note_script_error(index, &faulted.error);
                match self.queues.at(index).config.script_failure {
                    ScriptFailure::Reject if faulted.timed_out => Err(PublishError::ScriptTimedOut),
                    ScriptFailure::Reject => Err(PublishError::ScriptFailed),
                    ScriptFailure::Park => {
                        self.store_unclassified(cx, index, new, (faulted, version))
                    }
                }
            }
        }
    }

    fn store_unclassified(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        mut new: Incoming<'_>,
        (faulted, version): (Faulted, u64),
    ) -> Result<PublishResult, PublishError> {
        self.store_into(cx, index);
        let mut keys = self.keys_of_unclassified(index, &new)?;
        let mut known = Unclassified {
            tries: 1,
            timeouts: u32::from(faulted.timed_out),
            version,
            ..Unclassified::default()
        };
        let config = &self.queues.at(index).config;
        if config.dedup_needs_script() {
            known.dedup = keys.dedup.take();
            let mut parts = config.dedup_key.iter().flatten();
            if parts.any(|part| part.kind == KeyKind::IdempotencyKey) {
                known.idempotency_key = new.idempotency_key.into();
            }
        }
        if let Some(id) = self.remembered(cx, index, keys.dedup) {
            return Ok(PublishResult::Duplicate(id));
        }
        self.check_room(index, &new)?;
        let timeouts = known.timeouts;
        let next = classify::next_try(self.queues.at(index), version, timeouts, cx.now);
        new.parked = Some(NewParked {
            known,
            next,
            error: faulted.error,
        });
        let id = self.store_message(cx, index, &new, &keys, None);
        let queue = self.queues.at(index);
        let after = queue.config.park_dead_letter_after;
        if after == 1
            && let Some(slot) = queue.parking.newest()
        {
            self.scripts.too_many_tries.push(slot);
        }
        Ok(PublishResult::Stored(id))
    }

    /// Unclassified messages with too many failed tries become dead letters.
    pub(super) fn dead_letter_unclassified(&mut self, cx: &mut Cx<'_>, index: QueueIndex) {
        let mut slots = core::mem::take(&mut self.scripts.too_many_tries);
        if let Some(to) = self.dead_letters_of(index)
            && !slots.is_empty()
        {
            let how = Move {
                from: index,
                to,
                reason: MoveReason::Unclassified,
            };
            self.move_all(cx, how, &slots);
        }
        slots.clear();
        self.scripts.too_many_tries = slots;
    }

    pub(super) fn note_script_error(&mut self, index: QueueIndex, error: &str) {
        if let Some(hooks) = &mut self.queues.at_mut(index).hooks {
            hooks.note_error(error);
        }
    }
}

fn call_of(waiting: &Waiting) -> EnqueueCall {
    let Waiting { item, data, .. } = waiting;
    let (start, len) = (item.content.start as usize, item.content.len as usize);
    let end = start.saturating_add(len).min(data.len());
    EnqueueCall {
        content: CallContent::Here(data.slice(start.min(end)..end)),
        form: item.form,
        fairness_key: item.fairness_key.text(data).into(),
        weight: item.weight.max(1),
    }
}

/// An item with bytes of its own.
fn own(item: &PublishItem, data: &[u8]) -> (PublishItem, bytes::Bytes) {
    let mut own = Vec::new();
    let mut keep = |span: Span| {
        let start = u32::try_from(own.len()).unwrap_or(u32::MAX);
        own.extend_from_slice(span.of(data));
        Span {
            start,
            len: span.len,
        }
    };
    let item = PublishItem {
        extra_keys: Span::default(),
        content: keep(item.content),
        fairness_key: keep(item.fairness_key),
        idempotency_key: item.idempotency_key.map(&mut keep),
        ..*item
    };
    (item, own.into())
}
