//! Keys of every kind: looking, expiring, renaming, scanning.

use super::body::NEVER;
use super::change::Change;
use super::datum::KeyType;
use super::on_request::Room;
use super::op::{KeyAnswer, KeyError, KeyScan};
use super::space::{Keyspace, Outcome, Step};
use crate::keys::glob_matches;
use crate::{Millis, Permission};

/// Most keys that one call of a scan looks at.
const LOOKED_AT_MAX: usize = 20_000;

impl Keyspace {
    pub(super) fn kind(&self, now: Millis, key: &str) -> Outcome {
        let key = self.live(now, key).ok_or(KeyError::NotFound)?;
        Ok(KeyAnswer::Kind(key.body.key_type()))
    }

    pub(super) fn ttl(&self, now: Millis, key: &str) -> Outcome {
        let key = self.live(now, key).ok_or(KeyError::NotFound)?;
        let ttl_ms = (key.expires_at != NEVER).then(|| now.until(Millis(key.expires_at)));
        Ok(KeyAnswer::TtlMs(ttl_ms))
    }

    pub(super) fn delete(&mut self, step: &mut Step<'_>, key: &str) -> KeyAnswer {
        let found = self.live(step.now, key).map(|key| key.id);
        if let Some(id) = found {
            self.remove(step, id);
        }
        KeyAnswer::Bool(found.is_some())
    }

    pub(super) fn set_expiry(&mut self, step: &mut Step<'_>, key: &str, ttl_ms: u64) -> Outcome {
        let id = self.live(step.now, key).ok_or(KeyError::NotFound)?.id;
        let expires_at = step.ends_at(Some(ttl_ms));
        self.put(step, id, Change::Expires { expires_at });
        Ok(KeyAnswer::ExpiresAt(Millis(expires_at)))
    }

    pub(super) fn persist(&mut self, step: &mut Step<'_>, key: &str) -> Outcome {
        let key = self.live(step.now, key).ok_or(KeyError::NotFound)?;
        let (id, expires) = (key.id, key.expires_at != NEVER);
        if expires {
            self.put(step, id, Change::Expires { expires_at: NEVER });
        }
        Ok(KeyAnswer::Bool(expires))
    }

    pub(super) fn rename(&mut self, step: &mut Step<'_>, key: &str, to: Box<str>) -> Outcome {
        self.expire(step, &to);
        let found = self.live(step.now, key).ok_or(KeyError::NotFound)?;
        let (id, of) = (found.id, found.body.key_type());
        if of == KeyType::Lock {
            return Err(KeyError::WrongType { found: of });
        }
        if self.live(step.now, &to).is_some() {
            return Err(KeyError::Exists);
        }
        self.keep_version(step, id);
        self.put(step, id, Change::Renamed { name: to.clone() });
        if of == KeyType::Value {
            // A value of the new name may have had any version up to the highest that left.
            let version = self.store.counters.version.saturating_add(1);
            self.put(step, id, Change::Version { version });
        }
        self.serve_items(step, &to);
        self.serve_lock(step, key);
        Ok(KeyAnswer::Bool(true))
    }

    /// Keys in the order in which they were made, up to the newest of the beginning: each that is
    /// there all the time is met once.
    pub(super) fn scan(&self, now: Millis, scan: &KeyScan, mut room: Room) -> Outcome {
        let newest = self.store.counters.id;
        let (after, end) = match &scan.cursor {
            None => (0, newest),
            Some(cursor) => read_cursor(cursor)
                .filter(|(after, end)| after <= end && *end <= newest)
                .ok_or(KeyError::BadCursor)?,
        };
        let mut keys = Vec::new();
        let mut looked_at = 0;
        let from = after.saturating_add(1);
        for (id, key) in self.store.keys.range(from..=end.max(from)) {
            if id > end {
                break;
            }
            let glob = scan.glob.as_deref();
            let is_meant = glob.is_none_or(|glob| glob_matches(glob, &key.name));
            let is_shown = is_meant && !key.is_over(now);
            if is_shown && scan.caller.may(Permission::Consume, &key.name) {
                let fits = room.take(key.name.len());
                if !keys.is_empty() && (fits.is_err() || keys.len() >= scan.limit) {
                    let cursor = Some(cursor(id - 1, end));
                    return Ok(KeyAnswer::Scanned { keys, cursor });
                }
                fits?;
                keys.push(key.name.clone());
            }
            looked_at += 1;
            if looked_at == LOOKED_AT_MAX {
                let cursor = Some(cursor(id, end));
                return Ok(KeyAnswer::Scanned { keys, cursor });
            }
        }
        Ok(KeyAnswer::Scanned { keys, cursor: None })
    }
}

/// Tells nothing of the keys that a caller may not see but how many were made.
fn cursor(after: u64, end: u64) -> Box<str> {
    format!("{after}-{end}").into()
}

fn read_cursor(cursor: &str) -> Option<(u64, u64)> {
    let (after, end) = cursor.split_once('-')?;
    Some((after.parse().ok()?, end.parse().ok()?))
}
