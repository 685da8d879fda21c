//! `on_failure` decides what follows a failed delivery.

use super::hooks::Failing;
use super::{
    Decision, FailureCall, JOB_BYTES, JOB_CALLS, Purpose, ScriptFault, ScriptOutcome, ScriptTask,
    no_result,
};
use crate::engine::{Cx, Engine};
use crate::moves::Retry;
use crate::on_settle::SettleScratch;
use crate::queue::Queue;
use crate::queue::entries::{Flags, Place};
use crate::queues::QueueIndex;
use crate::script::classify::Faulted;
use crate::{Millis, QueueId, SettleError};

impl Engine {
    /// The next failures go to the host; without a script the retry policy decides.
    pub(super) fn begin_failure(&mut self, cx: &mut Cx<'_>, index: QueueIndex) {
        let queue = self.queues.at_mut(index);
        let Some(hooks) = &mut queue.hooks else {
            return;
        };
        if hooks.out.failure || hooks.failures.is_empty() {
            return;
        }
        let (mut items, mut bytes) = (Vec::new(), 0);
        while items.len() < JOB_CALLS
            && bytes < JOB_BYTES
            && let Some(next) = hooks.failures.pop_front()
        {
            hooks.error_bytes -= next.error.len();
            bytes += next.error.len();
            let entry = queue.entries.live(next.slot);
            bytes += entry.map_or(0, |entry| entry.len as usize);
            items.push(next);
        }
        if !hooks.decides_failures() {
            let undecided = items.iter().map(|_| Ok(None)).collect();
            return self.apply_decisions(cx, index, items, undecided);
        }
        hooks.out.failure = true;
        let calls = items.iter().map(|it| queue.failure_call(it)).collect();
        let purpose = Purpose::Failure(queue.identity.id, items);
        self.send_job_of(index, ScriptTask::Failure(calls), purpose);
    }

    pub(super) fn on_failure_done(
        &mut self,
        cx: &mut Cx<'_>,
        queue: QueueId,
        items: Vec<Failing>,
        outcome: ScriptOutcome,
    ) {
        let Some(index) = self.queues.index_of(queue) else {
            return;
        };
        if let Some(hooks) = &mut self.queues.at_mut(index).hooks {
            hooks.out.failure = false;
        }
        let results = match outcome {
            ScriptOutcome::Failure(results) => results,
            ScriptOutcome::Checked(_) | ScriptOutcome::Enqueue(_) => Vec::new(),
        };
        self.apply_decisions(cx, index, items, results);
    }

    fn apply_decisions(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        items: Vec<Failing>,
        results: Vec<Result<Option<Decision>, ScriptFault>>,
    ) {
        let mut scratch = core::mem::take(&mut self.pass.settle);
        let mut results = results.into_iter();
        let mut answers = Vec::new();
        for item in items {
            let result = results.next().unwrap_or_else(|| Err(no_result()));
            let decision = result.unwrap_or_else(|fault| {
                self.note_script_error(index, &Faulted::of(fault).error);
                None
            });
            let is_here = self.decide(cx.now, index, &item, decision, &mut scratch);
            answers.extend(item.owed.map(|owed| (owed, is_here)));
        }
        self.finish_settle(cx, index, &mut scratch);
        self.pass.settle = scratch;
        self.touch(index);
        let after = self.queues.at(index).last_lsn;
        for (owed, is_here) in answers {
            let gone = SettleError::MessageNotFound;
            let result = if is_here { Ok(Millis(0)) } else { Err(gone) };
            self.decide_settle(cx, owed, result, after);
        }
    }

    /// What follows one failure. False when the message is not there any more.
    fn decide(
        &mut self,
        now: Millis,
        index: QueueIndex,
        failing: &Failing,
        decision: Option<Decision>,
        scratch: &mut SettleScratch,
    ) -> bool {
        let queue = self.queues.at_mut(index);
        let slot = failing.slot;
        let entry = queue.entries.live(slot);
        let Some(entry) = entry.filter(|it| it.id == failing.id && it.place == Place::Deciding)
        else {
            return false;
        };
        let position = (!entry.flags.has(Flags::TRANSIENT)).then_some(entry.position);
        let delay_ms = failing.retry_after_ms;
        let due = match decision {
            None => self.fail(index, slot, Retry { now, delay_ms }),
            Some(Decision::Retry { delay_ms: wanted }) => {
                let delay_ms = delay_ms.or(wanted);
                Some(self.retry(index, slot, Retry { now, delay_ms }))
            }
            Some(Decision::DeadLetter) => {
                queue.preserve(slot);
                let entry = queue.entries.at_mut(slot);
                entry.failures = entry.failures.saturating_add(1);
                None
            }
        };
        match due {
            Some(due) => scratch.push_failed(position, due),
            None => self.push_dead(index, slot, scratch),
        }
        true
    }
}

impl Queue {
    fn failure_call(&self, failing: &Failing) -> FailureCall {
        let entry = self.entries.at(failing.slot);
        FailureCall {
            content: self.call_content(failing.slot),
            form: entry.flags.form(),
            id: failing.id,
            attempts: entry.failures.saturating_add(1),
            redrives: u32::from(entry.redrives),
            reason: failing.reason,
            error: failing.error.clone(),
        }
    }

    /// Whether a script decides what follows a failed delivery here.
    pub(crate) fn decides_failures(&self) -> bool {
        let hooks = self.hooks.as_ref();
        hooks.is_some_and(|hooks| hooks.decides_failures())
    }

    /// A leased message's delivery failed, and its script decides what follows.
    pub(crate) fn ask_about_failure(&mut self, failing: Failing) {
        self.begin_deciding(failing.slot);
        if let Some(hooks) = &mut self.hooks {
            hooks.failures.push_back(failing);
        }
    }
}
