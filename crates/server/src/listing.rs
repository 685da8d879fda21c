//! What is in virtual hosts, asked of the shard, and as JSON with the field names of RabbitMQ's
//! management.

use serde_json::{Value, json};
use tanda_engine::{
    AdminReply, AdminRequest, BindingInfo, Destination, ExchangeInfo, QueueInfo, QueueKind,
    VhostId, VhostInfo,
};

use crate::{
    ask::{AskError, Asker},
    definitions::arguments_json,
};

/// All virtual hosts, by name.
pub(crate) async fn vhosts(asker: &Asker) -> Result<Vec<VhostInfo>, AskError> {
    let reply = asker.ask(AdminRequest::ListVhosts).await?;
    let AdminReply::Vhosts(vhosts) = reply else {
        return Err(mismatch(&reply));
    };
    Ok(vhosts)
}

/// The exchanges of a virtual host, by name; one that is gone meanwhile has none.
pub(crate) async fn exchanges(
    asker: &Asker,
    vhost: VhostId,
) -> Result<Vec<ExchangeInfo>, AskError> {
    let reply = asker.ask(AdminRequest::ListExchanges { vhost }).await?;
    let AdminReply::Exchanges(result) = reply else {
        return Err(mismatch(&reply));
    };
    Ok(result.unwrap_or_default())
}

/// The bindings of a virtual host; one that is gone meanwhile has none.
pub(crate) async fn bindings(asker: &Asker, vhost: VhostId) -> Result<Vec<BindingInfo>, AskError> {
    let reply = asker.ask(AdminRequest::ListBindings { vhost }).await?;
    let AdminReply::Bindings(result) = reply else {
        return Err(mismatch(&reply));
    };
    Ok(result.unwrap_or_default())
}

/// The queues of a virtual host, by name; one that is gone meanwhile has none.
pub(crate) async fn queues(asker: &Asker, vhost: VhostId) -> Result<Vec<QueueInfo>, AskError> {
    let reply = asker.ask(AdminRequest::ListQueuesOf { vhost }).await?;
    let AdminReply::QueuesOf(result) = reply else {
        return Err(mismatch(&reply));
    };
    Ok(result.unwrap_or_default())
}

fn mismatch(reply: &AdminReply) -> AskError {
    tracing::error!(?reply, "a bug: the engine answered another question");
    AskError::Stopped
}

/// An exchange of this virtual host, as lists and definitions have it.
pub(crate) fn exchange_json(vhost: &str, it: &ExchangeInfo) -> Value {
    json!({
        "name": it.name,
        "vhost": vhost,
        "type": it.kind.name(),
        "durable": it.durable,
        "auto_delete": it.auto_delete,
        "internal": it.internal,
        "arguments": arguments_json(&it.args),
    })
}

/// A binding of this virtual host, as lists and definitions have it.
pub(crate) fn binding_json(vhost: &str, it: &BindingInfo) -> Value {
    let (kind, destination) = match &it.destination {
        Destination::Queue(name) => ("queue", name),
        Destination::Exchange(name) => ("exchange", name),
    };
    json!({
        "source": it.source,
        "vhost": vhost,
        "destination": destination,
        "destination_type": kind,
        "routing_key": it.key,
        "arguments": arguments_json(&it.args),
    })
}

/// A queue of this virtual host, as lists have it. `messages` is all it holds: those that wait for
/// a time, their turn or room in a throttle are neither ready nor unacknowledged.
pub(crate) fn queue_json(vhost: &str, it: &QueueInfo) -> Value {
    let kind = match it.kind {
        QueueKind::Classic => "classic",
        QueueKind::Quorum => "quorum",
    };
    json!({
        "name": it.name,
        "vhost": vhost,
        "type": kind,
        "durable": it.durable,
        "auto_delete": it.auto_delete,
        "exclusive": it.exclusive,
        "arguments": arguments_json(&it.args),
        "messages": it.counts.depth + it.counts.in_flight,
        "messages_ready": it.counts.ready,
        "messages_unacknowledged": it.counts.in_flight,
        "message_bytes": it.counts.bytes,
        "consumers": it.counts.active_consumers,
    })
}

/// A queue of this virtual host, as definitions have it.
pub(crate) fn queue_definition(vhost: &str, it: &QueueInfo) -> Value {
    json!({
        "name": it.name,
        "vhost": vhost,
        "durable": it.durable,
        "auto_delete": it.auto_delete,
        "arguments": arguments_json(&it.args),
    })
}
