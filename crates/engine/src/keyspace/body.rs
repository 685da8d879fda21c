//! A key with what it holds.

use std::collections::{BTreeMap, BTreeSet};

use ahash::RandomState;

use super::datum::{Datum, KeyType};
use super::list::List;
use super::ranking::Ranking;
use crate::Lsn;

/// Of a key that does not expire.
pub(super) const NEVER: u64 = u64::MAX;
/// What a field or member takes beside its bytes: its pointers, and its share of a node.
const ENTRY: usize = 40;

/// What a key holds.
#[derive(Debug)]
pub(super) enum Body {
    Value { version: u64, datum: Datum },
    Counter(i64),
    Map(Box<Map>),
    List(Box<List>),
    Set(Box<Set>),
    Ranking(Box<Ranking>),
    Lock { token: u64 },
}

/// Payloads by the names of fields.
#[derive(Debug, Default)]
pub(super) struct Map {
    fields: BTreeMap<Box<str>, Datum>,
    bytes: usize,
}

/// Texts, each once.
#[derive(Debug, Default)]
pub(super) struct Set {
    members: BTreeSet<Box<str>>,
    bytes: usize,
}

/// A key.
#[derive(Debug)]
pub(super) struct Key {
    /// Never that of another key.
    pub(super) id: u64,
    pub(super) name: Box<str>,
    /// When it ends, in Unix milliseconds, or [`NEVER`].
    pub(super) expires_at: u64,
    /// The newest record that speaks of it.
    pub(super) written: Lsn,
    pub(super) body: Body,
}

impl Body {
    /// One that holds nothing yet.
    pub(super) fn empty(of: KeyType, hasher: &RandomState) -> Self {
        match of {
            KeyType::Value => Self::Value {
                version: 0,
                datum: Datum::new(super::datum::DatumForm::Json, b"null"),
            },
            KeyType::Counter => Self::Counter(0),
            KeyType::Map => Self::Map(Box::default()),
            KeyType::List => Self::List(Box::new(List::new())),
            KeyType::Set => Self::Set(Box::default()),
            KeyType::Ranking => Self::Ranking(Box::new(Ranking::new(hasher))),
            KeyType::Lock => Self::Lock { token: 0 },
        }
    }

    pub(super) const fn key_type(&self) -> KeyType {
        match self {
            Self::Value { .. } => KeyType::Value,
            Self::Counter(_) => KeyType::Counter,
            Self::Map(_) => KeyType::Map,
            Self::List(_) => KeyType::List,
            Self::Set(_) => KeyType::Set,
            Self::Ranking(_) => KeyType::Ranking,
            Self::Lock { .. } => KeyType::Lock,
        }
    }

    /// Fields, items or members; 1 for what is no collection.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Value { .. } | Self::Counter(_) | Self::Lock { .. } => 1,
            Self::Map(map) => map.fields.len(),
            Self::List(list) => list.len(),
            Self::Set(set) => set.members.len(),
            Self::Ranking(ranking) => ranking.len(),
        }
    }

    /// Rough bytes in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Value { datum, .. } => datum.memory_bytes(),
            Self::Counter(_) | Self::Lock { .. } => 0,
            Self::Map(map) => map.bytes,
            Self::List(list) => list.memory_bytes(),
            Self::Set(set) => set.bytes,
            Self::Ranking(ranking) => ranking.memory_bytes(),
        }
    }

    /// Removes some field, item or member; for taking it apart. False when there is none.
    pub(super) fn shrink(&mut self) -> bool {
        match self {
            Self::Value { .. } | Self::Counter(_) | Self::Lock { .. } => false,
            Self::Map(map) => map.fields.pop_last().is_some(),
            Self::List(list) => list.shrink(),
            Self::Set(set) => set.members.pop_last().is_some(),
            Self::Ranking(ranking) => ranking.shrink(),
        }
    }

    pub(super) fn assert_invariants(&self) {
        match self {
            Self::Value { .. } | Self::Counter(_) | Self::Lock { .. } => {}
            Self::Map(map) => {
                let bytes = map.fields.iter().map(|(name, it)| map_bytes(name, it));
                assert_eq!(bytes.sum::<usize>(), map.bytes, "bytes of fields");
            }
            Self::List(list) => list.assert_invariants(),
            Self::Set(set) => {
                let bytes = set.members.iter().map(|it| it.len() + ENTRY);
                assert_eq!(bytes.sum::<usize>(), set.bytes, "bytes of members");
            }
            Self::Ranking(ranking) => ranking.assert_invariants(),
        }
    }
}

fn map_bytes(field: &str, datum: &Datum) -> usize {
    field.len() + ENTRY + datum.memory_bytes()
}

impl Map {
    pub(super) const fn fields(&self) -> &BTreeMap<Box<str>, Datum> {
        &self.fields
    }

    pub(super) fn set(&mut self, field: Box<str>, datum: Datum) {
        self.remove(&field);
        self.bytes += map_bytes(&field, &datum);
        self.fields.insert(field, datum);
    }

    pub(super) fn remove(&mut self, field: &str) {
        if let Some(datum) = self.fields.remove(field) {
            self.bytes -= map_bytes(field, &datum);
        }
    }
}

impl Set {
    pub(super) const fn members(&self) -> &BTreeSet<Box<str>> {
        &self.members
    }

    pub(super) fn add(&mut self, member: Box<str>) {
        let bytes = member.len() + ENTRY;
        if self.members.insert(member) {
            self.bytes += bytes;
        }
    }

    pub(super) fn remove(&mut self, member: &str) {
        if self.members.remove(member) {
            self.bytes -= member.len() + ENTRY;
        }
    }
}

impl Key {
    /// Rough bytes in memory, with its share of the index.
    pub(super) fn memory_bytes(&self) -> usize {
        // Hash, id and tag, and a place in a page.
        const INDEX: usize = 25;
        const TIMER: usize = 24;
        let timer = if self.expires_at == NEVER { 0 } else { TIMER };
        size_of::<Self>() + self.name.len() + INDEX + timer + self.body.memory_bytes()
    }

    pub(super) const fn is_over(&self, now: crate::Millis) -> bool {
        self.expires_at <= now.0
    }
}
