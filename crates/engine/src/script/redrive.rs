//! Dead letters go back to their queue, some of them by way of its script.

use super::classify::{self, ClassifiedRecord, Faulted, NewValues};
use super::reclassify::with_content;
use super::{
    Classification, EnqueueCall, JOB_BYTES, JOB_CALLS, Purpose, ScriptFault, ScriptJob, ScriptTask,
    no_result,
};
use crate::engine::{Cx, Engine};
use crate::jobs::{Job, Sliced, Work};
use crate::moves::Move;
use crate::paging::{Next, READS_MAX, Took};
use crate::queue::entries::{Flags, Slot};
use crate::queues::QueueIndex;
use crate::record::{FailedTry, MoveReason};
use crate::steady::Line;
use crate::{AdminReply, Content, MessageId, Millis, Reclassify, Redriven, ScriptFailure};

/// A dead letter that a redrive took out of its place.
#[derive(Debug)]
pub(super) struct Candidate {
    slot: Slot,
    id: MessageId,
    /// A script classifies it first.
    asks_script: bool,
}

/// Dead letters that are out of their place until a script has run.
#[derive(Debug)]
pub(crate) struct Candidates(Vec<Candidate>);

/// A job that came back, and its results.
#[derive(Debug)]
pub(super) struct Ran<'a> {
    pub(super) job: &'a ScriptJob,
    pub(super) results: Vec<Result<Classification, ScriptFault>>,
}

/// A redrive under way. Only dead letters with a position below `limit`, those present at the
/// request, are touched.
#[derive(Debug)]
pub(crate) struct Redrive {
    pub(crate) limit: u64,
    /// As many more are to be moved.
    pub(crate) left: u64,
    pub(crate) reclassify: Reclassify,
    pub(crate) done: Redriven,
    /// Dead letters that stay, out of their place until the end so that none comes twice.
    pub(crate) aside: Line<Slot>,
    /// No more are moved: those go back.
    pub(crate) is_over: bool,
}

/// Messages moved in one slice.
const SLICE: usize = 1024;

impl Engine {
    /// One slice.
    pub(crate) fn redrive_slice(
        &mut self,
        cx: &mut Cx<'_>,
        from: QueueIndex,
        work: &mut Redrive,
    ) -> Sliced {
        let Some(to) = self.source_of(from) else {
            return Sliced::done(AdminReply::Redriven(Ok(work.done)));
        };
        if work.is_over {
            return self.end_redrive(from, work);
        }
        let (mut candidates, mut finished) = (Vec::new(), work.left == 0);
        let (mut reads, mut calls, mut bytes) = (READS_MAX, 0, 0);
        let budget = usize::try_from(work.left).unwrap_or(usize::MAX).min(SLICE);
        for _ in 0..SLICE {
            if candidates.len() >= budget || calls >= JOB_CALLS || bytes >= JOB_BYTES {
                break;
            }
            let (slot, due) = match self.take_dead_letter(cx, from, work.limit, &mut reads) {
                Took::Message(taken) => taken,
                Took::OutOfReads => break,
                Took::Nothing => {
                    finished = true;
                    break;
                }
            };
            let has_script = self.queues.at(to).has_on_enqueue();
            let queue = self.queues.at_mut(from);
            queue.set_aside(slot, due);
            let entry = queue.entries.at(slot);
            let unclassified = entry.flags.has(Flags::UNCLASSIFIED);
            let asks_script = match work.reclassify {
                Reclassify::All => has_script,
                Reclassify::Unclassified => has_script && unclassified,
                Reclassify::None => false,
            };
            if unclassified && work.reclassify == Reclassify::None {
                work.done.left_unclassified += 1;
                work.aside.push_back(slot);
                continue;
            }
            if asks_script {
                calls += 1;
                bytes += entry.len as usize;
            }
            candidates.push(Candidate {
                slot,
                id: entry.id,
                asks_script,
            });
        }
        if calls > 0 {
            return Sliced::Ask(Candidates(candidates));
        }
        self.redrive(cx, (from, to), (candidates, None), work);
        work.is_over = finished || work.left == 0;
        if work.is_over {
            return self.end_redrive(from, work);
        }
        Sliced::More
    }

    /// Takes the next dead letter out of its place, with the time that it waits for.
    fn take_dead_letter(
        &mut self,
        cx: &mut Cx<'_>,
        from: QueueIndex,
        limit: u64,
        reads: &mut u32,
    ) -> Took<(Slot, Option<Millis>)> {
        match self.take_ready(cx, (from, limit), &mut Next::Oldest, reads) {
            Took::Message(slot) => Took::Message((slot, None)),
            Took::OutOfReads => Took::OutOfReads,
            Took::Nothing => match self.queues.at_mut(from).take_first_delayed(limit) {
                Some((due, slot)) => Took::Message((slot, Some(due))),
                None => Took::Nothing,
            },
        }
    }

    /// A redrive goes on when its queue's script has run.
    pub(crate) fn ask_about_dead_letters(&mut self, job: Job, candidates: Candidates) {
        let Candidates(candidates) = candidates;
        let from = job.queue.and_then(|id| self.queues.index_of(id));
        let Some((from, to)) = from.and_then(|from| Some((from, self.source_of(from)?))) else {
            return;
        };
        let queue = self.queues.at(from);
        let asked = candidates.iter().filter(|it| it.asks_script);
        let calls = asked.map(|it| queue.call_of(it.slot)).collect();
        let purpose = Purpose::Redrive(Box::new(job), candidates);
        self.send_job_of(to, ScriptTask::Enqueue(calls), purpose);
    }

    pub(super) fn on_redrive_done(
        &mut self,
        cx: &mut Cx<'_>,
        mut job: Job,
        candidates: Vec<Candidate>,
        ran: Ran<'_>,
    ) {
        let Some(from) = job.queue.and_then(|id| self.queues.index_of(id)) else {
            return;
        };
        if let (Work::Redrive(work), Some(to)) = (&mut job.work, self.source_of(from)) {
            self.redrive(cx, (from, to), (candidates, Some(ran)), work);
        }
        // The next slice sees whether more is to do.
        self.jobs.push_back(job);
        self.touch(from);
    }

    /// Moves candidates as their scripts say.
    fn redrive(
        &mut self,
        cx: &mut Cx<'_>,
        (from, to): (QueueIndex, QueueIndex),
        (candidates, ran): (Vec<Candidate>, Option<Ran<'_>>),
        work: &mut Redrive,
    ) {
        let (results, version, calls) = match ran {
            Some(Ran { job, results }) => {
                let version = classify::version_of(self.queues.at(to), &job.scripts);
                let calls: &[EnqueueCall] = match &job.task {
                    ScriptTask::Enqueue(calls) => calls,
                    ScriptTask::Check | ScriptTask::Failure(_) => &[],
                };
                (results, version, calls)
            }
            None => (Vec::new(), 0, &[][..]),
        };
        let (mut results, mut calls) = (results.into_iter(), calls.iter());
        let mut record = ClassifiedRecord::default();
        let mut moved = Vec::with_capacity(candidates.len());
        for it in candidates {
            let goes = if it.asks_script {
                let result = results.next().unwrap_or_else(|| Err(no_result()));
                let (result, content) = with_content(result, calls.next());
                let result = (result.and_then(classify::checked), content, version);
                self.redrive_asked(cx, (from, to, it.slot), result, &mut record, work)
            } else {
                self.classify_as_it_is(cx, (from, it.slot), &mut record);
                true
            };
            debug_assert_eq!(self.queues.at(from).entries.at(it.slot).id, it.id);
            if goes {
                moved.push(it.slot);
            } else {
                work.aside.push_back(it.slot);
            }
        }
        self.finish_classified(cx, from, &mut record);
        let how = Move {
            from,
            to,
            reason: MoveReason::Redrive,
        };
        self.move_all(cx, how, &moved);
        let moved = moved.len() as u64;
        work.left = work.left.saturating_sub(moved);
        work.done.redriven += moved;
    }

    /// An unclassified dead letter that no script is asked about has its producer's values.
    fn classify_as_it_is(
        &mut self,
        cx: &mut Cx<'_>,
        (from, slot): (QueueIndex, Slot),
        record: &mut ClassifiedRecord,
    ) {
        let queue = self.queues.at(from);
        if !queue.entries.at(slot).flags.has(Flags::UNCLASSIFIED) {
            return;
        }
        let (key, weight) = queue.producers_values(slot);
        let new = NewValues {
            key: &key,
            weight,
            group: queue.group_of.get(&slot).copied(),
            dedup: None,
            attributes: &[],
        };
        self.record_classified(cx, (from, slot), new, None, record);
    }

    /// A dead letter that a script was asked about. False when it stays.
    fn redrive_asked(
        &mut self,
        cx: &mut Cx<'_>,
        (from, to, slot): (QueueIndex, QueueIndex, Slot),
        (result, content, version): (Result<Classification, ScriptFault>, Content<'_>, u64),
        record: &mut ClassifiedRecord,
        work: &mut Redrive,
    ) -> bool {
        let queue = self.queues.at(from);
        let (key, weight) = queue.producers_values(slot);
        let outcome = result.and_then(|it| {
            let attributes = classify::attributes_of(&it);
            let key = it.fairness_key.unwrap_or(key);
            let keys = self.late_keys(to, (&key, &attributes), (content, &[]))?;
            Ok((key, it.weight.unwrap_or(weight), keys.group, attributes))
        });
        let fault = match outcome {
            Ok((key, weight, group, attributes)) => {
                let new = NewValues {
                    key: &key,
                    weight,
                    group,
                    dedup: None,
                    attributes: &attributes,
                };
                self.record_classified(cx, (from, slot), new, Some(content), record);
                self.set_group_of_dead_letter((from, slot), group);
                return true;
            }
            Err(fault) => Faulted::of(fault),
        };
        if fault.unreadable {
            return false;
        }
        self.note_script_error(to, &fault.error);
        match self.queues.at(to).config.script_failure {
            ScriptFailure::Reject => {
                work.done.rejected_by_script += 1;
                false
            }
            ScriptFailure::Park => {
                let failed = FailedTry {
                    version,
                    timed_out: fault.timed_out,
                };
                self.record_try(cx, (from, slot), failed, record);
                true
            }
        }
    }

    /// The group that a dead letter joins when it is back in its queue.
    fn set_group_of_dead_letter(&mut self, (from, slot): (QueueIndex, Slot), group: Option<u128>) {
        let groups = &mut self.queues.at_mut(from).group_of;
        match group {
            Some(group) => _ = groups.insert(slot, group),
            None => _ = groups.remove(&slot),
        }
    }

    /// Dead letters that stay go back to their places, some in each slice.
    fn end_redrive(&mut self, from: QueueIndex, work: &mut Redrive) -> Sliced {
        for _ in 0..self.config.slice() {
            let Some(slot) = work.aside.pop_front() else {
                break;
            };
            self.queues.at_mut(from).put_back(slot);
        }
        self.touch(from);
        if work.aside.len() > 0 {
            return Sliced::More;
        }
        Sliced::done(AdminReply::Redriven(Ok(work.done)))
    }
}

impl crate::queue::Queue {
    pub(super) fn has_on_enqueue(&self) -> bool {
        let hooks = self.hooks.as_ref();
        hooks.is_some_and(|hooks| hooks.scripts.on_enqueue.is_some())
    }
}
