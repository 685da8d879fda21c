//! Lua hooks, as far as the engine knows them.
//!
//! Owns *what* is to be run, for whom, and what follows from the results. It refuses to know how a
//! script is run: a host outside (threads of the server, a fake in tests) takes jobs, runs the
//! calls of each in order and gives them back with their results. The engine never waits for it:
//! what depends on a result has a place of its own until then.
//!
//! ```text
//!  Engine ── ScriptJob ──► node (puts in contents that lie in the log) ──► host
//!    ▲                                                                      │
//!    └──────────────── Request::ScriptDone { job, outcome } ◄───────────────┘
//! ```
//!
//! New messages of a queue with `on_enqueue` wait in memory, in their order, and are stored when
//! they are decided. Messages whose delivery failed are [`Place::Deciding`], unclassified ones are
//! [`Place::Parked`]. Of each kind of work one job of a queue is out at a time: a slow script
//! delays its own queue only.
//!
//! [`Place::Deciding`]: crate::queue::entries::Place::Deciding
//! [`Place::Parked`]: crate::queue::entries::Place::Parked

mod answers;
mod check;
mod classify;
mod enqueue;
mod failure;
mod hooks;
mod job;
mod reclassify;
mod redrive;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use self::answers::Answers;
pub(crate) use self::answers::{NewAnswer, Owed, UNDECIDED};
use self::check::Wanted;
pub(crate) use self::classify::next_try;
use self::hooks::Waiting;
pub(crate) use self::hooks::{Failing, Hooks};
pub use self::job::{
    CallContent, Classification, Decision, EnqueueCall, FailureCall, FailureReason, QueueScripts,
    ScriptFault, ScriptJob, ScriptOutcome, ScriptTask,
};
use self::redrive::{Candidate, Ran};
pub(crate) use self::redrive::{Candidates, Redrive};
use crate::engine::{Cx, Engine};
use crate::jobs::Job;
use crate::queue::Queue;
use crate::queue::entries::Slot;
use crate::queues::QueueIndex;
use crate::{MessageId, PublishError, PublishResult, QueueId, ReplyTo, SettleError};

/// Calls of one job: a script that always uses up its time holds a host's thread for about two
/// seconds.
const JOB_CALLS: usize = 256;
/// Bytes of contents of one job, unless it has one call only.
const JOB_BYTES: usize = 4 << 20;
/// Queues looked at in one step.
const STEP_QUEUES: usize = 64;
/// Messages handled without a script in one step.
const STEP_MESSAGES: usize = 1024;

/// Everything about scripts that belongs to no queue.
#[derive(Debug, Default)]
pub(crate) struct Scripts {
    /// Jobs that were not taken yet.
    jobs: Vec<ScriptJob>,
    newest_ticket: u64,
    newest_version: u64,
    /// Jobs that are out, and what they are for.
    out: BTreeMap<u64, Purpose>,
    pub(crate) answers: Answers,
    /// Queues with something to run.
    listed: VecDeque<QueueIndex>,
    /// Queues with hooks: while there are none, nothing asks for them.
    hooked: u32,
    /// Unclassified messages of the queue at hand that are to become dead letters.
    too_many_tries: Vec<Slot>,
}

/// What a job that is out is for.
#[derive(Debug)]
enum Purpose {
    /// This request goes on when its scripts are fine.
    Check(ReplyTo, Wanted),
    Publish(QueueId, Vec<Waiting>),
    /// Positions and ids of unclassified messages.
    Reclassify(QueueId, Vec<(u64, MessageId)>),
    Failure(QueueId, Vec<Failing>),
    /// Of the dead-letter queue that the job is about.
    Redrive(Box<Job>, Vec<Candidate>),
}

impl Scripts {
    /// Whether any queue has scripts.
    pub(crate) const fn are_used(&self) -> bool {
        self.hooked > 0
    }

    /// Queues have something to run.
    pub(crate) fn has_work(&self) -> bool {
        !self.listed.is_empty()
    }

    /// Rough bytes of memory besides that of queues.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.answers.memory_bytes()
    }

    const fn next_version(&mut self) -> u64 {
        self.newest_version += 1;
        self.newest_version
    }
}

impl Engine {
    /// Moves the jobs that the host is to run to the end of `out`. Ask after each request and each
    /// pass. Every job must come back in a [`crate::Request::ScriptDone`].
    pub fn take_script_jobs(&mut self, out: &mut Vec<ScriptJob>) {
        out.append(&mut self.scripts.jobs);
    }

    /// Whom answers are owed to that wait for a script or for a piece of long work. When the log
    /// has failed they will not come.
    pub fn waiting_replies(&self) -> impl Iterator<Item = ReplyTo> {
        let of_purposes = self.scripts.out.values().filter_map(|it| match it {
            Purpose::Check(reply, _) => Some(*reply),
            Purpose::Redrive(job, _) => Some(job.reply),
            Purpose::Publish(..) | Purpose::Reclassify(..) | Purpose::Failure(..) => None,
        });
        let of_jobs = self.jobs.iter().map(|job| job.reply);
        self.scripts
            .answers
            .replies()
            .chain(of_purposes)
            .chain(of_jobs)
    }

    /// A job came back. One of a queue that is gone meanwhile is dropped.
    pub(crate) fn on_script_done(
        &mut self,
        cx: &mut Cx<'_>,
        job: ScriptJob,
        outcome: ScriptOutcome,
    ) {
        let Some(purpose) = self.scripts.out.remove(&job.ticket) else {
            return;
        };
        match purpose {
            Purpose::Check(reply, wanted) => self.on_checked(cx, reply, wanted, outcome),
            Purpose::Publish(queue, items) => {
                self.on_enqueue_done(cx, queue, (items, &job), enqueue_results(outcome));
            }
            Purpose::Reclassify(queue, tried) => {
                self.on_reclassified(cx, queue, (tried, &job), enqueue_results(outcome));
            }
            Purpose::Failure(queue, items) => self.on_failure_done(cx, queue, items, outcome),
            Purpose::Redrive(work, candidates) => {
                let results = enqueue_results(outcome);
                let ran = Ran { job: &job, results };
                self.on_redrive_done(cx, *work, candidates, ran);
            }
        }
    }

    /// Begins what queues have to run, and what follows from scripts that are gone.
    pub(crate) fn run_scripts(&mut self, cx: &mut Cx<'_>) {
        for _ in 0..STEP_QUEUES.min(self.scripts.listed.len()) {
            let Some(index) = self.scripts.listed.pop_front() else {
                break;
            };
            if let Some(hooks) = &mut self.queues.at_mut(index).hooks {
                hooks.listed = false;
            }
            self.begin_enqueue(cx, index);
            self.begin_failure(cx, index);
            self.begin_reclassify(cx, index);
            self.queues.at_mut(index).release_stopped(STEP_MESSAGES);
            self.touch(index);
        }
    }

    /// Puts a queue with something to run into the list of those.
    pub(crate) fn list_for_scripts(&mut self, index: QueueIndex) {
        let queue = self.queues.at_mut(index);
        let wants = queue.wants_script();
        if let Some(hooks) = &mut queue.hooks
            && wants
            && !hooks.listed
        {
            hooks.listed = true;
            self.scripts.listed.push_back(index);
        }
    }

    /// The queue gets its scripts, or others.
    pub(crate) fn set_scripts(&mut self, index: QueueIndex) {
        let queue = self.queues.at_mut(index);
        let (on_enqueue, on_failure) = (&queue.config.on_enqueue, &queue.config.on_failure);
        let needed = on_enqueue.is_some() || on_failure.is_some();
        let parked = queue.parking.unclassified() + queue.parking.stopped() > 0;
        if queue.is_dead_letter() || (queue.hooks.is_none() && !needed && !parked) {
            return;
        }
        let scripts = QueueScripts {
            version: self.scripts.next_version(),
            on_enqueue: on_enqueue.clone(),
            on_failure: on_failure.clone(),
        };
        if queue.hooks.is_none() {
            self.scripts.hooked += 1;
        }
        queue.hooks.get_or_insert_default().scripts = Arc::new(scripts);
    }

    /// Sends a job out.
    fn send_job(
        &mut self,
        (queue_id, queue): (QueueId, Arc<str>),
        scripts: Arc<QueueScripts>,
        task: ScriptTask,
        purpose: Purpose,
    ) {
        self.scripts.newest_ticket += 1;
        let ticket = self.scripts.newest_ticket;
        self.scripts.out.insert(ticket, purpose);
        self.scripts.jobs.push(ScriptJob {
            ticket,
            queue_id,
            queue,
            scripts,
            runtime: Arc::clone(&self.runtime),
            task,
        });
    }

    /// Sends a job of a queue out.
    fn send_job_of(&mut self, index: QueueIndex, task: ScriptTask, purpose: Purpose) {
        let queue = self.queues.at(index);
        let of = (queue.identity.id, Arc::clone(&queue.identity.name));
        if let Some(hooks) = &queue.hooks {
            let scripts = Arc::clone(&hooks.scripts);
            self.send_job(of, scripts, task, purpose);
        }
    }

    /// A queue is about to be deleted: what waits for its scripts is answered.
    pub(crate) fn abandon_scripts(&mut self, cx: &mut Cx<'_>, index: QueueIndex) {
        let queue = self.queues.at_mut(index);
        let id = queue.identity.id;
        let (mut waiting, mut failures) = (Vec::new(), Vec::new());
        let mut listed = false;
        if let Some(hooks) = queue.hooks.take() {
            waiting.extend(hooks.waiting);
            failures.extend(hooks.failures);
            listed = hooks.listed;
            self.scripts.hooked -= 1;
        }
        if listed {
            self.scripts.listed.retain(|other| *other != index);
        }
        let of_queue = |purpose: &Purpose| match purpose {
            Purpose::Publish(queue, _)
            | Purpose::Reclassify(queue, _)
            | Purpose::Failure(queue, _) => *queue == id,
            Purpose::Redrive(job, _) => job.queue == Some(id),
            Purpose::Check(..) => false,
        };
        let out = self.scripts.out.extract_if(.., |_, it| of_queue(it));
        let mut jobs = Vec::new();
        for (ticket, purpose) in out {
            self.scripts.jobs.retain(|job| job.ticket != ticket);
            match purpose {
                Purpose::Publish(_, items) => waiting.extend(items),
                Purpose::Failure(_, items) => failures.extend(items),
                Purpose::Redrive(job, _) => jobs.push(job),
                Purpose::Reclassify(..) | Purpose::Check(..) => {}
            }
        }
        let after = self.queues.last_lsn;
        for it in waiting {
            let gone = PublishResult::Refused(PublishError::QueueNotFound);
            self.decide_publish(cx, it.owed, gone, after);
        }
        for owed in failures.into_iter().filter_map(|it| it.owed) {
            self.decide_settle(cx, owed, Err(SettleError::MessageNotFound), after);
        }
        for job in jobs {
            self.answer(cx, job.reply, job.abandoned());
        }
    }
}

impl Queue {
    /// Something is to be run, or follows from a script that is gone.
    pub(crate) fn wants_script(&self) -> bool {
        let Some(hooks) = &self.hooks else {
            return false;
        };
        (!hooks.waiting.is_empty() && !hooks.out.publish)
            || (!hooks.failures.is_empty() && !hooks.out.failure)
            || (self.parking.has_soon() && !hooks.out.reclassify)
            || self.parking.has_passable()
    }
}

fn enqueue_results(outcome: ScriptOutcome) -> Vec<Result<Classification, ScriptFault>> {
    match outcome {
        ScriptOutcome::Enqueue(results) => results,
        ScriptOutcome::Checked(_) | ScriptOutcome::Failure(_) => Vec::new(),
    }
}

/// Stands for a result that the host owes.
fn no_result() -> ScriptFault {
    ScriptFault::Failed("the host of scripts gave no result".to_owned())
}
