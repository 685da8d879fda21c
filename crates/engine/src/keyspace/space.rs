//! The keys of one virtual host with those who wait for them: what every command has in common.

use ahash::RandomState;

use super::body::{Body, Key, Map, NEVER, Set};
use super::change::{Change, Counters};
use super::datum::KeyType;
use super::list::List;
use super::op::{KeyAnswer, KeyError};
use super::ranking::Ranking;
use super::store::Store;
use super::waits::{Line, Waits, Wanted};
use crate::{Lsn, Millis, ReplyTo};

/// What a command came to.
pub(super) type Outcome = Result<KeyAnswer, KeyError>;

/// The keys of one virtual host.
#[derive(Debug)]
pub(super) struct Keyspace {
    pub(super) store: Store,
    pub(super) waits: Waits,
    /// The newest record that took a name from a key.
    pub(super) gone_at: Lsn,
    /// The newest record of all.
    pub(super) newest: Lsn,
}

/// One step: what it writes, and what it answers.
#[derive(Debug)]
pub(super) struct Step<'a> {
    pub(super) now: Millis,
    /// Changes are appended here.
    pub(super) record: &'a mut Vec<u8>,
    /// Something was.
    pub(super) has_changes: bool,
    /// New keys are taken: the disk has room, and so has the broker.
    pub(super) may_add: bool,
    pub(super) keys_max: u32,
    /// Keys that the record speaks of.
    touched: Vec<u64>,
    /// It takes a name from a key.
    takes_names: bool,
    /// Who waited and got an answer.
    pub(super) answers: Vec<(ReplyTo, Outcome)>,
}

impl<'a> Step<'a> {
    pub(super) const fn new(now: Millis, record: &'a mut Vec<u8>) -> Self {
        Self {
            now,
            record,
            has_changes: false,
            may_add: true,
            keys_max: u32::MAX,
            touched: Vec::new(),
            takes_names: false,
            answers: Vec::new(),
        }
    }

    pub(super) const fn ends_at(&self, ttl_ms: Option<u64>) -> u64 {
        match ttl_ms {
            Some(ttl_ms) => {
                let at = self.now.after_ms(ttl_ms).0;
                if at == NEVER { NEVER - 1 } else { at }
            }
            None => NEVER,
        }
    }
}

/// The body of a key, if it is of the kind that is wanted.
macro_rules! typed {
    ($name:ident, $variant:ident, $type:ty) => {
        pub(super) fn $name(&self, now: Millis, name: &str) -> Result<&$type, KeyError> {
            let key = self.live(now, name).ok_or(KeyError::NotFound)?;
            match &key.body {
                Body::$variant(body) => Ok(body),
                other => Err(KeyError::WrongType {
                    found: other.key_type(),
                }),
            }
        }
    };
}

impl Keyspace {
    pub(super) fn new(hasher: &RandomState) -> Self {
        Self {
            store: Store::new(hasher),
            waits: Waits::default(),
            gone_at: Lsn::ZERO,
            newest: Lsn::ZERO,
        }
    }

    typed!(counter, Counter, i64);
    typed!(map, Map, Map);
    typed!(list, List, List);
    typed!(set, Set, Set);
    typed!(ranking, Ranking, Ranking);

    /// The key of this name, unless it is over.
    pub(super) fn live(&self, now: Millis, name: &str) -> Option<&Key> {
        self.store.find(name).filter(|key| !key.is_over(now))
    }

    /// The key of this name, if it is there, and then of this kind.
    pub(super) fn live_of(
        &self,
        now: Millis,
        name: &str,
        of: KeyType,
    ) -> Result<Option<&Key>, KeyError> {
        match self.live(now, name) {
            Some(key) if key.body.key_type() != of => Err(KeyError::WrongType {
                found: key.body.key_type(),
            }),
            found => Ok(found),
        }
    }

    /// The record that what is said of this name waits for.
    pub(super) fn written(&self, name: &str) -> Lsn {
        let found = self.store.find(name);
        found.map_or(self.gone_at, |key| key.written)
    }

    /// Writes a change and applies it.
    pub(super) fn put(&mut self, step: &mut Step<'_>, id: u64, change: Change) {
        change.encode(id, step.record);
        step.has_changes = true;
        step.takes_names |= matches!(change, Change::Gone | Change::Renamed { .. });
        if step.touched.last() != Some(&id) {
            step.touched.push(id);
        }
        self.store.apply(id, change);
    }

    /// The step's record ends here.
    pub(super) fn note_written(&mut self, step: &Step<'_>, at: Lsn) {
        for id in &step.touched {
            self.store.note_written(*id, at);
        }
        if step.takes_names {
            self.gone_at = at;
        }
        self.newest = at;
    }

    /// Checks that something may be added.
    pub(super) fn check_room(&self, step: &Step<'_>, is_new: bool) -> Result<(), KeyError> {
        if !step.may_add {
            return Err(KeyError::Storage);
        }
        let max = step.keys_max;
        if is_new && self.store.keys.len() >= max as usize {
            return Err(KeyError::TooManyKeys { max });
        }
        Ok(())
    }

    /// Makes a key that holds nothing yet. Its name is free.
    pub(super) fn create(
        &mut self,
        step: &mut Step<'_>,
        name: &str,
        of: KeyType,
        expires_at: u64,
    ) -> u64 {
        let id = self.store.counters.id.saturating_add(1);
        let name = name.into();
        let change = Change::Created {
            of,
            expires_at,
            name,
        };
        self.put(step, id, change);
        id
    }

    /// The key of this name and kind; makes it when it is not there, to live for `ttl_ms`.
    pub(super) fn open(
        &mut self,
        step: &mut Step<'_>,
        name: &str,
        of: KeyType,
        ttl_ms: Option<u64>,
    ) -> Result<u64, KeyError> {
        let found = self.live_of(step.now, name, of)?.map(|key| key.id);
        self.check_room(step, found.is_none())?;
        Ok(match found {
            Some(id) => id,
            None => self.create(step, name, of, step.ends_at(ttl_ms)),
        })
    }

    /// Removes a key; who waits for a lock of its name gets one.
    pub(super) fn remove(&mut self, step: &mut Step<'_>, id: u64) {
        let Some(key) = self.store.keys.get(id) else {
            return;
        };
        let name = key.name.clone();
        self.keep_version(step, id);
        self.put(step, id, Change::Gone);
        self.serve_lock(step, &name);
    }

    /// Removes a collection that holds nothing any more.
    pub(super) fn remove_if_empty(&mut self, step: &mut Step<'_>, id: u64) {
        let key = self.store.keys.get(id);
        if key.is_some_and(|key| key.body.len() == 0) {
            self.remove(step, id);
        }
    }

    /// No later value may have the version of one that leaves its name.
    pub(super) fn keep_version(&mut self, step: &mut Step<'_>, id: u64) {
        let body = self.store.keys.get(id).map(|key| &key.body);
        if let Some(Body::Value { version, .. }) = body
            && *version > self.store.counters.version
        {
            let counters = Counters {
                version: *version,
                ..Counters::default()
            };
            self.put(step, 0, Change::Counters(counters));
        }
    }

    /// Removes the key of this name if it is over: a write must not find it.
    pub(super) fn expire(&mut self, step: &mut Step<'_>, name: &str) {
        let found = self.store.find(name);
        if let Some(id) = found.filter(|key| key.is_over(step.now)).map(|key| key.id) {
            self.remove(step, id);
        }
    }

    /// Gives items to those who wait for them.
    pub(super) fn serve_items(&mut self, step: &mut Step<'_>, name: &str) {
        while self.waits.has(Line::Items, name) {
            let Ok(Some(key)) = self.live_of(step.now, name, KeyType::List) else {
                return;
            };
            let id = key.id;
            let Some(wait) = self.next_wait(step, Line::Items, name) else {
                return;
            };
            let Wanted::Item { side } = wait.1 else {
                continue;
            };
            let taken = self.take_item(step, id, side);
            step.answers.push((wait.0, taken));
        }
    }

    /// Gives a lock that is free to who waits for it.
    pub(super) fn serve_lock(&mut self, step: &mut Step<'_>, name: &str) {
        let is_wanted = self.waits.has(Line::Locks, name);
        if !is_wanted || self.live(step.now, name).is_some() {
            return;
        }
        if let Some((reply, wanted)) = self.next_wait(step, Line::Locks, name)
            && let Wanted::Lock { ttl_ms } = wanted
        {
            let granted = self.grant(step, name, ttl_ms, true);
            step.answers.push((reply, Ok(granted)));
        }
    }

    /// The first one in line whose time is not over; others are told that theirs is.
    fn next_wait(
        &mut self,
        step: &mut Step<'_>,
        line: Line,
        name: &str,
    ) -> Option<(ReplyTo, Wanted)> {
        self.end_waits(step, usize::MAX);
        let wait = self.waits.take_first(line, name)?;
        Some((wait.reply, wait.wanted))
    }

    /// Tells those whose time is over, at most so many. True when there may be more.
    fn end_waits(&mut self, step: &mut Step<'_>, max: usize) -> bool {
        for _ in 0..max {
            let Some(wait) = self.waits.take_over(step.now) else {
                return false;
            };
            step.answers.push((wait.reply, Err(KeyError::TimedOut)));
        }
        true
    }

    /// What happens by itself: waits end, keys expire, what is gone is taken apart.
    pub(super) fn run(&mut self, step: &mut Step<'_>, budget: usize) {
        self.end_waits(step, budget);
        for _ in 0..budget {
            let due = self.store.first_expiry();
            let Some((_, id)) = due.filter(|(at, _)| *at <= step.now.0) else {
                break;
            };
            self.remove(step, id);
        }
        self.store.dig(budget);
    }

    /// When something happens by itself.
    pub(super) fn next_time(&self) -> Option<Millis> {
        let expiry = self.store.first_expiry().map(|(at, _)| Millis(at));
        [expiry, self.waits.first_end()].into_iter().flatten().min()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.store.memory_bytes() + self.waits.memory_bytes()
    }

    pub(super) fn assert_invariants(&self) {
        self.store.assert_invariants();
        self.waits.assert_invariants();
    }
}
