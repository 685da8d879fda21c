//! Permissions of users, at the paths that RabbitMQ's management has them at. Documented in
//! `docs/http-api.md`.

use std::sync::Arc;

use axum::{
    Json, Router,
    body::Bytes,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{delete, get},
};
use serde_json::{Map, Value, json};
use tanda_engine::{
    AdminReply, NewTopicPermissions, NewVhostPermissions, PermissionError, TopicPermissions, User,
    UserReply, UserRequest, VhostPermissions,
};

use super::{
    Door,
    api::mismatch,
    auth::Asking,
    body::{bad, object, text},
    problem::Problem,
    users::{ask, find, no_user, no_vhost, users},
};
use crate::users::Pattern;

type Answer = Result<Json<Value>, Problem>;
type Done = Result<Response, Problem>;

pub(super) fn routes() -> Router<Arc<Door>> {
    Router::new()
        .route("/api/users/{name}/permissions", get(permissions_of_user))
        .route("/api/users/{name}/topic-permissions", get(topics_of_user))
        .route("/api/permissions", get(permissions))
        .route(
            "/api/permissions/{vhost}/{user}",
            get(permission).put(set_permission).delete(clear_permission),
        )
        .route("/api/vhosts/{vhost}/permissions", get(permissions_of_vhost))
        .route("/api/topic-permissions", get(topics))
        .route(
            "/api/topic-permissions/{vhost}/{user}",
            get(topics_of_both).put(set_topic).delete(clear_topics),
        )
        .route(
            "/api/topic-permissions/{vhost}/{user}/{exchange}",
            delete(clear_topic),
        )
}

fn permissions_json(user: &User) -> impl Iterator<Item = Value> {
    user.permissions.iter().map(|(vhost, it)| {
        json!({
            "user": &*user.name,
            "vhost": &**vhost,
            "configure": &*it.configure,
            "write": &*it.write,
            "read": &*it.read,
        })
    })
}

fn topics_json(user: &User) -> impl Iterator<Item = Value> {
    user.topics.iter().map(|((vhost, exchange), it)| {
        json!({
            "user": &*user.name,
            "vhost": &**vhost,
            "exchange": &**exchange,
            "write": &*it.write,
            "read": &*it.read,
        })
    })
}

async fn permissions(State(door): State<Arc<Door>>, asking: Asking) -> Answer {
    let users = users(&door, &asking)?;
    let all = users.iter().flat_map(|user| permissions_json(user));
    Ok(Json(all.collect()))
}

async fn permissions_of_user(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path(name): Path<String>,
) -> Answer {
    let user = find(&door, &asking, &name)?;
    Ok(Json(permissions_json(&user).collect()))
}

async fn permissions_of_vhost(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path(vhost): Path<String>,
) -> Answer {
    let users = users(&door, &asking)?;
    let all = users.iter().flat_map(|user| permissions_json(user));
    let here = all.filter(|it| it.get("vhost").and_then(Value::as_str) == Some(&vhost));
    Ok(Json(here.collect()))
}

async fn permission(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path((vhost, name)): Path<(String, String)>,
) -> Answer {
    let user = find(&door, &asking, &name)?;
    let here = |it: &Value| it.get("vhost").and_then(Value::as_str) == Some(&vhost);
    let found = permissions_json(&user).find(here);
    let none = || {
        Problem::new(
            StatusCode::NOT_FOUND,
            "permission_not_found",
            format!("user {name:?} may do nothing in virtual host {vhost:?}"),
            "GET /api/permissions lists the permissions",
        )
    };
    found.map(Json).ok_or_else(none)
}

async fn set_permission(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path((vhost, user)): Path<(String, String)>,
    body: Bytes,
) -> Done {
    asking.needs_superadmin("SetPermissions")?;
    let body = object(&body)?;
    let new = NewVhostPermissions {
        permissions: VhostPermissions {
            configure: pattern(&body, "configure")?,
            write: pattern(&body, "write")?,
            read: pattern(&body, "read")?,
        },
        user,
        vhost,
    };
    let place = (new.user.clone(), new.vhost.clone());
    change(&door, UserRequest::SetPermissions(Box::new(new)), &place).await?;
    asking.note_done("SetPermissions", &format!("{} in {}", place.0, place.1));
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn pattern(body: &Map<String, Value>, key: &str) -> Result<Arc<str>, Problem> {
    let text = text(body, key)?;
    Pattern::compile(text).map_err(|problem| bad(format!("{key}: {problem}")))?;
    Ok(text.into())
}

async fn clear_permission(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path((vhost, user)): Path<(String, String)>,
) -> Done {
    asking.needs_superadmin("ClearPermissions")?;
    let place = (user.clone(), vhost.clone());
    change(&door, UserRequest::ClearPermissions { user, vhost }, &place).await?;
    asking.note_done("ClearPermissions", &format!("{} in {}", place.0, place.1));
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn topics(State(door): State<Arc<Door>>, asking: Asking) -> Answer {
    let users = users(&door, &asking)?;
    Ok(Json(
        users.iter().flat_map(|user| topics_json(user)).collect(),
    ))
}

async fn topics_of_user(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path(name): Path<String>,
) -> Answer {
    let user = find(&door, &asking, &name)?;
    Ok(Json(topics_json(&user).collect()))
}

async fn topics_of_both(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path((vhost, name)): Path<(String, String)>,
) -> Answer {
    let user = find(&door, &asking, &name)?;
    let here = |it: &Value| it.get("vhost").and_then(Value::as_str) == Some(&vhost);
    Ok(Json(topics_json(&user).filter(here).collect()))
}

async fn set_topic(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path((vhost, user)): Path<(String, String)>,
    body: Bytes,
) -> Done {
    asking.needs_superadmin("SetTopicPermissions")?;
    let body = object(&body)?;
    let new = NewTopicPermissions {
        exchange: text(&body, "exchange")?.to_owned(),
        permissions: TopicPermissions {
            write: pattern(&body, "write")?,
            read: pattern(&body, "read")?,
        },
        user,
        vhost,
    };
    let place = (new.user.clone(), new.vhost.clone());
    change(
        &door,
        UserRequest::SetTopicPermissions(Box::new(new)),
        &place,
    )
    .await?;
    asking.note_done(
        "SetTopicPermissions",
        &format!("{} in {}", place.0, place.1),
    );
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn clear_topics(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path((vhost, user)): Path<(String, String)>,
) -> Done {
    clear(&door, &asking, (user, vhost), None).await
}

async fn clear_topic(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path((vhost, user, exchange)): Path<(String, String, String)>,
) -> Done {
    clear(&door, &asking, (user, vhost), Some(exchange)).await
}

async fn clear(
    door: &Door,
    asking: &Asking,
    place: (String, String),
    exchange: Option<String>,
) -> Done {
    asking.needs_superadmin("ClearTopicPermissions")?;
    let request = UserRequest::ClearTopicPermissions {
        user: place.0.clone(),
        vhost: place.1.clone(),
        exchange,
    };
    change(door, request, &place).await?;
    asking.note_done(
        "ClearTopicPermissions",
        &format!("{} in {}", place.0, place.1),
    );
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn change(
    door: &Door,
    request: UserRequest,
    (user, vhost): &(String, String),
) -> Result<(), Problem> {
    let reply = ask(door, request).await?;
    let UserReply::PermissionsChanged(result) = reply else {
        return Err(mismatch(&AdminReply::User(reply)));
    };
    result.map_err(|error| match error {
        PermissionError::UserNotFound => no_user(user),
        PermissionError::VhostNotFound => no_vhost(vhost),
        PermissionError::Invalid { problem } | PermissionError::TooMany { problem } => bad(problem),
        PermissionError::Storage => Problem::storage_full(),
    })
}
