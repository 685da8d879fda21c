//! `lock.*`.

use std::time::Duration;

use super::{family, on};
use crate::amaquet::client::AmaquetClient;
use crate::amaquet::command::Command;
use crate::amaquet::error::RequestError;
use crate::amaquet::reply::Reply;
use crate::message::whole_ms;

family! {
    /// Who may: one holder at a time, until a time.
    Locks
}

/// A lock that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Locked {
    /// Larger than the tokens of all who held it before. Whatever the lock protects can refuse
    /// those who come with a smaller one.
    pub token: u64,
    /// When it ends, in Unix milliseconds.
    pub expires_at_ms: u64,
}

impl Locks<'_> {
    /// Takes a lock for so long.
    ///
    /// # Errors
    /// `CONFLICT` when it is held.
    pub async fn acquire(self, key: &str, ttl: Duration) -> Result<Locked, RequestError> {
        self.acquire_by(on("lock.acquire", key).arg("ttl_ms", whole_ms(ttl)))
            .await
    }

    /// Takes a lock for so long, and waits for it while it is held.
    ///
    /// # Errors
    /// `TIMEOUT` when it is still held then.
    pub async fn acquire_wait(
        self,
        key: &str,
        ttl: Duration,
        wait: Duration,
    ) -> Result<Locked, RequestError> {
        let command = on("lock.acquire", key).arg("ttl_ms", whole_ms(ttl));
        self.acquire_by(command.arg("wait_ms", whole_ms(wait)))
            .await
    }

    async fn acquire_by(self, command: Command) -> Result<Locked, RequestError> {
        let reply = self.run(command).await?;
        Ok(Locked {
            token: reply.u64("token")?,
            expires_at_ms: reply.u64("expires_at")?,
        })
    }

    /// Holds a lock for so long from now on; returns when it ends, in Unix milliseconds.
    ///
    /// # Errors
    /// `CONFLICT` when another has it, `NOT_FOUND` when nobody has.
    pub async fn renew(self, key: &str, token: u64, ttl: Duration) -> Result<u64, RequestError> {
        let command = on("lock.renew", key).arg("token", token);
        let command = command.arg("ttl_ms", whole_ms(ttl));
        self.run(command).await?.u64("expires_at")
    }

    /// Gives a lock back. The end of the connection does not.
    ///
    /// # Errors
    /// As [`renew`](Self::renew).
    pub async fn release(self, key: &str, token: u64) -> Result<(), RequestError> {
        let command = on("lock.release", key).arg("token", token);
        self.run(command).await.map(drop)
    }
}
