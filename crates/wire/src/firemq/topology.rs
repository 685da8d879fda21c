//! `declare_exchange` to `unbind`: making and removing exchanges, queues and bindings.

use super::header_struct::header_struct;
use super::value::RawMap;

header_struct! {
    /// Makes an exchange; answered by `ok`.
    #[derive(Debug, Copy, Eq)]
    pub struct DeclareExchange<'a>: DeclareExchange {
        /// The request.
        rid: u64,
        /// Its name; those starting with `amq.` are reserved.
        name: &'a str,
        /// `direct`, `fanout`, `topic` or `headers`.
        kind: &'a str = "type",
        /// Whether it survives a restart.
        durable: bool,
        /// Whether it is deleted with its last binding.
        auto_delete: bool,
        /// Whether clients cannot publish to it.
        internal: bool,
        /// Only check that it exists.
        passive: bool,
        /// More settings, such as `alternate-exchange`.
        args: RawMap<'a>,
    }

    /// Removes an exchange; answered by `ok`.
    #[derive(Debug, Copy, Eq)]
    pub struct DeleteExchange<'a>: DeleteExchange {
        /// The request.
        rid: u64,
        /// Its name.
        name: &'a str,
        /// Fail when it has bindings.
        if_unused: bool,
    }

    /// Makes a queue; answered by `ok` with `name`, `messages` and `consumers`.
    #[derive(Debug, Copy, Eq)]
    pub struct DeclareQueue<'a>: DeclareQueue {
        /// The request.
        rid: u64,
        /// Its name; empty lets the server pick one.
        name: &'a str,
        /// Whether it survives a restart.
        durable: bool,
        /// Whether only this connection uses it, and it goes with it.
        exclusive: bool,
        /// Whether it is deleted with its last subscription.
        auto_delete: bool,
        /// Only check that it exists.
        passive: bool,
        /// More settings, such as `x-message-ttl`.
        args: RawMap<'a>,
    }

    /// Removes a queue; answered by `ok` with `messages`.
    #[derive(Debug, Copy, Eq)]
    pub struct DeleteQueue<'a>: DeleteQueue {
        /// The request.
        rid: u64,
        /// Its name.
        name: &'a str,
        /// Fail when it has consumers.
        if_unused: bool,
        /// Fail when it has messages.
        if_empty: bool,
    }

    /// Removes the ready messages of a queue; answered by `ok` with `messages`.
    #[derive(Debug, Copy, Eq)]
    pub struct PurgeQueue<'a>: PurgeQueue {
        /// The request.
        rid: u64,
        /// Its name.
        name: &'a str,
    }

    /// Adds a binding; answered by `ok`. One of `queue` and `to_exchange` is set.
    #[derive(Debug, Copy, Eq)]
    pub struct Bind<'a>: Bind {
        /// The request.
        rid: u64,
        /// The exchange messages come from.
        exchange: &'a str,
        /// The queue they go to.
        queue: &'a str,
        /// The exchange they go to.
        to_exchange: &'a str,
        /// The binding key.
        key: &'a str,
        /// More settings, such as `x-match`.
        args: RawMap<'a>,
    }

    /// Removes a binding; answered by `ok`. One of `queue` and `to_exchange` is set.
    #[derive(Debug, Copy, Eq)]
    pub struct Unbind<'a>: Unbind {
        /// The request.
        rid: u64,
        /// The exchange messages come from.
        exchange: &'a str,
        /// The queue they go to.
        queue: &'a str,
        /// The exchange they go to.
        to_exchange: &'a str,
        /// The binding key.
        key: &'a str,
        /// The arguments it was made with.
        args: RawMap<'a>,
    }
}
