//! Answers of the engine that doors of AMQP's model have to tell in words of their own.

use tanda_engine::{AdminReply, DeclaredQueue, SubscribeError, TopologyCode, TopologyError};

/// What a request about exchanges, queues and bindings is answered with.
pub(crate) enum Answer {
    /// It is done.
    Done,
    /// The queue is there.
    Queue(DeclaredQueue),
    /// So many messages are gone.
    Count(u64),
}

impl Answer {
    /// `None` when it answers another question.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "most replies answer questions of other doors"
    )]
    pub(crate) fn of(reply: AdminReply) -> Option<Result<Self, TopologyError>> {
        Some(match reply {
            AdminReply::ExchangeDeclared(result)
            | AdminReply::ExchangeDeleted(result)
            | AdminReply::Bound(result)
            | AdminReply::Unbound(result) => result.map(|()| Self::Done),
            AdminReply::QueueDeclared(result) => result.map(Self::Queue),
            AdminReply::QueueRemoved(result) | AdminReply::QueuePurged(result) => {
                result.map(Self::Count)
            }
            _ => return None,
        })
    }
}

/// Why there is no consumer of a queue of a virtual host. `consumers` is what the protocol calls
/// them.
pub(crate) fn subscribe_refusal(
    error: SubscribeError,
    (queue, vhost): (&str, &str),
    consumers: &str,
) -> TopologyError {
    let (code, text) = match error {
        SubscribeError::QueueNotFound => (
            TopologyCode::NotFound,
            format!("no queue '{queue}' in vhost '{vhost}'"),
        ),
        SubscribeError::TokenInUse => (TopologyCode::Internal, "token in use".to_owned()),
        SubscribeError::TooMany { max } => (
            TopologyCode::NotAllowed,
            format!("reached maximum ({max}) of {consumers} per connection"),
        ),
        SubscribeError::InvalidThrottle { name, problem } => (
            TopologyCode::PreconditionFailed,
            format!("invalid arg 'x-throttles': '{name}': {problem}"),
        ),
        SubscribeError::ThrottleConflict { name } => (
            TopologyCode::PreconditionFailed,
            format!("inequivalent throttle '{name}': others declare it with another key"),
        ),
        SubscribeError::ResourceLocked(text) => (TopologyCode::ResourceLocked, text),
        SubscribeError::AccessRefused(text) => (TopologyCode::AccessRefused, text),
    };
    TopologyError { code, text }
}
