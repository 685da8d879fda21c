//! `ranking.*`: texts in the order of their scores.

use super::argument::{Key, Member, Score, TtlMs};
use super::error::RequestError;
use super::table::commands;

commands! {
    /// Sets a member's score.
    RankingAdd<'a> = "ranking.add", Write(key) {
        /// The key.
        must key: Key<'a>,
        /// The member.
        must member: Member<'a>,
        /// Its score.
        must score: Score,
        /// How long the ranking lives if this makes the key, in milliseconds.
        may ttl_ms: TtlMs,
    } -> {
        /// `false` when the member was there before.
        created: Bool,
    }

    /// Removes a member.
    RankingRemove<'a> = "ranking.remove", Write(key) {
        /// The key.
        must key: Key<'a>,
        /// The member.
        must member: Member<'a>,
    } -> {
        /// `false` when it was not there.
        removed: Bool,
    }

    /// Reads a member's score; NOT_FOUND when the key or the member is not there.
    RankingScore<'a> = "ranking.score", Read(key) {
        /// The key.
        must key: Key<'a>,
        /// The member.
        must member: Member<'a>,
    } -> {
        /// Its score.
        score: Number,
    }

    /// Reads a member's place: from 0, lowest score first, equal scores by the bytes of the
    /// members; NOT_FOUND when the key or the member is not there.
    RankingRank<'a> = "ranking.rank", Read(key) {
        /// The key.
        must key: Key<'a>,
        /// The member.
        must member: Member<'a>,
        /// Counted from the highest (default false).
        or reverse: bool = false,
    } -> {
        /// Its place.
        rank: U64,
    }

    /// Reads a part of a ranking: by places with start and stop, or by scores with min and max.
    RankingRange<'a> = "ranking.range", Read(key) {
        /// The key.
        must key: Key<'a>,
        /// The first place: from 0, or from the end below zero.
        may start: i64,
        /// The last place.
        may stop: i64,
        /// The lowest score.
        may min: Score,
        /// The highest score.
        may max: Score,
        /// From the highest down, places too (default false).
        or reverse: bool = false,
        /// How many at most.
        may limit: u64,
    } -> {
        /// An array of `{"member","score"}`.
        members: Object,
    }

    /// Counts the members of a ranking.
    RankingLength<'a> = "ranking.length", Read(key) {
        /// The key.
        must key: Key<'a>,
    } -> {
        /// How many there are.
        length: U64,
    }
}

/// Which members of a ranking are meant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RankingSpan {
    /// By their places, inclusive.
    Places {
        /// The first one.
        start: i64,
        /// The last one.
        stop: i64,
    },
    /// By their scores, inclusive.
    Scores {
        /// The lowest one.
        min: f64,
        /// The highest one.
        max: f64,
    },
}

impl RankingRange<'_> {
    /// Which members are meant.
    ///
    /// # Errors
    /// When it is neither start and stop, nor min and max.
    pub fn span(&self) -> Result<RankingSpan, RequestError> {
        const WANTED: &str = "there with stop, or min with max, and not both";
        let is_bad = |found: &str| RequestError::out_of_limits(found, WANTED).within("start");
        match ((self.start, self.stop), (self.min, self.max)) {
            ((Some(start), Some(stop)), (None, None)) => Ok(RankingSpan::Places { start, stop }),
            ((None, None), (Some(Score(min)), Some(Score(max)))) => {
                Ok(RankingSpan::Scores { min, max })
            }
            ((None, None), (None, None)) => Err(is_bad("missing, and so are min and max")),
            ((_, None) | (None, _), (None, None)) => Err(is_bad("only half of start and stop")),
            ((None, None), (_, _)) => Err(is_bad("missing, with half of min and max")),
            _ => Err(is_bad("together with min and max")),
        }
    }
}
