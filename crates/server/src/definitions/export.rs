//! What there is, as a document.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tanda_engine::{Destination, QueueOrigin, VhostInfo};

use crate::{
    ask::{AskError, Asker},
    listing,
    users::{Principals, password},
};

/// Virtual hosts, users with the hashes of their passwords, permissions, and of each virtual host
/// exchanges, queues and bindings: as [`super::read`] reads them.
///
/// # Errors
/// When the broker does not answer.
pub(crate) async fn export(asker: &Asker, newest: &Principals) -> Result<Value, AskError> {
    let vhosts = listing::vhosts(asker).await?;
    let [mut exchanges, mut queues, mut bindings] = [const { Vec::new() }; 3];
    for vhost in &vhosts {
        let lists = [&mut exchanges, &mut queues, &mut bindings];
        add_vhost(asker, vhost, lists).await?;
    }
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

/// Adds the durable exchanges, the durable queues that AMQP and FireMQ declared, and the bindings
/// between them: so everything in the document can be made again.
async fn add_vhost(
    asker: &Asker,
    vhost: &VhostInfo,
    [exchanges, queues, bindings]: [&mut Vec<Value>; 3],
) -> Result<(), AskError> {
    let name = &vhost.name;
    let mut ends = BTreeSet::new();
    for it in listing::exchanges(asker, vhost.id).await? {
        let is_built_in = it.name.is_empty() || it.name.starts_with("amq.");
        if it.durable && !is_built_in {
            exchanges.push(listing::exchange_json(name, &it));
        }
        if it.durable {
            ends.insert(Destination::Exchange(it.name));
        }
    }
    for it in listing::queues(asker, vhost.id).await? {
        let is_declared = it.origin == QueueOrigin::Declared;
        if is_declared && it.durable && !it.exclusive {
            queues.push(listing::queue_definition(name, &it));
            ends.insert(Destination::Queue(it.name));
        }
    }
    for it in listing::bindings(asker, vhost.id).await? {
        let source = Destination::Exchange(it.source.clone());
        let is_default = it.source.is_empty();
        if !is_default && ends.contains(&source) && ends.contains(&it.destination) {
            bindings.push(listing::binding_json(name, &it));
        }
    }
    Ok(())
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
