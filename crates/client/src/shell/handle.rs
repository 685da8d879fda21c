//! What the public handles share: the way to the task, and the budget of what is under way.
//!
//! Owns: the command channel and its bound. A request holds a permit for its size until it is
//! answered, so that a caller which produces faster than the broker accepts waits, and memory does
//! not grow. Refuses to know: what a request means.

use std::sync::Arc;

use bytes::Bytes;
use tanda_wire::fila::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::job::{CallJob, Job, Overload};
use super::subscriptions::SlotId;
use crate::error::RequestError;
use crate::policy::OverloadRetry;

/// What a permit stands for; a request of any size takes at least one.
const BYTES_PER_PERMIT: usize = 1024;
/// What all requests under way may take: 64 Ki small requests, or 64 MiB of larger ones.
const PERMITS: usize = 64 * 1024;

/// What handles ask of the task.
#[derive(Debug)]
pub(crate) enum Command {
    /// Send a request.
    Job(Job),
    /// Grant what is due to a subscription.
    Credit(SlotId),
    /// End a subscription.
    Cancel(SlotId),
    /// End the client after what was asked before; the sender is dropped when it has ended.
    Close(oneshot::Sender<()>),
}

/// The way to the task. The task ends when the last one is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Handle {
    commands: mpsc::UnboundedSender<Command>,
    permits: Arc<Semaphore>,
    overload: OverloadRetry,
}

impl Handle {
    pub(crate) fn new(commands: mpsc::UnboundedSender<Command>, overload: OverloadRetry) -> Self {
        Self {
            commands,
            permits: Arc::new(Semaphore::new(PERMITS)),
            overload,
        }
    }

    /// The client's own policy for overload.
    pub(crate) const fn overload(&self) -> OverloadRetry {
        self.overload
    }

    /// Waits until a request of this size fits the budget. One that is larger than the budget
    /// takes all of it and goes alone.
    pub(crate) async fn permit(&self, bytes: usize) -> Result<OwnedSemaphorePermit, RequestError> {
        let wanted = bytes.div_ceil(BYTES_PER_PERMIT).clamp(1, PERMITS);
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.permits).acquire_many_owned(wanted).await;
        permit.map_err(|_closed| RequestError::closed(false))
    }

    /// Hands a command to the task. When the task is gone the command is dropped, and with it the
    /// sender of its reply, which the caller sees.
    pub(crate) fn send(&self, command: Command) {
        drop(self.commands.send(command));
    }

    pub(crate) fn send_job(&self, job: Job) {
        self.send(Command::Job(job));
    }

    /// Makes a request with a frame of its own, and waits for the body of its answer.
    /// A repeatable one is sent again when the connection is lost.
    pub(crate) async fn call<'a, B: Body<'a>>(
        &self,
        request: &B,
        repeat: Repeat,
    ) -> Result<Bytes, RequestError> {
        let mut body = Vec::with_capacity(request.size());
        request.write(&mut body)?;
        let permit = self.permit(body.len()).await?;
        let (reply, answer) = oneshot::channel();
        self.send_job(Job::Call(CallJob {
            opcode: B::OPCODE,
            body: Bytes::from(body),
            reply,
            overload: Overload::new(self.overload),
            is_repeatable: repeat == Repeat::Harmless,
            _permit: permit,
        }));
        answer
            .await
            .unwrap_or_else(|_dropped| Err(RequestError::closed(true)))
    }
}

/// What doing a request twice means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It only reads.
    Harmless,
    /// It changes something.
    Harmful,
}
