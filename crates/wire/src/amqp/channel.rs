//! Class `channel`: opening and closing channels (§1.5).

use super::methods::methods;
use super::strings::{LongStr, ShortStr};

methods! {
    /// A method of the class `channel`.
    class Channel<'a> = 20, "channel";

    /// From the client: opens the channel.
    Open = 10, "open" {
        rest { ShortStr<'_> }
    }

    /// From the server: answers `open`.
    OpenOk = 11, "open-ok" {
        rest { LongStr<'_> }
    }

    /// From both: asks the peer to send messages, or not to.
    Flow = 20, "flow" {
        bits {
            /// Whether to send.
            active,
        }
    }

    /// From both: answers `flow`.
    FlowOk = 21, "flow-ok" {
        bits {
            /// Whether it sends.
            active,
        }
    }

    /// From both: ends the channel.
    Close<'a> = 40, "close" {
        fields {
            /// Why, as a [`super::ReplyCode`].
            reply_code: u16,
            /// Why, for people.
            reply_text: ShortStr<'a>,
            /// The class of the method to blame; 0: none.
            class_id: u16,
            /// The method to blame; 0: none.
            method_id: u16,
        }
    }

    /// From both: answers `close`.
    CloseOk = 41, "close-ok" {}
}
