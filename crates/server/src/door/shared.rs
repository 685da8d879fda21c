//! What all connections of a door share.

use std::{sync::Arc, time::Duration};

use tanda_engine::{ConnId, Millis};
use tanda_session::Session;
use tokio::sync::watch;

use super::{connection::Connection, login::Authenticator, memory::Memory};
use crate::{
    audit::Audit,
    clock::Clock,
    listen::{Guest, Service, Stream},
    shard::Shard,
};

/// What a door speaks.
pub(crate) trait Protocol: std::fmt::Debug + Send + Sync + 'static {
    /// One connection.
    type Session: Session + Send;

    /// The session of a connection that was just made.
    fn session(&self, conn: ConnId, now: Millis, stream: &Stream) -> Self::Session;
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Door<P> {
    pub(crate) shard: Shard,
    pub(crate) clock: Clock,
    pub(crate) protocol: P,
    /// Time without progress in the middle of a frame.
    pub(crate) frame_timeout: Duration,
    /// What all connections hold together.
    pub(crate) memory: Arc<Memory>,
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) audit: Arc<Audit>,
}

impl<P: Protocol> Service for Door<P> {
    async fn serve(
        self: Arc<Self>,
        stream: Stream,
        guest: Arc<Guest>,
        stop: watch::Receiver<bool>,
    ) {
        Connection::new(self, stream, guest).run(stop).await;
    }
}
