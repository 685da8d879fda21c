//! What the public handles share: the way to the task, and the bounds on what is under way.
//!
//! Owns: the command channel and its bounds, and which delivery tags are still good.
//! Refuses to know: what a request means.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::job::{Call, CallJob, CallResult, Job, Permits, Settling};
use crate::fire::error::{Refusal, RequestError};
use crate::shell::budget::Budget;

/// What handles ask of the task.
#[derive(Debug)]
pub(crate) enum Command {
    /// Send something.
    Job(Job),
    /// End a subscription; the sender is dropped when it has ended.
    Cancel(u64, Option<oneshot::Sender<()>>),
    /// End the client after what was asked before; the sender is dropped when it has ended.
    Close(oneshot::Sender<()>),
}

/// Which deliveries can be settled.
#[derive(Debug, Default)]
struct Tags {
    /// Counts connections.
    generation: u64,
    /// All deliveries of this connection up to this tag are settled.
    settled_upto: u64,
}

/// What the task tells all handles.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    tags: Mutex<Tags>,
    /// Names of queues that the server chose anew, by the first name.
    names: Mutex<HashMap<String, String>>,
    complaint: Mutex<Option<Refusal>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that holds one of these panics half way.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// A connection begins.
    pub(crate) fn begin(&self, generation: u64) {
        *lock(&self.tags) = Tags {
            generation,
            settled_upto: 0,
        };
    }

    /// Whether deliveries of this connection can be settled.
    pub(crate) fn is_current(&self, generation: u64) -> bool {
        lock(&self.tags).generation == generation
    }

    /// Marks a delivery as settled, with `multiple` all up to it.
    fn settle(&self, settling: &Settling) -> Result<(), RequestError> {
        let mut tags = lock(&self.tags);
        if tags.generation != settling.generation {
            return Err(RequestError::StaleDelivery);
        }
        if settling.tag <= tags.settled_upto {
            return Err(RequestError::AlreadySettled);
        }
        if settling.multiple {
            tags.settled_upto = settling.tag;
        }
        Ok(())
    }

    pub(crate) fn rename(&self, name: &str, current: &str) {
        lock(&self.names).insert(name.to_owned(), current.to_owned());
    }

    pub(crate) fn forget_name(&self, name: &str) {
        lock(&self.names).remove(name);
    }

    pub(crate) fn current_name(&self, name: &str) -> String {
        let names = lock(&self.names);
        names.get(name).map_or(name, String::as_str).to_owned()
    }

    pub(crate) fn complain(&self, refusal: Refusal) {
        *lock(&self.complaint) = Some(refusal);
    }

    pub(crate) fn take_complaint(&self) -> Option<Refusal> {
        lock(&self.complaint).take()
    }
}

/// The way to the task. The task ends when the last one is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Handle {
    commands: mpsc::UnboundedSender<Command>,
    budget: Budget,
    /// One permit per publish without its confirm.
    window: Arc<Semaphore>,
    shared: Arc<Shared>,
}

impl Handle {
    pub(crate) fn new(
        commands: mpsc::UnboundedSender<Command>,
        shared: Arc<Shared>,
        publishes_max: usize,
    ) -> Self {
        let permits = publishes_max.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            commands,
            budget: Budget::default(),
            window: Arc::new(Semaphore::new(permits)),
            shared,
        }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Waits until a message of this size may be under way.
    pub(crate) async fn publish_permits(&self, bytes: usize) -> Result<Permits, RequestError> {
        let window = Arc::clone(&self.window).acquire_owned().await;
        let window = window.map_err(|_closed| RequestError::closed(false))?;
        let budget = self.permit(bytes).await?;
        Ok(Permits {
            _window: Some(window),
            _budget: budget,
        })
    }

    /// Waits until a message of this size that gets no confirm may be under way.
    pub(crate) async fn post_permits(&self, bytes: usize) -> Result<Permits, RequestError> {
        let budget = self.permit(bytes).await?;
        Ok(Permits {
            _window: None,
            _budget: budget,
        })
    }

    async fn permit(&self, bytes: usize) -> Result<OwnedSemaphorePermit, RequestError> {
        let permit = self.budget.permit(bytes).await;
        permit.ok_or_else(|| RequestError::closed(false))
    }

    /// Hands a command to the task. When the task is gone the command is dropped, and with it the
    /// sender of its reply, which the caller sees.
    pub(crate) fn send(&self, command: Command) {
        drop(self.commands.send(command));
    }

    /// Hands over what is to be sent; one that comes after the end of the client is not.
    pub(crate) fn send_job(&self, job: Job) -> Result<(), RequestError> {
        let sent = self.commands.send(Command::Job(job));
        sent.map_err(|_closed| RequestError::closed(false))
    }

    /// Settles a delivery: the client's part of it is done at once, there is no answer.
    pub(crate) fn settle(&self, settling: Settling) -> Result<(), RequestError> {
        self.shared.settle(&settling)?;
        self.send_job(Job::Settle(settling))
    }

    /// Makes a request, and waits for its answer.
    pub(crate) async fn call(&self, call: Call) -> CallResult {
        let permit = self.permit(call.size()).await?;
        let (reply, answer) = oneshot::channel();
        self.send_job(Job::Call(Box::new(CallJob {
            call,
            reply,
            was_sent: false,
            _permit: permit,
        })))?;
        answer
            .await
            .unwrap_or_else(|_dropped| Err(RequestError::closed(true)))
    }
}
