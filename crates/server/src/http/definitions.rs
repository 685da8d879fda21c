//! Definitions, read and made.

use std::sync::Arc;

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
use serde_json::Value;

use super::{Door, auth::Asking, body::bad, problem::Problem};
use crate::definitions;

/// Longest document.
const DOCUMENT_BYTES_MAX: usize = 32 << 20;

pub(super) fn routes() -> Router<Arc<Door>> {
    Router::new()
        .route("/api/definitions", get(export).post(import))
        .layer(DefaultBodyLimit::max(DOCUMENT_BYTES_MAX))
}

async fn export(State(door): State<Arc<Door>>, asking: Asking) -> Result<Json<Value>, Problem> {
    asking.needs_superadmin("ExportDefinitions")?;
    let newest = door.authenticator.newest();
    let document = definitions::export(&door.asker, &newest).await?;
    asking.note_done("ExportDefinitions", "");
    Ok(Json(document))
}

async fn import(
    State(door): State<Arc<Door>>,
    asking: Asking,
    body: Bytes,
) -> Result<Response, Problem> {
    asking.needs_superadmin("ImportDefinitions")?;
    let read = definitions::read(&body).map_err(|mistakes| bad(mistakes.to_string()))?;
    let loaded = definitions::load(read, &door.asker, &door.authenticator).await?;
    asking.note_done("ImportDefinitions", "");
    let status = if loaded.refused.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::BAD_REQUEST
    };
    Ok((status, Json(loaded.json())).into_response())
}
