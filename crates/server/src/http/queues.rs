//! What is asked about and done with one queue: at Tanda's paths, of `/` or of any virtual host,
//! and at RabbitMQ's. Documented in `docs/http-api.md`.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{Path, RawQuery, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};
use tanda_engine::{
    AdminReply, AdminRequest, MessageId, Permission, QueueDetails, QueueNotFound, VhostId,
};

use super::{
    Door,
    api::mismatch,
    auth::Asking,
    body::{bad, refused},
    json,
    pages::Query,
    problem::Problem,
    users::no_vhost,
    who::VHOST,
};
use crate::listing;

type Answer = Result<Json<Value>, Problem>;
/// The names of a virtual host and of a queue in it.
type Names = (String, String);

pub(super) fn routes() -> Router<Arc<Door>> {
    Router::new()
        .route("/api/tanda/queues", get(list))
        .route("/api/tanda/queues/{name}", get(inspect_root))
        .route("/api/tanda/queues/{name}/explain", get(explain_root))
        .route("/api/tanda/queues/{name}/purge", post(purge_root))
        .route("/api/tanda/vhosts/{vhost}/queues/{name}", get(inspect))
        .route("/api/tanda/vhosts/{vhost}/queues/{name}/stats", get(stats))
        .route(
            "/api/tanda/vhosts/{vhost}/queues/{name}/explain",
            get(explain),
        )
        .route("/api/tanda/vhosts/{vhost}/queues/{name}/purge", post(purge))
        .route("/api/queues/{vhost}/{name}", get(one).delete(remove))
}

/// A queue that somebody may do something with.
struct Named<'a> {
    door: &'a Door,
    vhost: VhostId,
    name: &'a str,
    /// What the audit log says of it.
    shown: String,
}

impl<'a> Named<'a> {
    /// One that may be administered. Whether who asks may comes first: others learn nothing of
    /// what is there.
    async fn find(
        door: &'a Door,
        asking: &Asking,
        names: (&str, &'a str),
        action: &str,
    ) -> Result<Self, Problem> {
        asking.needs_in(Permission::Admin, names, action)?;
        Self::open(door, names).await
    }

    async fn open(door: &'a Door, (vhost, name): (&str, &'a str)) -> Result<Self, Problem> {
        let shown = match vhost {
            VHOST => name.to_owned(),
            vhost => format!("{vhost}/{name}"),
        };
        let request = AdminRequest::OpenVhost {
            name: vhost.to_owned(),
        };
        let reply = door.asker.ask(request).await?;
        let AdminReply::Vhost(found) = reply else {
            return Err(mismatch(&reply));
        };
        let vhost = found.ok().ok_or_else(|| no_vhost(vhost))?;
        Ok(Self {
            door,
            vhost,
            name,
            shown,
        })
    }

    async fn details(&self) -> Result<QueueDetails, Problem> {
        let request = AdminRequest::InspectQueue {
            vhost: self.vhost,
            name: self.name.to_owned(),
        };
        let reply = self.door.asker.ask(request).await?;
        let AdminReply::Inspected(outcome) = reply else {
            return Err(mismatch(&reply));
        };
        outcome.map_err(|QueueNotFound| self.not_found())
    }

    fn not_found(&self) -> Problem {
        Problem::queue_not_found(self.name)
    }
}

async fn list(State(door): State<Arc<Door>>, asking: Asking) -> Answer {
    let reply = door.asker.ask(AdminRequest::ListQueues).await?;
    let AdminReply::Queues(mut queues) = reply else {
        return Err(mismatch(&reply));
    };
    queues.retain(|queue| asking.who.may_touch(&queue.name));
    Ok(Json(json::queues(&queues)))
}

async fn inspect_root(door: State<Arc<Door>>, asking: Asking, Path(name): Path<String>) -> Answer {
    inspect(door, asking, Path((VHOST.to_owned(), name))).await
}

async fn explain_root(
    door: State<Arc<Door>>,
    asking: Asking,
    Path(name): Path<String>,
    query: RawQuery,
) -> Answer {
    explain(door, asking, Path((VHOST.to_owned(), name)), query).await
}

async fn purge_root(door: State<Arc<Door>>, asking: Asking, Path(name): Path<String>) -> Answer {
    purge(door, asking, Path((VHOST.to_owned(), name))).await
}

async fn inspect(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path((vhost, name)): Path<Names>,
) -> Answer {
    let queue = Named::find(&door, &asking, (&vhost, &name), "inspect").await?;
    let details = queue.details().await?;
    let alarms = *door.shard.alarms().borrow();
    Ok(Json(json::details(&details, alarms)))
}

async fn stats(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path((vhost, name)): Path<Names>,
) -> Answer {
    let queue = Named::find(&door, &asking, (&vhost, &name), "stats").await?;
    let request = AdminRequest::QueueStats {
        vhost: queue.vhost,
        name: name.clone(),
    };
    let reply = door.asker.ask(request).await?;
    let AdminReply::Stats(outcome) = reply else {
        return Err(mismatch(&reply));
    };
    let stats = outcome.map_err(|QueueNotFound| queue.not_found())?;
    Ok(Json(json::stats(&stats)))
}

async fn explain(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path((vhost, name)): Path<Names>,
    RawQuery(query): RawQuery,
) -> Answer {
    let queue = Named::find(&door, &asking, (&vhost, &name), "explain").await?;
    let request = AdminRequest::Explain {
        vhost: queue.vhost,
        name: name.clone(),
        message: message_of(query.as_deref())?,
    };
    let reply = door.asker.ask(request).await?;
    let AdminReply::Explained(outcome) = reply else {
        return Err(mismatch(&reply));
    };
    let explanation = outcome.map_err(|QueueNotFound| queue.not_found())?;
    Ok(Json(json::explanation(&explanation)))
}

async fn purge(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path((vhost, name)): Path<Names>,
) -> Answer {
    let queue = Named::find(&door, &asking, (&vhost, &name), "purge").await?;
    let request = AdminRequest::PurgeQueue {
        vhost: queue.vhost,
        name: name.clone(),
    };
    let reply = door.asker.ask(request).await?;
    let AdminReply::Purged(outcome) = reply else {
        return Err(mismatch(&reply));
    };
    let count = outcome.map_err(|QueueNotFound| queue.not_found())?;
    asking.note_done("purge", &queue.shown);
    Ok(Json(json!({ "purged": count })))
}

/// One queue with the fields that the list of all has.
async fn one(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path((vhost, name)): Path<Names>,
) -> Answer {
    if !asking.who.may_touch_in(&vhost, &name) {
        return Err(Problem::queue_not_found(&name));
    }
    let queue = Named::open(&door, (&vhost, &name)).await?;
    let info = queue.details().await?.info();
    Ok(Json(listing::queue_json(&vhost, &info)))
}

async fn remove(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path((vhost, name)): Path<Names>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let queue = Named::find(&door, &asking, (&vhost, &name), "DeleteQueue").await?;
    let query = Query::read(query.as_deref())?;
    let details = queue.details().await?;
    if details.parent.is_some() {
        return Err(bad("a dead-letter queue is deleted with its queue"));
    }
    let request = AdminRequest::RemoveQueue {
        vhost: queue.vhost,
        name: name.clone(),
        if_unused: query.is("if-unused")?,
        if_empty: query.is("if-empty")?,
    };
    let reply = door.asker.ask(request).await?;
    let AdminReply::QueueRemoved(outcome) = reply else {
        return Err(mismatch(&reply));
    };
    outcome.map_err(|error| refused(error, || queue.not_found()))?;
    asking.note_done("DeleteQueue", &queue.shown);
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The `message=UUID` of a query.
fn message_of(query: Option<&str>) -> Result<Option<MessageId>, Problem> {
    let Some(query) = query.filter(|query| !query.is_empty()) else {
        return Ok(None);
    };
    let id = query.strip_prefix("message=").and_then(MessageId::parse);
    id.map(Some).ok_or_else(|| {
        Problem::new(
            StatusCode::BAD_REQUEST,
            "bad_query",
            format!("cannot read the query {query:?}"),
            "the only parameter is message=UUID, like \
             message=0190a1b2-0000-7000-8000-000000000001",
        )
    })
}
