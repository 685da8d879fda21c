//! The paths below `/api/tanda/` and what they answer. Documented in `docs/http-api.md`.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::State,
    http::{Method, StatusCode, Uri},
    middleware,
    routing::{get, post},
};
use serde_json::{Value, json};
use tanda_engine::{AdminReply, AdminRequest, CheckScriptsError};

use super::{
    Door,
    auth::{Asking, OPEN_PATH, authenticate},
    backup::backup,
    definitions,
    guard::guard,
    health_checks, json, overview, permissions,
    problem::Problem,
    queues, topology, users, vhosts,
};

type Answer = Result<Json<Value>, Problem>;

pub(super) fn router(door: Arc<Door>) -> Router {
    Router::new()
        .route(OPEN_PATH, get(health))
        .route("/api/tanda/node", get(node))
        .route("/api/tanda/backup", get(backup))
        .route("/api/tanda/scripts/check", post(check_scripts))
        .merge(definitions::routes())
        .merge(users::routes())
        .merge(permissions::routes())
        .merge(vhosts::routes())
        .merge(topology::routes())
        .merge(queues::routes())
        .merge(overview::routes())
        .merge(health_checks::routes())
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(middleware::from_fn_with_state(
            Arc::clone(&door),
            authenticate,
        ))
        .layer(middleware::from_fn_with_state(Arc::clone(&door), guard))
        .with_state(door)
}

async fn health(State(door): State<Arc<Door>>) -> Answer {
    let snapshot = door.shard.snapshot().await.ok_or_else(Problem::stopped)?;
    Ok(Json(json::health(&door, &snapshot)))
}

async fn node(State(door): State<Arc<Door>>, asking: Asking) -> Answer {
    asking.needs_all("node")?;
    let snapshot = door.shard.snapshot().await.ok_or_else(Problem::stopped)?;
    Ok(Json(json::node(&door, &snapshot)))
}

/// Loads scripts as for a queue; the protocols say only that one cannot be used, this says why.
async fn check_scripts(
    State(door): State<Arc<Door>>,
    _asking: Asking,
    Json(scripts): Json<Value>,
) -> Answer {
    let text = |name: &str| scripts.get(name).and_then(Value::as_str).map(str::to_owned);
    let request = AdminRequest::CheckScripts {
        on_enqueue: text("on_enqueue"),
        on_failure: text("on_failure"),
    };
    let reply = door.asker.ask(request).await?;
    let AdminReply::ScriptsChecked(outcome) = reply else {
        return Err(mismatch(&reply));
    };
    let problem = outcome.err().map(|error| match error {
        CheckScriptsError::Unsupported => "this broker runs no scripts".to_owned(),
        CheckScriptsError::Refused { problem } => problem,
    });
    Ok(Json(json!({ "ok": problem.is_none(), "problem": problem })))
}

async fn not_found(uri: Uri) -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "not_found",
        format!("there is nothing at {}", uri.path()),
        "docs/http-api.md lists the paths: /api/tanda/..., /api/users, /api/permissions, \
         /api/topic-permissions, /api/vhosts, /api/queues, /api/exchanges, /api/bindings, \
         /api/definitions, /api/overview, /api/nodes, /api/health/checks/... and /api/whoami",
    )
}

async fn method_not_allowed(method: Method, uri: Uri) -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        format!("{} does not take {method}", uri.path()),
        "docs/http-api.md says which methods a path takes",
    )
}

pub(super) fn mismatch(reply: &AdminReply) -> Problem {
    tracing::error!(?reply, "a bug: the engine answered another question");
    Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "bug",
        "the broker answered another question",
        "report it with the broker's log",
    )
}
