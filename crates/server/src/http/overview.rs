//! The broker at a glance, with the fields of RabbitMQ's management that are true here. Documented
//! in `docs/http-api.md`.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    routing::get,
};
use serde_json::{Value, json};
use tanda_wal::Disk;
use tokio::task::spawn_blocking;

use super::{Door, Listener, auth::Asking, problem::Problem, users::no_vhost};
use crate::{listing, process, settings};

/// What this node is called. There is one.
pub(super) const NODE: &str = "tanda";

type Answer = Result<Json<Value>, Problem>;

pub(super) fn routes() -> Router<Arc<Door>> {
    Router::new()
        .route("/api/overview", get(overview))
        .route("/api/nodes", get(nodes))
        .route("/api/nodes/{name}", get(node))
        .route("/api/aliveness-test/{vhost}", get(aliveness))
}

/// Sums over what who asks may touch.
#[derive(Default)]
struct Totals {
    exchanges: u64,
    queues: u64,
    consumers: u64,
    messages: u64,
    ready: u64,
    unacknowledged: u64,
}

async fn totals(door: &Door, asking: &Asking) -> Result<Totals, Problem> {
    let mut totals = Totals::default();
    for vhost in listing::vhosts(&door.asker).await? {
        for queue in listing::queues(&door.asker, vhost.id).await? {
            if !asking.who.may_touch_in(&vhost.name, &queue.name) {
                continue;
            }
            let counts = &queue.counts;
            totals.queues += 1;
            totals.consumers += u64::from(counts.active_consumers);
            totals.messages += counts.depth + counts.in_flight;
            totals.ready += counts.ready;
            totals.unacknowledged += counts.in_flight;
        }
        let exchanges = listing::exchanges(&door.asker, vhost.id).await?;
        let theirs = exchanges
            .iter()
            .filter(|it| asking.who.may_touch_in(&vhost.name, &it.name));
        totals.exchanges += theirs.count() as u64;
    }
    Ok(totals)
}

async fn overview(State(door): State<Arc<Door>>, asking: Asking) -> Answer {
    let totals = totals(&door, &asking).await?;
    let sees_all = asking.who.may_look_at_all();
    let mut objects = json!({
        "exchanges": totals.exchanges,
        "queues": totals.queues,
        "consumers": totals.consumers,
    });
    if let (Value::Object(objects), true) = (&mut objects, sees_all) {
        objects.insert("connections".to_owned(), door.fila.now().into());
    }
    let mut overview = json!({
        "product_name": "Tanda",
        "product_version": env!("CARGO_PKG_VERSION"),
        "cluster_name": NODE,
        "node": NODE,
        "object_totals": objects,
        "queue_totals": {
            "messages": totals.messages,
            "messages_ready": totals.ready,
            "messages_unacknowledged": totals.unacknowledged,
        },
    });
    if let (Value::Object(overview), true) = (&mut overview, sees_all) {
        let listeners = door.listeners.iter().map(listener).collect();
        overview.insert("listeners".to_owned(), listeners);
    }
    Ok(Json(overview))
}

fn listener(it: &Listener) -> Value {
    json!({
        "node": NODE,
        "protocol": it.protocol(),
        "ip_address": it.addr.ip().to_string(),
        "port": it.addr.port(),
    })
}

async fn nodes(State(door): State<Arc<Door>>, asking: Asking) -> Answer {
    asking.needs_all("ListNodes")?;
    Ok(Json(json!([figures(&door).await?])))
}

async fn node(State(door): State<Arc<Door>>, asking: Asking, Path(name): Path<String>) -> Answer {
    asking.needs_all("GetNode")?;
    if name != NODE {
        return Err(Problem::new(
            StatusCode::NOT_FOUND,
            "node_not_found",
            format!("there is no node named {name:?}"),
            "GET /api/nodes lists the only one",
        ));
    }
    Ok(Json(figures(&door).await?))
}

async fn figures(door: &Door) -> Result<Value, Problem> {
    let snapshot = door.shard.snapshot().await.ok_or_else(Problem::stopped)?;
    let disk = Arc::clone(&door.disk);
    // A file system over the network may hang.
    let free = spawn_blocking(move || disk.free_bytes()).await;
    let alarms = snapshot.alarms;
    Ok(json!({
        "name": NODE,
        "type": "disc",
        "running": snapshot.failed.is_none(),
        "uptime": door.clock.uptime_ms(),
        "os_pid": std::process::id().to_string(),
        "mem_used": snapshot.node.memory_bytes,
        "mem_limit": snapshot.node.memory_limit_bytes,
        "mem_alarm": alarms.memory,
        "resident_bytes": process::resident_bytes(),
        "disk_free": free.ok().flatten(),
        "disk_free_limit": settings::disk_alarm(&door.config),
        "disk_free_alarm": alarms.disk_low || alarms.disk_full,
        "partitions": [],
    }))
}

/// Whether the virtual host is there, and the broker answers: the answer has waited for the disk.
async fn aliveness(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path(vhost): Path<String>,
) -> Answer {
    asking.needs_all("aliveness-test")?;
    let vhosts = listing::vhosts(&door.asker).await?;
    if !vhosts.iter().any(|it| it.name == vhost) {
        return Err(no_vhost(&vhost));
    }
    let snapshot = door.shard.snapshot().await.ok_or_else(Problem::stopped)?;
    if snapshot.failed.is_some() {
        return Err(Problem::storage_failed());
    }
    Ok(Json(json!({ "status": "ok" })))
}
