//! FireMQ: AMQP's exchanges, queues, acknowledgements and confirms over a small protocol.
//!
//! A [`FireClient`] is one connection, cheap to clone. Everything is made from it:
//!
//! | what | how |
//! |---|---|
//! | exchanges, queues, bindings | [`declare_exchange`](FireClient::declare_exchange),
//! [`declare_queue`](FireClient::declare_queue), [`bind`](FireClient::bind) and their opposites |
//! | messages in | [`publish`](FireClient::publish), with many under way
//! [`submit`](FireClient::submit), without a confirm [`post`](FireClient::post) |
//! | messages out | [`subscribe`](FireClient::subscribe), one at a time
//! [`get`](FireClient::get) |
//!
//! ```no_run
//! use tanda_client::fire::{Binding, Exchange, ExchangeKind, FireClient, Message, Queue};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let fire = FireClient::connect("fire://guest:guest@127.0.0.1:5673/").await?;
//! fire.declare_exchange(Exchange::new("events", ExchangeKind::Topic).durable()).await?;
//! fire.declare_queue(Queue::named("orders").durable()).await?;
//! fire.bind(Binding::to_queue("events", "orders").key("order.*")).await?;
//!
//! let message = Message::to("events", "order.new").persistent().mandatory().body("42");
//! let published = fire.publish(message).await?;
//! assert!(published.returned().is_none(), "a queue has received it");
//!
//! let mut orders = fire.subscribe("orders").open().await?;
//! if let Some(delivery) = orders.next().await {
//!     let delivery = delivery?;
//!     println!("{}: {:?}", delivery.key(), delivery.body());
//!     delivery.ack()?;
//! }
//! fire.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Delivery
//! A persistent message in a durable queue that was confirmed is on the broker's disk. A delivery
//! is this client's until it is settled ([`Delivery::ack`], [`Delivery::nack`]) or the connection
//! ends; then the broker puts it back, so a consumer must be able to see a message twice.
//! Settlements are not answered.
//!
//! # When something fails
//! Every request fails with a [`RequestError`], which tells whether trying again may help
//! ([`retryable`](RequestError::retryable)) and whether the request may have taken effect although
//! it failed ([`outcome_unknown`](RequestError::outcome_unknown)).
//!
//! # When the connection is lost
//! The client opens another, as [`ReconnectPolicy`](crate::ReconnectPolicy) says, and declares on
//! it what was declared through it: exchanges, queues, bindings, subscriptions, in that order. Only
//! then go other requests on. A queue that the server named has another name then; its first name
//! stays good wherever this client names a queue. What cannot be declared again, because it is
//! there with other settings, ends the subscriptions that would miss messages.
//!
//! Publishes whose confirm was due fail with an unknown outcome, except those that are
//! [sent again](Message::resend_after_loss). Declarations, bindings and subscriptions are asked for
//! again; other requests fail with an unknown outcome. Messages of [`post`](FireClient::post) may
//! be lost. Deliveries of the old connection are stale: those that were not read are dropped,
//! because they come again, and settling one fails with
//! [`StaleDelivery`](RequestError::StaleDelivery) and sends nothing.
//!
//! # Bounds
//! At most 1,024 publishes are under way ([`publishes_max`](FireClientBuilder::publishes_max)), and
//! at most 64 Ki requests or 64 MiB of requests and messages; further ones wait, also while the
//! server asks publishers for a pause. A subscription has at most its prefetch of messages that
//! were delivered and neither settled nor dropped.
//!
//! # Without tokio
//! [`core`] is the connection as a state machine without sockets, tasks and clocks.

pub mod core;

mod client;
mod consume;
mod delivery;
pub(crate) mod error;
mod fields;
mod message;
mod shell;
mod subscription;
mod topology;

pub use client::{Confirm, FireClient, FireClientBuilder};
pub use consume::Subscribe;
pub use core::{Content, Returned};
pub use delivery::Delivery;
pub use error::{ConnectError, Refusal, RequestError, SubscriptionError};
pub use fields::Fields;
pub use message::{Message, Published};
pub use subscription::Subscription;
pub use tanda_wire::firemq::{Properties, RawMap, ReplyCode, UrlError, Value};
pub use topology::{Binding, DeclaredQueue, Exchange, ExchangeKind, Queue};
