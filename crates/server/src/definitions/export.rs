//! What there is, as a document.

use serde_json::{Value, json};
use tanda_engine::{AdminReply, AdminRequest, Destination, VhostInfo};

use super::arguments;
use crate::{
    ask::{AskError, Asker},
    users::{Principals, password},
};

/// Virtual hosts, users with the hashes of their passwords, permissions, exchanges and bindings,
/// and the queues that AMQP and FireMQ declared in `/`: as [`super::read`] reads them.
///
/// # Errors
/// When the broker does not answer.
pub(crate) async fn export(asker: &Asker, newest: &Principals) -> Result<Value, AskError> {
    let vhosts = vhosts(asker).await?;
    let mut exchanges = Vec::new();
    let mut bindings = Vec::new();
    for vhost in &vhosts {
        exchanges.extend(exchanges_of(asker, vhost).await?);
        bindings.extend(bindings_of(asker, vhost).await?);
    }
    let queues = queues(asker).await?;
    let vhosts: Vec<_> = vhosts.iter().map(|it| json!({ "name": it.name })).collect();
    Ok(json!({
        "product_name": "Tanda",
        "product_version": env!("CARGO_PKG_VERSION"),
        "vhosts": vhosts,
        "users": users(newest),
        "permissions": permissions(newest),
        "topic_permissions": topic_permissions(newest),
        "exchanges": exchanges,
        "queues": queues,
        "bindings": bindings,
    }))
}

async fn vhosts(asker: &Asker) -> Result<Vec<VhostInfo>, AskError> {
    let reply = asker.ask(AdminRequest::ListVhosts).await?;
    let AdminReply::Vhosts(vhosts) = reply else {
        return Ok(Vec::new());
    };
    Ok(vhosts)
}

async fn exchanges_of(asker: &Asker, vhost: &VhostInfo) -> Result<Vec<Value>, AskError> {
    let request = AdminRequest::ListExchanges { vhost: vhost.id };
    let AdminReply::Exchanges(Ok(exchanges)) = asker.ask(request).await? else {
        return Ok(Vec::new());
    };
    let own = exchanges.iter().filter(|it| {
        let is_built_in = it.name.is_empty() || it.name.starts_with("amq.");
        !is_built_in && it.durable
    });
    let own = own.map(|it| {
        json!({
            "name": it.name,
            "vhost": vhost.name,
            "type": it.kind.name(),
            "durable": it.durable,
            "auto_delete": it.auto_delete,
            "internal": it.internal,
            "arguments": arguments::decode(&it.args),
        })
    });
    Ok(own.collect())
}

async fn bindings_of(asker: &Asker, vhost: &VhostInfo) -> Result<Vec<Value>, AskError> {
    let request = AdminRequest::ListBindings { vhost: vhost.id };
    let AdminReply::Bindings(Ok(bindings)) = asker.ask(request).await? else {
        return Ok(Vec::new());
    };
    let all = bindings
        .iter()
        .filter(|it| !it.source.is_empty())
        .map(|it| {
            let (kind, destination) = match &it.destination {
                Destination::Queue(name) => ("queue", name),
                Destination::Exchange(name) => ("exchange", name),
            };
            json!({
                "source": it.source,
                "vhost": vhost.name,
                "destination": destination,
                "destination_type": kind,
                "routing_key": it.key,
                "arguments": arguments::decode(&it.args),
            })
        });
    Ok(all.collect())
}

async fn queues(asker: &Asker) -> Result<Vec<Value>, AskError> {
    let AdminReply::Queues(queues) = asker.ask(AdminRequest::ListQueues).await? else {
        return Ok(Vec::new());
    };
    let mut declared = Vec::new();
    for queue in queues {
        let name = queue.name.clone();
        let reply = asker.ask(AdminRequest::InspectQueue { name }).await?;
        let AdminReply::Inspected(Ok(details)) = reply else {
            continue;
        };
        let Some(policy) = &details.config.amqp else {
            continue;
        };
        if policy.exclusive || !policy.durable {
            continue;
        }
        declared.push(json!({
            "name": queue.name,
            "vhost": "/",
            "durable": policy.durable,
            "auto_delete": policy.auto_delete,
            "arguments": arguments::decode(&policy.args),
        }));
    }
    Ok(declared)
}

fn users(newest: &Principals) -> Vec<Value> {
    let users = newest.users.iter().map(|user| {
        let hash = user.password.as_ref().map_or("", |hash| hash.reveal());
        let (algorithm, hash) = password::export(hash);
        json!({
            "name": &*user.name,
            "password_hash": hash,
            "hashing_algorithm": algorithm,
            "tags": user.tags.iter().map(|tag| &**tag).collect::<Vec<_>>(),
        })
    });
    users.collect()
}

fn permissions(newest: &Principals) -> Vec<Value> {
    let all = newest.users.iter().flat_map(|user| {
        user.permissions.iter().map(|(vhost, it)| {
            json!({
                "user": &*user.name,
                "vhost": &**vhost,
                "configure": &*it.configure,
                "write": &*it.write,
                "read": &*it.read,
            })
        })
    });
    all.collect()
}

fn topic_permissions(newest: &Principals) -> Vec<Value> {
    let all = newest.users.iter().flat_map(|user| {
        user.topics.iter().map(|((vhost, exchange), it)| {
            json!({
                "user": &*user.name,
                "vhost": &**vhost,
                "exchange": &**exchange,
                "write": &*it.write,
                "read": &*it.read,
            })
        })
    });
    all.collect()
}
