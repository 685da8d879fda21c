//! Requests on their way: what is sent, who waits for it, and what may be done when it fails.
//!
//! Owns: the state of a request from the handle to its answer.
//! Refuses to know: frames and connections.

use std::sync::Arc;

use bytes::Bytes;
use tanda_wire::fila::{ErrorCode, Opcode};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::subscriptions::{NewSubscription, SlotId};
use crate::error::{Rejection, RequestError};
use crate::policy::OverloadRetry;
use crate::producer::Receipt;

/// The result of one message.
pub(crate) type SendResult = Result<Receipt, RequestError>;
/// The result of one settlement; the number is the new lease end of an extension, else 0.
pub(crate) type SettleResult = Result<u64, RequestError>;
/// The result of a request that stands alone: the body of its answer.
pub(crate) type CallResult = Result<Bytes, RequestError>;

/// Who waits for the results of some items of a frame.
#[derive(Debug)]
pub(crate) enum Reply<T> {
    /// One item.
    One(oneshot::Sender<Result<T, RequestError>>),
    /// Several; a failure of the whole is one error.
    Many(oneshot::Sender<Result<Vec<Result<T, RequestError>>, RequestError>>),
}

impl<T> Reply<T> {
    /// A caller that went away does not want the result.
    pub(crate) fn fail(self, error: RequestError) {
        match self {
            Self::One(reply) => drop(reply.send(Err(error))),
            Self::Many(reply) => drop(reply.send(Err(error))),
        }
    }
}

/// How often a request was refused for overload, and what its maker wants then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Overload {
    policy: OverloadRetry,
    tries: u32,
}

impl Overload {
    pub(crate) const fn new(policy: OverloadRetry) -> Self {
        Self { policy, tries: 0 }
    }

    /// How long to wait before sending it again; `None`: the refusal goes to the caller.
    fn next_delay_ms(&mut self, rejection: &Rejection) -> Option<u64> {
        if rejection.code != ErrorCode::ChannelFull {
            return None;
        }
        let delay_ms = self
            .policy
            .delay_ms(self.tries, rejection.retry_after_ms())?;
        self.tries += 1;
        Some(delay_ms)
    }
}

/// Messages that go into one `Enqueue`, perhaps with those of others.
#[derive(Debug)]
pub(crate) struct EnqueueJob {
    /// A whole `Enqueue` body: `u32` count and the messages.
    pub(crate) body: Bytes,
    pub(crate) count: usize,
    pub(crate) reply: Reply<Receipt>,
    pub(crate) overload: Overload,
    /// Sending it twice does no harm.
    pub(crate) is_repeatable: bool,
    /// Whether it may share a frame.
    pub(crate) gathers: bool,
    /// Given back when the job is done.
    pub(crate) _permit: OwnedSemaphorePermit,
}

/// What is done to leased messages; each kind has a frame of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettleKind {
    Ack,
    Nack,
    Extend,
}

impl SettleKind {
    pub(crate) const fn opcode(self) -> Opcode {
        match self {
            Self::Ack => Opcode::Ack,
            Self::Nack => Opcode::Nack,
            Self::Extend => Opcode::ExtendLease,
        }
    }
}

/// Settlements that go into one frame, perhaps with those of others.
#[derive(Debug)]
pub(crate) struct SettleJob {
    pub(crate) kind: SettleKind,
    /// A whole body of the kind: `u32` count and the items.
    pub(crate) body: Bytes,
    pub(crate) count: usize,
    pub(crate) reply: Reply<u64>,
    pub(crate) overload: Overload,
    /// Given back when the job is done.
    pub(crate) _permit: OwnedSemaphorePermit,
}

/// A request with a frame of its own.
#[derive(Debug)]
pub(crate) struct CallJob {
    pub(crate) opcode: Opcode,
    pub(crate) body: Bytes,
    pub(crate) reply: oneshot::Sender<CallResult>,
    pub(crate) overload: Overload,
    /// Sending it twice does no harm: it only reads.
    pub(crate) is_repeatable: bool,
    /// Given back when the job is done.
    pub(crate) _permit: OwnedSemaphorePermit,
}

/// A subscription to be opened for the first time.
#[derive(Debug)]
pub(crate) struct SubscribeJob {
    pub(crate) new: NewSubscription,
    pub(crate) reply: oneshot::Sender<Result<(), RequestError>>,
    pub(crate) overload: Overload,
}

/// Anything that waits for its turn on the connection.
#[derive(Debug)]
pub(crate) enum Job {
    Enqueue(EnqueueJob),
    Settle(SettleJob),
    Call(CallJob),
    Subscribe(Box<SubscribeJob>),
    /// Opens a subscription of an earlier connection again.
    Resubscribe(SlotId, Overload),
}

/// What one frame was made of: the context of its request.
#[derive(Debug)]
pub(crate) enum Group {
    Enqueue(Vec<EnqueueJob>),
    Settle(Vec<SettleJob>),
    Call(CallJob),
    Subscribe(Box<SubscribeJob>),
    Resubscribe(SlotId, Overload),
}

impl Group {
    /// Its parts, each to go its own way.
    pub(crate) fn into_jobs(self) -> Vec<Job> {
        match self {
            Self::Enqueue(jobs) => jobs.into_iter().map(Job::Enqueue).collect(),
            Self::Settle(jobs) => jobs.into_iter().map(Job::Settle).collect(),
            Self::Call(job) => vec![Job::Call(job)],
            Self::Subscribe(job) => vec![Job::Subscribe(job)],
            Self::Resubscribe(slot, overload) => vec![Job::Resubscribe(slot, overload)],
        }
    }
}

impl Job {
    /// How long to wait before sending it again after this refusal; `None`: it failed.
    pub(crate) fn retry_delay_ms(&mut self, rejection: &Rejection) -> Option<u64> {
        let overload = match self {
            Self::Enqueue(job) => &mut job.overload,
            Self::Settle(job) => &mut job.overload,
            Self::Call(job) => &mut job.overload,
            Self::Subscribe(job) => &mut job.overload,
            Self::Resubscribe(_, overload) => overload,
        };
        overload.next_delay_ms(rejection)
    }

    /// Whether it may be sent again on the next connection although its answer was lost.
    pub(crate) const fn is_repeatable(&self) -> bool {
        match self {
            Self::Enqueue(job) => job.is_repeatable,
            // Acking twice answers MessageNotFound for what the first one did.
            Self::Settle(_) => false,
            Self::Call(job) => job.is_repeatable,
            // A subscription ends with its connection, so nothing of the first try is left.
            Self::Subscribe(_) => true,
            // The table of subscriptions opens them all again.
            Self::Resubscribe(..) => false,
        }
    }
}

/// What ended a connection, or kept it from being opened.
#[derive(Debug, Clone)]
pub(crate) struct Loss {
    pub(crate) reason: Arc<str>,
}

impl Loss {
    pub(crate) fn new(reason: impl Into<Arc<str>>) -> Self {
        Self {
            reason: reason.into(),
        }
    }

    pub(crate) fn error(&self, outcome_unknown: bool) -> RequestError {
        RequestError::lost(outcome_unknown, &self.reason)
    }
}
