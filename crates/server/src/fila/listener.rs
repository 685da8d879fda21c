//! Accepts Fila connections.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use tanda_session::fila::SessionConfig;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::{Instant, timeout_at},
};

use super::connection::Connection;
use crate::{
    clock::Clock,
    server::is_set,
    shard::Shard,
    tally::{Refusals, Tally},
};

/// What all connections of the door share.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) shard: Shard,
    pub(crate) clock: Clock,
    pub(crate) session: Arc<SessionConfig>,
    /// Time without progress in the middle of a frame.
    pub(crate) frame_timeout: Duration,
    /// Connections now and at most.
    pub(crate) connections: Arc<Tally>,
}

/// The open door.
#[derive(Debug)]
pub(crate) struct Listening {
    door: Arc<Door>,
    listener: TcpListener,
    tasks: JoinSet<()>,
    refusals: Refusals,
}

/// After a failed accept, which mostly means too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

impl Listening {
    pub(crate) fn new(door: Door, listener: TcpListener) -> Self {
        Self {
            door: Arc::new(door),
            listener,
            tasks: JoinSet::new(),
            refusals: Refusals::default(),
        }
    }

    /// Accepts until `shutdown`, then gives the connections until `grace` has passed to finish.
    pub(crate) async fn run(mut self, mut shutdown: watch::Receiver<bool>, grace: Duration) {
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, peer)) => self.on_accepted(stream, peer, &shutdown),
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a Fila connection");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(ended) = self.tasks.join_next() => on_ended(ended),
                () = is_set(&mut shutdown) => break,
            }
        }
        drop(self.listener);
        let until = Instant::now() + grace;
        while let Ok(Some(ended)) = timeout_at(until, self.tasks.join_next()).await {
            on_ended(ended);
        }
        self.tasks.shutdown().await;
    }

    fn on_accepted(
        &mut self,
        stream: TcpStream,
        peer: SocketAddr,
        shutdown: &watch::Receiver<bool>,
    ) {
        let Some(place) = self.door.connections.enter() else {
            if let Some(refused) = self.refusals.note(Instant::now()) {
                let max = self.door.connections.max();
                tracing::warn!(
                    %peer,
                    refused,
                    max,
                    "refused Fila connections: limits.connections_max is reached"
                );
            }
            return;
        };
        if let Err(error) = prepare(&stream) {
            tracing::debug!(%peer, %error, "the connection was gone before it began");
            return;
        }
        let connection = Connection::new(Arc::clone(&self.door), stream);
        let shutdown = shutdown.clone();
        self.tasks.spawn(async move {
            connection.run(shutdown).await;
            drop(place);
        });
    }
}

/// Answers are written when they are complete, so waiting for more to send would only delay them.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)
}

fn on_ended(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a bug: the task of a connection panicked; the others go on");
    }
}
