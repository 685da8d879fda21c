//! FireMQ over WebSocket, at `/fire`.
//!
//! Owns the handshake: who may begin one, and how far the page behind it is trusted. What follows
//! is a connection like those of other doors, on the same socket, and counts as one of them.
//!
//! A web page of anybody can make a browser open a WebSocket to this machine. It must log in like
//! everybody, so that alone is harmless, but for `guest`, whose password everybody knows and whose
//! proof is to come from this machine: which such a browser does. So pages from elsewhere are told
//! apart by their `Origin`, and are not let in as guest.

use std::{net::IpAddr, sync::Arc};

use axum::http::{HeaderMap, Request, Response, StatusCode, header};
use hyper::{
    body::Incoming,
    upgrade::{OnUpgrade, Upgraded},
};
use hyper_util::rt::TokioIo;
use tanda_session::firemq::FireConfig;
use tanda_wire::firemq::url::websocket_vhost;
use tokio::sync::watch;
use tungstenite::handshake::server::create_response_with_body;

use super::{guard, problem::Problem};
use crate::{
    door::{Commons, FireOverWeb},
    listen::{Guest, MessageLimits, Socket, Stream, WebSocket},
    tally::{Place, Tally},
};

/// Where it is.
pub(super) const PATH: &str = "/fire";

/// What connections over WebSocket get.
#[derive(Debug)]
pub(crate) struct Fire {
    pub(crate) commons: Commons,
    pub(crate) config: Arc<FireConfig>,
    pub(crate) limits: MessageLimits,
    /// Connections now and at most, those of other doors included.
    pub(crate) places: Arc<Tally>,
    /// Names of this machine besides its addresses.
    pub(crate) hosts: Vec<String>,
    /// Origins of pages that are trusted like those of this machine.
    pub(crate) origins: Vec<String>,
}

/// A connection that becomes one of FireMQ once its answer is sent.
#[derive(Debug)]
pub(super) struct Upgrade {
    upgraded: OnUpgrade,
    place: Place,
    vhost: String,
    trusted: bool,
}

impl Fire {
    /// Answers the request for a WebSocket, or says why there is none.
    pub(super) fn shake_hands(
        &self,
        request: &mut Request<Incoming>,
    ) -> Result<(Response<()>, Upgrade), Problem> {
        guard::check_host(request.headers(), &self.hosts).map_or(Ok(()), Err)?;
        let response = create_response_with_body(request, || ()).map_err(|error| {
            Problem::new(
                StatusCode::UPGRADE_REQUIRED,
                "websocket_only",
                format!("this is no handshake of a WebSocket: {error}"),
                "connect with a FireMQ client to ws:// or wss:// and this path",
            )
        })?;
        let vhost = websocket_vhost(request.uri().query()).map_err(|error| {
            let message = format!("cannot read the query: {error}");
            let hint = "the virtual host is given as ?vhost=NAME, percent-encoded";
            Problem::new(StatusCode::BAD_REQUEST, "bad_query", message, hint)
        })?;
        let Some(place) = self.places.enter() else {
            return Err(Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "connections_max",
                "the broker has as many connections as it may have",
                "try again later, or raise limits.connections_max",
            ));
        };
        let upgrade = Upgrade {
            vhost,
            place,
            trusted: is_trusted(request.headers(), &self.origins),
            upgraded: hyper::upgrade::on(request),
        };
        Ok((response, upgrade))
    }

    /// Serves what the connection became until it ends.
    pub(super) async fn converse(
        &self,
        upgrade: Upgrade,
        guest: Arc<Guest>,
        stop: watch::Receiver<bool>,
    ) {
        let Upgrade {
            upgraded,
            place,
            vhost,
            trusted,
        } = upgrade;
        let upgraded = match upgraded.await {
            Ok(upgraded) => upgraded,
            Err(error) => {
                tracing::debug!(%error, "a connection ended instead of becoming a WebSocket");
                return;
            }
        };
        let Some((socket, read)) = reclaim(upgraded) else {
            return;
        };
        let web = WebSocket::new(socket, &read, self.limits, trusted);
        let protocol = FireOverWeb {
            config: Arc::clone(&self.config),
            vhost,
        };
        let door = Arc::new(self.commons.door(protocol));
        door.converse(Stream::Web(Box::new(web)), guest, stop).await;
        drop(place);
    }
}

/// The socket that HTTP was spoken over, and what came after the request.
fn reclaim(upgraded: Upgraded) -> Option<(Socket, Vec<u8>)> {
    match upgraded.downcast::<TokioIo<Socket>>() {
        Ok(parts) => Some((parts.io.into_inner(), parts.read_buf.to_vec())),
        Err(upgraded) => {
            tracing::error!(?upgraded, "a bug: a connection is on no socket of ours");
            None
        }
    }
}

/// Whether the page behind a request is as good as a program on this machine, or there is none.
fn is_trusted(headers: &HeaderMap, origins: &[String]) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return true;
    };
    let Ok(origin) = origin.to_str() else {
        return false;
    };
    if origins.iter().any(|ours| ours.eq_ignore_ascii_case(origin)) {
        return true;
    }
    let Some((_scheme, authority)) = origin.split_once("://") else {
        // `null`: a page of a file, or of anybody in a sandbox.
        return false;
    };
    let host = headers.get(header::HOST);
    host.is_some_and(|host| authority.as_bytes().eq_ignore_ascii_case(host.as_bytes()))
        || is_this_machine(authority)
}

fn is_this_machine(authority: &str) -> bool {
    let name = guard::without_port(authority);
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let loopback = |address: IpAddr| address.to_canonical().is_loopback();
    name.eq_ignore_ascii_case("localhost") || bare.parse().is_ok_and(loopback)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn pages_of_others_are_told_apart() {
        let trusted = |origin: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("10.0.0.7:15672"));
            headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
            is_trusted(&headers, &["https://shop.example".to_owned()])
        };
        for good in [
            "http://10.0.0.7:15672",
            "http://localhost:3000",
            "http://127.0.0.1:8080",
            "https://[::1]:8443",
            "https://shop.example",
            "HTTPS://Shop.Example",
        ] {
            assert!(trusted(good), "{good}");
        }
        for bad in [
            "null",
            "",
            "http://10.0.0.7",
            "http://10.0.0.7:15671",
            "http://evil.example",
            "http://localhost.evil.example",
            "http://127.0.0.1.evil.example",
            "https://shop.example.evil.example",
            "http://shop.example",
            "file://",
        ] {
            assert!(!trusted(bad), "{bad}");
        }
        assert!(is_trusted(&HeaderMap::new(), &[]));
    }
}
