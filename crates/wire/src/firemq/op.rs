//! The op table (`Op codes`): every frame's number, name, direction, and whether it has a payload.

use core::fmt;

use super::table::code_table;

code_table! {
    /// What a frame is.
    pub enum Op: u8 {
        /// Opens a session: version, virtual host, credentials.
        Hello = 0x01, "hello", "hello";
        /// Accepts it.
        Welcome = 0x02, "welcome", "welcome";
        /// Asks whether the peer is alive.
        Ping = 0x03, "ping", "Heartbeats";
        /// Answers a ping.
        Pong = 0x04, "pong", "Heartbeats";
        /// Announces an orderly close, or answers one.
        Close = 0x05, "close", "close";
        /// A request succeeded.
        Ok = 0x06, "ok", "ok";
        /// A request failed, or something that was no request.
        Error = 0x07, "error", "error";
        /// Asks publishers to pause or to go on.
        Flow = 0x08, "flow", "flow";
        /// Makes an exchange.
        DeclareExchange = 0x10, "declare_exchange", "declare_exchange";
        /// Removes an exchange.
        DeleteExchange = 0x11, "delete_exchange", "delete_exchange";
        /// Makes a queue.
        DeclareQueue = 0x12, "declare_queue", "declare_queue";
        /// Removes a queue.
        DeleteQueue = 0x13, "delete_queue", "delete_queue";
        /// Removes the ready messages of a queue.
        PurgeQueue = 0x14, "purge_queue", "purge_queue";
        /// Adds a binding.
        Bind = 0x15, "bind", "bind and unbind";
        /// Removes a binding.
        Unbind = 0x16, "unbind", "bind and unbind";
        /// A message to an exchange.
        Publish = 0x20, "publish", "publish";
        /// What became of publishes.
        Confirm = 0x21, "confirm", "confirm";
        /// A mandatory message that no queue received.
        Return = 0x22, "return", "return";
        /// Starts a subscription.
        Subscribe = 0x30, "subscribe", "Consuming";
        /// Ends a subscription.
        Unsubscribe = 0x31, "unsubscribe", "unsubscribe";
        /// Lets a subscription receive more.
        Credit = 0x32, "credit", "credit";
        /// A message for a subscription.
        Deliver = 0x33, "deliver", "deliver";
        /// The server ended a subscription.
        Cancelled = 0x34, "cancelled", "cancelled";
        /// Settles deliveries as done.
        Ack = 0x35, "ack", "ack and nack";
        /// Gives deliveries back.
        Nack = 0x36, "nack", "ack and nack";
        /// Asks for one message.
        Get = 0x37, "get", "get and get_ok";
        /// That message.
        GetOk = 0x38, "get_ok", "get and get_ok";
    }
}

/// The number kept for `commit_offset` of streams; version 1 answers it like any unknown op.
/// Source: `Reserved for later versions`.
pub const COMMIT_OFFSET_RESERVED: u8 = 0x39;

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (0x{:02x})", self.name(), self.to_wire())
    }
}

/// Who may send a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Clients only.
    ToServer,
    /// Servers only.
    ToClient,
    /// Both sides.
    Either,
    /// Not known, because the op is not.
    Unknown,
}

impl Op {
    /// Who may send this frame.
    #[must_use]
    pub const fn direction(self) -> Direction {
        match self {
            Self::Ping | Self::Pong | Self::Close => Direction::Either,
            Self::Hello
            | Self::DeclareExchange
            | Self::DeleteExchange
            | Self::DeclareQueue
            | Self::DeleteQueue
            | Self::PurgeQueue
            | Self::Bind
            | Self::Unbind
            | Self::Publish
            | Self::Subscribe
            | Self::Unsubscribe
            | Self::Credit
            | Self::Ack
            | Self::Nack
            | Self::Get => Direction::ToServer,
            Self::Welcome
            | Self::Ok
            | Self::Error
            | Self::Flow
            | Self::Confirm
            | Self::Return
            | Self::Deliver
            | Self::Cancelled
            | Self::GetOk => Direction::ToClient,
            Self::Unknown(_) => Direction::Unknown,
        }
    }

    /// Whether the frame carries a message body after its header.
    #[inline]
    #[must_use]
    pub const fn has_payload(self) -> bool {
        matches!(
            self,
            Self::Publish | Self::Return | Self::Deliver | Self::GetOk
        )
    }

    /// Whether the frame is a request: it carries a `rid` and gets exactly one reply.
    #[must_use]
    pub const fn is_request(self) -> bool {
        matches!(
            self,
            Self::DeclareExchange
                | Self::DeleteExchange
                | Self::DeclareQueue
                | Self::DeleteQueue
                | Self::PurgeQueue
                | Self::Bind
                | Self::Unbind
                | Self::Subscribe
                | Self::Unsubscribe
                | Self::Get
        )
    }
}
