//! What ends a channel or a connection, and why.

use tanda_engine::{TopologyCode, TopologyError};
use tanda_wire::amqp::{MethodId, ReplyCode, Scope};
use tanda_wire::cursor::{DecodeError, DecodeErrorKind};

use crate::consumer_args::ArgumentError;

/// Something the peer did, or that happened to it, which its channel or connection does not
/// survive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The kind of it.
    pub(super) code: ReplyCode,
    /// The text, without the code's name.
    pub(super) text: String,
    /// The method to blame.
    pub(super) method: MethodId,
    /// The code is one of a channel, but the connection has to end.
    is_fatal: bool,
}

impl Fault {
    /// No method is to blame yet: see [`Fault::by`].
    pub(super) fn new(code: ReplyCode, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
            method: MethodId::NONE,
            is_fatal: false,
        }
    }

    /// It is this method's fault, unless another is blamed already.
    pub(super) fn by(mut self, method: MethodId) -> Self {
        if self.method == MethodId::NONE {
            self.method = method;
        }
        self
    }

    /// The connection ends, whatever the code says.
    pub(super) const fn fatal(mut self) -> Self {
        self.is_fatal = true;
        self
    }

    /// Whether only the channel ends.
    pub(super) fn ends_channel_only(&self) -> bool {
        !self.is_fatal && self.code.scope() == Scope::Channel
    }

    /// `reply-text`.
    pub(super) fn reply_text(&self) -> String {
        format!("{} - {}", self.code.name(), self.text)
    }

    /// The engine refused something of the topology.
    pub(super) fn of_topology(error: TopologyError) -> Self {
        let code = match error.code {
            TopologyCode::AccessRefused => ReplyCode::AccessRefused,
            TopologyCode::NotFound => ReplyCode::NotFound,
            TopologyCode::ResourceLocked => ReplyCode::ResourceLocked,
            TopologyCode::PreconditionFailed | TopologyCode::WrongType => {
                ReplyCode::PreconditionFailed
            }
            TopologyCode::NotAllowed => ReplyCode::NotAllowed,
            TopologyCode::NotImplemented => ReplyCode::NotImplemented,
            TopologyCode::ResourceError | TopologyCode::Storage => ReplyCode::ResourceError,
            TopologyCode::Internal => ReplyCode::InternalError,
            TopologyCode::CommandInvalid => ReplyCode::CommandInvalid,
        };
        Self::new(code, error.text)
    }

    /// A table or the properties cannot be read. RabbitMQ answers a tag it does not know with an
    /// internal error.
    pub(super) fn of_layout(what: &str, error: DecodeError) -> Self {
        let code = if matches!(error.kind, DecodeErrorKind::UnknownTag { .. }) {
            ReplyCode::InternalError
        } else {
            ReplyCode::SyntaxError
        };
        Self::new(code, format!("{what}: {error}"))
    }

    /// A consumer's arguments are refused.
    pub(super) fn of_argument(error: ArgumentError) -> Self {
        match error {
            ArgumentError::Layout(error) => Self::of_layout("arguments", error),
            ArgumentError::Invalid(text) => Self::precondition(text),
        }
    }

    /// There is no such queue.
    pub(super) fn no_queue(queue: &str, vhost: &str) -> Self {
        let text = format!("no queue '{queue}' in vhost '{vhost}'");
        Self::new(ReplyCode::NotFound, text)
    }

    /// 403 with a text.
    pub(super) fn refused(text: String) -> Self {
        Self::new(ReplyCode::AccessRefused, text)
    }

    /// 406 with a text.
    pub(super) fn precondition(text: impl Into<String>) -> Self {
        Self::new(ReplyCode::PreconditionFailed, text)
    }
}
