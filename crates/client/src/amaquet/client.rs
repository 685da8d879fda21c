//! Connecting, and what one can do then.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tanda_wire::amaquet::Opcode;
use tokio::sync::{mpsc, oneshot};

use super::command::Command;
use super::core::{ConnectionConfig, Hello, Login};
use super::error::{ConnectError, RequestError};
use super::link::LinkWatch;
use super::reply::Reply;
use super::shell::driver::Driver;
use super::shell::handle::{Call, CallResult, Command as Asked, Handle, RequestIds, Shared};
use super::shell::subscriptions::NewSubscription;
use super::subscription::{Receiving, Subscription};
use crate::message::whole_ms;
use crate::policy::ReconnectPolicy;
use crate::shell::dial::{Dial, TcpDial, TlsDial};
use crate::shell::{TaskConfig, start};
use crate::tls::Tls;

/// How long opening a connection may take when nothing else is said.
const CONNECT_TIMEOUT_MS: u64 = 5_000;
/// Commands without their answer when nothing else is said: what the server takes by default.
const COMMANDS_MAX: usize = 256;
/// Events that may wait when nothing else is said.
const BUFFER_DEFAULT: u32 = 256;
/// Most events that may wait.
const BUFFER_MAX: u32 = 65_536;

/// A connection to a broker, shared by all its clones and what is made from it.
///
/// One task on the current tokio runtime serves it. It ends, after what is under way is answered,
/// when the client and all its clones and subscriptions are dropped, or by [`close`](Self::close).
#[derive(Debug, Clone)]
pub struct AmaquetClient {
    handle: Handle,
}

impl AmaquetClient {
    /// Connects with the default settings to `host:port`.
    ///
    /// # Errors
    /// When the server cannot be reached, refuses the connection or asks for an API key. The first
    /// connection is tried once; only a lost one is opened again.
    pub async fn connect(address: impl Into<String>) -> Result<Self, ConnectError> {
        Self::builder().address(address).connect().await
    }

    /// Begins a client with settings of its own.
    pub fn builder() -> AmaquetClientBuilder {
        AmaquetClientBuilder::default()
    }

    /// What the server said of itself when the connection was opened.
    #[must_use]
    pub fn server(&self) -> Option<Hello> {
        self.handle.shared().greeting().map(|(hello, _)| hello)
    }

    /// Who the server takes this client for; `None` when no API key was shown.
    #[must_use]
    pub fn login(&self) -> Option<Login> {
        self.handle.shared().greeting()?.1
    }

    /// Tells when the connection is lost and opened again.
    #[must_use]
    pub fn watch(&self) -> LinkWatch {
        LinkWatch::new(self.handle.shared().link())
    }

    /// Runs a command and waits for its result. Dropping the future cancels the command.
    ///
    /// # Errors
    /// When it was refused, or its outcome is not known; see [`RequestError`].
    pub async fn run(&self, command: Command) -> Result<Reply, RequestError> {
        self.start(command).await?.await
    }

    /// Runs a command without waiting for its result. This waits only while too many are under way
    /// already.
    ///
    /// # Errors
    /// When the client is closed.
    pub async fn start(&self, command: Command) -> Result<Running, RequestError> {
        let is_repeatable = command.only_reads();
        let payload = command.into_payload();
        let permits = self.handle.permits(payload.len()).await?;
        let (reply, result) = oneshot::channel();
        let request_id = self.handle.next_id();
        self.handle.send_call(Call {
            request_id,
            opcode: Opcode::Command,
            payload,
            reply,
            is_repeatable,
            was_sent: false,
            _permits: permits,
        })?;
        Ok(Running {
            handle: self.handle.clone(),
            request_id,
            result: Some(result),
        })
    }

    /// Subscribes to a channel, or to all channels that fit a pattern (`*` is one word, `#` any
    /// number of them), with room for 256 events that nobody has read yet. Makes the key when it
    /// is not there.
    ///
    /// # Errors
    /// `WRONG_TYPE` when the key is an exchange that is no topic exchange, `FORBIDDEN` without the
    /// permission for it.
    pub async fn subscribe(
        &self,
        key: impl Into<String>,
        channel: impl Into<String>,
    ) -> Result<Subscription, RequestError> {
        self.subscribe_with(key, channel, BUFFER_DEFAULT).await
    }

    /// Subscribes with room for so many events (1..=65536; what is outside counts as the nearest)
    /// in the server and as many here.
    ///
    /// # Errors
    /// As [`subscribe`](Self::subscribe).
    pub async fn subscribe_with(
        &self,
        key: impl Into<String>,
        channel: impl Into<String>,
        buffer: u32,
    ) -> Result<Subscription, RequestError> {
        let (key, channel) = (key.into(), channel.into());
        let buffer = buffer.clamp(1, BUFFER_MAX);
        let room = usize::try_from(buffer).unwrap_or(usize::MAX);
        let (sender, events) = mpsc::channel(room);
        let (end_sender, end) = oneshot::channel();
        let (reply, made) = oneshot::channel();
        let slot = self.handle.next_id();
        self.handle.send(Asked::Subscribe(Box::new(NewSubscription {
            slot,
            key: key.clone(),
            channel: channel.clone(),
            buffer,
            events: sender,
            end: end_sender,
            reply,
        })));
        // Dropping it, when this future is dropped too, ends it.
        let receiving = Receiving { events, end };
        let place = (key, channel);
        let subscription = Subscription::new(self.handle.clone(), slot, place, receiving);
        let made = made.await;
        made.unwrap_or_else(|_dropped| Err(RequestError::closed(false)))?;
        Ok(subscription)
    }

    /// Ends the client and everything made from it: no more requests are taken, those under way are
    /// answered (5 s at most), subscriptions end, then the connection closes.
    pub async fn close(self) {
        let (sender, closed) = oneshot::channel();
        self.handle.send(Asked::Close(sender));
        // The sender is dropped, never used: an error is the sign that the task has ended.
        drop(closed.await);
    }
}

/// A command that runs: resolves to its result. Dropping it cancels the command.
#[derive(Debug)]
#[must_use = "dropping it cancels the command"]
pub struct Running {
    handle: Handle,
    request_id: u64,
    result: Option<oneshot::Receiver<CallResult>>,
}

impl Running {
    /// Asks the server to cancel the command. It resolves to `CANCELLED`, or to what the command
    /// did before.
    pub fn cancel(&self) {
        self.handle.send(Asked::Cancel(self.request_id));
    }
}

impl Future for Running {
    type Output = Result<Reply, RequestError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(result) = &mut self.result else {
            return Poll::Ready(Err(RequestError::closed(true)));
        };
        let result = ready!(Pin::new(result).poll(cx));
        self.result = None;
        Poll::Ready(result.unwrap_or_else(|_dropped| Err(RequestError::closed(true))))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.result.is_some() {
            self.cancel();
        }
    }
}

/// The settings of an [`AmaquetClient`].
#[derive(Debug, Clone)]
#[must_use = "connect() makes the client"]
pub struct AmaquetClientBuilder {
    address: String,
    tls: Option<Tls>,
    connection: ConnectionConfig,
    connect_timeout_ms: u64,
    reconnect: ReconnectPolicy,
    commands_max: usize,
}

impl Default for AmaquetClientBuilder {
    fn default() -> Self {
        Self {
            address: "127.0.0.1:7272".to_owned(),
            tls: None,
            connection: ConnectionConfig::default(),
            connect_timeout_ms: CONNECT_TIMEOUT_MS,
            reconnect: ReconnectPolicy::default(),
            commands_max: COMMANDS_MAX,
        }
    }
}

impl AmaquetClientBuilder {
    /// Where the server is, `host:port`; 127.0.0.1:7272 by default.
    pub fn address(mut self, address: impl Into<String>) -> Self {
        self.address = address.into();
        self
    }

    /// Encrypts the connection.
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// The API key to show. It is shown after the server has proved to be the node that was asked
    /// for; without TLS others on the way can read it.
    pub fn api_key(mut self, api_key: impl Into<String>) -> Self {
        self.connection.api_key = Some(api_key.into());
        self
    }

    /// The public key that the node must have ([`Hello::public_key`]). Without it any node will do.
    pub const fn server_key(mut self, public_key: [u8; 32]) -> Self {
        self.connection.server_key = Some(public_key);
        self
    }

    /// How long connecting and the handshake may take together; 5 s by default.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout_ms = whole_ms(timeout);
        self
    }

    /// What happens when the connection is lost.
    pub const fn reconnect(mut self, policy: ReconnectPolicy) -> Self {
        self.reconnect = policy;
        self
    }

    /// How many commands may be without their answer, those that wait for something included; 256
    /// by default, which is the server's limit by default. More wait here. 0 counts as 1.
    pub const fn commands_max(mut self, commands: usize) -> Self {
        self.commands_max = commands;
        self
    }

    /// Connects over TCP, or over TLS if [`tls`](Self::tls) was set.
    ///
    /// # Errors
    /// As [`AmaquetClient::connect`], and when TLS fails.
    pub async fn connect(mut self) -> Result<AmaquetClient, ConnectError> {
        let tcp = TcpDial {
            address: std::mem::take(&mut self.address),
        };
        match self.tls.take() {
            Some(tls) => self.connect_through(TlsDial { tcp, tls }).await,
            None => self.connect_through(tcp).await,
        }
    }

    /// Connects over streams the program opens itself.
    ///
    /// # Errors
    /// When no stream can be opened, or the server refuses the connection.
    pub async fn connect_through<D: Dial>(self, dial: D) -> Result<AmaquetClient, ConnectError> {
        let config = TaskConfig {
            connection: self.connection,
            connect_timeout_ms: self.connect_timeout_ms,
            reconnect: self.reconnect,
        };
        let (ids, shared) = (RequestIds::new(), Arc::new(Shared::default()));
        let (sender, commands) = mpsc::unbounded_channel();
        let driver = Driver::new(ids.clone(), Arc::clone(&shared));
        start(dial, config, driver, commands).await?;
        let handle = Handle::new(sender, ids, shared, self.commands_max);
        Ok(AmaquetClient { handle })
    }
}
