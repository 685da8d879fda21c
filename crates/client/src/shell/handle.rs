//! What the public handles share: the way to the task, and the budget of what is under way.
//!
//! Owns: the command channel and its bound: a request holds a permit of the [`Budget`] until it is
//! answered. Refuses to know: what a request means.

use bytes::Bytes;
use tanda_wire::fila::Body;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::budget::Budget;
use super::job::{CallJob, Job, Overload};
use super::subscriptions::SlotId;
use crate::error::RequestError;
use crate::policy::OverloadRetry;

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
    budget: Budget,
    overload: OverloadRetry,
}

impl Handle {
    pub(crate) fn new(commands: mpsc::UnboundedSender<Command>, overload: OverloadRetry) -> Self {
        Self {
            commands,
            budget: Budget::default(),
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
        let permit = self.budget.permit(bytes).await;
        permit.ok_or_else(|| RequestError::closed(false))
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
