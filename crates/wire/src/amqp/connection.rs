//! Class `connection`: from the greeting to the end (§1.4), on channel 0.
//!
//! `blocked`, `unblocked` and `update-secret` are RabbitMQ's.

use super::methods::methods;
use super::strings::{LongStr, ShortStr};
use super::table::Table;

methods! {
    /// A method of the class `connection`.
    class Connection<'a> = 10, "connection";

    /// From the server: greets, and says what it speaks.
    Start<'a> = 10, "start" {
        fields {
            /// 0 in AMQP 0-9-1.
            version_major: u8,
            /// 9 in AMQP 0-9-1.
            version_minor: u8,
            /// Product, version, capabilities.
            server_properties: Table<'a>,
            /// Names of mechanisms of authentication, separated by spaces.
            mechanisms: LongStr<'a>,
            /// Names of locales, separated by spaces.
            locales: LongStr<'a>,
        }
    }

    /// From the client: picks a mechanism and authenticates.
    StartOk<'a> = 11, "start-ok" {
        fields {
            /// Product, version, capabilities.
            client_properties: Table<'a>,
            /// The mechanism picked.
            mechanism: ShortStr<'a>,
            /// What the mechanism asks for; for AMQPLAIN a table without its length.
            response: LongStr<'a>,
            /// The locale picked.
            locale: ShortStr<'a>,
        }
    }

    /// From the server: asks for more.
    Secure<'a> = 20, "secure" {
        fields {
            /// What the mechanism asks.
            challenge: LongStr<'a>,
        }
    }

    /// From the client: answers `secure`.
    SecureOk<'a> = 21, "secure-ok" {
        fields {
            /// What the mechanism answers.
            response: LongStr<'a>,
        }
    }

    /// From the server: offers limits.
    Tune = 30, "tune" {
        fields {
            /// The highest channel number; 0: no limit.
            channel_max: u16,
            /// The largest frame in bytes; 0: no limit.
            frame_max: u32,
            /// The interval of heartbeats in seconds; 0: none.
            heartbeat: u16,
        }
    }

    /// From the client: settles the limits.
    TuneOk = 31, "tune-ok" {
        fields {
            /// The highest channel number; 0: no limit.
            channel_max: u16,
            /// The largest frame in bytes; 0: no limit.
            frame_max: u32,
            /// The interval of heartbeats in seconds; 0: none.
            heartbeat: u16,
        }
    }

    /// From the client: picks the virtual host.
    Open<'a> = 40, "open" {
        fields {
            /// Its name.
            virtual_host: ShortStr<'a>,
        }
        rest { ShortStr<'_>, u8 }
    }

    /// From the server: answers `open`.
    OpenOk = 41, "open-ok" {
        rest { ShortStr<'_> }
    }

    /// From both: ends the connection.
    Close<'a> = 50, "close" {
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
    CloseOk = 51, "close-ok" {}

    /// From the server: it takes no messages now.
    Blocked<'a> = 60, "blocked" {
        fields {
            /// Why, for people.
            reason: ShortStr<'a>,
        }
    }

    /// From the server: it takes messages again.
    Unblocked = 61, "unblocked" {}

    /// From the client: replaces the secret it logged in with.
    UpdateSecret<'a> = 70, "update-secret" {
        fields {
            /// The new secret.
            new_secret: LongStr<'a>,
            /// Why, for people.
            reason: ShortStr<'a>,
        }
    }

    /// From the server: answers `update-secret`.
    UpdateSecretOk = 71, "update-secret-ok" {}
}
