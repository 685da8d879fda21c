//! The sockets of the doors that the configuration opens, before anything is behind them.

use std::{io, net::SocketAddr};

use tokio::net::{TcpListener, TcpSocket};

use super::StartError;
use crate::config::Config;

/// Connections that may wait to be accepted, at each door; the system may allow fewer
/// (`net.core.somaxconn`). One more is not refused: its client tries again after a second, which
/// looks like a broker that hangs. So it is more than arrive while other work has the processor.
const BACKLOG: u32 = 4096;

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
    pub(super) fn bind(config: &Config) -> Result<Self, StartError> {
        let plain = |closed: bool, addr| (!closed).then_some(addr);
        let fila = plain(config.no_fila, config.fila);
        let amqp = plain(config.no_amqp, config.amqp);
        let firemq = plain(config.no_firemq, config.firemq);
        let amaquet = plain(config.no_amaquet, config.amaquet);
        let http = plain(config.no_http, config.http);
        Ok(Self {
            fila: bind(["fila", "fila tls"], [fila, config.fila_tls_address()])?,
            amqp: bind(["amqp", "amqp tls"], [amqp, config.amqp_tls_address()])?,
            firemq: bind(
                ["firemq", "firemq tls"],
                [firemq, config.firemq_tls_address()],
            )?,
            amaquet: bind(
                ["amaquet", "amaquet tls"],
                [amaquet, config.amaquet_tls_address()],
            )?,
            http: bind(["http", "http tls"], [http, config.http_tls_address()])?,
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

fn bind(
    [plain, tls]: [&'static str; 2],
    [addr, tls_addr]: [Option<SocketAddr>; 2],
) -> Result<SocketPair, StartError> {
    Ok([Socket::bind(plain, addr)?, Socket::bind(tls, tls_addr)?])
}

impl Socket {
    fn bind(door: &'static str, addr: Option<SocketAddr>) -> Result<Option<Self>, StartError> {
        let Some(addr) = addr else {
            return Ok(None);
        };
        let failed = |source| StartError::Bind { door, addr, source };
        let listener = listen(addr).map_err(failed)?;
        Ok(Some(Self {
            door,
            tls: door.ends_with(" tls"),
            addr: listener.local_addr().map_err(failed)?,
            listener,
        }))
    }
}

fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = match addr {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    // A restart is not kept waiting by connections of the broker before it.
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    socket.listen(BACKLOG)
}
