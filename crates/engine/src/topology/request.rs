//! What sessions ask of the topology, and what they are told.

use core::fmt;

use bytes::Bytes;

use crate::VhostId;

/// What kind of refusal it is: each protocol has a number for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopologyCode {
    /// Not permitted: AMQP 403.
    AccessRefused,
    /// Not there: AMQP 404.
    NotFound,
    /// Another connection's: AMQP 405.
    ResourceLocked,
    /// There, but otherwise than asked for: AMQP 406.
    PreconditionFailed,
    /// An exchange of another type: AMQP 406.
    WrongType,
    /// Never allowed: AMQP 530.
    NotAllowed,
    /// Known, and not offered: AMQP 540.
    NotImplemented,
    /// A limit is reached: AMQP 506.
    ResourceError,
    /// The disk is full: AMQP 506.
    Storage,
    /// Our own fault: AMQP 541.
    Internal,
    /// The request makes no sense: AMQP 503.
    CommandInvalid,
}

/// Why the topology was not changed: nothing was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyError {
    /// What kind of refusal it is.
    pub code: TopologyCode,
    /// RabbitMQ's text, without the name of the code before it.
    pub text: String,
}

impl TopologyError {
    pub(crate) const fn new(code: TopologyCode, text: String) -> Self {
        Self { code, text }
    }
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// An exchange is declared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExchangeSpec {
    /// Its virtual host.
    pub vhost: VhostId,
    /// Its name.
    pub name: String,
    /// The name of its kind.
    pub kind: String,
    /// It survives a restart.
    pub durable: bool,
    /// It is deleted with the last binding whose source it is.
    pub auto_delete: bool,
    /// It takes messages from other exchanges only.
    pub internal: bool,
    /// Only ask whether it is there.
    pub passive: bool,
    /// Its arguments: an AMQP field table without its length.
    pub args: Bytes,
}

/// Where a binding leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Destination {
    /// To a queue of this name.
    Queue(String),
    /// To an exchange of this name.
    Exchange(String),
}

/// A binding is made or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindingSpec {
    /// The virtual host of both ends.
    pub vhost: VhostId,
    /// The exchange that gives.
    pub source: String,
    /// What takes.
    pub destination: Destination,
    /// The binding key.
    pub key: String,
    /// Its arguments: an AMQP field table without its length.
    pub args: Bytes,
}

/// A queue is declared by AMQP or FireMQ; who asks is the connection of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeclareQueue {
    /// Its virtual host.
    pub vhost: VhostId,
    /// Its name; empty = the broker finds one.
    pub name: String,
    /// It survives a restart.
    pub durable: bool,
    /// It is this connection's, and goes with it.
    pub exclusive: bool,
    /// It goes with its last consumer.
    pub auto_delete: bool,
    /// Only ask whether it is there.
    pub passive: bool,
    /// Its arguments: an AMQP field table without its length.
    pub args: Bytes,
}

/// A queue that is there, as its declarer is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredQueue {
    /// Its name.
    pub name: String,
    /// Its ready messages.
    pub messages: u64,
    /// Its consumers.
    pub consumers: u32,
}

/// A virtual host in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VhostInfo {
    /// Its number.
    pub id: VhostId,
    /// Its name.
    pub name: String,
}

/// How an exchange chooses among its bindings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExchangeKind {
    /// Those whose key is the routing key.
    #[default]
    Direct,
    /// All.
    Fanout,
    /// Those whose key, a pattern of words, matches the routing key.
    Topic,
    /// Those whose arguments match the message's headers.
    Headers,
}

impl ExchangeKind {
    /// Its name in requests.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Fanout => "fanout",
            Self::Topic => "topic",
            Self::Headers => "headers",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Direct, Self::Fanout, Self::Topic, Self::Headers];
        all.into_iter().find(|kind| kind.name() == name)
    }
}

/// An exchange in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeInfo {
    /// Its name; empty for the default exchange.
    pub name: String,
    /// Its kind.
    pub kind: ExchangeKind,
    /// It survives a restart.
    pub durable: bool,
    /// It goes with its last binding.
    pub auto_delete: bool,
    /// It takes messages from other exchanges only.
    pub internal: bool,
    /// Its arguments: an AMQP field table without its length.
    pub args: Bytes,
    /// Bindings whose source it is; the default exchange has none that are listed.
    pub bindings: u64,
    /// Who watches it: [`crate::Request::Watch`].
    pub watches: u64,
}

/// A binding in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindingInfo {
    /// The exchange that gives.
    pub source: String,
    /// What takes.
    pub destination: Destination,
    /// The binding key.
    pub key: String,
    /// Its arguments: an AMQP field table without its length.
    pub args: Bytes,
}
