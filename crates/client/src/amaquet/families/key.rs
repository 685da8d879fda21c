//! `key.*`.

use std::time::Duration;

use tanda_wire::amaquet::json::Json;

use super::{family, if_present, on};
use crate::amaquet::client::AmaquetClient;
use crate::amaquet::command::Command;
use crate::amaquet::error::RequestError;
use crate::amaquet::reply::Reply;
use crate::message::whole_ms;

family! {
    /// Keys of any kind.
    Keys
}

/// A part of all keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scanned {
    /// The keys.
    pub keys: Vec<String>,
    /// Where the next part begins; `None` when there is none.
    pub cursor: Option<String>,
}

impl Keys<'_> {
    /// Whether a key is there.
    ///
    /// # Errors
    /// `FORBIDDEN` without the permission for it; so with all of these.
    pub async fn exists(self, key: &str) -> Result<bool, RequestError> {
        self.run(on("key.exists", key)).await?.bool("exists")
    }

    /// The kind of a key: `value`, `counter`, `map`, `list`, `set`, `ranking` or `lock`; `None`
    /// when it is not there.
    ///
    /// # Errors
    /// As [`exists`](Self::exists).
    pub async fn kind(self, key: &str) -> Result<Option<String>, RequestError> {
        let reply = if_present(self.run(on("key.kind", key)).await)?;
        reply.map(|reply| reply.string("kind")).transpose()
    }

    /// Removes a key; `false` when it was not there.
    ///
    /// # Errors
    /// As [`exists`](Self::exists).
    pub async fn delete(self, key: &str) -> Result<bool, RequestError> {
        self.run(on("key.delete", key)).await?.bool("deleted")
    }

    /// Lets a key expire after so long; returns when, in Unix milliseconds.
    ///
    /// # Errors
    /// `NOT_FOUND` when it is not there.
    pub async fn expire(self, key: &str, ttl: Duration) -> Result<u64, RequestError> {
        let command = on("key.expire", key).arg("ttl_ms", whole_ms(ttl));
        self.run(command).await?.u64("expires_at")
    }

    /// How long a key stays; `None` when it never expires.
    ///
    /// # Errors
    /// `NOT_FOUND` when it is not there.
    pub async fn ttl(self, key: &str) -> Result<Option<Duration>, RequestError> {
        let reply = self.run(on("key.ttl", key)).await?;
        match reply.field("ttl_ms").map(Json::text) {
            Some("null") => Ok(None),
            _ => Ok(Some(Duration::from_millis(reply.u64("ttl_ms")?))),
        }
    }

    /// Lets a key stay; `false` when it had no end.
    ///
    /// # Errors
    /// `NOT_FOUND` when it is not there.
    pub async fn persist(self, key: &str) -> Result<bool, RequestError> {
        self.run(on("key.persist", key)).await?.bool("persisted")
    }

    /// Gives a key another name.
    ///
    /// # Errors
    /// `NOT_FOUND` when it is not there, `EXISTS` when the other name is taken.
    pub async fn rename(self, key: &str, to: &str) -> Result<(), RequestError> {
        self.run(on("key.rename", key).arg("to", to))
            .await
            .map(drop)
    }

    /// A part of the keys that fit a glob (`*` any characters, `?` one); the first one without a
    /// cursor. Every key that is there throughout is in a part at least once.
    ///
    /// # Errors
    /// `BAD_REQUEST` when the cursor is of no scan.
    pub async fn scan(self, glob: &str, cursor: Option<&str>) -> Result<Scanned, RequestError> {
        let command = Command::new("key.scan").arg("glob", glob);
        let reply = self.run(command.maybe("cursor", cursor)).await?;
        Ok(Scanned {
            keys: reply.strings("keys")?,
            cursor: match reply.field("cursor").map(Json::text) {
                None | Some("null") => None,
                Some(_) => Some(reply.string("cursor")?),
            },
        })
    }
}
