//! What is said to requests once the log has failed.

use tanda_engine::{ConnId, Event, Request};

/// The answer to a request that expects one: the log has failed, nothing can be confirmed.
pub(crate) fn storage_failed(request: &Request) -> Option<(ConnId, Event)> {
    let (conn, token) = match request {
        Request::Publish { reply, .. }
        | Request::Settle { reply, .. }
        | Request::Get { reply, .. }
        | Request::Transaction { reply, .. }
        | Request::Keys { reply, .. }
        | Request::Admin { reply, .. } => (reply.conn, reply.token),
        Request::Subscribe { sub, .. } | Request::Watch { sub, .. } => (sub.conn, sub.token),
        Request::Connect { .. }
        | Request::Disconnect { .. }
        | Request::Drained { .. }
        | Request::Grant { .. }
        | Request::Unsubscribe { .. }
        | Request::Pool { .. }
        | Request::CancelWait { .. }
        | Request::GotUndelivered { .. }
        | Request::Unwatch { .. }
        | Request::WatchDrained { .. }
        | Request::KeysUndelivered { .. }
        | Request::ScriptDone { .. } => return None,
    };
    Some((conn, Event::StorageFailed { token }))
}
