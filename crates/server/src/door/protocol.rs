//! What all connections of a door share.

use std::{fmt, ops::Deref, sync::Arc, time::Duration};

use tanda_engine::{ConnId, Millis};
use tanda_session::Session;
use tokio::sync::watch;

use super::{connection::Connection, memory::Memory};
use crate::{
    audit::Audit,
    clock::Clock,
    listen::{Guest, Service, Socket, Stream},
    shard::Shard,
    users::Authenticator,
};

/// What a door speaks.
pub(crate) trait Protocol: fmt::Debug + Send + Sync + 'static {
    /// One connection.
    type Session: Session + Send;

    /// The session of a connection that was just made.
    fn session(&self, conn: ConnId, now: Millis, stream: &Stream) -> Self::Session;
}

/// What all connections of all doors share.
#[derive(Clone, Debug)]
pub(crate) struct Commons {
    pub(crate) shard: Shard,
    pub(crate) clock: Clock,
    /// Time without progress in the middle of a frame.
    pub(crate) frame_timeout: Duration,
    /// What all connections hold together.
    pub(crate) memory: Arc<Memory>,
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) audit: Arc<Audit>,
}

impl Commons {
    /// The same with another time without progress in the middle of a frame.
    pub(crate) fn with_frame_timeout(&self, frame_timeout: Duration) -> Self {
        Self {
            frame_timeout,
            ..self.clone()
        }
    }

    /// A door that speaks `protocol`.
    pub(crate) fn door<P>(&self, protocol: P) -> Door<P> {
        Door {
            protocol,
            commons: self.clone(),
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Door<P> {
    pub(super) protocol: P,
    pub(super) commons: Commons,
}

impl<P> Deref for Door<P> {
    type Target = Commons;

    fn deref(&self) -> &Commons {
        &self.commons
    }
}

impl<P: Protocol> Door<P> {
    /// Serves one connection over whatever carries its bytes until it ends.
    pub(crate) async fn converse(
        self: Arc<Self>,
        stream: Stream,
        guest: Arc<Guest>,
        stop: watch::Receiver<bool>,
    ) {
        Connection::new(self, (stream, guest), stop).run().await;
    }
}

impl<P: Protocol> Service for Door<P> {
    async fn serve(
        self: Arc<Self>,
        socket: Socket,
        guest: Arc<Guest>,
        stop: watch::Receiver<bool>,
    ) {
        self.converse(Stream::Socket(socket), guest, stop).await;
    }
}
