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
mod health_checks;
mod json;
mod overview;
mod pages;
mod permissions;
mod place;
mod problem;
mod queues;
mod serve;
mod topology;
mod users;
mod vhosts;
mod who;

pub(crate) use fire::Fire;
pub(crate) use serve::Server;

use std::{net::SocketAddr, sync::Arc};

use tanda_session::fila::Authentication;
use tokio::sync::watch;

use crate::{
    ask::Asker,
    audit::Audit,
    clock::Clock,
    config::Config,
    disk::RealDisk,
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
    /// The open doors.
    pub(crate) listeners: Vec<Listener>,
    /// Where the log is.
    pub(crate) disk: Arc<RealDisk>,
}

/// An open door and the address it listens on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listener {
    /// As the broker calls it: `amqp`, `amqp tls`.
    pub(crate) door: &'static str,
    pub(crate) addr: SocketAddr,
}

impl Listener {
    /// As RabbitMQ's management calls what is spoken there.
    fn protocol(self) -> String {
        match self.door {
            "http tls" => "https".to_owned(),
            door => door.replace(" tls", "/ssl"),
        }
    }
}
