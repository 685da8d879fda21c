//! What a peer is told that went wrong.

use tanda_engine::{TopologyCode, TopologyError};
use tanda_wire::firemq::{ReplyCode, SyntaxError};

use crate::consumer_args::ArgumentError;

/// The content of an `error`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The request; 0 = none.
    pub(super) rid: u64,
    pub(super) code: ReplyCode,
    pub(super) text: String,
    /// The connection ends.
    pub(super) fatal: bool,
}

impl Fault {
    /// No request is to blame yet (see [`Fault::of`]), and the connection goes on.
    pub(super) fn new(code: ReplyCode, text: impl Into<String>) -> Self {
        Self {
            rid: 0,
            code,
            text: text.into(),
            fatal: false,
        }
    }

    /// It answers this request.
    pub(super) const fn of(mut self, rid: u64) -> Self {
        self.rid = rid;
        self
    }

    /// The connection ends.
    pub(super) const fn fatal(mut self) -> Self {
        self.fatal = true;
        self
    }

    /// A header that cannot be read.
    pub(super) fn of_header(error: &SyntaxError) -> Self {
        Self::new(SyntaxError::CODE, error.to_string())
    }

    /// 403 with a text.
    pub(super) fn refused(text: impl Into<String>) -> Self {
        Self::new(ReplyCode::AccessRefused, text)
    }

    /// 406 with a text.
    pub(super) fn precondition(text: impl Into<String>) -> Self {
        Self::new(ReplyCode::PreconditionFailed, text)
    }

    /// There is no such queue.
    pub(super) fn no_queue(queue: &str, vhost: &str) -> Self {
        let text = format!("no queue '{queue}' in vhost '{vhost}'");
        Self::new(ReplyCode::NotFound, text)
    }

    /// A consumer's arguments are refused.
    pub(super) fn of_argument(error: ArgumentError) -> Self {
        match error {
            ArgumentError::Layout(error) => Self::precondition(format!("arguments: {error}")),
            ArgumentError::Invalid(text) => Self::precondition(text),
        }
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
}
