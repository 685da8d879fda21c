//! The reply codes (`error`, `close`, `return`), which are AMQP's.

use core::fmt;

use super::table::code_table;

code_table! {
    /// Why a request was refused, a message returned, or a session closed.
    pub enum ReplyCode: u16 {
        /// A normal shutdown; only in `close`.
        Success = 200, "reply-success", "close";
        /// No queue received a mandatory message; only in `return`.
        NoRoute = 312, "no-route", "return";
        /// The server shuts down, or an operator closed the connection.
        ConnectionForced = 320, "connection-forced", "error";
        /// Bad credentials, or no permission for the resource.
        AccessRefused = 403, "access-refused", "error";
        /// The queue or exchange does not exist.
        NotFound = 404, "not-found", "error";
        /// An exclusive queue of another connection, or an exclusive consumer.
        ResourceLocked = 405, "resource-locked", "error";
        /// Redeclared with other properties, an unknown delivery tag, `if_unused`, `if_empty`.
        PreconditionFailed = 406, "precondition-failed", "error";
        /// A malformed frame; always fatal.
        FrameError = 501, "frame-error", "error";
        /// The header is not a MessagePack map, or a field has the wrong type.
        SyntaxError = 502, "syntax-error", "error";
        /// The request is not allowed in this state.
        CommandInvalid = 503, "command-invalid", "error";
        /// The server is out of a resource.
        ResourceError = 506, "resource-error", "error";
        /// The operation is not allowed.
        NotAllowed = 530, "not-allowed", "error";
        /// An unknown op, or an unsupported feature.
        NotImplemented = 540, "not-implemented", "error";
        /// A bug in the server.
        InternalError = 541, "internal-error", "error";
    }
}

impl ReplyCode {
    /// What a frame without a code holds: the number 0.
    pub const ABSENT: Self = Self::Unknown(0);
}

impl Default for ReplyCode {
    fn default() -> Self {
        Self::ABSENT
    }
}

impl fmt::Display for ReplyCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.to_wire(), self.name())
    }
}
