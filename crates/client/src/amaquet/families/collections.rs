//! `map.*` and `set.*`.

use std::collections::BTreeMap;

use super::{family, if_present, on};
use crate::amaquet::client::AmaquetClient;
use crate::amaquet::command::Command;
use crate::amaquet::error::RequestError;
use crate::amaquet::payload::Payload;
use crate::amaquet::reply::Reply;

family! {
    /// Fields of keys.
    Maps makes keys
}
family! {
    /// Members without order.
    Sets makes keys
}

impl Maps<'_> {
    /// Sets a field; `true` when it was not there.
    ///
    /// # Errors
    /// `WRONG_TYPE` when the key is of another kind; so with all of these.
    pub async fn set(
        self,
        key: &str,
        field: &str,
        value: impl Into<Payload>,
    ) -> Result<bool, RequestError> {
        let command = self.making("map.set", key).arg("field", field);
        let command = command.arg("value", value.into());
        self.run(command).await?.bool("created")
    }

    /// A field; `None` when it, or the key, is not there.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub async fn get(self, key: &str, field: &str) -> Result<Option<Payload>, RequestError> {
        let command = on("map.get", key).arg("field", field);
        let reply = if_present(self.run(command).await)?;
        reply.map(|reply| reply.payload("value")).transpose()
    }

    /// Removes a field; `false` when it was not there.
    ///
    /// # Errors
    /// As [`set`](Self::set), and `NOT_FOUND` when the key is not there.
    pub async fn remove(self, key: &str, field: &str) -> Result<bool, RequestError> {
        let command = on("map.remove", key).arg("field", field);
        self.run(command).await?.bool("removed")
    }

    /// All fields; none when the key is not there.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub async fn all(self, key: &str) -> Result<BTreeMap<String, Payload>, RequestError> {
        let Some(reply) = if_present(self.run(on("map.all", key)).await)? else {
            return Ok(BTreeMap::new());
        };
        reply.read("fields", |fields| {
            let fields = fields.as_object()?;
            fields
                .map(|(name, value)| Some((name.into_owned(), Payload::of(value).ok()?)))
                .collect()
        })
    }

    /// How many fields there are; 0 when the key is not there.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub async fn length(self, key: &str) -> Result<u64, RequestError> {
        let reply = if_present(self.run(on("map.length", key)).await)?;
        reply.map_or(Ok(0), |reply| reply.u64("length"))
    }

    /// Adds to a field that is an integer, and returns what it is then.
    ///
    /// # Errors
    /// `WRONG_TYPE` when the field holds something else, `CONFLICT` when it would overflow.
    pub async fn add(self, key: &str, field: &str, by: i64) -> Result<i64, RequestError> {
        let command = self.making("map.add", key).arg("field", field);
        self.run(command.arg("by", by)).await?.i64("value")
    }
}

impl Sets<'_> {
    /// Adds members, and returns how many were not there.
    ///
    /// # Errors
    /// `WRONG_TYPE` when the key is of another kind; so with all of these.
    pub async fn add(self, key: &str, members: &[&str]) -> Result<u64, RequestError> {
        let command = self.making("set.add", key).arg("members", members);
        self.run(command).await?.u64("added")
    }

    /// Removes members, and returns how many were there.
    ///
    /// # Errors
    /// As [`add`](Self::add), and `NOT_FOUND` when the key is not there.
    pub async fn remove(self, key: &str, members: &[&str]) -> Result<u64, RequestError> {
        let command = on("set.remove", key).arg("members", members);
        self.run(command).await?.u64("removed")
    }

    /// Whether a member is there; `false` when the key is not.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub async fn contains(self, key: &str, member: &str) -> Result<bool, RequestError> {
        let command = on("set.contains", key).arg("member", member);
        let reply = if_present(self.run(command).await)?;
        reply.map_or(Ok(false), |reply| reply.bool("contains"))
    }

    /// All members, sorted; none when the key is not there.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub async fn members(self, key: &str) -> Result<Vec<String>, RequestError> {
        let reply = if_present(self.run(on("set.members", key)).await)?;
        reply.map_or(Ok(Vec::new()), |reply| reply.strings("members"))
    }

    /// How many members there are; 0 when the key is not there.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub async fn length(self, key: &str) -> Result<u64, RequestError> {
        let reply = if_present(self.run(on("set.length", key)).await)?;
        reply.map_or(Ok(0), |reply| reply.u64("length"))
    }
}
