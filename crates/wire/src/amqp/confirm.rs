//! Class `confirm` of RabbitMQ: publisher confirms.

use super::methods::methods;

methods! {
    /// A method of the class `confirm`.
    class Confirm = 85, "confirm";

    /// From the client: wants publishes confirmed from now on.
    Select = 10, "select" {
        bits {
            /// No answer is wanted.
            no_wait,
        }
    }

    /// From the server: answers `select`.
    SelectOk = 11, "select-ok" {}
}
