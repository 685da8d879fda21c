//! Values, counters and locks.

use super::body::{Body, NEVER};
use super::change::Change;
use super::datum::{Datum, KeyType};
use super::on_request::Room;
use super::op::{Condition, KeyAnswer, KeyError, VersionedDatum};
use super::space::{Keyspace, Outcome, Step};
use crate::Millis;

impl Keyspace {
    fn value(&self, now: Millis, key: &str) -> Result<Option<VersionedDatum>, KeyError> {
        let found = self.live_of(now, key, KeyType::Value)?;
        let Some(Body::Value { version, datum }) = found.map(|key| &key.body) else {
            return Ok(None);
        };
        Ok(Some(VersionedDatum {
            value: datum.clone(),
            version: *version,
        }))
    }

    pub(super) fn value_get(&self, now: Millis, key: &str) -> Outcome {
        let value = self.value(now, key)?.ok_or(KeyError::NotFound)?;
        Ok(KeyAnswer::Value(value))
    }

    pub(super) fn value_get_many(&self, now: Millis, keys: &[Box<str>], mut room: Room) -> Outcome {
        let mut values = Vec::with_capacity(keys.len());
        for key in keys {
            let value = self.value(now, key)?;
            room.take(value.as_ref().map_or(0, |it| it.value.bytes.len()))?;
            values.push(value);
        }
        Ok(KeyAnswer::Values(values))
    }

    pub(super) fn value_set(
        &mut self,
        step: &mut Step<'_>,
        key: &str,
        (datum, ttl_ms): (Datum, Option<u64>),
        condition: Condition,
    ) -> Outcome {
        let found = self.value(step.now, key)?.map(|it| it.version);
        if condition.if_absent && found.is_some() {
            return Err(KeyError::Exists);
        }
        let version = found.unwrap_or_default();
        if condition.if_version.is_some_and(|wanted| wanted != version) {
            return Err(KeyError::VersionConflict { found: version });
        }
        let id = self.open(step, key, KeyType::Value, ttl_ms)?;
        let expires_at = step.ends_at(ttl_ms);
        let before = self.store.keys.get(id).map_or(NEVER, |key| key.expires_at);
        let version = self.next_version(found);
        self.put(step, id, Change::Value { version, datum });
        if before != expires_at {
            self.put(step, id, Change::Expires { expires_at });
        }
        Ok(KeyAnswer::Version(version))
    }

    /// One more, and never one that a value that is gone had.
    fn next_version(&self, before: Option<u64>) -> u64 {
        let before = before.unwrap_or(self.store.counters.version);
        before.saturating_add(1)
    }

    pub(super) fn value_swap(
        &mut self,
        step: &mut Step<'_>,
        key: &str,
        datum: Datum,
        ttl_ms: Option<u64>,
    ) -> Outcome {
        let found = self.value(step.now, key)?;
        let id = self.open(step, key, KeyType::Value, ttl_ms)?;
        let version = self.next_version(found.as_ref().map(|it| it.version));
        self.put(step, id, Change::Value { version, datum });
        let previous = found.map(|it| it.value);
        Ok(KeyAnswer::Swapped { previous, version })
    }

    pub(super) fn value_delete(
        &mut self,
        step: &mut Step<'_>,
        key: &str,
        if_version: Option<u64>,
    ) -> Outcome {
        let Some(found) = self.value(step.now, key)? else {
            return Ok(KeyAnswer::Bool(false));
        };
        if if_version.is_some_and(|wanted| wanted != found.version) {
            let found = found.version;
            return Err(KeyError::VersionConflict { found });
        }
        Ok(self.delete(step, key))
    }

    pub(super) fn counter_add(
        &mut self,
        step: &mut Step<'_>,
        key: &str,
        by: i64,
        ttl_ms: Option<u64>,
    ) -> Outcome {
        let value = match self.counter(step.now, key) {
            Ok(value) => *value,
            Err(KeyError::NotFound) => 0,
            Err(error) => return Err(error),
        };
        let sum = value.checked_add(by).ok_or(KeyError::Overflow { value })?;
        self.counter_set(step, key, sum, ttl_ms)
    }

    pub(super) fn counter_set(
        &mut self,
        step: &mut Step<'_>,
        key: &str,
        value: i64,
        ttl_ms: Option<u64>,
    ) -> Outcome {
        let id = self.open(step, key, KeyType::Counter, ttl_ms)?;
        self.put(step, id, Change::Counter { value });
        Ok(KeyAnswer::Integer(value))
    }

    /// Gives a lock that is free.
    pub(super) fn grant(
        &mut self,
        step: &mut Step<'_>,
        key: &str,
        ttl_ms: u64,
        waited: bool,
    ) -> KeyAnswer {
        let expires_at = step.ends_at(Some(ttl_ms));
        let id = self.create(step, key, KeyType::Lock, expires_at);
        let token = self.store.counters.token.saturating_add(1);
        self.put(step, id, Change::Lock { token });
        KeyAnswer::Locked {
            key: key.into(),
            token,
            expires_at: Millis(expires_at),
            waited,
        }
    }

    /// The id of a lock that is held with this token.
    fn held(&self, now: Millis, key: &str, token: u64) -> Result<u64, KeyError> {
        let found = self.live_of(now, key, KeyType::Lock)?;
        let lock = found.ok_or(KeyError::NotFound)?;
        let is_token = matches!(lock.body, Body::Lock { token: held } if held == token);
        is_token.then_some(lock.id).ok_or(KeyError::StaleToken)
    }

    pub(super) fn lock_renew(
        &mut self,
        step: &mut Step<'_>,
        key: &str,
        token: u64,
        ttl_ms: u64,
    ) -> Outcome {
        self.held(step.now, key, token)?;
        self.set_expiry(step, key, ttl_ms)
    }

    pub(super) fn lock_release(&mut self, step: &mut Step<'_>, key: &str, token: u64) -> Outcome {
        let id = self.held(step.now, key, token)?;
        self.remove(step, id);
        Ok(KeyAnswer::Bool(true))
    }
}
