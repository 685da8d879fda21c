//! Amaquet: values, counters, maps, lists, sets, rankings, locks, queues and channels by small
//! commands.
//!
//! An [`AmaquetClient`] is one connection, cheap to clone. Each family of commands has a handle:
//!
//! | family | handle |
//! |---|---|
//! | `value.*`, `counter.*`, `key.*` | [`values`](AmaquetClient::values),
//! [`counters`](AmaquetClient::counters), [`keys`](AmaquetClient::keys) |
//! | `map.*`, `list.*`, `set.*`, `ranking.*` | [`maps`](AmaquetClient::maps),
//! [`lists`](AmaquetClient::lists), [`sets`](AmaquetClient::sets),
//! [`rankings`](AmaquetClient::rankings) |
//! | `lock.*` | [`locks`](AmaquetClient::locks) |
//! | `queue.*` | [`queues`](AmaquetClient::queues) |
//! | `pubsub.*` | [`publish`](AmaquetClient::publish), [`subscribe`](AmaquetClient::subscribe) |
//!
//! Any command can be run by its name too ([`run`](AmaquetClient::run)).
//!
//! ```no_run
//! use std::time::Duration;
//! use tanda_client::amaquet::{AmaquetClient, Command};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let amaquet = AmaquetClient::connect("127.0.0.1:7272").await?;
//! let version = amaquet.values().set("greeting", "hello").await?;
//! if let Some(value) = amaquet.values().get("greeting").await? {
//!     assert_eq!(value.version, version);
//! }
//! // Waits; dropping the future, as a timeout does, cancels the command in the server.
//! let pop = amaquet.lists().pop_wait("jobs", Duration::from_secs(30));
//! let job = tokio::time::timeout(Duration::from_secs(5), pop).await;
//! # drop(job);
//! let mut news = amaquet.subscribe("bus", "news.#").await?;
//! amaquet.publish("bus", "news.sport", "a goal").await?;
//! if let Some(event) = news.next().await {
//!     println!("{}: {:?}", event?.channel, "..");
//! }
//! let info = amaquet.run(Command::new("server.info")).await?;
//! println!("{} keys", info.u64("keys")?);
//! amaquet.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # When something fails
//! Every request fails with a [`RequestError`], which tells whether trying again may help
//! ([`retryable`](RequestError::retryable)) and whether the request may have taken effect although
//! it failed ([`outcome_unknown`](RequestError::outcome_unknown)).
//!
//! When the connection is lost the client opens another, as
//! [`ReconnectPolicy`](crate::ReconnectPolicy) says, and subscribes again; what was published
//! meanwhile is lost. Commands whose answer was due fail with an unknown outcome, except those that
//! only read, which are made again. Amaquet has no heartbeat: a connection that breaks without a
//! sign is noticed when something is sent.
//!
//! # Who is there
//! A server signs a random number of this client at each connection. With
//! [`server_key`](AmaquetClientBuilder::server_key) only the node of that key will do; the API key
//! is shown afterwards. Against others who read or change what is sent, only TLS helps.
//!
//! # Bounds
//! At most 256 commands ([`commands_max`](AmaquetClientBuilder::commands_max)) or 64 MiB of them
//! are under way; further ones wait. A subscription has a buffer; what does not fit is dropped and
//! counted.

mod client;
mod command;
mod core;
mod error;
mod families;
mod link;
mod payload;
mod reply;
mod shell;
mod subscription;

pub use client::{AmaquetClient, AmaquetClientBuilder, Running};
pub use command::{Argument, Command, CommandError};
pub use core::{Hello, Login, server_key_of};
pub use error::{ConnectError, Refusal, RequestError, SubscriptionError};
pub use families::*;
pub use link::{Link, LinkWatch};
pub use payload::{JsonText, Payload};
pub use reply::Reply;
pub use subscription::{Event, Subscription};
pub use tanda_wire::amaquet::ErrorCode;
pub use tanda_wire::amaquet::command::{
    ArgumentSpec, COMMANDS, Permission, ResultSpec, Spec, ValueType,
};
pub use tanda_wire::amaquet::json::{Json, JsonError, Number};
