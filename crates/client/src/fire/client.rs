//! Connecting, and what one can do then.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll};
use std::time::Duration;

use tanda_wire::firemq::{Scheme, Url};
use tokio::sync::{mpsc, oneshot};

use super::consume::Subscribe;
use super::core::{Answer, ConnectionConfig};
use super::delivery::Delivery;
use super::error::{ConnectError, Refusal, RequestError};
use super::message::{Message, Published};
use super::shell::driver::Driver;
use super::shell::handle::{Command, Handle, Shared};
use super::shell::job::{Call, Job, Outgoing, PublishJob, PublishResult};
use super::topology::{Binding, DeclaredQueue, Exchange, Queue};
use crate::message::whole_ms;
use crate::policy::ReconnectPolicy;
use crate::shell::dial::{Dial, TcpDial, TlsDial};
use crate::shell::{TaskConfig, start};
use crate::tls::Tls;

/// How long opening a connection may take when nothing else is said.
const CONNECT_TIMEOUT_MS: u64 = 5_000;
/// Publishes without their confirm when nothing else is said.
const PUBLISHES_MAX: usize = 1_024;

/// A connection to a broker, shared by all its clones and what is made from it.
///
/// One task on the current tokio runtime serves it. It ends, after what is under way is answered,
/// when the client and all its clones, subscriptions and deliveries are dropped, or by
/// [`close`](Self::close).
#[derive(Debug, Clone)]
pub struct FireClient {
    handle: Handle,
    newest_slot: Arc<AtomicU64>,
}

impl FireClient {
    /// Connects with the default settings to a URL: `fire://user:password@host:port/vhost`, or
    /// `fires://` for TLS. The parts are percent-encoded; user and password are `guest` when there
    /// are none, the virtual host is `/`, the port 5673, or 5674 for TLS.
    ///
    /// # Errors
    /// When the URL cannot be read, the server cannot be reached or refuses the connection. The
    /// first connection is tried once; only a lost one is opened again.
    pub async fn connect(url: impl Into<String>) -> Result<Self, ConnectError> {
        Self::builder(url).connect().await
    }

    /// Begins a client with settings of its own.
    pub fn builder(url: impl Into<String>) -> FireClientBuilder {
        FireClientBuilder::new(url.into())
    }

    /// Declares an exchange: makes it, or checks that it is there with the same settings.
    ///
    /// # Errors
    /// 406 when it is there with other settings, 403 without the permission for it.
    pub async fn declare_exchange(&self, exchange: Exchange) -> Result<(), RequestError> {
        self.call(Call::DeclareExchange(exchange)).await.map(drop)
    }

    /// Checks that an exchange is there.
    ///
    /// # Errors
    /// 404 when there is none.
    pub async fn check_exchange(&self, name: impl Into<String>) -> Result<(), RequestError> {
        self.call(Call::CheckExchange(name.into())).await.map(drop)
    }

    /// Deletes an exchange and its bindings.
    ///
    /// # Errors
    /// 530 for one of the server's own.
    pub async fn delete_exchange(&self, name: impl Into<String>) -> Result<(), RequestError> {
        let name = name.into();
        let if_unused = false;
        self.call(Call::DeleteExchange { name, if_unused })
            .await
            .map(drop)
    }

    /// Deletes an exchange that has no bindings.
    ///
    /// # Errors
    /// 406 when it has.
    pub async fn delete_unused_exchange(
        &self,
        name: impl Into<String>,
    ) -> Result<(), RequestError> {
        let name = name.into();
        let if_unused = true;
        self.call(Call::DeleteExchange { name, if_unused })
            .await
            .map(drop)
    }

    /// Declares a queue: makes it, or checks that it is there with the same settings.
    ///
    /// # Errors
    /// 406 when it is there with other settings, 405 when it is exclusive to another connection,
    /// 403 without the permission for it.
    pub async fn declare_queue(&self, queue: Queue) -> Result<DeclaredQueue, RequestError> {
        let asked = queue.name().to_owned();
        let mut declared = declared(self.call(Call::DeclareQueue(queue)).await?);
        if declared.name.is_empty() {
            declared.name = asked;
        }
        Ok(declared)
    }

    /// Looks at a queue: its name now, its ready messages and consumers.
    ///
    /// # Errors
    /// 404 when there is none.
    pub async fn check_queue(
        &self,
        name: impl Into<String>,
    ) -> Result<DeclaredQueue, RequestError> {
        let call = Call::CheckQueue(name.into());
        Ok(declared(self.call(call).await?))
    }

    /// Deletes a queue, and returns how many messages went with it.
    ///
    /// # Errors
    /// 405 when it is exclusive to another connection.
    pub async fn delete_queue(&self, name: impl Into<String>) -> Result<u64, RequestError> {
        let call = Call::DeleteQueue {
            name: name.into(),
            if_unused: false,
            if_empty: false,
        };
        Ok(declared(self.call(call).await?).messages)
    }

    /// Deletes a queue that has neither consumers nor messages.
    ///
    /// # Errors
    /// 406 when it has.
    pub async fn delete_idle_queue(&self, name: impl Into<String>) -> Result<(), RequestError> {
        let call = Call::DeleteQueue {
            name: name.into(),
            if_unused: true,
            if_empty: true,
        };
        self.call(call).await.map(drop)
    }

    /// Removes all ready messages of a queue, and returns how many there were.
    ///
    /// # Errors
    /// 404 when there is no such queue.
    pub async fn purge_queue(&self, name: impl Into<String>) -> Result<u64, RequestError> {
        let call = Call::Purge(name.into());
        Ok(declared(self.call(call).await?).messages)
    }

    /// Adds a binding; one that is there already is no error.
    ///
    /// # Errors
    /// 404 when one of its ends is missing.
    pub async fn bind(&self, binding: Binding) -> Result<(), RequestError> {
        self.call(Call::Bind(binding)).await.map(drop)
    }

    /// Removes a binding, given as it was made.
    ///
    /// # Errors
    /// 404 when one of its ends is missing.
    pub async fn unbind(&self, binding: Binding) -> Result<(), RequestError> {
        self.call(Call::Unbind(binding)).await.map(drop)
    }

    /// Publishes a message and waits until the server has taken it.
    ///
    /// # Errors
    /// When it was refused, or its outcome is not known; see [`RequestError`].
    pub async fn publish(&self, message: Message) -> Result<Published, RequestError> {
        self.submit(message).await?.await
    }

    /// Publishes a message without waiting for its confirm. This waits only while too many are
    /// under way already. The message is sent even when the [`Confirm`] is dropped. Messages that
    /// are submitted one after the other keep their order.
    ///
    /// # Errors
    /// When the client is closed.
    pub async fn submit(&self, message: Message) -> Result<Confirm, RequestError> {
        let message = Outgoing::new(message);
        let permits = self.handle.publish_permits(message.size()).await?;
        let (reply, result) = oneshot::channel();
        self.handle.send_job(Job::Publish(Box::new(PublishJob {
            message,
            reply: Some(reply),
            was_sent: false,
            _permits: permits,
        })))?;
        Ok(Confirm { result })
    }

    /// Publishes a message and does not ask what becomes of it. This waits only while too much is
    /// under way already. What the server refuses is seen by [`complaint`](Self::complaint).
    ///
    /// # Errors
    /// When the message is mandatory.
    pub async fn post(&self, message: Message) -> Result<(), RequestError> {
        if message.is_mandatory {
            return Err(RequestError::MandatoryUnconfirmed);
        }
        let message = Outgoing::new(message);
        let permits = self.handle.post_permits(message.size()).await?;
        self.handle.send_job(Job::Publish(Box::new(PublishJob {
            message,
            reply: None,
            was_sent: false,
            _permits: permits,
        })))
    }

    /// Begins a subscription to a queue; [`open`](Subscribe::open) makes it.
    pub fn subscribe(&self, queue: impl Into<Arc<str>>) -> Subscribe {
        Subscribe::new(
            self.handle.clone(),
            Arc::clone(&self.newest_slot),
            queue.into(),
        )
    }

    /// Takes one message of a queue, to be settled; `None` when it has none ready.
    ///
    /// # Errors
    /// 404 when there is no such queue.
    pub async fn get(&self, queue: impl Into<String>) -> Result<Option<Delivery>, RequestError> {
        self.take(queue.into(), false).await
    }

    /// Takes one message of a queue that counts as acknowledged once it is sent; `None` when it
    /// has none ready.
    ///
    /// # Errors
    /// 404 when there is no such queue. When the outcome is unknown, a message may be lost.
    pub async fn get_no_ack(
        &self,
        queue: impl Into<String>,
    ) -> Result<Option<Delivery>, RequestError> {
        self.take(queue.into(), true).await
    }

    /// The name that the server knows a queue by now, given the one it was declared with: another
    /// one only for a queue that the server named, after a reconnect. A `reply_to` needs it.
    #[must_use]
    pub fn current_queue_name(&self, name: &str) -> String {
        self.handle.shared().current_name(name)
    }

    /// Takes the newest refusal that belonged to no request: of a message without a confirm, of a
    /// settlement, or of something that could not be declared again after a reconnect.
    #[must_use]
    pub fn complaint(&self) -> Option<Refusal> {
        self.handle.shared().take_complaint()
    }

    /// Ends the client and everything made from it: no more requests are taken, those under way are
    /// answered (5 s at most), subscriptions end, then the connection closes.
    pub async fn close(self) {
        let (sender, closed) = oneshot::channel();
        self.handle.send(Command::Close(sender));
        // The sender is dropped, never used: an error is the sign that the task has ended.
        drop(closed.await);
    }

    async fn call(&self, call: Call) -> Result<Answer, RequestError> {
        Ok(self.handle.call(call).await?.answer)
    }

    async fn take(&self, queue: String, no_ack: bool) -> Result<Option<Delivery>, RequestError> {
        let replied = self.handle.call(Call::Get { queue, no_ack }).await?;
        match replied.answer {
            Answer::Got { received, .. } => Ok(Some(Delivery::of_get(
                self.handle.clone(),
                replied.generation,
                received,
                no_ack,
            ))),
            // The task has checked that the reply fits the request.
            Answer::Empty | Answer::Done { .. } => Ok(None),
        }
    }
}

fn declared(answer: Answer) -> DeclaredQueue {
    match answer {
        Answer::Done {
            name,
            messages,
            consumers,
        } => DeclaredQueue {
            name,
            messages,
            consumers,
        },
        // The task has checked that the reply fits the request.
        Answer::Empty | Answer::Got { .. } => DeclaredQueue {
            name: String::new(),
            messages: 0,
            consumers: 0,
        },
    }
}

/// Resolves when the server has taken, returned or refused a message.
#[derive(Debug)]
#[must_use = "without awaiting it, nobody knows what became of the message"]
pub struct Confirm {
    result: oneshot::Receiver<PublishResult>,
}

impl Future for Confirm {
    type Output = Result<Published, RequestError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = Pin::new(&mut self.result).poll(cx);
        result.map(|result| result.unwrap_or_else(|_dropped| Err(RequestError::closed(true))))
    }
}

/// The settings of a [`FireClient`].
#[derive(Debug, Clone)]
#[must_use = "connect() makes the client"]
pub struct FireClientBuilder {
    url: Secret,
    tls: Option<Tls>,
    name: String,
    heartbeat_s: Option<u16>,
    connect_timeout_ms: u64,
    reconnect: ReconnectPolicy,
    publishes_max: usize,
}

/// A URL, which may hold a password.
#[derive(Clone)]
struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a URL")
    }
}

impl FireClientBuilder {
    fn new(url: String) -> Self {
        Self {
            url: Secret(url),
            tls: None,
            name: String::new(),
            heartbeat_s: None,
            connect_timeout_ms: CONNECT_TIMEOUT_MS,
            reconnect: ReconnectPolicy::default(),
            publishes_max: PUBLISHES_MAX,
        }
    }

    /// How the server proves who it is when the URL is `fires://`; by default it must be known to
    /// an authority that the system trusts.
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// What the client calls itself, shown by the server to people.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Seconds between heartbeats, 20 by default; 0: none, so that a connection that breaks without
    /// a sign is not noticed. The server may choose a shorter time.
    pub const fn heartbeat_s(mut self, seconds: u16) -> Self {
        self.heartbeat_s = Some(seconds);
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

    /// How many publishes may be without their confirm, 1,024 by default; 0 counts as 1.
    pub const fn publishes_max(mut self, publishes: usize) -> Self {
        self.publishes_max = publishes;
        self
    }

    /// Connects over TCP or TLS, as the URL says.
    ///
    /// # Errors
    /// When the URL cannot be read, the server cannot be reached or refuses the connection, or does
    /// not prove to be the one that was called.
    pub async fn connect(mut self) -> Result<FireClient, ConnectError> {
        let url: Url = self.url.0.parse().map_err(ConnectError::Url)?;
        let tcp = TcpDial {
            address: address(&url),
        };
        match url.scheme {
            Scheme::Fire => self.connect_over(&url, tcp).await,
            Scheme::Fires => {
                let tls = match self.tls.take() {
                    Some(tls) => tls,
                    None => Tls::builder().build().map_err(ConnectError::Tls)?,
                };
                self.connect_over(&url, TlsDial { tcp, tls }).await
            }
            scheme @ (Scheme::Ws | Scheme::Wss) => Err(ConnectError::WebSocket { scheme }),
        }
    }

    /// Connects over streams the program opens itself. Of the URL only user, password and virtual
    /// host count.
    ///
    /// # Errors
    /// When the URL cannot be read, no stream can be opened, or the server refuses the connection.
    pub async fn connect_through<D: Dial>(self, dial: D) -> Result<FireClient, ConnectError> {
        let url: Url = self.url.0.parse().map_err(ConnectError::Url)?;
        self.connect_over(&url, dial).await
    }

    async fn connect_over<D: Dial>(self, url: &Url, dial: D) -> Result<FireClient, ConnectError> {
        let mut connection = ConnectionConfig {
            vhost: url.vhost.clone(),
            user: url.user.clone(),
            password: url.password.clone(),
            name: self.name,
            ..ConnectionConfig::default()
        };
        connection.heartbeat_s = self.heartbeat_s.unwrap_or(connection.heartbeat_s);
        let config = TaskConfig {
            connection,
            connect_timeout_ms: self.connect_timeout_ms,
            reconnect: self.reconnect,
        };
        let shared = Arc::new(Shared::default());
        let (sender, commands) = mpsc::unbounded_channel();
        start(dial, config, Driver::new(Arc::clone(&shared)), commands).await?;
        Ok(FireClient {
            handle: Handle::new(sender, shared, self.publishes_max),
            newest_slot: Arc::new(AtomicU64::new(0)),
        })
    }
}

/// `host:port`, with the brackets of an IPv6 address.
fn address(url: &Url) -> String {
    let (host, port) = (&url.host, url.port);
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}
