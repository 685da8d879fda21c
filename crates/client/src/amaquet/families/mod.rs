//! The commands by family, with their arguments and results as types.
//!
//! Owns: names of commands and fields. Refuses to know: how requests travel.

mod collections;
mod key;
mod list;
mod lock;
mod queue;
mod ranking;
mod value;

use tanda_wire::amaquet::ErrorCode;

use super::client::AmaquetClient;
use super::command::Command;
use super::error::RequestError;
use super::payload::Payload;
use super::reply::Reply;

pub use collections::{Maps, Sets};
pub use key::{Keys, Scanned};
pub use list::{Lists, Side};
pub use lock::{Locked, Locks};
pub use queue::{Popped, PushMessage, Pushed, QueueCounts, QueueOptions, Queues, Settled};
pub use ranking::{Ranked, Rankings};
pub use value::{Counters, SetCondition, Values, Versioned};

/// A handle of one family; with `makes keys`, one whose commands make keys.
macro_rules! family {
    ($(#[$meta:meta])* $Name:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy)]
        pub struct $Name<'a> {
            client: &'a AmaquetClient,
        }

        impl<'a> $Name<'a> {
            pub(super) const fn new(client: &'a AmaquetClient) -> Self {
                Self { client }
            }

            async fn run(self, command: Command) -> Result<Reply, RequestError> {
                self.client.run(command).await
            }
        }
    };
    ($(#[$meta:meta])* $Name:ident makes keys) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy)]
        pub struct $Name<'a> {
            client: &'a AmaquetClient,
            ttl: Option<std::time::Duration>,
        }

        impl<'a> $Name<'a> {
            pub(super) const fn new(client: &'a AmaquetClient) -> Self {
                Self { client, ttl: None }
            }

            /// The same handle; keys that its commands make expire after this time.
            #[must_use]
            pub const fn expiring_after(mut self, ttl: std::time::Duration) -> Self {
                self.ttl = Some(ttl);
                self
            }

            async fn run(self, command: Command) -> Result<Reply, RequestError> {
                self.client.run(command).await
            }

            /// A command that makes the key if it is not there.
            fn making(self, name: &str, key: &str) -> Command {
                on(name, key).ms("ttl_ms", self.ttl)
            }
        }
    };
}

use family;

/// A command on a key.
fn on(name: &str, key: &str) -> Command {
    Command::new(name).arg("key", key)
}

/// `None` where the key, or what is asked of it, is not there.
fn if_present(result: Result<Reply, RequestError>) -> Result<Option<Reply>, RequestError> {
    match result {
        Ok(reply) => Ok(Some(reply)),
        Err(error) if error.code() == Some(ErrorCode::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

/// `None` also where a wait ended without anything.
fn if_any(result: Result<Reply, RequestError>) -> Result<Option<Reply>, RequestError> {
    match result {
        Err(error) if error.code() == Some(ErrorCode::Timeout) => Ok(None),
        result => if_present(result),
    }
}

impl AmaquetClient {
    /// `value.*`: single values with versions.
    #[must_use]
    pub const fn values(&self) -> Values<'_> {
        Values::new(self)
    }

    /// `counter.*`: integers.
    #[must_use]
    pub const fn counters(&self) -> Counters<'_> {
        Counters::new(self)
    }

    /// `map.*`: fields of keys.
    #[must_use]
    pub const fn maps(&self) -> Maps<'_> {
        Maps::new(self)
    }

    /// `list.*`: items in order.
    #[must_use]
    pub const fn lists(&self) -> Lists<'_> {
        Lists::new(self)
    }

    /// `set.*`: members without order.
    #[must_use]
    pub const fn sets(&self) -> Sets<'_> {
        Sets::new(self)
    }

    /// `ranking.*`: members by score.
    #[must_use]
    pub const fn rankings(&self) -> Rankings<'_> {
        Rankings::new(self)
    }

    /// `lock.*`: who may.
    #[must_use]
    pub const fn locks(&self) -> Locks<'_> {
        Locks::new(self)
    }

    /// `key.*`: keys of any kind.
    #[must_use]
    pub const fn keys(&self) -> Keys<'_> {
        Keys::new(self)
    }

    /// `queue.*`: the broker's queues.
    #[must_use]
    pub const fn queues(&self) -> Queues<'_> {
        Queues::new(self)
    }

    /// Publishes to a channel of a key: to who subscribes now, and to the queues that are bound to
    /// the topic exchange of that name. Makes it when it is not there. Returns how many receivers
    /// there were.
    ///
    /// # Errors
    /// `WRONG_TYPE` when the key is an exchange that is no topic exchange.
    pub async fn publish(
        &self,
        key: &str,
        channel: &str,
        payload: impl Into<Payload>,
    ) -> Result<u64, RequestError> {
        let command = on("pubsub.publish", key)
            .arg("channel", channel)
            .arg("payload", payload.into());
        self.run(command).await?.u64("receivers")
    }

    /// The channels and patterns of a key that are subscribed now, sorted.
    ///
    /// # Errors
    /// `NOT_FOUND` when the key is not there.
    pub async fn channels(&self, key: &str) -> Result<Vec<String>, RequestError> {
        self.run(on("pubsub.channels", key))
            .await?
            .strings("channels")
    }

    /// Asks for nothing but an answer.
    ///
    /// # Errors
    /// When there is no connection.
    pub async fn ping(&self) -> Result<(), RequestError> {
        self.run(Command::new("server.ping")).await.map(drop)
    }
}
