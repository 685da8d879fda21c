//! The reply codes of connection.close, channel.close and basic.return.

use core::fmt;

/// What a reply code ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Nothing: it reports.
    None,
    /// The channel (the specification's soft errors).
    Channel,
    /// The connection (its hard errors).
    Connection,
}

macro_rules! reply_codes {
    ($( $(#[$meta:meta])* $Variant:ident = $number:literal, $name:literal, $Scope:ident; )*) => {
        /// Why a message came back, or a channel or connection is closed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum ReplyCode {
            $( $(#[$meta])* $Variant = $number, )*
        }

        impl ReplyCode {
            /// Every code, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$( Self::$Variant, )*];

            /// The code of a number on the wire.
            #[must_use]
            pub const fn from_wire(number: u16) -> Option<Self> {
                match number {
                    $( $number => Some(Self::$Variant), )*
                    _ => None,
                }
            }

            /// Its name as reply texts begin with it, such as `NOT_FOUND`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $( Self::$Variant => $name, )*
                }
            }

            /// What it ends.
            #[must_use]
            pub const fn scope(self) -> Scope {
                match self {
                    $( Self::$Variant => Scope::$Scope, )*
                }
            }
        }
    };
}

// `constant` elements of the specification; 312 is defined by RabbitMQ, from AMQP 0-8 (its errata,
// section 9).
reply_codes! {
    /// The client is done.
    ReplySuccess = 200, "REPLY_SUCCESS", None;
    /// The message is larger than the server takes.
    ContentTooLarge = 311, "CONTENT_TOO_LARGE", Channel;
    /// A mandatory message reached no queue; in basic.return, which closes nothing.
    NoRoute = 312, "NO_ROUTE", None;
    /// An immediate message reached no consumer.
    NoConsumers = 313, "NO_CONSUMERS", Channel;
    /// An operator closed the connection, or the server stops.
    ConnectionForced = 320, "CONNECTION_FORCED", Connection;
    /// The virtual host is unknown; RabbitMQ answers 530 instead.
    InvalidPath = 402, "INVALID_PATH", Connection;
    /// The user may not do this.
    AccessRefused = 403, "ACCESS_REFUSED", Channel;
    /// There is no such queue or exchange.
    NotFound = 404, "NOT_FOUND", Channel;
    /// Another connection has the queue for itself.
    ResourceLocked = 405, "RESOURCE_LOCKED", Channel;
    /// What the method relies on is not so.
    PreconditionFailed = 406, "PRECONDITION_FAILED", Channel;
    /// Bytes are no frame, or a frame does not follow its layout.
    FrameError = 501, "FRAME_ERROR", Connection;
    /// A field has an impossible value.
    SyntaxError = 502, "SYNTAX_ERROR", Connection;
    /// A method may not come now.
    CommandInvalid = 503, "COMMAND_INVALID", Connection;
    /// The channel is not open, or is open already.
    ChannelError = 504, "CHANNEL_ERROR", Connection;
    /// A frame may not come now.
    UnexpectedFrame = 505, "UNEXPECTED_FRAME", Connection;
    /// The server lacks the means.
    ResourceError = 506, "RESOURCE_ERROR", Connection;
    /// The server does not allow this to anyone, such as an unknown virtual host.
    NotAllowed = 530, "NOT_ALLOWED", Connection;
    /// The server does not have this.
    NotImplemented = 540, "NOT_IMPLEMENTED", Connection;
    /// The server failed.
    InternalError = 541, "INTERNAL_ERROR", Connection;
}

impl ReplyCode {
    /// Its number on the wire.
    #[inline]
    #[must_use]
    pub const fn to_wire(self) -> u16 {
        self as u16
    }
}

impl fmt::Display for ReplyCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.to_wire())
    }
}
