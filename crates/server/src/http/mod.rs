//! The HTTP door: health, figures, and what no protocol has a frame for.
//!
//! Owns what is answered over HTTP/1.1. It talks to the shard like a connection does, with an id of
//! its own, and refuses to know the engine's insides. It has no authentication yet; `guard` keeps
//! web pages in an operator's browser from driving it.

mod api;
mod ask;
mod backup;
mod guard;
mod json;
mod problem;
mod serve;

pub(crate) use ask::Asker;
pub(crate) use serve::Server;

use std::sync::Arc;

use crate::{clock::Clock, config::Config, shard::Shard, tally::Tally};

/// What every answer is made from.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) shard: Shard,
    pub(crate) asker: Asker,
    pub(crate) clock: Clock,
    pub(crate) config: Arc<Config>,
    /// Fila connections now and at most.
    pub(crate) fila: Arc<Tally>,
    /// HTTP connections now and at most.
    pub(crate) connections: Arc<Tally>,
}
