//! Requests on their way: what is sent, who waits for it, and what may be done when it fails.
//!
//! Owns: the state of a request from the handle to its answer.
//! Refuses to know: connections.

use std::sync::Arc;

use bytes::Bytes;
use tanda_wire::firemq::consume::{Get, Subscribe};
use tanda_wire::firemq::publish::Publish;
use tanda_wire::firemq::topology::PurgeQueue;
use tanda_wire::firemq::topology::{DeclareExchange, DeclareQueue, DeleteExchange, DeleteQueue};
use tanda_wire::firemq::{Props, RawMap};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::restore::Step;
use super::subscriptions::NewSubscription;
use crate::fire::core::declared::Declared;
use crate::fire::core::{Answer, Request};
use crate::fire::error::RequestError;
use crate::fire::message::{Message, Published};
use crate::fire::topology::{Binding, Exchange, Queue};

/// The outcome of a message.
pub(crate) type PublishResult = Result<Published, RequestError>;
/// The outcome of a request.
pub(crate) type CallResult = Result<Replied, RequestError>;

/// The reply to a request.
#[derive(Debug)]
pub(crate) struct Replied {
    pub(crate) answer: Answer,
    /// The connection it came on.
    pub(crate) generation: u64,
}

/// What a publish holds until it has an outcome.
#[derive(Debug)]
pub(crate) struct Permits {
    pub(crate) _window: Option<OwnedSemaphorePermit>,
    pub(crate) _budget: OwnedSemaphorePermit,
}

/// A message as it is sent, but for its number.
#[derive(Debug)]
pub(crate) struct Outgoing {
    exchange: Arc<str>,
    key: Arc<str>,
    is_mandatory: bool,
    is_persistent: bool,
    is_resent: bool,
    props: Vec<u8>,
    headers: Vec<u8>,
    pub(crate) body: Bytes,
}

impl Outgoing {
    pub(crate) fn new(message: Message) -> Self {
        Self {
            props: message.encode_properties(),
            headers: message.encode_headers(),
            exchange: message.exchange,
            key: message.key,
            is_mandatory: message.is_mandatory,
            is_persistent: message.is_persistent,
            is_resent: message.is_resent,
            body: message.body,
        }
    }

    /// About as many bytes as it takes.
    pub(crate) fn size(&self) -> usize {
        self.body.len() + self.headers.len() + self.props.len() + self.key.len()
    }

    /// Its header. On the default exchange the key is the name of a queue.
    pub(crate) fn to_wire<'a>(&'a self, declared: &'a Declared) -> Publish<'a> {
        let key = if self.exchange.is_empty() && declared.is_renamed() {
            declared.current(&self.key)
        } else {
            &self.key
        };
        Publish {
            seq: 0,
            exchange: &self.exchange,
            key,
            mandatory: self.is_mandatory,
            persistent: self.is_persistent,
            props: Props::from_checked(&self.props),
            headers: RawMap::from_checked(&self.headers),
        }
    }
}

/// A message under way.
#[derive(Debug)]
pub(crate) struct PublishJob {
    pub(crate) message: Outgoing,
    /// `None`: nobody wants to know.
    pub(crate) reply: Option<oneshot::Sender<PublishResult>>,
    /// It was handed to a connection, now or earlier.
    pub(crate) was_sent: bool,
    /// Given back when the job is done.
    pub(crate) _permits: Permits,
}

impl PublishJob {
    /// Whether it may be sent again although it may have arrived.
    pub(crate) const fn is_repeatable(&self) -> bool {
        self.message.is_resent
    }

    /// A caller that went away does not want the outcome.
    pub(crate) fn finish(self, result: PublishResult) {
        if let Some(reply) = self.reply {
            drop(reply.send(result));
        }
    }
}

/// A request, in the names the program uses.
#[derive(Debug)]
pub(crate) enum Call {
    DeclareExchange(Exchange),
    /// Only looks whether it is there.
    CheckExchange(String),
    DeleteExchange {
        name: String,
        if_unused: bool,
    },
    DeclareQueue(Queue),
    /// Only looks whether it is there.
    CheckQueue(String),
    DeleteQueue {
        name: String,
        if_unused: bool,
        if_empty: bool,
    },
    Purge(String),
    Bind(Binding),
    Unbind(Binding),
    Subscribe(NewSubscription),
    Get {
        queue: String,
        no_ack: bool,
    },
}

impl Call {
    /// What it counts as in the budget: names are short, and arguments are few.
    pub(crate) const fn size(&self) -> usize {
        1
    }

    /// Whether one more thing is to be remembered when it succeeds.
    pub(crate) const fn declares(&self) -> bool {
        matches!(
            self,
            Self::DeclareExchange(_) | Self::DeclareQueue(_) | Self::Bind(_)
        )
    }

    /// Whether doing it twice comes to the same as doing it once.
    fn is_repeatable(&self) -> bool {
        match self {
            Self::DeclareExchange(_)
            | Self::CheckExchange(_)
            | Self::CheckQueue(_)
            | Self::Bind(_)
            // A subscription ends with its connection, so nothing of the first try is left.
            | Self::Subscribe(_) => true,
            // Nobody would know of the first queue the server named, unless it goes with its
            // connection.
            Self::DeclareQueue(queue) => !queue.name().is_empty() || queue.is_exclusive(),
            Self::DeleteExchange { .. }
            | Self::DeleteQueue { .. }
            | Self::Purge(_)
            | Self::Unbind(_)
            | Self::Get { .. } => false,
        }
    }

    /// Hands the request to `send`, with the names that queues have now.
    pub(crate) fn with_request<R>(
        &self,
        declared: &Declared,
        send: impl FnOnce(&Request<'_>) -> R,
    ) -> R {
        let arguments = self.encode_arguments();
        let current = |name| declared.current(name);
        send(&match self {
            Self::DeclareExchange(exchange) => {
                Request::DeclareExchange(exchange.to_wire(&arguments))
            }
            Self::CheckExchange(name) => Request::DeclareExchange(DeclareExchange {
                name,
                passive: true,
                ..DeclareExchange::default()
            }),
            Self::DeleteExchange { name, if_unused } => Request::DeleteExchange(DeleteExchange {
                name,
                if_unused: *if_unused,
                ..DeleteExchange::default()
            }),
            Self::DeclareQueue(queue) => Request::DeclareQueue(queue.to_wire(&arguments)),
            Self::CheckQueue(name) => Request::DeclareQueue(DeclareQueue {
                name: declared.current(name),
                passive: true,
                ..DeclareQueue::default()
            }),
            Self::DeleteQueue {
                name,
                if_unused,
                if_empty,
            } => Request::DeleteQueue(DeleteQueue {
                name: declared.current(name),
                if_unused: *if_unused,
                if_empty: *if_empty,
                ..DeleteQueue::default()
            }),
            Self::Purge(name) => Request::PurgeQueue(PurgeQueue {
                name: declared.current(name),
                ..PurgeQueue::default()
            }),
            Self::Bind(binding) => Request::Bind(binding.to_wire(&arguments, current)),
            Self::Unbind(binding) => Request::Unbind(binding.to_wire_unbind(&arguments, current)),
            Self::Subscribe(new) => Request::Subscribe(Subscribe {
                queue: declared.current(new.queue()),
                ..new.to_wire(new.first_credit())
            }),
            Self::Get { queue, no_ack } => Request::Get(Get {
                queue: declared.current(queue),
                no_ack: *no_ack,
                ..Get::default()
            }),
        })
    }

    fn encode_arguments(&self) -> Vec<u8> {
        match self {
            Self::DeclareExchange(exchange) => exchange.encode_arguments(),
            Self::DeclareQueue(queue) => queue.encode_arguments(),
            Self::Bind(binding) | Self::Unbind(binding) => binding.encode_arguments(),
            Self::CheckExchange(_)
            | Self::DeleteExchange { .. }
            | Self::CheckQueue(_)
            | Self::DeleteQueue { .. }
            | Self::Purge(_)
            | Self::Subscribe(_)
            | Self::Get { .. } => Vec::new(),
        }
    }
}

/// A request under way.
#[derive(Debug)]
pub(crate) struct CallJob {
    pub(crate) call: Call,
    pub(crate) reply: oneshot::Sender<CallResult>,
    /// It was handed to a connection, now or earlier.
    pub(crate) was_sent: bool,
    /// Given back when the job is done.
    pub(crate) _permit: OwnedSemaphorePermit,
}

impl CallJob {
    /// Whether it may be sent again although it may have been done.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.call.is_repeatable()
    }
}

/// What is done to a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettleKind {
    Ack,
    Nack { requeue: bool },
}

/// A settlement. The server does not answer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settling {
    /// The connection the tag belongs to.
    pub(crate) generation: u64,
    pub(crate) tag: u64,
    pub(crate) multiple: bool,
    pub(crate) kind: SettleKind,
}

/// Anything that waits for its turn on the connection.
#[derive(Debug)]
pub(crate) enum Job {
    Publish(Box<PublishJob>),
    Call(Box<CallJob>),
    Settle(Settling),
    /// Grant what is due to a subscription; after the settlements that made it due.
    Credit(u64),
}

/// What a request or publish was made with.
#[derive(Debug)]
pub(crate) enum Context {
    Publish(Box<PublishJob>),
    Call(Box<CallJob>),
    /// A subscription was ended.
    Unsubscribe(u64),
    /// Something is declared again; the number counts earlier tries.
    Restore(Step, u32),
}
