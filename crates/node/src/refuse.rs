//! What is said to requests once the log has failed.

use tanda_engine::{ConnId, Event, ReplyTo, Request};

/// The answer to a request that expects one: the log has failed, nothing can be confirmed.
pub(crate) fn storage_failed(request: &Request) -> Option<(ConnId, Event)> {
    let ReplyTo { conn, token } = request.answer_to()?;
    Some((conn, Event::StorageFailed { token }))
}
