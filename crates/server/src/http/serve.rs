//! Serves one HTTP connection.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{Request, Response},
    response::IntoResponse,
};
use hyper::{
    body::{Frame, Incoming, SizeHint},
    server::conn::http1,
    service::Service as _,
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::sync::watch;

use super::{Door, api, auth::Peer, problem::Problem};
use crate::{
    listen::{Busy, Guest, Service, Stream},
    server::is_set,
};

/// Time for a request's head to arrive, also between requests of a kept connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// What a connection of the door gets.
#[derive(Debug)]
pub(crate) struct Server {
    router: TowerToHyperService<Router>,
}

impl Server {
    pub(crate) fn new(door: Door) -> Self {
        let router = TowerToHyperService::new(api::router(Arc::new(door)));
        Self { router }
    }

    async fn answer(
        &self,
        guest: &Arc<Guest>,
        mut request: Request<Incoming>,
        peer: Peer,
    ) -> Result<Response<Guarded>, Infallible> {
        let Some(busy) = guest.begin() else {
            return Ok(Problem::busy()
                .into_response()
                .map(|body| Guarded { body, _busy: None }));
        };
        request.extensions_mut().insert(peer);
        let response = self.router.call(request).await?;
        Ok(response.map(|body| Guarded {
            body,
            _busy: Some(busy),
        }))
    }
}

impl Service for Server {
    async fn serve(
        self: Arc<Self>,
        stream: Stream,
        guest: Arc<Guest>,
        mut stop: watch::Receiver<bool>,
    ) {
        let peer = Peer(stream.peer_addr());
        let service = hyper::service::service_fn(move |request| {
            let server = Arc::clone(&self);
            let guest = Arc::clone(&guest);
            async move { server.answer(&guest, request, peer).await }
        });
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), service);
        let mut served = std::pin::pin!(served);
        let ended = tokio::select! {
            ended = served.as_mut() => ended,
            () = is_set(&mut stop) => {
                served.as_mut().graceful_shutdown();
                served.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "an HTTP connection ended badly");
        }
    }
}

/// A body of an answer; while it is sent the connection keeps its place.
struct Guarded {
    body: Body,
    _busy: Option<Busy>,
}

impl hyper::body::Body for Guarded {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
