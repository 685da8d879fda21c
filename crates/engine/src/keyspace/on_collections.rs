//! Maps, sets and rankings.

use super::change::Change;
use super::datum::{Datum, KeyType};
use super::on_request::{Room, count};
use super::op::{KeyAnswer, KeyError, RankingPart, RankingSpan};
use super::space::{Keyspace, Outcome, Step};
use crate::Millis;

/// What is not there has nothing to be removed.
fn or_absent<T>(found: Result<T, KeyError>) -> Result<Option<T>, KeyError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(KeyError::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Keyspace {
    pub(super) fn map_get(&self, now: Millis, key: &str, field: &str) -> Outcome {
        let map = self.map(now, key)?;
        let datum = map.fields().get(field).ok_or(KeyError::NotFound)?;
        Ok(KeyAnswer::Datum(datum.clone()))
    }

    pub(super) fn map_all(&self, now: Millis, key: &str, mut room: Room) -> Outcome {
        let mut fields = Vec::new();
        for (field, datum) in self.map(now, key)?.fields() {
            room.take(field.len() + datum.bytes.len())?;
            fields.push((field.clone(), datum.clone()));
        }
        Ok(KeyAnswer::Fields(fields))
    }

    pub(super) fn map_set(
        &mut self,
        step: &mut Step<'_>,
        key: &str,
        (field, datum): (Box<str>, Datum),
        ttl_ms: Option<u64>,
    ) -> Outcome {
        let map = or_absent(self.map(step.now, key))?;
        let is_new = !map.is_some_and(|map| map.fields().contains_key(&field));
        let id = self.open(step, key, KeyType::Map, ttl_ms)?;
        self.put(step, id, Change::Field { field, datum });
        Ok(KeyAnswer::Bool(is_new))
    }

    pub(super) fn map_add(
        &mut self,
        step: &mut Step<'_>,
        key: &str,
        (field, by): (Box<str>, i64),
        ttl_ms: Option<u64>,
    ) -> Outcome {
        let map = or_absent(self.map(step.now, key))?;
        let value = match map.and_then(|map| map.fields().get(&field)) {
            None => 0,
            Some(datum) => datum.integer().ok_or(KeyError::WrongType {
                found: KeyType::Map,
            })?,
        };
        let sum = value.checked_add(by).ok_or(KeyError::Overflow { value })?;
        let id = self.open(step, key, KeyType::Map, ttl_ms)?;
        let datum = Datum::of_integer(sum);
        self.put(step, id, Change::Field { field, datum });
        Ok(KeyAnswer::Integer(sum))
    }

    pub(super) fn map_remove(
        &mut self,
        step: &mut Step<'_>,
        key: &str,
        field: Box<str>,
    ) -> Outcome {
        let map = or_absent(self.map(step.now, key))?;
        let is_there = map.is_some_and(|map| map.fields().contains_key(&field));
        if is_there && let Some(id) = self.live(step.now, key).map(|key| key.id) {
            self.put(step, id, Change::FieldGone { field });
            self.remove_if_empty(step, id);
        }
        Ok(KeyAnswer::Bool(is_there))
    }

    pub(super) fn set_members(&self, now: Millis, key: &str, mut room: Room) -> Outcome {
        let mut members = Vec::new();
        for member in self.set(now, key)?.members() {
            room.take(member.len())?;
            members.push(member.clone());
        }
        Ok(KeyAnswer::Members(members))
    }

    pub(super) fn set_add(
        &mut self,
        step: &mut Step<'_>,
        key: &str,
        mut members: Vec<Box<str>>,
        ttl_ms: Option<u64>,
    ) -> Outcome {
        let set = or_absent(self.set(step.now, key))?;
        members.sort_unstable();
        members.dedup();
        members.retain(|member| !set.is_some_and(|set| set.members().contains(member)));
        let added = members.len();
        if added > 0 {
            let id = self.open(step, key, KeyType::Set, ttl_ms)?;
            self.put(step, id, Change::Members { members });
        }
        Ok(count(added))
    }

    pub(super) fn set_remove(
        &mut self,
        step: &mut Step<'_>,
        key: &str,
        mut members: Vec<Box<str>>,
    ) -> Outcome {
        let set = or_absent(self.set(step.now, key))?;
        members.sort_unstable();
        members.dedup();
        members.retain(|member| set.is_some_and(|set| set.members().contains(member)));
        let removed = members.len();
        if removed > 0
            && let Some(id) = self.live(step.now, key).map(|key| key.id)
        {
            self.put(step, id, Change::MembersGone { members });
            self.remove_if_empty(step, id);
        }
        Ok(count(removed))
    }

    pub(super) fn ranking_score(&self, now: Millis, key: &str, member: &str) -> Outcome {
        let score = self.ranking(now, key)?.score(member);
        score.map(KeyAnswer::Score).ok_or(KeyError::NotFound)
    }

    pub(super) fn ranking_rank(
        &self,
        now: Millis,
        key: &str,
        (member, reverse): (&str, bool),
    ) -> Outcome {
        let ranking = self.ranking(now, key)?;
        let rank = ranking.rank(member).ok_or(KeyError::NotFound)?;
        let last = ranking.len().saturating_sub(1);
        Ok(count(if reverse {
            last.saturating_sub(rank)
        } else {
            rank
        }))
    }

    pub(super) fn ranking_range(
        &self,
        now: Millis,
        key: &str,
        part: RankingPart,
        mut room: Room,
    ) -> Outcome {
        let ranking = self.ranking(now, key)?;
        let len = ranking.len();
        let (first, end) = match part.span {
            RankingSpan::Scores { min, max } => ranking.places(min, max),
            RankingSpan::Places(places) => {
                let (first, end) = places.within(len);
                if part.reverse {
                    (len - end, len - first)
                } else {
                    (first, end)
                }
            }
        };
        let limit = part.limit.and_then(|limit| usize::try_from(limit).ok());
        let taken = limit.unwrap_or(usize::MAX).min(end - first);
        let mut members = Vec::new();
        for at in 0..taken {
            let place = if part.reverse {
                end - 1 - at
            } else {
                first + at
            };
            let Some((member, score)) = ranking.select(place) else {
                break;
            };
            room.take(member.len() + size_of::<f64>())?;
            members.push((member.into(), score));
        }
        Ok(KeyAnswer::Ranked(members))
    }

    pub(super) fn ranking_add(
        &mut self,
        step: &mut Step<'_>,
        key: &str,
        (member, score): (Box<str>, f64),
        ttl_ms: Option<u64>,
    ) -> Outcome {
        // There is one zero.
        let score = score + 0.0;
        let ranking = or_absent(self.ranking(step.now, key))?;
        let before = ranking.and_then(|ranking| ranking.score(&member));
        let id = self.open(step, key, KeyType::Ranking, ttl_ms)?;
        if before != Some(score) {
            self.put(step, id, Change::Score { member, score });
        }
        Ok(KeyAnswer::Bool(before.is_none()))
    }

    pub(super) fn ranking_remove(
        &mut self,
        step: &mut Step<'_>,
        key: &str,
        member: Box<str>,
    ) -> Outcome {
        let ranking = or_absent(self.ranking(step.now, key))?;
        let is_there = ranking.is_some_and(|ranking| ranking.score(&member).is_some());
        if is_there && let Some(id) = self.live(step.now, key).map(|key| key.id) {
            self.put(step, id, Change::ScoreGone { member });
            self.remove_if_empty(step, id);
        }
        Ok(KeyAnswer::Bool(is_there))
    }
}
