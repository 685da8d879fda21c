//! Class `queue` (§1.7).

use super::methods::methods;
use super::strings::ShortStr;
use super::table::Table;

methods! {
    /// A method of the class `queue`.
    class Queue<'a> = 50, "queue";

    /// From the client: creates a queue, or checks one.
    Declare<'a> = 10, "declare" {
        reserved { u16 }
        fields {
            /// Its name; empty: the server makes one.
            queue: ShortStr<'a>,
        }
        bits {
            /// Only checks that it exists.
            passive,
            /// It outlives a restart.
            durable,
            /// Only this connection may use it, and it goes with the connection.
            exclusive,
            /// It goes with its last consumer.
            auto_delete,
            /// No answer is wanted.
            no_wait,
        }
        then {
            /// Its arguments.
            arguments: Table<'a>,
        }
    }

    /// From the server: answers `declare`.
    DeclareOk<'a> = 11, "declare-ok" {
        fields {
            /// The queue's name.
            queue: ShortStr<'a>,
            /// Messages ready in it.
            message_count: u32,
            /// Its active consumers.
            consumer_count: u32,
        }
    }

    /// From the client: routes from an exchange to a queue.
    Bind<'a> = 20, "bind" {
        reserved { u16 }
        fields {
            /// The queue; empty: the last declared on this channel.
            queue: ShortStr<'a>,
            /// The exchange.
            exchange: ShortStr<'a>,
            /// The key of the binding.
            routing_key: ShortStr<'a>,
        }
        bits {
            /// No answer is wanted.
            no_wait,
        }
        then {
            /// The arguments of the binding.
            arguments: Table<'a>,
        }
    }

    /// From the server: answers `bind`.
    BindOk = 21, "bind-ok" {}

    /// From the client: removes all messages that are ready.
    Purge<'a> = 30, "purge" {
        reserved { u16 }
        fields {
            /// The queue; empty: the last declared on this channel.
            queue: ShortStr<'a>,
        }
        bits {
            /// No answer is wanted.
            no_wait,
        }
    }

    /// From the server: answers `purge`.
    PurgeOk = 31, "purge-ok" {
        fields {
            /// Messages removed.
            message_count: u32,
        }
    }

    /// From the client: deletes a queue.
    Delete<'a> = 40, "delete" {
        reserved { u16 }
        fields {
            /// The queue; empty: the last declared on this channel.
            queue: ShortStr<'a>,
        }
        bits {
            /// Only when it has no consumers.
            if_unused,
            /// Only when it has no messages.
            if_empty,
            /// No answer is wanted.
            no_wait,
        }
    }

    /// From the server: answers `delete`.
    DeleteOk = 41, "delete-ok" {
        fields {
            /// Messages that went with it.
            message_count: u32,
        }
    }

    /// From the client: undoes `bind`. It has no `no-wait`.
    Unbind<'a> = 50, "unbind" {
        reserved { u16 }
        fields {
            /// The queue; empty: the last declared on this channel.
            queue: ShortStr<'a>,
            /// The exchange.
            exchange: ShortStr<'a>,
            /// The key of the binding.
            routing_key: ShortStr<'a>,
            /// The arguments of the binding.
            arguments: Table<'a>,
        }
    }

    /// From the server: answers `unbind`.
    UnbindOk = 51, "unbind-ok" {}
}
