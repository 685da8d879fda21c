//! The HTTP door: health, figures, and what no protocol has a frame for.
//!
//! Owns what is answered over HTTP/1.1. It talks to the shard like a connection does, with an id of
//! its own, and refuses to know the engine's insides. `auth` asks for a key, `guard` keeps web
//! pages in an operator's browser from driving it, `fire` makes connections of FireMQ out of
//! requests.

mod api;
mod auth;
mod backup;
mod body;
mod definitions;
mod fire;
mod guard;
mod json;
mod permissions;
mod problem;
mod serve;
mod topology;
mod users;
mod vhosts;
mod who;

pub(crate) use fire::Fire;
pub(crate) use serve::Server;

use std::sync::Arc;

use tanda_session::fila::Authentication;
use tokio::sync::watch;

use crate::{
    ask::Asker,
    audit::Audit,
    clock::Clock,
    config::Config,
    shard::Shard,
    tally::Tally,
    users::{Authenticator, Principals},
};

/// What every answer is made from.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) shard: Shard,
    pub(crate) asker: Asker,
    pub(crate) clock: Clock,
    pub(crate) config: Arc<Config>,
    pub(crate) authentication: Authentication,
    /// The newest keys and users.
    pub(crate) principals: watch::Receiver<Principals>,
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) audit: Arc<Audit>,
    /// Fila connections now and at most.
    pub(crate) fila: Arc<Tally>,
    /// HTTP connections now and at most.
    pub(crate) connections: Arc<Tally>,
}
