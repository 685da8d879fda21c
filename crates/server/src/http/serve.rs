//! Serves one HTTP connection.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
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

use super::{
    Door, Fire, api,
    auth::Peer,
    fire::{self, Upgrade},
    problem::Problem,
};
use crate::{
    listen::{Busy, Guest, Service, Socket},
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
    /// What connections over WebSocket get; they are refused without.
    fire: Option<Fire>,
}

/// What a connection is to become after its last answer.
type Next = Mutex<Option<Upgrade>>;

impl Server {
    pub(crate) fn new(door: Door, fire: Option<Fire>) -> Self {
        let router = TowerToHyperService::new(api::router(Arc::new(door)));
        Self { router, fire }
    }

    async fn answer(
        &self,
        guest: &Arc<Guest>,
        mut request: Request<Incoming>,
        peer: Peer,
        next: &Next,
    ) -> Result<Response<Guarded>, Infallible> {
        let Some(busy) = guest.begin() else {
            return Ok(Guarded::whole(Problem::busy().into_response(), None));
        };
        if let Some(fire) = &self.fire
            && request.uri().path() == fire::PATH
        {
            let answer = shake_hands(fire, guest, &mut request, next);
            return Ok(Guarded::whole(answer, Some(busy)));
        }
        request.extensions_mut().insert(peer);
        let response = self.router.call(request).await?;
        Ok(Guarded::whole(response, Some(busy)))
    }
}

fn shake_hands(
    fire: &Fire,
    guest: &Guest,
    request: &mut Request<Incoming>,
    next: &Next,
) -> Response<Body> {
    match fire.shake_hands(request) {
        Err(problem) => problem.into_response(),
        Ok((response, upgrade)) => {
            *next.lock().unwrap_or_else(PoisonError::into_inner) = Some(upgrade);
            // It has one among the connections of FireMQ.
            drop(guest.leave_place());
            response.map(|()| Body::empty())
        }
    }
}

impl Service for Server {
    async fn serve(
        self: Arc<Self>,
        socket: Socket,
        guest: Arc<Guest>,
        mut stop: watch::Receiver<bool>,
    ) {
        let peer = Peer(socket.peer_addr());
        let next = Arc::new(Next::default());
        let server = Arc::clone(&self);
        let visitor = Arc::clone(&guest);
        let upgrade = Arc::clone(&next);
        let service = hyper::service::service_fn(move |request| {
            let server = Arc::clone(&server);
            let guest = Arc::clone(&visitor);
            let next = Arc::clone(&upgrade);
            async move { server.answer(&guest, request, peer, &next).await }
        });
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(socket), service)
            .with_upgrades();
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
            return;
        }
        let next = next.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let (Some(upgrade), Some(fire)) = (next, &self.fire) {
            fire.converse(upgrade, guest, stop).await;
        }
    }
}

/// A body of an answer; while it is sent the connection keeps its place.
struct Guarded {
    body: Body,
    _busy: Option<Busy>,
}

impl Guarded {
    fn whole(response: Response<Body>, busy: Option<Busy>) -> Response<Self> {
        response.map(|body| Self { body, _busy: busy })
    }
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
