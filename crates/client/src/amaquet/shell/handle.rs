//! What the public handles share: the way to the task, and the bounds on what is under way.
//!
//! Owns: the command channel, its bounds, and request ids. Refuses to know: what a request means.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tanda_wire::amaquet::Opcode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

use super::subscriptions::NewSubscription;
use crate::amaquet::core::{Hello, Login};
use crate::amaquet::error::RequestError;
use crate::amaquet::link::Link;
use crate::amaquet::reply::Reply;
use crate::shell::budget::Budget;

/// The result of a request.
pub(crate) type CallResult = Result<Reply, RequestError>;

/// What handles ask of the task.
#[derive(Debug)]
pub(crate) enum Command {
    /// Make a request.
    Call(Call),
    /// Cancel a command.
    Cancel(u64),
    /// Subscribe to a channel.
    Subscribe(Box<NewSubscription>),
    /// End a subscription.
    Unsubscribe(u64),
    /// End the client after what was asked before; the sender is dropped when it has ended.
    Close(oneshot::Sender<()>),
}

/// A request on its way.
#[derive(Debug)]
pub(crate) struct Call {
    /// Its request id, on whatever connection it is made.
    pub(crate) request_id: u64,
    pub(crate) opcode: Opcode,
    pub(crate) payload: Vec<u8>,
    pub(crate) reply: oneshot::Sender<CallResult>,
    /// Making it twice does no harm.
    pub(crate) is_repeatable: bool,
    pub(crate) was_sent: bool,
    /// Given back when it is answered.
    pub(crate) _permits: Permits,
}

/// What a request holds until it is answered.
#[derive(Debug)]
pub(crate) struct Permits {
    _window: OwnedSemaphorePermit,
    _budget: OwnedSemaphorePermit,
}

/// What the task tells all handles.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    greeting: Mutex<Option<(Hello, Option<Login>)>>,
    link: watch::Sender<Link>,
}

impl Shared {
    /// A connection stands.
    pub(crate) fn greet(&self, hello: Hello, login: Option<Login>) {
        // No code that holds it panics half way.
        *self.greeting.lock().unwrap_or_else(PoisonError::into_inner) = Some((hello, login));
        self.link.send_replace(Link::Up);
    }

    /// There is no connection, or there will be none.
    pub(crate) fn part(&self, link: Link) {
        self.link.send_replace(link);
    }

    pub(crate) fn greeting(&self) -> Option<(Hello, Option<Login>)> {
        let greeting = self.greeting.lock();
        greeting.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn link(&self) -> watch::Receiver<Link> {
        self.link.subscribe()
    }
}

/// The next request id of a client.
#[derive(Debug, Clone)]
pub(crate) struct RequestIds(Arc<AtomicU64>);

impl RequestIds {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(
            crate::amaquet::core::FIRST_REQUEST_ID,
        )))
    }

    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// The way to the task. The task ends when the last one is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Handle {
    commands: mpsc::UnboundedSender<Command>,
    budget: Budget,
    /// One permit per command without its answer.
    window: Arc<Semaphore>,
    ids: RequestIds,
    shared: Arc<Shared>,
}

impl Handle {
    pub(crate) fn new(
        commands: mpsc::UnboundedSender<Command>,
        ids: RequestIds,
        shared: Arc<Shared>,
        commands_max: usize,
    ) -> Self {
        let permits = commands_max.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            commands,
            budget: Budget::default(),
            window: Arc::new(Semaphore::new(permits)),
            ids,
            shared,
        }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.ids.next()
    }

    /// Waits until a request of this size may be under way.
    pub(crate) async fn permits(&self, bytes: usize) -> Result<Permits, RequestError> {
        let closed = || RequestError::closed(false);
        let window = Arc::clone(&self.window).acquire_owned().await;
        Ok(Permits {
            _window: window.map_err(|_closed| closed())?,
            _budget: self.budget.permit(bytes).await.ok_or_else(closed)?,
        })
    }

    /// Hands a command to the task. When the task is gone the command is dropped, and with it the
    /// sender of its reply, which the caller sees.
    pub(crate) fn send(&self, command: Command) {
        drop(self.commands.send(command));
    }

    /// Hands over a request; one that comes after the end of the client is not made.
    pub(crate) fn send_call(&self, call: Call) -> Result<(), RequestError> {
        let sent = self.commands.send(Command::Call(call));
        sent.map_err(|_closed| RequestError::closed(false))
    }
}
