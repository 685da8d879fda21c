//! Connecting, and the three things one can do then.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tanda_wire::fila::DEFAULT_PORT;
use tokio::sync::{mpsc, oneshot};

use crate::admin::Admin;
use crate::consumer::Consumer;
use crate::core::{ConnectionConfig, KeepaliveConfig};
use crate::error::ConnectError;
use crate::message::whole_ms;
use crate::policy::{OverloadRetry, ReconnectPolicy};
use crate::producer::Producer;
use crate::shell::dial::{Dial, TcpDial, TlsDial};
use crate::shell::driver::Driver;
use crate::shell::handle::Command;
use crate::shell::{Handle, TaskConfig, start};
use crate::tls::Tls;

/// How long opening a connection may take when nothing else is said.
const CONNECT_TIMEOUT_MS: u64 = 5_000;

/// A connection to a broker, shared by all handles made from it.
///
/// One task on the current tokio runtime serves it. It ends, after what is under way is answered,
/// when the client and all its handles, subscriptions and deliveries are dropped, or by
/// [`close`](Self::close).
#[derive(Debug, Clone)]
pub struct Client {
    handle: Handle,
    newest_slot: Arc<AtomicU64>,
}

impl Client {
    /// Connects with the default settings to `host:port`.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses the connection. The first connection is tried
    /// once; only a lost one is opened again.
    pub async fn connect(address: impl Into<String>) -> Result<Self, ConnectError> {
        Self::builder().address(address).connect().await
    }

    /// Begins a client with settings of its own.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Sends messages.
    #[must_use]
    pub fn producer(&self) -> Producer {
        Producer::new(self.handle.clone())
    }

    /// Receives messages.
    #[must_use]
    pub fn consumer(&self) -> Consumer {
        Consumer::new(self.handle.clone(), Arc::clone(&self.newest_slot))
    }

    /// Manages queues, configuration, keys and the cluster.
    #[must_use]
    pub fn admin(&self) -> Admin {
        Admin::new(self.handle.clone())
    }

    /// Ends the client and all its handles: no more requests are taken, those under way are
    /// answered (5 s at most), subscriptions end, then the connection closes.
    pub async fn close(self) {
        let (sender, closed) = oneshot::channel();
        self.handle.send(Command::Close(sender));
        // The sender is dropped, never used: an error is the sign that the task has ended.
        drop(closed.await);
    }
}

/// The settings of a [`Client`].
#[derive(Debug, Clone)]
#[must_use = "connect() makes the client"]
pub struct ClientBuilder {
    address: String,
    tls: Option<Tls>,
    config: TaskConfig<ConnectionConfig>,
    overload: OverloadRetry,
}

impl Default for ClientBuilder {
    fn default() -> Self {
        let config = TaskConfig {
            connection: ConnectionConfig::default(),
            connect_timeout_ms: CONNECT_TIMEOUT_MS,
            reconnect: ReconnectPolicy::default(),
        };
        Self {
            address: format!("127.0.0.1:{DEFAULT_PORT}"),
            tls: None,
            config,
            overload: OverloadRetry::default(),
        }
    }
}

impl ClientBuilder {
    /// The server as `host:port`; `127.0.0.1:5555` by default.
    pub fn address(mut self, address: impl Into<String>) -> Self {
        self.address = address.into();
        self
    }

    /// The credential; needed where the server has authentication on.
    pub fn api_key(mut self, api_key: impl Into<String>) -> Self {
        self.config.connection.api_key = Some(api_key.into());
        self
    }

    /// Encrypts the connection; the server must have a door for TLS at the address.
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// How long connecting and the handshake may take together; 5 s by default.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.config.connect_timeout_ms = whole_ms(timeout);
        self
    }

    /// What happens when the connection is lost.
    pub const fn reconnect(mut self, policy: ReconnectPolicy) -> Self {
        self.config.reconnect = policy;
        self
    }

    /// What happens when the server is overloaded; a [`Producer`] may have a policy of its own.
    pub const fn overload_retry(mut self, policy: OverloadRetry) -> Self {
        self.overload = policy;
        self
    }

    /// After how much silence the server is asked for a sign of life (15 s by default), and how
    /// long to wait for it (30 s).
    pub fn keepalive(mut self, idle: Duration, answer_timeout: Duration) -> Self {
        self.config.connection.keepalive = KeepaliveConfig {
            ping_idle_ms: whole_ms(idle),
            pong_timeout_ms: whole_ms(answer_timeout),
        };
        self
    }

    /// The most bytes of answers and deliveries that came in part; 256 MiB by default.
    pub const fn body_bytes_max(mut self, bytes: usize) -> Self {
        self.config.connection.reassembly.total_bytes_max = bytes;
        self
    }

    /// Connects over TCP, with [`tls`](Self::tls) over TLS.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses the connection, or does not prove to be the
    /// one that was called.
    pub async fn connect(mut self) -> Result<Client, ConnectError> {
        let tcp = TcpDial {
            address: self.address.clone(),
        };
        match self.tls.take() {
            None => self.connect_through(tcp).await,
            Some(tls) => self.connect_through(TlsDial { tcp, tls }).await,
        }
    }

    /// Connects over streams the program opens itself; address and TLS settings are not used.
    ///
    /// # Errors
    /// When no stream can be opened, or the server refuses the connection.
    pub async fn connect_through<D: Dial>(self, dial: D) -> Result<Client, ConnectError> {
        let (sender, commands) = mpsc::unbounded_channel();
        let driver = Driver::new(self.overload);
        start(dial, self.config, driver, commands).await?;
        let handle = Handle::new(sender, self.overload);
        Ok(Client {
            handle,
            newest_slot: Arc::new(AtomicU64::new(0)),
        })
    }
}
