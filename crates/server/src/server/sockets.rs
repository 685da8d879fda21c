//! The sockets of the doors that the configuration opens, before anything is behind them.

use std::net::SocketAddr;

use tokio::net::TcpListener;

use super::StartError;
use crate::config::Config;

/// Of one protocol, without and with TLS; `None` where it stays closed.
pub(super) type SocketPair = [Option<Socket>; 2];

/// One field per protocol.
pub(super) struct Sockets {
    fila: SocketPair,
    amqp: SocketPair,
    firemq: SocketPair,
    amaquet: SocketPair,
    http: SocketPair,
}

/// A bound one.
pub(super) struct Socket {
    pub(super) door: &'static str,
    pub(super) tls: bool,
    pub(super) listener: TcpListener,
    pub(super) addr: SocketAddr,
}

impl Sockets {
    /// Binds them all.
    pub(super) async fn bind(config: &Config) -> Result<Self, StartError> {
        let plain = |closed: bool, addr| (!closed).then_some(addr);
        let fila = plain(config.no_fila, config.fila);
        let amqp = plain(config.no_amqp, config.amqp);
        let firemq = plain(config.no_firemq, config.firemq);
        let amaquet = plain(config.no_amaquet, config.amaquet);
        let http = plain(config.no_http, config.http);
        Ok(Self {
            fila: bind(["fila", "fila tls"], [fila, config.fila_tls_address()]).await?,
            amqp: bind(["amqp", "amqp tls"], [amqp, config.amqp_tls_address()]).await?,
            firemq: bind(
                ["firemq", "firemq tls"],
                [firemq, config.firemq_tls_address()],
            )
            .await?,
            amaquet: bind(
                ["amaquet", "amaquet tls"],
                [amaquet, config.amaquet_tls_address()],
            )
            .await?,
            http: bind(["http", "http tls"], [http, config.http_tls_address()]).await?,
        })
    }

    /// Those of Fila, AMQP, FireMQ, Amaquet and HTTP.
    pub(super) fn by_door(self) -> [SocketPair; 5] {
        let Self {
            fila,
            amqp,
            firemq,
            amaquet,
            http,
        } = self;
        [fila, amqp, firemq, amaquet, http]
    }
}

async fn bind(
    [plain, tls]: [&'static str; 2],
    [addr, tls_addr]: [Option<SocketAddr>; 2],
) -> Result<SocketPair, StartError> {
    Ok([
        Socket::bind(plain, addr).await?,
        Socket::bind(tls, tls_addr).await?,
    ])
}

impl Socket {
    async fn bind(
        door: &'static str,
        addr: Option<SocketAddr>,
    ) -> Result<Option<Self>, StartError> {
        let Some(addr) = addr else {
            return Ok(None);
        };
        let failed = |source| StartError::Bind { door, addr, source };
        let listener = TcpListener::bind(addr).await.map_err(failed)?;
        Ok(Some(Self {
            door,
            tls: door.ends_with(" tls"),
            addr: listener.local_addr().map_err(failed)?,
            listener,
        }))
    }
}
