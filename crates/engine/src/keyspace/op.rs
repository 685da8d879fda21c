//! What is asked of keys, and what is answered.

use super::datum::{Datum, KeyType};
use crate::{Caller, Millis, VhostId};

/// A command on keys.
#[derive(Clone, Debug)]
pub struct KeyRequest {
    /// Of which virtual host.
    pub vhost: VhostId,
    /// Most bytes of payloads and names in the answer.
    pub answer_bytes_max: usize,
    /// The command.
    pub op: KeyOp,
}

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListSide {
    /// Before the first item.
    Front,
    /// Behind the last item.
    Back,
}

/// Places of a list or ranking: from 0, or from the end below zero; both inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// The first one.
    pub start: i64,
    /// The last one.
    pub stop: i64,
}

impl Places {
    /// The first place and the one behind the last, of so many.
    pub(super) fn within(self, len: usize) -> (usize, usize) {
        let len = i64::try_from(len).unwrap_or(i64::MAX);
        let from_end = |at: i64| if at < 0 { at.saturating_add(len) } else { at };
        let start = from_end(self.start).clamp(0, len);
        let end = from_end(self.stop).saturating_add(1).clamp(start, len);
        let place = |at: i64| usize::try_from(at).unwrap_or_default();
        (place(start), place(end))
    }
}

/// Which members of a ranking.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RankingSpan {
    /// By their places; from the highest score down if the range is reversed.
    Places(Places),
    /// By their scores, inclusive.
    Scores {
        /// The lowest one.
        min: f64,
        /// The highest one.
        max: f64,
    },
}

/// On what a write depends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// The key is not there.
    pub if_absent: bool,
    /// The value has this version; 0 = it is not there.
    pub if_version: Option<u64>,
}

/// A command on one key, or on some. Names have at most 65,535 bytes.
#[derive(Clone, Debug)]
pub enum KeyOp {
    /// Looks at a key.
    Read {
        /// The key.
        key: Box<str>,
        /// At what of it.
        read: KeyRead,
    },
    /// Changes a key.
    Write {
        /// The key.
        key: Box<str>,
        /// How.
        write: KeyWrite,
    },
    /// Reads several values. Answer: `Values`.
    GetMany {
        /// The keys.
        keys: Vec<Box<str>>,
    },
    /// Lists keys. Answer: `Scanned`.
    Scan(KeyScan),
    /// Takes an item of a list. Answer: `Taken`.
    Pop {
        /// The list.
        key: Box<str>,
        /// From which end.
        side: ListSide,
        /// How long to wait for one.
        wait_ms: u64,
    },
    /// Takes a lock. Answer: `Locked`.
    Acquire {
        /// The lock.
        key: Box<str>,
        /// How long to hold it, above zero.
        ttl_ms: u64,
        /// How long to wait for it.
        wait_ms: u64,
    },
}

/// What of a key is looked at.
#[derive(Clone, Debug)]
pub enum KeyRead {
    /// Whether it is there. Answer: `Bool`.
    Exists,
    /// What it is. Answer: `Kind`.
    Kind,
    /// How long it lives. Answer: `TtlMs`.
    Ttl,
    /// A value. Answer: `Value`.
    Value,
    /// A counter. Answer: `Integer`.
    Counter,
    /// A field of a map. Answer: `Datum`.
    Field(Box<str>),
    /// All fields of a map. Answer: `Fields`.
    Fields,
    /// Items of a list. Answer: `Items`.
    Items(Places),
    /// Whether a set has a member. Answer: `Bool`.
    Contains(Box<str>),
    /// All members of a set. Answer: `Members`.
    Members,
    /// The score of a member of a ranking. Answer: `Score`.
    Score(Box<str>),
    /// The place of a member of a ranking. Answer: `Count`.
    Rank {
        /// The member.
        member: Box<str>,
        /// Counted from the highest score.
        reverse: bool,
    },
    /// Members of a ranking. Answer: `Ranked`.
    Range(RankingPart),
    /// The length of a collection of this kind. Answer: `Count`.
    Length(KeyType),
}

/// How a key is changed. `ttl_ms` is above zero, and is for a key that the write makes.
#[derive(Clone, Debug)]
pub enum KeyWrite {
    /// It goes. Answer: `Bool`.
    Delete,
    /// It ends. Answer: `ExpiresAt`.
    Expire {
        /// After so long.
        ttl_ms: u64,
    },
    /// It does not end. Answer: `Bool`, whether it did.
    Persist,
    /// It has another name. Answer: `Bool`.
    Rename {
        /// That one.
        to: Box<str>,
    },
    /// A value is set, also how long it lives. Answer: `Version`.
    SetValue {
        /// The value.
        value: Datum,
        /// How long it lives.
        ttl_ms: Option<u64>,
        /// If this holds.
        condition: Condition,
    },
    /// A value goes. Answer: `Bool`.
    DeleteValue {
        /// If this is its version.
        if_version: Option<u64>,
    },
    /// A value is set and the one before told. Answer: `Swapped`.
    SwapValue {
        /// The value.
        value: Datum,
        /// How long it lives.
        ttl_ms: Option<u64>,
    },
    /// A counter is added to. Answer: `Integer`.
    AddCounter {
        /// How much.
        by: i64,
        /// How long it lives.
        ttl_ms: Option<u64>,
    },
    /// A counter is set. Answer: `Integer`.
    SetCounter {
        /// To this.
        value: i64,
        /// How long it lives.
        ttl_ms: Option<u64>,
    },
    /// A lock is held for longer. Answer: `ExpiresAt`.
    RenewLock {
        /// The token it was taken with.
        token: u64,
        /// For so long.
        ttl_ms: u64,
    },
    /// A lock is free. Answer: `Bool`.
    ReleaseLock {
        /// The token it was taken with.
        token: u64,
    },
    /// Something is added to a collection.
    Add {
        /// What.
        part: AddedPart,
        /// How long the collection lives.
        ttl_ms: Option<u64>,
    },
    /// Something is removed from a collection.
    Remove(RemovedPart),
}

/// What is added to a collection.
#[derive(Clone, Debug)]
pub enum AddedPart {
    /// A field of a map is set. Answer: `Bool`, whether it is new.
    Field {
        /// The field.
        field: Box<str>,
        /// Its value.
        value: Datum,
    },
    /// A field of a map is added to. Answer: `Integer`.
    ToField {
        /// The field.
        field: Box<str>,
        /// How much.
        by: i64,
    },
    /// Items of a list. Answer: `Count`.
    Items {
        /// The items.
        values: Vec<Datum>,
        /// Where.
        side: ListSide,
    },
    /// Members of a set. Answer: `Count`.
    Members(Vec<Box<str>>),
    /// A member of a ranking, or another score of it. Answer: `Bool`, whether it is new.
    Score {
        /// The member.
        member: Box<str>,
        /// Its score, finite.
        score: f64,
    },
}

/// What is removed from a collection.
#[derive(Clone, Debug)]
pub enum RemovedPart {
    /// A field of a map. Answer: `Bool`.
    Field(Box<str>),
    /// All items of a list but these. Answer: `Count`.
    ItemsBut(Places),
    /// Members of a set. Answer: `Count`.
    Members(Vec<Box<str>>),
    /// A member of a ranking. Answer: `Bool`.
    Score(Box<str>),
}

/// A part of a ranking.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankingPart {
    /// Which members.
    pub span: RankingSpan,
    /// From the highest score down.
    pub reverse: bool,
    /// How many at most.
    pub limit: Option<u64>,
}

/// A scan of keys.
#[derive(Clone, Debug)]
pub struct KeyScan {
    /// Whose: shown is what they may consume.
    pub caller: Caller,
    /// Only names that follow it.
    pub glob: Option<Box<str>>,
    /// Where to go on: that of an answer.
    pub cursor: Option<Box<str>>,
    /// Most names of the answer.
    pub limit: usize,
}

/// A value with its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionedDatum {
    /// The value.
    pub value: Datum,
    /// Its version.
    pub version: u64,
}

/// What a command came to.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyAnswer {
    /// Whether it was so: exists, deleted, persisted, renamed, created, removed, contains,
    /// released.
    Bool(bool),
    /// What a key is.
    Kind(KeyType),
    /// When a key or lock ends.
    ExpiresAt(Millis),
    /// How long a key lives, in milliseconds; `None` = for ever.
    TtlMs(Option<u64>),
    /// Names of keys.
    Scanned {
        /// The names.
        keys: Vec<Box<str>>,
        /// Where to go on; `None` = that was all.
        cursor: Option<Box<str>>,
    },
    /// The version of a value that was set.
    Version(u64),
    /// A value.
    Value(VersionedDatum),
    /// Values in the order of their keys.
    Values(Vec<Option<VersionedDatum>>),
    /// A value was swapped.
    Swapped {
        /// The one before.
        previous: Option<Datum>,
        /// The version of the new one.
        version: u64,
    },
    /// What a counter or field is.
    Integer(i64),
    /// A field.
    Datum(Datum),
    /// Fields in the order of their bytes.
    Fields(Vec<(Box<str>, Datum)>),
    /// Length, or how many were added, removed, or come before.
    Count(u64),
    /// An item of a list, and its place, should it never reach the client.
    Taken {
        /// The item.
        item: Datum,
        /// Its place.
        place: Box<TakenFrom>,
    },
    /// Items of a list.
    Items(Vec<Datum>),
    /// Members of a set in the order of their bytes.
    Members(Vec<Box<str>>),
    /// The score of a member.
    Score(f64),
    /// Members of a ranking in order.
    Ranked(Vec<(Box<str>, f64)>),
    /// A lock was taken.
    Locked {
        /// The lock.
        key: Box<str>,
        /// Its token.
        token: u64,
        /// When it ends.
        expires_at: Millis,
        /// The client waited for it: should the answer never reach it, the lock is given back.
        waited: bool,
    },
}

/// From where an item was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenFrom {
    /// The list.
    pub key: Box<str>,
    /// From which end.
    pub side: ListSide,
    pub(super) id: u64,
    pub(super) position: i64,
    pub(super) bounds: (i64, i64),
    pub(super) expires_at: u64,
}

/// Why a command came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// The key, field or member is not there.
    NotFound,
    /// The key is of another kind, or a lock that cannot be renamed, or a field is no integer.
    WrongType {
        /// What the key is.
        found: KeyType,
    },
    /// The key is there already.
    Exists,
    /// The value has another version.
    VersionConflict {
        /// The version it has; 0 = it is not there.
        found: u64,
    },
    /// The sum is beyond 64 bits.
    Overflow {
        /// What was to be added to.
        value: i64,
    },
    /// Somebody holds the lock.
    Held {
        /// Until when.
        until: Millis,
    },
    /// The token is not that of who holds the lock.
    StaleToken,
    /// What was waited for did not come.
    TimedOut,
    /// The command was cancelled.
    Cancelled,
    /// The answer would be too large.
    AnswerTooLarge {
        /// The limit.
        bytes_max: usize,
    },
    /// This cursor was never given.
    BadCursor,
    /// The virtual host is gone.
    VhostNotFound,
    /// There is no room for more keys.
    TooManyKeys {
        /// The limit.
        max: u32,
    },
    /// The disk is full: only what makes room is done.
    Storage,
}

impl KeyAnswer {
    /// It brings something that has to go back when it never reaches the client.
    #[must_use]
    pub const fn is_taken(&self) -> bool {
        matches!(self, Self::Taken { .. } | Self::Locked { waited: true, .. })
    }

    /// Rough bytes in memory beside itself; what it shares with the keys counts.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let datum = |datum: &Datum| datum.memory_bytes();
        match self {
            Self::Scanned { keys: texts, .. } | Self::Members(texts) => texts_bytes(texts),
            Self::Value(it) => datum(&it.value),
            Self::Values(values) => {
                let values = values.iter().flatten();
                values.map(|it| datum(&it.value)).sum()
            }
            Self::Swapped { previous, .. } => previous.as_ref().map_or(0, datum),
            Self::Datum(it) | Self::Taken { item: it, .. } => datum(it),
            Self::Fields(fields) => fields.iter().map(|(name, it)| name.len() + datum(it)).sum(),
            Self::Items(items) => items.iter().map(datum).sum(),
            Self::Ranked(members) => {
                const SCORED: usize = size_of::<(Box<str>, f64)>();
                members.iter().map(|(name, _)| SCORED + name.len()).sum()
            }
            Self::Bool(_)
            | Self::Kind(_)
            | Self::ExpiresAt(_)
            | Self::TtlMs(_)
            | Self::Version(_)
            | Self::Integer(_)
            | Self::Count(_)
            | Self::Score(_)
            | Self::Locked { .. } => 0,
        }
    }
}

impl KeyRequest {
    /// Rough size in memory.
    pub(crate) fn weight_bytes(&self) -> usize {
        let held = match &self.op {
            KeyOp::GetMany { keys } => texts_bytes(keys),
            KeyOp::Write { write, .. } => write.weight_bytes(),
            KeyOp::Read { .. } | KeyOp::Scan(_) | KeyOp::Pop { .. } | KeyOp::Acquire { .. } => 0,
        };
        size_of::<Self>() + held
    }
}

impl KeyWrite {
    fn weight_bytes(&self) -> usize {
        match self {
            Self::SetValue { value, .. } | Self::SwapValue { value, .. } => value.memory_bytes(),
            Self::Add { part, .. } => match part {
                AddedPart::Field { value, .. } => value.memory_bytes(),
                AddedPart::Items { values, .. } => values.iter().map(Datum::memory_bytes).sum(),
                AddedPart::Members(members) => texts_bytes(members),
                AddedPart::ToField { .. } | AddedPart::Score { .. } => 0,
            },
            Self::Remove(RemovedPart::Members(members)) => texts_bytes(members),
            Self::Remove(_)
            | Self::Delete
            | Self::Expire { .. }
            | Self::Persist
            | Self::Rename { .. }
            | Self::DeleteValue { .. }
            | Self::AddCounter { .. }
            | Self::SetCounter { .. }
            | Self::RenewLock { .. }
            | Self::ReleaseLock { .. } => 0,
        }
    }
}

fn texts_bytes(texts: &[Box<str>]) -> usize {
    let bytes = texts.iter().map(|text| size_of::<Box<str>>() + text.len());
    bytes.sum()
}
