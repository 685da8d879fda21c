//! Class `access` of AMQP 0-8: tickets, which old clients still ask for and servers give away.

use super::methods::methods;
use super::strings::ShortStr;

methods! {
    /// A method of the class `access`.
    class Access<'a> = 30, "access";

    /// From the client: asks for a ticket.
    Request<'a> = 10, "request" {
        fields {
            /// The realm to enter.
            realm: ShortStr<'a>,
        }
        bits {
            /// Wants it for itself.
            exclusive,
            /// Accepts what others have.
            passive,
            /// Wants to create and delete.
            active,
            /// Wants to publish.
            write,
            /// Wants to consume.
            read,
        }
    }

    /// From the server: answers `request`.
    RequestOk = 11, "request-ok" {
        fields {
            /// The ticket, which later methods carry where 0-9-1 has a reserved field.
            ticket: u16,
        }
    }
}
