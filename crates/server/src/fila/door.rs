//! What all connections of a Fila door share.

use std::{sync::Arc, time::Duration};

use tanda_session::fila::SessionConfig;
use tokio::sync::watch;

use super::{connection::Connection, memory::Memory};
use crate::{
    audit::Audit,
    clock::Clock,
    listen::{Guest, Service, Stream},
    shard::Shard,
};

/// See the module.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) shard: Shard,
    pub(crate) clock: Clock,
    pub(crate) session: Arc<SessionConfig>,
    /// Time without progress in the middle of a frame.
    pub(crate) frame_timeout: Duration,
    /// What all connections hold together.
    pub(crate) memory: Arc<Memory>,
    pub(crate) audit: Arc<Audit>,
}

impl Service for Door {
    async fn serve(
        self: Arc<Self>,
        stream: Stream,
        guest: Arc<Guest>,
        stop: watch::Receiver<bool>,
    ) {
        Connection::new(self, stream, guest).run(stop).await;
    }
}
