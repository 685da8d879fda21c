//! Long work in slices: redrive, purge, looking for one message, counting keys, listing queues,
//! taking deleted queues apart.

use crate::declare::Purge;
use crate::engine::{Cx, Engine};
use crate::find::Search;
use crate::queue::Role;
use crate::queues::QueueIndex;
use crate::script::{Candidates, Redrive};
use crate::stats::{KeyWalk, QueueWalk};
use crate::throttle::BucketWalk;
use crate::vhost_queues::VhostWalk;
use crate::{AdminReply, QueueId, QueueNotFound, ReplyTo, ThrottleNotFound};

/// A piece of long work with the answer it owes.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) reply: ReplyTo,
    /// The queue it works on, if it is one; the job ends when that is deleted.
    pub(crate) queue: Option<QueueId>,
    pub(crate) work: Work,
}

/// What a job does. Only messages with a position below `limit`, those present at the request,
/// are touched.
#[derive(Debug)]
pub(crate) enum Work {
    Redrive(Redrive),
    Purge(Purge),
    Find(Search),
    Stats(KeyWalk),
    List(QueueWalk),
    ListOf(VhostWalk),
    Buckets(Box<BucketWalk>),
}

/// What follows a slice of a job.
#[derive(Debug)]
pub(crate) enum Sliced {
    /// It is done.
    Done(Box<AdminReply>),
    /// There is more to do.
    More,
    /// It goes on when a script has run.
    Ask(Candidates),
}

impl Sliced {
    pub(crate) fn done(reply: AdminReply) -> Self {
        Self::Done(Box::new(reply))
    }

    fn of(reply: Option<AdminReply>) -> Self {
        reply.map_or(Self::More, Self::done)
    }
}

/// Slots looked at in one slice.
pub(crate) const SLICE_SLOTS: u32 = 16 * 1024;

impl Engine {
    /// One slice of the job whose turn it is.
    pub(crate) fn run_jobs(&mut self, cx: &mut Cx<'_>) {
        let Some(mut job) = self.jobs.pop_front() else {
            return;
        };
        let sliced = self.job_slice(cx, &mut job);
        self.go_on(cx, job, sliced);
    }

    /// One slice of a job.
    fn job_slice(&mut self, cx: &mut Cx<'_>, job: &mut Job) -> Sliced {
        if let Work::List(walk) = &mut job.work {
            return Sliced::of(self.list_slice(walk));
        }
        if let Work::ListOf(walk) = &mut job.work {
            return Sliced::of(self.list_of_slice(walk));
        }
        if let Work::Buckets(walk) = &mut job.work {
            return Sliced::of(self.bucket_slice(cx.now, walk));
        }
        let Some(index) = job.queue.and_then(|id| self.queues.index_of(id)) else {
            return Sliced::done(job.abandoned());
        };
        let reply = match &mut job.work {
            Work::Redrive(work) => return self.redrive_slice(cx, index, work),
            Work::Purge(work) => self.purge_slice(cx, index, work),
            Work::Find(search) => self.find_slice(cx, index, search),
            Work::Stats(walk) => self.stats_slice(index, walk),
            Work::List(walk) => self.list_slice(walk),
            Work::ListOf(walk) => self.list_of_slice(walk),
            Work::Buckets(walk) => self.bucket_slice(cx.now, walk),
        };
        Sliced::of(reply)
    }

    /// Answers at once what one slice does, and goes on with the rest in later passes.
    pub(crate) fn start_job(&mut self, cx: &mut Cx<'_>, mut job: Job) {
        let sliced = self.job_slice(cx, &mut job);
        self.go_on(cx, job, sliced);
    }

    fn go_on(&mut self, cx: &mut Cx<'_>, job: Job, sliced: Sliced) {
        match sliced {
            Sliced::Done(reply) => self.answer(cx, job.reply, *reply),
            Sliced::Ask(candidates) => self.ask_about_dead_letters(job, candidates),
            Sliced::More => self.jobs.push_back(job),
        }
    }

    /// The queue that a dead-letter queue's messages come from.
    pub(crate) fn source_of(&self, index: QueueIndex) -> Option<QueueIndex> {
        match self.queues.at(index).identity.role {
            Role::DeadLetter { source } => self.queues.index_of(source),
            Role::Source { .. } | Role::Plain => None,
        }
    }
}

impl Job {
    /// The answer of a job whose queue was deleted under it: what was done so far stays done.
    pub(crate) fn abandoned(&self) -> AdminReply {
        match &self.work {
            Work::Redrive(work) => AdminReply::Redriven(Ok(work.done)),
            Work::Purge(work) => work.reply(),
            Work::Find(_) => AdminReply::Explained(Err(QueueNotFound)),
            Work::Stats(_) => AdminReply::Stats(Err(QueueNotFound)),
            Work::List(_) => AdminReply::Queues(Vec::new()),
            Work::ListOf(_) => AdminReply::QueuesOf(Ok(Vec::new())),
            Work::Buckets(_) => AdminReply::Throttle(Err(ThrottleNotFound)),
        }
    }
}
