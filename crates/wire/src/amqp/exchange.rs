//! Class `exchange` (§1.6), with RabbitMQ's bindings between exchanges.

use super::methods::methods;
use super::strings::ShortStr;
use super::table::Table;

methods! {
    /// A method of the class `exchange`.
    class Exchange<'a> = 40, "exchange";

    /// From the client: creates an exchange, or checks one.
    Declare<'a> = 10, "declare" {
        reserved { u16 }
        fields {
            /// Its name.
            exchange: ShortStr<'a>,
            /// Its type, such as `direct`.
            exchange_type: ShortStr<'a>,
        }
        bits {
            /// Only checks that it exists.
            passive,
            /// It outlives a restart.
            durable,
            /// It goes with its last binding.
            auto_delete,
            /// Clients may not publish to it.
            internal,
            /// No answer is wanted.
            no_wait,
        }
        then {
            /// Its arguments.
            arguments: Table<'a>,
        }
    }

    /// From the server: answers `declare`.
    DeclareOk = 11, "declare-ok" {}

    /// From the client: deletes an exchange.
    Delete<'a> = 20, "delete" {
        reserved { u16 }
        fields {
            /// Its name.
            exchange: ShortStr<'a>,
        }
        bits {
            /// Only when it has no bindings.
            if_unused,
            /// No answer is wanted.
            no_wait,
        }
    }

    /// From the server: answers `delete`.
    DeleteOk = 21, "delete-ok" {}

    /// From the client: routes from one exchange to another.
    Bind<'a> = 30, "bind" {
        reserved { u16 }
        fields {
            /// The exchange that receives.
            destination: ShortStr<'a>,
            /// The exchange that routes.
            source: ShortStr<'a>,
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
    BindOk = 31, "bind-ok" {}

    /// From the client: undoes `bind`.
    Unbind<'a> = 40, "unbind" {
        reserved { u16 }
        fields {
            /// The exchange that receives.
            destination: ShortStr<'a>,
            /// The exchange that routes.
            source: ShortStr<'a>,
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

    /// From the server: answers `unbind`. Its number is 51, not 41.
    UnbindOk = 51, "unbind-ok" {}
}
