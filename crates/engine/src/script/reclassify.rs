//! Unclassified messages are tried again: when their script changes, and after timeouts.

use super::classify::{self, ClassifiedRecord, Faulted, NewValues};
use super::{
    CallContent, Classification, EnqueueCall, JOB_BYTES, JOB_CALLS, Purpose, STEP_MESSAGES,
    ScriptFault, ScriptJob, ScriptTask, no_result,
};
use crate::engine::{Cx, Engine};
use crate::incoming::{Incoming, Keys};
use crate::queue::Queue;
use crate::queue::entries::{Flags, Place, Slot};
use crate::queue::parking::NextTry;
use crate::queues::QueueIndex;
use crate::record::FailedTry;
use crate::{Content, Form, MessageId, PublishError, QueueId};

/// What the tries of one job come to besides their record.
#[derive(Debug, Default)]
struct Tried {
    record: ClassifiedRecord,
    /// Their key is remembered from other messages.
    duplicates: Vec<Slot>,
}

impl Engine {
    /// The next unclassified messages that are due go to the host; without a script the values of
    /// their producers count.
    pub(super) fn begin_reclassify(&mut self, cx: &mut Cx<'_>, index: QueueIndex) {
        let slice = self.config.slice();
        let queue = self.queues.at_mut(index);
        let Some(hooks) = &queue.hooks else { return };
        if hooks.out.reclassify || !queue.parking.has_soon() {
            return;
        }
        queue.parking.retry_some(slice);
        if hooks.scripts.on_enqueue.is_none() {
            return self.classify_without_script(cx, index);
        }
        let (mut calls, mut tried, mut bytes) = (Vec::new(), Vec::new(), 0);
        while calls.len() < JOB_CALLS
            && bytes < JOB_BYTES
            && let Some((position, slot)) = queue.parking.begin_try()
        {
            let entry = queue.entries.at(slot);
            bytes += entry.len as usize;
            tried.push((position, entry.id));
            calls.push(queue.call_of(slot));
        }
        if calls.is_empty() {
            return;
        }
        if let Some(hooks) = &mut queue.hooks {
            hooks.out.reclassify = true;
        }
        let purpose = Purpose::Reclassify(queue.identity.id, tried);
        self.send_job_of(index, ScriptTask::Enqueue(calls), purpose);
    }

    fn classify_without_script(&mut self, cx: &mut Cx<'_>, index: QueueIndex) {
        let mut tried = Tried::default();
        for _ in 0..STEP_MESSAGES {
            let queue = self.queues.at_mut(index);
            let Some((_, slot)) = queue.parking.begin_try() else {
                break;
            };
            let group = queue.group_of.get(&slot).copied();
            let dedup = queue.unclassified(slot).dedup;
            let (key, weight) = queue.producers_values(slot);
            let new = NewValues {
                key: &key,
                weight,
                group,
                dedup,
                attributes: &[],
            };
            self.classify_parked(cx, (index, slot), new, None, &mut tried);
        }
        self.finish_tries(cx, index, tried);
    }

    pub(super) fn on_reclassified(
        &mut self,
        cx: &mut Cx<'_>,
        queue: QueueId,
        (asked, job): (Vec<(u64, MessageId)>, &ScriptJob),
        results: Vec<Result<Classification, ScriptFault>>,
    ) {
        let Some(index) = self.queues.index_of(queue) else {
            return;
        };
        let queue = self.queues.at_mut(index);
        let version = classify::version_of(queue, &job.scripts);
        if let Some(hooks) = &mut queue.hooks {
            hooks.out.reclassify = false;
        }
        let calls: &[EnqueueCall] = match &job.task {
            ScriptTask::Enqueue(calls) => calls,
            ScriptTask::Check | ScriptTask::Failure(_) => &[],
        };
        let mut tried = Tried::default();
        let mut results = results.into_iter();
        for (n, (position, id)) in asked.into_iter().enumerate() {
            let result = results.next().unwrap_or_else(|| Err(no_result()));
            let (result, content) = with_content(result, calls.get(n));
            let queue = self.queues.at_mut(index);
            // It may have been purged meanwhile.
            let it = queue.parking.get(position).map(|it| it.slot);
            let Some(slot) = it.filter(|slot| queue.entries.at(*slot).id == id) else {
                continue;
            };
            if version == 0 {
                // What another script said does not count.
                queue.parking.set_next(position, NextTry::Soon);
                continue;
            }
            let result = result.and_then(classify::checked);
            if let Err(fault) = self.try_result(cx, (index, slot), (result, content), &mut tried) {
                self.note_failed_try(cx, (index, slot), (fault, version), &mut tried.record);
            }
        }
        self.finish_tries(cx, index, tried);
    }

    fn try_result(
        &mut self,
        cx: &mut Cx<'_>,
        (index, slot): (QueueIndex, Slot),
        (result, content): (Result<Classification, ScriptFault>, Content<'_>),
        tried: &mut Tried,
    ) -> Result<(), ScriptFault> {
        let classification = result?;
        let queue = self.queues.at(index);
        let known = queue.unclassified(slot);
        let checks_dedup = queue.checks_dedup_late(slot);
        let (key, weight) = queue.producers_values(slot);
        let attributes = classify::attributes_of_stored(&classification, content);
        let key = classification.fairness_key.unwrap_or(key);
        let weight = classification.weight.unwrap_or(weight);
        let of = (content, &*known.idempotency_key);
        let keys = self.late_keys(index, (&key, &attributes), of)?;
        let new = NewValues {
            key: &key,
            weight,
            group: keys.group,
            dedup: keys.dedup.filter(|_| checks_dedup),
            attributes: &attributes,
        };
        self.classify_parked(cx, (index, slot), new, Some(content), tried);
        Ok(())
    }

    /// The keys of a stored message with new values.
    pub(super) fn late_keys(
        &self,
        index: QueueIndex,
        (key, attributes): (&str, &[u8]),
        (content, idempotency_key): (Content<'_>, &[u8]),
    ) -> Result<Keys, ScriptFault> {
        let new = Incoming {
            content: content.without_attributes(),
            buffer: None,
            form: content.form(),
            attributes,
            key,
            weight: 0,
            idempotency_key,
            delay_ms: 0,
            ttl_ms: None,
            priority: 0,
            transient: false,
            parked: None,
        };
        self.keys_of(index, &new).map_err(|error| {
            let why = if error == PublishError::OrderingKeyMissing {
                "on_enqueue left no value for the ordering key"
            } else {
                "the message is larger than the broker takes now"
            };
            ScriptFault::Failed(why.to_owned())
        })
    }

    fn classify_parked(
        &mut self,
        cx: &mut Cx<'_>,
        (index, slot): (QueueIndex, Slot),
        new: NewValues<'_>,
        content: Option<Content<'_>>,
        tried: &mut Tried,
    ) {
        if self.remembered(cx, index, new.dedup).is_some() {
            tried.duplicates.push(slot);
            return;
        }
        self.record_classified(cx, (index, slot), new, content, &mut tried.record);
        self.queues.at_mut(index).unpark(slot, new.group);
    }

    fn note_failed_try(
        &mut self,
        cx: &mut Cx<'_>,
        (index, slot): (QueueIndex, Slot),
        (fault, version): (ScriptFault, u64),
        record: &mut ClassifiedRecord,
    ) {
        let faulted = Faulted::of(fault);
        let position = self.queues.at(index).entries.at(slot).position;
        let parking = &mut self.queues.at_mut(index).parking;
        parking.set_error(position, &faulted.error);
        if faulted.unreadable {
            parking.set_next(position, classify::unreadable_try(cx.now));
            return;
        }
        self.note_script_error(index, &faulted.error);
        let failed = FailedTry {
            version,
            timed_out: faulted.timed_out,
        };
        self.record_try(cx, (index, slot), failed, record);
        let queue = self.queues.at_mut(index);
        let known = queue.unclassified(slot);
        let next = classify::next_try(queue, version, known.timeouts, cx.now);
        queue.parking.set_next(position, next);
        let after = queue.config.park_dead_letter_after;
        if after > 0 && known.tries >= after {
            self.scripts.too_many_tries.push(slot);
        }
    }

    fn finish_tries(&mut self, cx: &mut Cx<'_>, index: QueueIndex, mut tried: Tried) {
        self.finish_classified(cx, index, &mut tried.record);
        self.dead_letter_unclassified(cx, index);
        let queue = self.queues.at_mut(index);
        queue.late_duplicates += tried.duplicates.len() as u64;
        self.remove_all(cx, index, &tried.duplicates);
        self.touch(index);
    }
}

/// A result with the content it is about, without which it is none.
pub(super) fn with_content(
    result: Result<Classification, ScriptFault>,
    call: Option<&EnqueueCall>,
) -> (Result<Classification, ScriptFault>, Content<'_>) {
    match call.map(|call| (&call.content, call.form)) {
        Some((CallContent::Here(bytes), form)) => (result, Content::new(form, bytes)),
        Some((CallContent::Log { .. } | CallContent::Unreadable, _)) | None => {
            let nothing = Content::new(Form::Fila, &[]);
            (Err(ScriptFault::Unreadable), nothing)
        }
    }
}

impl Queue {
    /// A stored message as its script sees it.
    pub(super) fn call_of(&self, slot: Slot) -> EnqueueCall {
        let (key, weight) = self.producers_values(slot);
        EnqueueCall {
            content: self.call_content(slot),
            form: self.entries.at(slot).flags.form(),
            fairness_key: key.into(),
            weight,
        }
    }

    /// Where a script finds a message's content.
    pub(super) fn call_content(&self, slot: Slot) -> CallContent {
        let entry = self.entries.at(slot);
        if entry.flags.has(Flags::TRANSIENT) {
            let body = self.transient.of(entry);
            return body.map_or(CallContent::Unreadable, |body| {
                CallContent::Here(bytes::Bytes::copy_from_slice(body))
            });
        }
        CallContent::Log {
            at: entry.at,
            len: entry.len,
        }
    }

    /// Fairness key and weight: its producer's, or those that a script gave it.
    pub(super) fn producers_values(&self, slot: Slot) -> (String, u32) {
        let entry = self.entries.at(slot);
        let key = self.lanes.at(entry.lane).key.to_string();
        (key, entry.weight)
    }

    /// Its deduplication key is known only with the script's result. A redrive is not checked.
    fn checks_dedup_late(&self, slot: Slot) -> bool {
        let entry = self.entries.at(slot);
        debug_assert!(entry.place == Place::Parked, "{} is not parked", entry.id);
        entry.redrives == 0 && !entry.flags.has(Flags::DEDUP)
    }
}
