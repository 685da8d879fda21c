//! `ranking.*`.

use tanda_wire::amaquet::json::Json;

use super::{family, if_present, on};
use crate::amaquet::client::AmaquetClient;
use crate::amaquet::command::Command;
use crate::amaquet::error::RequestError;
use crate::amaquet::reply::{Reply, field, text};

family! {
    /// Members by score.
    Rankings makes keys
}

/// A member and its score.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    /// The member.
    pub member: String,
    /// Its score.
    pub score: f64,
}

impl Rankings<'_> {
    /// Gives a member a score; `true` when it was not there.
    ///
    /// # Errors
    /// `WRONG_TYPE` when the key is of another kind; so with all of these.
    pub async fn add(self, key: &str, member: &str, score: f64) -> Result<bool, RequestError> {
        let command = self.making("ranking.add", key).arg("member", member);
        self.run(command.arg("score", score)).await?.bool("created")
    }

    /// Removes a member; `false` when it was not there.
    ///
    /// # Errors
    /// As [`add`](Self::add), and `NOT_FOUND` when the key is not there.
    pub async fn remove(self, key: &str, member: &str) -> Result<bool, RequestError> {
        let command = on("ranking.remove", key).arg("member", member);
        self.run(command).await?.bool("removed")
    }

    /// The score of a member; `None` when it is not there.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub async fn score(self, key: &str, member: &str) -> Result<Option<f64>, RequestError> {
        let command = on("ranking.score", key).arg("member", member);
        let reply = if_present(self.run(command).await)?;
        reply.map(|reply| reply.f64("score")).transpose()
    }

    /// The place of a member, from 0 for the lowest score; `None` when it is not there.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub async fn rank(self, key: &str, member: &str) -> Result<Option<u64>, RequestError> {
        self.rank_of(on("ranking.rank", key).arg("member", member))
            .await
    }

    /// The place of a member, from 0 for the highest score; `None` when it is not there.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub async fn rank_from_top(self, key: &str, member: &str) -> Result<Option<u64>, RequestError> {
        let command = on("ranking.rank", key).arg("member", member);
        self.rank_of(command.arg("reverse", true)).await
    }

    async fn rank_of(self, command: Command) -> Result<Option<u64>, RequestError> {
        let reply = if_present(self.run(command).await)?;
        reply.map(|reply| reply.u64("rank")).transpose()
    }

    /// The `count` members with the highest scores, the highest first.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub async fn top(self, key: &str, count: u32) -> Result<Vec<Ranked>, RequestError> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let stop = i64::from(count) - 1;
        let command = on("ranking.range", key)
            .arg("start", 0_i64)
            .arg("stop", stop);
        self.members(command.arg("reverse", true)).await
    }

    /// The members at these places, lowest score first; `stop` is included, negative places count
    /// from the end.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub async fn range(
        self,
        key: &str,
        start: i64,
        stop: i64,
    ) -> Result<Vec<Ranked>, RequestError> {
        let command = on("ranking.range", key);
        self.members(command.arg("start", start).arg("stop", stop))
            .await
    }

    /// The members with scores from `min` to `max`, both included, lowest score first.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub async fn by_score(
        self,
        key: &str,
        min: f64,
        max: f64,
    ) -> Result<Vec<Ranked>, RequestError> {
        let command = on("ranking.range", key);
        self.members(command.arg("min", min).arg("max", max)).await
    }

    async fn members(self, command: Command) -> Result<Vec<Ranked>, RequestError> {
        let Some(reply) = if_present(self.run(command).await)? else {
            return Ok(Vec::new());
        };
        reply.read("members", |members| {
            let ranked = |it: Json<'_>| {
                Some(Ranked {
                    member: text(it, "member")?,
                    score: field(it, "score")?.as_number()?.double()?,
                })
            };
            members.as_array()?.map(ranked).collect()
        })
    }

    /// How many members there are; 0 when the key is not there.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub async fn length(self, key: &str) -> Result<u64, RequestError> {
        let reply = if_present(self.run(on("ranking.length", key)).await)?;
        reply.map_or(Ok(0), |reply| reply.u64("length"))
    }
}
