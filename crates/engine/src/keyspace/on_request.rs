//! A command is carried out.

use super::body::Key;
use super::op::{AddedPart, KeyAnswer, KeyError, KeyOp, KeyRead, KeyWrite, ListSide, RemovedPart};
use super::space::{Keyspace, Outcome, Step};
use super::waits::Wanted;
use crate::{Lsn, Millis, ReplyTo};

/// Room of an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    left: usize,
    max: usize,
}

impl Room {
    pub(super) const fn new(max: usize) -> Self {
        Self { left: max, max }
    }

    /// Takes some of it.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), KeyError> {
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or(KeyError::AnswerTooLarge {
            bytes_max: self.max,
        })?;
        Ok(())
    }
}

/// A command and where its answer goes.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) reply: ReplyTo,
    pub(super) room: Room,
    pub(super) op: KeyOp,
}

impl Keyspace {
    /// Carries it out; `None` when it waits, otherwise what it came to. Others may be answered by
    /// it too.
    pub(super) fn on_asked(&mut self, step: &mut Step<'_>, asked: Asked) -> Option<Outcome> {
        let Asked { reply, room, op } = asked;
        Some(match op {
            KeyOp::Read { key, read } => self.read(step.now, &key, &read, room),
            KeyOp::Write { key, write } => {
                // What is over is not there, for the log neither.
                self.expire(step, &key);
                self.write(step, &key, write)
            }
            KeyOp::GetMany { keys } => self.value_get_many(step.now, &keys, room),
            KeyOp::Scan(scan) => self.scan(step.now, &scan, room),
            KeyOp::Pop { key, side, wait_ms } => {
                return self.list_pop(step, reply, (key, side), wait_ms);
            }
            KeyOp::Acquire {
                key,
                ttl_ms,
                wait_ms,
            } => return self.lock_acquire(step, reply, (key, ttl_ms), wait_ms),
        })
    }

    fn write(&mut self, step: &mut Step<'_>, key: &str, write: KeyWrite) -> Outcome {
        match write {
            KeyWrite::Delete => Ok(self.delete(step, key)),
            KeyWrite::Expire { ttl_ms } => self.set_expiry(step, key, ttl_ms),
            KeyWrite::Persist => self.persist(step, key),
            KeyWrite::Rename { to } => self.rename(step, key, to),
            KeyWrite::SetValue {
                value,
                ttl_ms,
                condition,
            } => self.value_set(step, key, (value, ttl_ms), condition),
            KeyWrite::DeleteValue { if_version } => self.value_delete(step, key, if_version),
            KeyWrite::SwapValue { value, ttl_ms } => self.value_swap(step, key, value, ttl_ms),
            KeyWrite::AddCounter { by, ttl_ms } => self.counter_add(step, key, by, ttl_ms),
            KeyWrite::SetCounter { value, ttl_ms } => self.counter_set(step, key, value, ttl_ms),
            KeyWrite::RenewLock { token, ttl_ms } => self.lock_renew(step, key, token, ttl_ms),
            KeyWrite::ReleaseLock { token } => self.lock_release(step, key, token),
            KeyWrite::Add { part, ttl_ms } => self.add(step, key, part, ttl_ms),
            KeyWrite::Remove(part) => self.remove_part(step, key, part),
        }
    }

    fn add(
        &mut self,
        step: &mut Step<'_>,
        key: &str,
        part: AddedPart,
        ttl_ms: Option<u64>,
    ) -> Outcome {
        match part {
            AddedPart::Field { field, value } => self.map_set(step, key, (field, value), ttl_ms),
            AddedPart::ToField { field, by } => self.map_add(step, key, (field, by), ttl_ms),
            AddedPart::Items { values, side } => self.list_push(step, key, (values, side), ttl_ms),
            AddedPart::Members(members) => self.set_add(step, key, members, ttl_ms),
            AddedPart::Score { member, score } => {
                self.ranking_add(step, key, (member, score), ttl_ms)
            }
        }
    }

    fn remove_part(&mut self, step: &mut Step<'_>, key: &str, part: RemovedPart) -> Outcome {
        match part {
            RemovedPart::Field(field) => self.map_remove(step, key, field),
            RemovedPart::ItemsBut(places) => self.list_trim(step, key, places),
            RemovedPart::Members(members) => self.set_remove(step, key, members),
            RemovedPart::Score(member) => self.ranking_remove(step, key, member),
        }
    }

    /// What changes nothing.
    fn read(&self, now: Millis, key: &str, read: &KeyRead, room: Room) -> Outcome {
        match read {
            KeyRead::Exists => Ok(KeyAnswer::Bool(self.live(now, key).is_some())),
            KeyRead::Kind => self.kind(now, key),
            KeyRead::Ttl => self.ttl(now, key),
            KeyRead::Value => self.value_get(now, key),
            KeyRead::Counter => self.counter(now, key).copied().map(KeyAnswer::Integer),
            KeyRead::Field(field) => self.map_get(now, key, field),
            KeyRead::Fields => self.map_all(now, key, room),
            KeyRead::Items(places) => self.list_range(now, key, *places, room),
            KeyRead::Contains(member) => {
                let set = self.set(now, key)?;
                Ok(KeyAnswer::Bool(set.members().contains(member)))
            }
            KeyRead::Members => self.set_members(now, key, room),
            KeyRead::Score(member) => self.ranking_score(now, key, member),
            KeyRead::Rank { member, reverse } => self.ranking_rank(now, key, (member, *reverse)),
            KeyRead::Range(part) => self.ranking_range(now, key, *part, room),
            KeyRead::Length(of) => {
                let found = self.live_of(now, key, *of)?;
                let key = found.ok_or(KeyError::NotFound)?;
                Ok(count(key.body.len()))
            }
        }
    }

    /// The newest record of what an operation speaks of.
    pub(super) fn spoken_of(&self, op: &KeyOp) -> Lsn {
        match op {
            KeyOp::Scan(_) => self.newest,
            KeyOp::GetMany { keys } => {
                let written = keys.iter().map(|key| self.written(key));
                written.max().unwrap_or(Lsn::ZERO)
            }
            KeyOp::Write {
                key,
                write: KeyWrite::Rename { to },
            } => self.written(key).max(self.written(to)),
            KeyOp::Read { key, .. }
            | KeyOp::Write { key, .. }
            | KeyOp::Pop { key, .. }
            | KeyOp::Acquire { key, .. } => self.written(key),
        }
    }

    /// Waits, if there is time.
    pub(super) fn wait(
        &mut self,
        step: &Step<'_>,
        reply: ReplyTo,
        (key, wanted): (Box<str>, Wanted),
        wait_ms: u64,
    ) -> bool {
        if wait_ms == 0 {
            return false;
        }
        let ends_at = step.now.after_ms(wait_ms);
        self.waits.add(reply, key, wanted, ends_at);
        true
    }

    fn list_pop(
        &mut self,
        step: &mut Step<'_>,
        reply: ReplyTo,
        (key, side): (Box<str>, ListSide),
        wait_ms: u64,
    ) -> Option<Outcome> {
        self.expire(step, &key);
        let found = self.live_of(step.now, &key, super::datum::KeyType::List);
        match found.map(|found| found.map(|key: &Key| key.id)) {
            Err(error) => Some(Err(error)),
            Ok(Some(id)) => Some(self.take_item(step, id, side)),
            Ok(None) => {
                let wanted = (key, Wanted::Item { side });
                let waits = self.wait(step, reply, wanted, wait_ms);
                (!waits).then_some(Err(KeyError::NotFound))
            }
        }
    }

    fn lock_acquire(
        &mut self,
        step: &mut Step<'_>,
        reply: ReplyTo,
        (key, ttl_ms): (Box<str>, u64),
        wait_ms: u64,
    ) -> Option<Outcome> {
        self.expire(step, &key);
        let found = self.live_of(step.now, &key, super::datum::KeyType::Lock);
        match found.map(|found| found.map(|key: &Key| key.expires_at)) {
            Err(error) => Some(Err(error)),
            Ok(None) => Some(match self.check_room(step, true) {
                Ok(()) => Ok(self.grant(step, &key, ttl_ms, false)),
                Err(error) => Err(error),
            }),
            Ok(Some(until)) => {
                let wanted = (key, Wanted::Lock { ttl_ms });
                let waits = self.wait(step, reply, wanted, wait_ms);
                let until = Millis(until);
                (!waits).then_some(Err(KeyError::Held { until }))
            }
        }
    }
}

pub(super) const fn count(len: usize) -> KeyAnswer {
    KeyAnswer::Count(len as u64)
}
