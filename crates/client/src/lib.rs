//! The Rust client of Tanda, a message broker. It speaks the Fila Binary Protocol, of which this
//! page tells, and FireMQ: exchanges, bindings and queues as in AMQP, see [`fire`].
//!
//! A [`Client`] is one connection. Three handles are made from it, each cheap to clone:
//!
//! | handle | what it does |
//! |---|---|
//! | [`Producer`] | sends messages, one by one or in batches, waiting for each or with many under
//! way |
//! | [`Consumer`] | subscribes to queues, settles what was delivered |
//! | [`admin::Admin`] | manages queues, runtime configuration, keys, throttles and the cluster |
//!
//! ```no_run
//! use tanda_client::admin::QueueSettings;
//! use tanda_client::{Client, Message};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect("127.0.0.1:5555").await?;
//! client.admin().create_queue(&QueueSettings::new("greetings")).await?;
//!
//! let message = Message::to("greetings").header("lang", "en").payload("hello");
//! let receipt = client.producer().send(message).await?;
//!
//! let mut greetings = client.consumer().subscribe("greetings").open().await?;
//! if let Some(delivery) = greetings.next().await {
//!     let delivery = delivery?;
//!     assert_eq!(delivery.id(), receipt.id);
//!     delivery.ack().await?;
//! }
//! client.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Delivery
//! A message that was confirmed is on the broker's disk. A message that was delivered is leased: it
//! comes again when it is not acknowledged before the lease ends, so a consumer must be able to see
//! a message twice. Leases outlive connections.
//!
//! # When something fails
//! Every request fails with a [`RequestError`], which tells whether trying again may help
//! ([`retryable`](RequestError::retryable)) and whether the request may have taken effect although
//! it failed ([`outcome_unknown`](RequestError::outcome_unknown)).
//!
//! When the server is overloaded the client itself tries again, within the bounds of
//! [`OverloadRetry`]. When the connection is lost it opens another and all subscriptions on it, as
//! [`ReconnectPolicy`] says. Requests whose answer was due fail with an unknown outcome, except
//! those that only read, which are made again. A producer can have messages with an idempotency key
//! sent again too ([`resend_after_loss`](Producer::resend_after_loss)).
//!
//! # Who may, and who listens
//! Where the server asks for it, a client shows an API key ([`ClientBuilder::api_key`]); with
//! [`ClientBuilder::tls`] the connection is encrypted and the server proves who it is. When the key
//! is revoked, requests fail and subscriptions end with `Unauthorized`.
//!
//! # Pace
//! A subscription may declare [`Throttle`]s: limits on deliveries that the server keeps exactly,
//! per value of a key if wanted. What waits for room uses no attempts.
//!
//! ```no_run
//! # use std::time::Duration;
//! # use tanda_client::{Client, KeyPart, Throttle};
//! # async fn example(client: Client) -> Result<(), Box<dyn std::error::Error>> {
//! let api = Throttle::new("api")
//!     .at_most(100).per(Duration::from_secs(1))
//!     .keyed_by([KeyPart::header("customer")]);
//! let calls = client.consumer().subscribe("calls").throttle(api).open().await?;
//! # drop(calls);
//! # Ok(())
//! # }
//! ```
//!
//! # Bounds
//! At most 64 Ki requests or 64 MiB of them are under way; further ones wait. A subscription has at
//! most its prefetch of messages delivered and not settled. An answer or delivery that came in part
//! is kept up to [`body_bytes_max`](ClientBuilder::body_bytes_max).
//!
//! # Without tokio
//! [`core`] is the connection as a state machine without sockets, tasks and clocks.

pub mod admin;
pub mod amaquet;
pub mod core;
pub mod fire;

mod client;
mod consumer;
mod delivery;
mod error;
mod message;
mod message_id;
mod outbox;
mod policy;
mod producer;
mod property_key;
mod settle;
mod shell;
mod subscription;
mod throttle;
mod tls;

pub use client::{Client, ClientBuilder};
pub use consumer::{Consumer, Subscribe};
pub use delivery::Delivery;
pub use error::{ConnectError, Rejection, RequestError, SubscriptionError};
pub use message::Message;
pub use message_id::{MessageId, ParseMessageIdError};
pub use policy::{OverloadRetry, ReconnectPolicy};
pub use producer::{BatchConfirm, Confirm, Producer, Receipt};
pub use property_key::{KeyPart, PropertyKey};
pub use settle::Settled;
pub use shell::dial::Dial;
pub use subscription::Subscription;
pub use tanda_wire::fila::{EncodeError, ErrorCode, Headers};
pub use throttle::{AtMost, InvalidThrottle, Throttle, ThrottleProblem, WhenThrottleKeyMissing};
pub use tls::{Tls, TlsBuilder, TlsError, TlsProblem};
