//! Virtual hosts, at the paths that RabbitMQ's management has them at.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
use serde_json::{Value, json};
use tanda_engine::{AdminReply, AdminRequest};

use super::{Door, api::mismatch, auth::Asking, body::refused, problem::Problem, users::no_vhost};

pub(super) fn routes() -> Router<Arc<Door>> {
    Router::new()
        .route("/api/vhosts", get(list))
        .route("/api/vhosts/{name}", get(one).put(put).delete(remove))
}

async fn names(door: &Door) -> Result<Vec<String>, Problem> {
    let reply = door.asker.ask(AdminRequest::ListVhosts).await?;
    let AdminReply::Vhosts(vhosts) = reply else {
        return Err(mismatch(&reply));
    };
    Ok(vhosts.into_iter().map(|vhost| vhost.name).collect())
}

async fn list(State(door): State<Arc<Door>>, asking: Asking) -> Result<Json<Value>, Problem> {
    asking.needs_all("ListVhosts")?;
    let names = names(&door).await?;
    Ok(Json(
        names.iter().map(|name| json!({ "name": name })).collect(),
    ))
}

async fn one(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path(name): Path<String>,
) -> Result<Json<Value>, Problem> {
    asking.needs_all("GetVhost")?;
    if names(&door).await?.contains(&name) {
        return Ok(Json(json!({ "name": name })));
    }
    Err(no_vhost(&name))
}

async fn put(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    asking.needs_superadmin("CreateVhost")?;
    let is_there = names(&door).await?.contains(&name);
    let request = AdminRequest::CreateVhost { name: name.clone() };
    let reply = door.asker.ask(request).await?;
    let AdminReply::VhostChanged(result) = reply else {
        return Err(mismatch(&reply));
    };
    result.map_err(|error| refused(error, || no_vhost(&name)))?;
    asking.note_done("CreateVhost", &name);
    let status = if is_there {
        StatusCode::NO_CONTENT
    } else {
        StatusCode::CREATED
    };
    Ok(status.into_response())
}

async fn remove(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    asking.needs_superadmin("DeleteVhost")?;
    if !names(&door).await?.contains(&name) {
        return Err(no_vhost(&name));
    }
    let request = AdminRequest::DeleteVhost { name: name.clone() };
    let reply = door.asker.ask(request).await?;
    let AdminReply::VhostDeleted(result) = reply else {
        return Err(mismatch(&reply));
    };
    result.map_err(|error| refused(error, || no_vhost(&name)))?;
    asking.note_done("DeleteVhost", &name);
    Ok(StatusCode::NO_CONTENT.into_response())
}
