//! The keys of one virtual host: what records say of them is applied here, when they are written
//! and when they are replayed.

use std::collections::{BTreeMap, BTreeSet};

use ahash::RandomState;

use super::body::{Body, Key, NEVER};
use super::change::{Change, Counters};
use super::datum::KeyType;
use super::ids::IdMap;
use crate::Lsn;
use crate::steady::SteadyTable;

/// Collections with more than this are taken apart in slices when they are gone.
const DROPPED_AT_ONCE: usize = 1_000;

/// Parts of the index that nothing is in any more.
const PARTS_KEPT: usize = 4;

/// All keys.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) keys: IdMap<Key>,
    pub(super) counters: Counters,
    /// Hashes of names with ids: names are not looked at when the table grows. Empty during
    /// recovery, when two keys may have one name for a while.
    index: SteadyTable<(u64, u64)>,
    /// When keys end.
    timers: BTreeSet<(u64, u64)>,
    is_live: bool,
    hasher: RandomState,
    bytes: usize,
    /// What gone keys held, to be taken apart.
    buried: Vec<(usize, Body)>,
}

impl Store {
    pub(super) fn new(hasher: &RandomState) -> Self {
        Self {
            keys: IdMap::new(),
            counters: Counters::default(),
            index: SteadyTable::new(),
            timers: BTreeSet::new(),
            is_live: false,
            hasher: hasher.clone(),
            bytes: 0,
            buried: Vec::new(),
        }
    }

    pub(super) const fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// The key of this name.
    pub(super) fn find(&self, name: &str) -> Option<&Key> {
        let mut found = None;
        let is_it = |(_, id): &(u64, u64)| {
            found = self.keys.get(*id).filter(|key| &*key.name == name);
            found.is_some()
        };
        self.index.find(self.hasher.hash_one(name), is_it)?;
        found
    }

    pub(super) fn first_expiry(&self) -> Option<(u64, u64)> {
        self.timers.first().copied()
    }

    /// A record that ends here speaks of a key.
    pub(super) fn note_written(&mut self, id: u64, at: Lsn) {
        if let Some(key) = self.keys.get_mut(id) {
            key.written = at;
        }
    }

    /// Of a log with holes: what makes no sense is removed, of keys of one name the older ones.
    pub(super) fn mend(&mut self) {
        let mut newest: BTreeMap<&str, u64> = BTreeMap::new();
        let mut bad = Vec::new();
        for (id, key) in self.keys.iter() {
            if key.body.len() == 0 {
                bad.push(id);
            } else {
                bad.extend(newest.insert(&key.name, id));
            }
        }
        for id in bad {
            self.remove(id);
        }
    }

    /// Ends recovery. An error names two keys of one name, which no sound log makes.
    pub(super) fn start(&mut self) -> Result<(), String> {
        self.is_live = true;
        let ids: Vec<u64> = self.keys.iter().map(|(id, _)| id).collect();
        for id in ids {
            let Some(key) = self.keys.get(id) else {
                continue;
            };
            if let Some(other) = self.find(&key.name) {
                let (name, other) = (&key.name, other.id);
                return Err(format!("keys {other} and {id} have the name {name:?}"));
            }
            if key.body.len() == 0 {
                return Err(format!("key {id}, {:?}, holds nothing", key.name));
            }
            self.enter(id);
        }
        Ok(())
    }

    /// Puts a key into index and timers.
    fn enter(&mut self, id: u64) {
        let Some(key) = self.keys.get(id) else {
            return;
        };
        if !self.is_live {
            return;
        }
        if key.expires_at != NEVER {
            self.timers.insert((key.expires_at, id));
        }
        let hash = self.hasher.hash_one(&*key.name);
        self.index
            .insert_unique(hash, (hash, id), |(hash, _)| *hash);
    }

    /// Takes a key out of index and timers.
    fn leave(&mut self, id: u64) {
        let Some(key) = self.keys.get(id) else {
            return;
        };
        if !self.is_live {
            return;
        }
        self.timers.remove(&(key.expires_at, id));
        let hash = self.hasher.hash_one(&*key.name);
        self.index.remove(hash, |(_, other)| *other == id);
        self.index.give_back(PARTS_KEPT);
    }

    /// Applies one change. What speaks of a key that is not there, or is of another kind, changes
    /// nothing: a snapshot's state is newer than the first records after it, and later ones say
    /// so.
    pub(super) fn apply(&mut self, id: u64, change: Change) {
        match change {
            Change::Counters(counters) => self.counters.raise(counters),
            Change::Created {
                of,
                expires_at,
                name,
            } => self.create(id, of, expires_at, name),
            Change::Gone => self.remove(id),
            Change::Renamed { name } => {
                self.leave(id);
                self.change(id, |key| key.name = name);
                self.enter(id);
            }
            Change::Expires { expires_at } => {
                let before = self.keys.get(id).map(|key| key.expires_at);
                self.change(id, |key| key.expires_at = expires_at);
                if self.is_live
                    && let Some(before) = before
                {
                    self.timers.remove(&(before, id));
                    if expires_at != NEVER {
                        self.timers.insert((expires_at, id));
                    }
                }
            }
            change @ Change::Kept { .. } => self.trim(id, &change),
            change @ Change::Lock { token } => {
                self.counters.token = self.counters.token.max(token);
                self.change(id, |key| apply_to(&mut key.body, change));
            }
            change @ (Change::Value { .. }
            | Change::Version { .. }
            | Change::Counter { .. }
            | Change::Field { .. }
            | Change::FieldGone { .. }
            | Change::Items { .. }
            | Change::ItemGone { .. }
            | Change::Bounds { .. }
            | Change::Members { .. }
            | Change::MembersGone { .. }
            | Change::Score { .. }
            | Change::ScoreGone { .. }) => {
                self.change(id, |key| apply_to(&mut key.body, change));
            }
        }
    }

    fn change(&mut self, id: u64, change: impl FnOnce(&mut Key)) {
        let Some(key) = self.keys.get_mut(id) else {
            return;
        };
        self.bytes -= key.memory_bytes();
        change(key);
        self.bytes += key.memory_bytes();
    }

    fn create(&mut self, id: u64, of: KeyType, expires_at: u64, name: Box<str>) {
        self.remove(id);
        self.counters.id = self.counters.id.max(id);
        let key = Key {
            id,
            name,
            expires_at,
            written: Lsn::ZERO,
            body: Body::empty(of, &self.hasher),
        };
        self.bytes += key.memory_bytes();
        self.keys.insert(id, key);
        self.enter(id);
    }

    fn remove(&mut self, id: u64) {
        self.leave(id);
        if let Some(key) = self.keys.remove(id) {
            self.bytes -= key.memory_bytes();
            self.bury(key.body);
        }
    }

    fn trim(&mut self, id: u64, change: &Change) {
        let Change::Kept { low, high } = *change else {
            return;
        };
        let mut left = None;
        self.change(id, |key| {
            if let Body::List(list) = &mut key.body {
                left = Some(list.keep(low, high));
            }
        });
        if let Some(left) = left {
            self.bury(Body::List(Box::new(left)));
        }
    }

    fn bury(&mut self, body: Body) {
        if body.len() > DROPPED_AT_ONCE {
            let bytes = body.memory_bytes();
            self.bytes += bytes;
            self.buried.push((bytes, body));
        }
    }

    pub(super) const fn has_buried(&self) -> bool {
        !self.buried.is_empty()
    }

    /// Takes apart what gone keys held, about so many fields, items or members of it.
    pub(super) fn dig(&mut self, budget: usize) {
        for _ in 0..budget {
            let Some((_, body)) = self.buried.last_mut() else {
                return;
            };
            if !body.shrink()
                && let Some((bytes, _)) = self.buried.pop()
            {
                self.bytes -= bytes;
            }
        }
    }

    pub(super) fn assert_invariants(&self) {
        let keys = self.keys.iter().map(|(_, key)| key.memory_bytes());
        let buried = self.buried.iter().map(|(bytes, _)| *bytes);
        assert_eq!(
            keys.chain(buried).sum::<usize>(),
            self.bytes,
            "bytes of keys"
        );
        for (id, key) in self.keys.iter() {
            assert_eq!(id, key.id);
            assert!(id <= self.counters.id, "key {id} is above the counter");
            key.body.assert_invariants();
            if !self.is_live {
                continue;
            }
            assert!(key.body.len() > 0, "{:?} is empty", key.name);
            let found = self.find(&key.name).map(|key| key.id);
            assert_eq!(found, Some(id), "{:?}", key.name);
            let is_timed = self.timers.contains(&(key.expires_at, id));
            assert_eq!(is_timed, key.expires_at != NEVER, "{:?}", key.name);
        }
        if self.is_live {
            assert_eq!(self.index.len(), self.keys.len(), "keys in the index");
        }
        let timed = self.keys.iter().filter(|(_, key)| key.expires_at != NEVER);
        assert!(!self.is_live || timed.count() == self.timers.len());
    }
}

fn apply_to(body: &mut Body, change: Change) {
    match (body, change) {
        (
            Body::Value { version, datum },
            Change::Value {
                version: v,
                datum: d,
            },
        ) => {
            (*version, *datum) = (v, d);
        }
        (Body::Counter(counter), Change::Counter { value }) => *counter = value,
        (Body::Map(map), Change::Field { field, datum }) => map.set(field, datum),
        (Body::Map(map), Change::FieldGone { field }) => map.remove(&field),
        (Body::List(list), Change::Items { first, items }) => {
            for (position, item) in (first..).zip(items) {
                list.put(position, item);
            }
        }
        (Body::List(list), Change::ItemGone { position }) => _ = list.take(position),
        (Body::List(list), Change::Bounds { low, high }) => list.widen((low, high)),
        (Body::Set(set), Change::Members { members }) => {
            for member in members {
                set.add(member);
            }
        }
        (Body::Set(set), Change::MembersGone { members }) => {
            for member in members {
                set.remove(&member);
            }
        }
        (Body::Ranking(ranking), Change::Score { member, score }) => ranking.set(&member, score),
        (Body::Ranking(ranking), Change::ScoreGone { member }) => _ = ranking.remove(&member),
        (Body::Lock { token }, Change::Lock { token: t }) => *token = t,
        (Body::Value { version, .. }, Change::Version { version: v }) => *version = v,
        _ => {}
    }
}
