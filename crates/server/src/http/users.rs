//! Users, at the paths that RabbitMQ's management has them at. Documented in
//! `docs/http-api.md`.

use std::sync::Arc;

use axum::{
    Json, Router,
    body::Bytes,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Map, Value, json};
use tanda_engine::{
    AdminReply, AdminRequest, NewUser, PasswordChange, PasswordHash, PutUserError, User,
    UserNotFound, UserReply, UserRequest,
};
use tanda_session::login::{Login, LoginError, Password, Proof};

use super::{
    Door,
    api::mismatch,
    auth::Asking,
    body::{bad, object, text},
    problem::Problem,
};
use crate::users::password;

type Answer = Result<Json<Value>, Problem>;
type Done = Result<Response, Problem>;

pub(super) fn routes() -> Router<Arc<Door>> {
    Router::new()
        .route("/api/whoami", get(whoami))
        .route("/api/users", get(list))
        .route("/api/users/{name}", get(one).put(put).delete(remove))
        .route("/api/tanda/users/{name}/authenticate", post(check))
}

async fn whoami(asking: Asking) -> Answer {
    let (name, tags) = asking.who.name_and_tags();
    Ok(Json(json!({ "name": name, "tags": tags })))
}

/// All users of the newest table, once it is known that who asks may see them.
pub(super) fn users(door: &Door, asking: &Asking) -> Result<Vec<Arc<User>>, Problem> {
    asking.needs_superadmin("ListUsers")?;
    let newest = Arc::clone(&door.principals.borrow().users);
    Ok(newest.iter().cloned().collect())
}

pub(super) fn find(door: &Door, asking: &Asking, name: &str) -> Result<Arc<User>, Problem> {
    asking.needs_superadmin("GetUser")?;
    let newest = Arc::clone(&door.principals.borrow().users);
    let user = newest.find(name).cloned();
    user.ok_or_else(|| no_user(name))
}

fn user_json(user: &User) -> Value {
    json!({
        "name": &*user.name,
        "tags": user.tags.iter().map(|tag| &**tag).collect::<Vec<_>>(),
        "has_password": user.password.is_some(),
    })
}

async fn list(State(door): State<Arc<Door>>, asking: Asking) -> Answer {
    let users = users(&door, &asking)?;
    Ok(Json(users.iter().map(|user| user_json(user)).collect()))
}

async fn one(State(door): State<Arc<Door>>, asking: Asking, Path(name): Path<String>) -> Answer {
    Ok(Json(user_json(&*find(&door, &asking, &name)?)))
}

async fn put(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path(name): Path<String>,
    body: Bytes,
) -> Done {
    asking.needs_superadmin("PutUser")?;
    let body = object(&body)?;
    let password = password_of(&door, &body).await?;
    let is_there = door.principals.borrow().users.find(&name).is_some();
    if !is_there && password == PasswordChange::Keep {
        return Err(bad(
            "a new user needs a \"password\", or a \"password_hash\", which may be empty: then no \
             password lets it in",
        ));
    }
    let tags = tags_of(&body)?;
    let new = NewUser {
        name: name.clone(),
        password,
        tags,
    };
    let reply = ask(&door, UserRequest::Put(Box::new(new))).await?;
    let UserReply::Put(result) = reply else {
        return Err(mismatch(&AdminReply::User(reply)));
    };
    let is_new = result.map_err(put_refused)?;
    asking.note_done("PutUser", &name);
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::NO_CONTENT
    };
    Ok(status.into_response())
}

async fn password_of(door: &Door, body: &Map<String, Value>) -> Result<PasswordChange, Problem> {
    if body.contains_key("password") {
        let password = text(body, "password")?;
        let max = password::PASSWORD_BYTES_MAX;
        if password.is_empty() || password.len() > max {
            return Err(bad(format!("a password has 1 to {max} bytes")));
        }
        let hash = door.authenticator.hash(password.as_bytes().to_vec()).await;
        return hash.map(PasswordChange::Set).ok_or_else(Problem::busy);
    }
    if !body.contains_key("password_hash") {
        return Ok(PasswordChange::Keep);
    }
    let hash = text(body, "password_hash")?;
    if hash.is_empty() {
        return Ok(PasswordChange::Remove);
    }
    let algorithm = body.get("hashing_algorithm").and_then(Value::as_str);
    let algorithm = algorithm.unwrap_or("rabbit_password_hashing_sha256");
    let hash = password::import(algorithm, hash).map_err(bad)?;
    Ok(PasswordChange::Set(PasswordHash::new(&hash)))
}

/// An array of texts, or one text with commas.
fn tags_of(body: &Map<String, Value>) -> Result<Option<Vec<String>>, Problem> {
    let wrong = || bad("\"tags\" is neither an array of texts nor a text with commas");
    let Some(tags) = body.get("tags") else {
        return Ok(None);
    };
    if let Some(text) = tags.as_str() {
        let tags = text.split(',').map(str::trim).filter(|tag| !tag.is_empty());
        return Ok(Some(tags.map(str::to_owned).collect()));
    }
    let tags = tags.as_array().ok_or_else(wrong)?.iter();
    let tags: Option<Vec<_>> = tags.map(|tag| tag.as_str().map(str::to_owned)).collect();
    tags.map(Some).ok_or_else(wrong)
}

async fn remove(State(door): State<Arc<Door>>, asking: Asking, Path(name): Path<String>) -> Done {
    asking.needs_superadmin("DeleteUser")?;
    let reply = ask(&door, UserRequest::Delete { name: name.clone() }).await?;
    let UserReply::Deleted(result) = reply else {
        return Err(mismatch(&AdminReply::User(reply)));
    };
    result.map_err(|UserNotFound| no_user(&name))?;
    asking.note_done("DeleteUser", &name);
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Whether a password is a user's.
async fn check(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path(name): Path<String>,
    body: Bytes,
) -> Answer {
    asking.needs_superadmin("AuthenticateUser")?;
    let body = object(&body)?;
    let login = Login {
        mechanism: "HTTP",
        proof: Proof::Password {
            user: name.clone(),
            password: Password::new(text(&body, "password")?.into()),
        },
    };
    // As if from here: the question is about the password.
    let here = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let ok = match door.authenticator.admit(&login, Some(here)).await {
        Ok(admitted) => admitted.user().is_some_and(|user| *user.name == *name),
        Err(LoginError::Overloaded) => return Err(Problem::busy()),
        Err(LoginError::Refused | LoginError::LoopbackOnly) => false,
    };
    Ok(Json(json!({ "ok": ok })))
}

pub(super) async fn ask(door: &Door, request: UserRequest) -> Result<UserReply, Problem> {
    let reply = door.asker.ask(AdminRequest::User(request)).await?;
    let AdminReply::User(reply) = reply else {
        return Err(mismatch(&reply));
    };
    Ok(reply)
}

fn put_refused(error: PutUserError) -> Problem {
    match error {
        PutUserError::Invalid { problem } => bad(problem),
        PutUserError::TooMany { max } => bad(format!(
            "there are {max} users, and not more may be: raise limits.users_max"
        )),
        PutUserError::Storage => Problem::storage_full(),
    }
}

pub(super) fn no_user(name: &str) -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "user_not_found",
        format!("there is no user named {name:?}"),
        "GET /api/users lists the users",
    )
}

pub(super) fn no_vhost(name: &str) -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "vhost_not_found",
        format!("there is no virtual host named {name:?}"),
        "GET /api/vhosts lists the virtual hosts",
    )
}
