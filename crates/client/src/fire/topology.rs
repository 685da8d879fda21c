//! Exchanges, queues and bindings, as a program describes them.
//!
//! Owns: their settings. Refuses to know: whether they exist.

use tanda_wire::firemq::RawMap;
use tanda_wire::firemq::topology::{Bind, DeclareExchange, DeclareQueue, Unbind};

use super::fields::Fields;

/// How an exchange chooses queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangeKind {
    /// The routing key equals the binding key.
    Direct,
    /// Every binding matches.
    Fanout,
    /// The routing key matches the words of the binding key, in which `*` is one word and `#` any
    /// number of them.
    Topic,
    /// The message's headers match the binding's arguments.
    Headers,
}

impl ExchangeKind {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::Direct, Self::Fanout, Self::Topic, Self::Headers];

    /// Its name in the protocol.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Fanout => "fanout",
            Self::Topic => "topic",
            Self::Headers => "headers",
        }
    }
}

/// An exchange to declare.
///
/// ```
/// use tanda_client::fire::{Exchange, ExchangeKind};
///
/// let events = Exchange::new("events", ExchangeKind::Topic).durable();
/// assert_eq!(events.name(), "events");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    name: String,
    kind: ExchangeKind,
    is_durable: bool,
    is_auto_delete: bool,
    is_internal: bool,
    arguments: Fields,
}

impl Exchange {
    /// An exchange of this name and kind. Names starting with `amq.` are the server's.
    pub fn new(name: impl Into<String>, kind: ExchangeKind) -> Self {
        Self {
            name: name.into(),
            kind,
            is_durable: false,
            is_auto_delete: false,
            is_internal: false,
            arguments: Fields::new(),
        }
    }

    /// It survives a restart of the server.
    #[must_use]
    pub const fn durable(mut self) -> Self {
        self.is_durable = true;
        self
    }

    /// It is deleted with its last binding.
    #[must_use]
    pub const fn auto_delete(mut self) -> Self {
        self.is_auto_delete = true;
        self
    }

    /// Only other exchanges publish to it.
    #[must_use]
    pub const fn internal(mut self) -> Self {
        self.is_internal = true;
        self
    }

    /// More settings, such as `alternate-exchange`.
    #[must_use]
    pub fn arguments(mut self, arguments: Fields) -> Self {
        self.arguments = arguments;
        self
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) const fn is_auto_delete(&self) -> bool {
        self.is_auto_delete
    }

    /// Its declaration, with its arguments as they are sent.
    pub(crate) fn to_wire<'a>(&'a self, arguments: &'a [u8]) -> DeclareExchange<'a> {
        DeclareExchange {
            name: &self.name,
            kind: self.kind.name(),
            durable: self.is_durable,
            auto_delete: self.is_auto_delete,
            internal: self.is_internal,
            args: RawMap::from_checked(arguments),
            ..DeclareExchange::default()
        }
    }

    pub(crate) fn encode_arguments(&self) -> Vec<u8> {
        self.arguments.encode()
    }
}

/// A queue to declare.
///
/// ```
/// use tanda_client::fire::{Fields, Queue};
///
/// let work = Queue::named("work")
///     .durable()
///     .arguments(Fields::new().set("x-dead-letter-exchange", "failed"));
/// let answers = Queue::server_named().exclusive();
/// assert_eq!((work.name(), answers.name()), ("work", ""));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    name: String,
    is_durable: bool,
    is_exclusive: bool,
    is_auto_delete: bool,
    arguments: Fields,
}

impl Queue {
    /// A queue of this name. Names starting with `amq.` are the server's.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            is_durable: false,
            is_exclusive: false,
            is_auto_delete: false,
            arguments: Fields::new(),
        }
    }

    /// A queue whose name the server chooses. After a reconnect it is another queue with another
    /// name; the client takes the first name for the newest queue wherever it is used as the name
    /// of a queue.
    #[must_use]
    pub fn server_named() -> Self {
        Self::named("")
    }

    /// It survives a restart of the server.
    #[must_use]
    pub const fn durable(mut self) -> Self {
        self.is_durable = true;
        self
    }

    /// Only this client uses it, and it is deleted when the connection ends; after a reconnect it
    /// is declared again, empty.
    #[must_use]
    pub const fn exclusive(mut self) -> Self {
        self.is_exclusive = true;
        self
    }

    /// It is deleted with its last subscription.
    #[must_use]
    pub const fn auto_delete(mut self) -> Self {
        self.is_auto_delete = true;
        self
    }

    /// More settings, by RabbitMQ's names, such as `x-message-ttl`.
    #[must_use]
    pub fn arguments(mut self, arguments: Fields) -> Self {
        self.arguments = arguments;
        self
    }

    /// Its name; empty when the server is to choose one.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) const fn is_auto_delete(&self) -> bool {
        self.is_auto_delete
    }

    pub(crate) const fn is_exclusive(&self) -> bool {
        self.is_exclusive
    }

    /// Its declaration, with its arguments as they are sent.
    pub(crate) fn to_wire<'a>(&'a self, arguments: &'a [u8]) -> DeclareQueue<'a> {
        DeclareQueue {
            name: &self.name,
            durable: self.is_durable,
            exclusive: self.is_exclusive,
            auto_delete: self.is_auto_delete,
            args: RawMap::from_checked(arguments),
            ..DeclareQueue::default()
        }
    }

    pub(crate) fn encode_arguments(&self) -> Vec<u8> {
        self.arguments.encode()
    }
}

/// A queue as the server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredQueue {
    /// Its name.
    pub name: String,
    /// Messages ready in it.
    pub messages: u64,
    /// Its consumers.
    pub consumers: u64,
}

/// Where a binding leads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Destination {
    Queue(String),
    Exchange(String),
}

/// A way from an exchange to a queue or to another exchange.
///
/// ```
/// use tanda_client::fire::Binding;
///
/// let orders = Binding::to_queue("events", "work").key("order.*");
/// let copy = Binding::to_exchange("events", "archive").key("#");
/// assert_ne!(orders, copy);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Binding {
    source: String,
    destination: Destination,
    key: String,
    arguments: Fields,
}

impl Binding {
    /// From an exchange to a queue.
    pub fn to_queue(exchange: impl Into<String>, queue: impl Into<String>) -> Self {
        Self::between(exchange.into(), Destination::Queue(queue.into()))
    }

    /// From an exchange to another one.
    pub fn to_exchange(exchange: impl Into<String>, destination: impl Into<String>) -> Self {
        Self::between(exchange.into(), Destination::Exchange(destination.into()))
    }

    const fn between(source: String, destination: Destination) -> Self {
        Self {
            source,
            destination,
            key: String::new(),
            arguments: Fields::new(),
        }
    }

    /// The binding key; empty by default.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = key.into();
        self
    }

    /// More settings, such as `x-match` and the headers of a headers exchange.
    #[must_use]
    pub fn arguments(mut self, arguments: Fields) -> Self {
        self.arguments = arguments;
        self
    }

    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    pub(crate) const fn destination(&self) -> &Destination {
        &self.destination
    }

    /// The request that makes it, with its arguments as they are sent. `current` is the name that
    /// the queue has now.
    pub(crate) fn to_wire<'a>(
        &'a self,
        arguments: &'a [u8],
        current: impl FnOnce(&'a str) -> &'a str,
    ) -> Bind<'a> {
        let (queue, to_exchange) = match &self.destination {
            Destination::Queue(queue) => (current(queue), ""),
            Destination::Exchange(exchange) => ("", exchange.as_str()),
        };
        Bind {
            rid: 0,
            exchange: &self.source,
            queue,
            to_exchange,
            key: &self.key,
            args: RawMap::from_checked(arguments),
        }
    }

    /// The request that removes it.
    pub(crate) fn to_wire_unbind<'a>(
        &'a self,
        arguments: &'a [u8],
        current: impl FnOnce(&'a str) -> &'a str,
    ) -> Unbind<'a> {
        let bind = self.to_wire(arguments, current);
        Unbind {
            rid: 0,
            exchange: bind.exchange,
            queue: bind.queue,
            to_exchange: bind.to_exchange,
            key: bind.key,
            args: bind.args,
        }
    }

    pub(crate) fn encode_arguments(&self) -> Vec<u8> {
        self.arguments.encode()
    }
}

impl std::fmt::Display for Binding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (kind, name) = match &self.destination {
            Destination::Queue(queue) => ("queue", queue),
            Destination::Exchange(exchange) => ("exchange", exchange),
        };
        let (source, key) = (&self.source, &self.key);
        write!(
            f,
            "the binding {key:?} of exchange {source:?} to {kind} {name:?}"
        )
    }
}
