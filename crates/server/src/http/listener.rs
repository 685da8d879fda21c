//! Accepts HTTP connections and serves them.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::{Instant, timeout_at},
};

use super::{Door, api};
use crate::{server::is_set, tally::Refusals};

/// Time for a request's head to arrive, also between requests of a kept connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// After a failed accept, which mostly means too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The open door.
#[derive(Debug)]
pub(crate) struct Listening {
    door: Arc<Door>,
    listener: TcpListener,
    router: Router,
    tasks: JoinSet<()>,
    refusals: Refusals,
}

impl Listening {
    pub(crate) fn new(door: Door, listener: TcpListener) -> Self {
        let door = Arc::new(door);
        let router = api::router(Arc::clone(&door));
        Self {
            door,
            listener,
            router,
            tasks: JoinSet::new(),
            refusals: Refusals::default(),
        }
    }

    /// Accepts until `shutdown`, then gives requests under way until `grace` has passed.
    pub(crate) async fn run(mut self, mut shutdown: watch::Receiver<bool>, grace: Duration) {
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, peer)) => self.on_accepted(stream, peer, &shutdown),
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept an HTTP connection");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(_) = self.tasks.join_next() => {}
                () = is_set(&mut shutdown) => break,
            }
        }
        drop(self.listener);
        let until = Instant::now() + grace;
        while let Ok(Some(_)) = timeout_at(until, self.tasks.join_next()).await {}
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
                tracing::warn!(%peer, refused, max, "refused HTTP connections: too many at a time");
            }
            return;
        };
        let router = self.router.clone();
        let shutdown = shutdown.clone();
        self.tasks.spawn(async move {
            serve(stream, router, shutdown).await;
            drop(place);
        });
    }
}

async fn serve(stream: TcpStream, router: Router, mut shutdown: watch::Receiver<bool>) {
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut served = std::pin::pin!(served);
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = is_set(&mut shutdown) => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "an HTTP connection ended badly");
    }
}
