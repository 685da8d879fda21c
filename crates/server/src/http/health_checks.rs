//! Health checks, at the paths and in the shape of RabbitMQ's management: 200 when all is well,
//! else 503 with the reason. Documented in `docs/http-api.md`.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
use serde_json::{Value, json};

use super::{Door, auth::Asking, overview::NODE, pages::bad_query, problem::Problem};
use crate::listing;

type Checked = Result<Response, Problem>;

pub(super) fn routes() -> Router<Arc<Door>> {
    let path = |check: &str| format!("/api/health/checks/{check}");
    Router::new()
        .route(&path("alarms"), get(alarms))
        .route(&path("local-alarms"), get(alarms))
        .route(&path("port-listener/{port}"), get(port_listener))
        .route(
            &path("protocol-listener/{protocol}"),
            get(protocol_listener),
        )
        .route(&path("virtual-hosts"), get(virtual_hosts))
        .route(&path("node-is-quorum-critical"), get(quorum_critical))
}

fn ok(more: &Value) -> Response {
    answer(StatusCode::OK, json!({"status": "ok"}), more)
}

fn failed(reason: &str, more: &Value) -> Response {
    let status = json!({"status": "failed", "reason": reason});
    answer(StatusCode::SERVICE_UNAVAILABLE, status, more)
}

fn answer(code: StatusCode, mut status: Value, more: &Value) -> Response {
    if let (Value::Object(status), Value::Object(more)) = (&mut status, more) {
        status.extend(more.clone());
    }
    (code, Json(status)).into_response()
}

/// There is one node: its alarms are all.
async fn alarms(State(door): State<Arc<Door>>, asking: Asking) -> Checked {
    asking.needs_all("health check")?;
    let snapshot = door.shard.snapshot().await.ok_or_else(Problem::stopped)?;
    let mut resources = snapshot.alarms.names();
    if snapshot.failed.is_some() {
        resources.push("log");
    }
    if resources.is_empty() {
        return Ok(ok(&json!({})));
    }
    let alarm = |resource: &&str| json!({"node": NODE, "resource": resource});
    let alarms: Vec<Value> = resources.iter().map(alarm).collect();
    let reason = "There are alarms in effect in the cluster";
    Ok(failed(reason, &json!({ "alarms": alarms })))
}

async fn port_listener(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path(port): Path<String>,
) -> Checked {
    asking.needs_all("health check")?;
    let Ok(port) = port.parse::<u16>() else {
        return Err(bad_query(format!("{port:?} is no port number")));
    };
    let ports: Vec<u16> = door.listeners.iter().map(|it| it.addr.port()).collect();
    if ports.contains(&port) {
        return Ok(ok(&json!({ "port": port })));
    }
    let more = json!({"missing": port, "ports": ports});
    Ok(failed("No active listener", &more))
}

async fn protocol_listener(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path(protocol): Path<String>,
) -> Checked {
    asking.needs_all("health check")?;
    let wanted = match protocol.to_lowercase().as_str() {
        "amqp091" | "amqp0.9.1" | "amqp0-9-1" => "amqp".to_owned(),
        "amqps" | "amqp091s" => "amqp/ssl".to_owned(),
        other => other.to_owned(),
    };
    let protocols: Vec<String> = door.listeners.iter().map(|it| it.protocol()).collect();
    if protocols.contains(&wanted) {
        return Ok(ok(&json!({ "protocol": protocol })));
    }
    let more = json!({"missing": protocol, "protocols": protocols});
    Ok(failed("No active listener", &more))
}

/// All virtual hosts are served by the one shard: they are there when it answers.
async fn virtual_hosts(State(door): State<Arc<Door>>, asking: Asking) -> Checked {
    asking.needs_all("health check")?;
    let vhosts = listing::vhosts(&door.asker).await?;
    let snapshot = door.shard.snapshot().await.ok_or_else(Problem::stopped)?;
    if snapshot.failed.is_none() {
        return Ok(ok(&json!({})));
    }
    let names: Vec<&str> = vhosts.iter().map(|it| it.name.as_str()).collect();
    let more = json!({ "virtual-hosts": names });
    Ok(failed("Some virtual hosts are down", &more))
}

async fn quorum_critical(asking: Asking) -> Checked {
    asking.needs_all("health check")?;
    Ok(ok(&json!({ "reason": "single node cluster" })))
}
