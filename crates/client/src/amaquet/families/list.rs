//! `list.*`.

use std::time::Duration;

use super::{family, if_any, if_present, on};
use crate::amaquet::client::AmaquetClient;
use crate::amaquet::command::Command;
use crate::amaquet::error::RequestError;
use crate::amaquet::payload::Payload;
use crate::amaquet::reply::Reply;
use crate::message::whole_ms;

family! {
    /// Items in order.
    Lists makes keys
}

/// An end of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Where the first item is.
    Front,
    /// Where the last item is.
    Back,
}

impl Side {
    const fn name(self) -> &'static str {
        match self {
            Self::Front => "front",
            Self::Back => "back",
        }
    }
}

impl Lists<'_> {
    /// Adds items at the back, and returns how many the list has then.
    ///
    /// # Errors
    /// `WRONG_TYPE` when the key is of another kind; so with all of these.
    pub async fn push(self, key: &str, values: Vec<Payload>) -> Result<u64, RequestError> {
        self.push_at(Side::Back, key, values).await
    }

    /// Adds items at an end.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub async fn push_at(
        self,
        side: Side,
        key: &str,
        values: Vec<Payload>,
    ) -> Result<u64, RequestError> {
        let command = self.making("list.push", key).arg("values", values);
        let command = command.arg("side", side.name());
        self.run(command).await?.u64("length")
    }

    /// Takes the first item; `None` when there is none.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub async fn pop(self, key: &str) -> Result<Option<Payload>, RequestError> {
        self.pop_at(Side::Front, key, Duration::ZERO).await
    }

    /// Takes the first item, and waits for one for so long; `None` when none came. Dropping the
    /// future ends the wait; an item that is on its way then goes back.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub async fn pop_wait(
        self,
        key: &str,
        wait: Duration,
    ) -> Result<Option<Payload>, RequestError> {
        self.pop_at(Side::Front, key, wait).await
    }

    /// Takes an item at an end, and waits for one for so long.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub async fn pop_at(
        self,
        side: Side,
        key: &str,
        wait: Duration,
    ) -> Result<Option<Payload>, RequestError> {
        let command = on("list.pop", key).arg("side", side.name());
        let command = command.arg("wait_ms", whole_ms(wait));
        let reply = if_any(self.run(command).await)?;
        reply.map(|reply| reply.payload("value")).transpose()
    }

    /// The items from `start` to `stop`, which is included; both count from 0, negative ones from
    /// the end. None when the key is not there.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub async fn range(
        self,
        key: &str,
        start: i64,
        stop: i64,
    ) -> Result<Vec<Payload>, RequestError> {
        let command = on("list.range", key).arg("start", start).arg("stop", stop);
        let reply = if_present(self.run(command).await)?;
        reply.map_or(Ok(Vec::new()), |reply| reply.payloads("values"))
    }

    /// How many items there are; 0 when the key is not there.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub async fn length(self, key: &str) -> Result<u64, RequestError> {
        let reply = if_present(self.run(on("list.length", key)).await)?;
        reply.map_or(Ok(0), |reply| reply.u64("length"))
    }

    /// Removes all items but those from `start` to `stop`, and returns how many are left.
    ///
    /// # Errors
    /// As [`push`](Self::push), and `NOT_FOUND` when the key is not there.
    pub async fn trim(self, key: &str, start: i64, stop: i64) -> Result<u64, RequestError> {
        let command = on("list.trim", key).arg("start", start).arg("stop", stop);
        self.run(command).await?.u64("length")
    }
}
