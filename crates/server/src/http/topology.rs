//! Queues, exchanges and bindings, at the paths that RabbitMQ's management has them at. Documented
//! in `docs/http-api.md`.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{Path, RawQuery, State},
    routing::get,
};
use serde_json::Value;
use tanda_engine::{BindingInfo, Destination, VhostInfo};

use super::{Door, auth::Asking, pages::Pages, problem::Problem, users::no_vhost, who::Who};
use crate::listing;

/// What permissions call the default exchange.
const DEFAULT_EXCHANGE: &str = "amq.default";

type Answer = Result<Json<Value>, Problem>;

pub(super) fn routes() -> Router<Arc<Door>> {
    Router::new()
        .route("/api/queues", get(queues))
        .route("/api/queues/{vhost}", get(queues_of))
        .route("/api/exchanges", get(exchanges))
        .route("/api/exchanges/{vhost}", get(exchanges_of))
        .route("/api/bindings", get(bindings))
        .route("/api/bindings/{vhost}", get(bindings_of))
}

/// What is listed.
#[derive(Clone, Copy)]
enum List {
    Queues,
    Exchanges,
    Bindings,
}

async fn queues(State(door): State<Arc<Door>>, asking: Asking, query: RawQuery) -> Answer {
    let pages = Pages::read(query.0.as_deref())?;
    let all = everywhere(&door, &asking.who, List::Queues).await?;
    Ok(Json(pages.of(all)?))
}

async fn exchanges(State(door): State<Arc<Door>>, asking: Asking, query: RawQuery) -> Answer {
    let pages = Pages::read(query.0.as_deref())?;
    let all = everywhere(&door, &asking.who, List::Exchanges).await?;
    Ok(Json(pages.of(all)?))
}

async fn bindings(State(door): State<Arc<Door>>, asking: Asking) -> Answer {
    let all = everywhere(&door, &asking.who, List::Bindings).await?;
    Ok(Json(Value::Array(all)))
}

async fn queues_of(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path(vhost): Path<String>,
    query: RawQuery,
) -> Answer {
    let pages = Pages::read(query.0.as_deref())?;
    let all = in_one(&door, &asking.who, (List::Queues, &vhost)).await?;
    Ok(Json(pages.of(all)?))
}

async fn exchanges_of(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path(vhost): Path<String>,
    query: RawQuery,
) -> Answer {
    let pages = Pages::read(query.0.as_deref())?;
    let all = in_one(&door, &asking.who, (List::Exchanges, &vhost)).await?;
    Ok(Json(pages.of(all)?))
}

async fn bindings_of(
    State(door): State<Arc<Door>>,
    asking: Asking,
    Path(vhost): Path<String>,
) -> Answer {
    let all = in_one(&door, &asking.who, (List::Bindings, &vhost)).await?;
    Ok(Json(Value::Array(all)))
}

async fn everywhere(door: &Door, who: &Who, list: List) -> Result<Vec<Value>, Problem> {
    let mut all = Vec::new();
    for vhost in listing::vhosts(&door.asker).await? {
        all.extend(listed(door, who, (list, &vhost)).await?);
    }
    Ok(all)
}

async fn in_one(
    door: &Door,
    who: &Who,
    (list, vhost): (List, &str),
) -> Result<Vec<Value>, Problem> {
    let vhosts = listing::vhosts(&door.asker).await?;
    let found = vhosts.iter().find(|it| it.name == vhost);
    let found = found.ok_or_else(|| no_vhost(vhost))?;
    listed(door, who, (list, found)).await
}

/// What is in a virtual host and is somehow theirs.
async fn listed(
    door: &Door,
    who: &Who,
    (list, vhost): (List, &VhostInfo),
) -> Result<Vec<Value>, Problem> {
    let VhostInfo { id, name } = vhost;
    Ok(match list {
        List::Queues => {
            let all = listing::queues(&door.asker, *id).await?;
            let theirs = all.iter().filter(|it| who.may_touch_in(name, &it.name));
            theirs.map(|it| listing::queue_json(name, it)).collect()
        }
        List::Exchanges => {
            let all = listing::exchanges(&door.asker, *id).await?;
            let theirs = all
                .iter()
                .filter(|it| who.may_touch_in(name, asked_for_as(&it.name)));
            let shown = theirs.map(|it| {
                let mut shown = listing::exchange_json(name, it);
                // Not in definitions: watches are of connections.
                if let Value::Object(fields) = &mut shown {
                    fields.insert("watches".to_owned(), it.watches.into());
                }
                shown
            });
            shown.collect()
        }
        List::Bindings => {
            let all = listing::bindings(&door.asker, *id).await?;
            let theirs = all.iter().filter(|it| may_see(who, name, it));
            theirs.map(|it| listing::binding_json(name, it)).collect()
        }
    })
}

/// Who may not touch one end of a binding learns nothing of it.
fn may_see(who: &Who, vhost: &str, binding: &BindingInfo) -> bool {
    let (Destination::Queue(to) | Destination::Exchange(to)) = &binding.destination;
    let ends = [binding.source.as_str(), to];
    ends.iter()
        .all(|end| who.may_touch_in(vhost, asked_for_as(end)))
}

const fn asked_for_as(name: &str) -> &str {
    if name.is_empty() {
        DEFAULT_EXCHANGE
    } else {
        name
    }
}
