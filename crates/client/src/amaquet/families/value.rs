//! `value.*` and `counter.*`.

use super::{family, if_present, on};
use crate::amaquet::client::AmaquetClient;
use crate::amaquet::command::Command;
use crate::amaquet::error::RequestError;
use crate::amaquet::payload::Payload;
use crate::amaquet::reply::{Reply, field};
use tanda_wire::amaquet::json::Json;

family! {
    /// Single values with versions.
    Values makes keys
}
family! {
    /// Integers.
    Counters makes keys
}

/// A value and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned {
    /// What the key holds.
    pub value: Payload,
    /// Which of its values that is.
    pub version: u64,
}

/// When a value is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SetCondition {
    /// In any case.
    #[default]
    Always,
    /// When the key is not there; otherwise `EXISTS`.
    IfAbsent,
    /// When the key has this version; otherwise `CONFLICT`.
    IfVersion(u64),
}

impl Versioned {
    fn of(value: Json<'_>) -> Option<Self> {
        Some(Self {
            value: Payload::of(field(value, "value")?).ok()?,
            version: field(value, "version")?.as_u64()?,
        })
    }

    fn read(reply: &Reply) -> Result<Self, RequestError> {
        Ok(Self {
            value: reply.payload("value")?,
            version: reply.u64("version")?,
        })
    }
}

impl Values<'_> {
    /// The value of a key; `None` when it is not there.
    ///
    /// # Errors
    /// `WRONG_TYPE` when the key is of another kind; so with all of these.
    pub async fn get(self, key: &str) -> Result<Option<Versioned>, RequestError> {
        let reply = if_present(self.run(on("value.get", key)).await)?;
        reply.as_ref().map(Versioned::read).transpose()
    }

    /// The values of many keys, in their order.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn get_many(self, keys: &[&str]) -> Result<Vec<Option<Versioned>>, RequestError> {
        let command = Command::new("value.get_many").arg("keys", keys);
        self.run(command).await?.read("values", |values| {
            let values = values.as_array()?;
            let value = |it: Json<'_>| match it.text() {
                "null" => Some(None),
                _ => Versioned::of(it).map(Some),
            };
            values.map(value).collect()
        })
    }

    /// Sets a value and returns its version. The key never expires, unless
    /// [`expiring_after`](Self::expiring_after) says when.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn set(self, key: &str, value: impl Into<Payload>) -> Result<u64, RequestError> {
        self.set_if(key, value, SetCondition::Always).await
    }

    /// Sets a value on a condition.
    ///
    /// # Errors
    /// `EXISTS` or `CONFLICT` when the condition does not hold.
    pub async fn set_if(
        self,
        key: &str,
        value: impl Into<Payload>,
        condition: SetCondition,
    ) -> Result<u64, RequestError> {
        let command = self.making("value.set", key).arg("value", value.into());
        let command = match condition {
            SetCondition::Always => command,
            SetCondition::IfAbsent => command.arg("if_absent", true),
            SetCondition::IfVersion(version) => command.arg("if_version", version),
        };
        self.run(command).await?.u64("version")
    }

    /// Sets a value; returns the one before, if there was one, and the version.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn swap(
        self,
        key: &str,
        value: impl Into<Payload>,
    ) -> Result<(Option<Payload>, u64), RequestError> {
        let command = self.making("value.swap", key).arg("value", value.into());
        let reply = self.run(command).await?;
        let previous = match reply.field("previous").map(Json::text) {
            None | Some("null") => None,
            Some(_) => Some(reply.payload("previous")?),
        };
        Ok((previous, reply.u64("version")?))
    }

    /// Removes a value; `false` when there was none.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn delete(self, key: &str) -> Result<bool, RequestError> {
        self.run(on("value.delete", key)).await?.bool("deleted")
    }

    /// Removes a value of this version.
    ///
    /// # Errors
    /// `CONFLICT` when it has another one.
    pub async fn delete_version(self, key: &str, version: u64) -> Result<bool, RequestError> {
        let command = on("value.delete", key).arg("if_version", version);
        self.run(command).await?.bool("deleted")
    }
}

impl Counters<'_> {
    /// Adds to a counter, which is 0 when it is not there, and returns what it is then.
    ///
    /// # Errors
    /// `CONFLICT` when it would overflow: it stays as it is.
    pub async fn add(self, key: &str, by: i64) -> Result<i64, RequestError> {
        let command = self.making("counter.add", key).arg("by", by);
        self.run(command).await?.i64("value")
    }

    /// The value of a counter; `None` when it is not there.
    ///
    /// # Errors
    /// `WRONG_TYPE` when the key is of another kind.
    pub async fn get(self, key: &str) -> Result<Option<i64>, RequestError> {
        let reply = if_present(self.run(on("counter.get", key)).await)?;
        reply.map(|reply| reply.i64("value")).transpose()
    }

    /// Sets a counter.
    ///
    /// # Errors
    /// `WRONG_TYPE` when the key is of another kind.
    pub async fn set(self, key: &str, value: i64) -> Result<(), RequestError> {
        let command = self.making("counter.set", key).arg("value", value);
        self.run(command).await.map(drop)
    }
}
