//! Captures of keys: records that make them as they are, in slices, while commands go on.
//!
//! A slice may be newer than the position that the capture is of: the log's records behind it say
//! what became of it again. Keys that are made meanwhile are in the log.

use core::ops::Bound::{Excluded, Unbounded};

use super::Keyspaces;
use super::body::{Body, Key};
use super::change::Change;
use super::serve::begin_keys;
use super::space::Keyspace;
use crate::{Millis, VhostId};

/// Bytes of one record, about.
const RECORD_BYTES: usize = 256 << 10;

/// How far a capture of keys has come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cursor {
    /// The virtual host; `None` before the first one.
    vhost: Option<VhostId>,
    /// Keys up to this one are captured.
    id: u64,
    /// Keys behind this one came after the beginning.
    end: u64,
    part: Part,
}

/// How far in the key behind `id`.
#[derive(Clone, Debug, Default)]
enum Part {
    #[default]
    Whole,
    /// Fields or members after this one.
    After(Box<str>),
    /// Items from this position on.
    Items(i64),
    /// Members of a ranking from this node on.
    Nodes(usize),
}

impl Keyspaces {
    /// Captures a bit more: about `budget` fields, items, members and keys. Returns where to go on.
    pub(crate) fn capture(
        &self,
        now: Millis,
        mut cursor: Cursor,
        budget: &mut usize,
        out: &mut Vec<Vec<u8>>,
    ) -> Option<Cursor> {
        let vhost = match cursor.vhost {
            Some(vhost) => vhost,
            None => self.begin_vhost(&mut cursor, now, None, out)?,
        };
        let Some(space) = self.spaces.get(&vhost) else {
            // It is gone: the log says so.
            self.begin_vhost(&mut cursor, now, Some(vhost), out)?;
            return Some(cursor);
        };
        let mut slice = Slice {
            record: Vec::new(),
            now,
            vhost,
            left: (*budget).max(1),
            out,
        };
        while slice.left > 0 {
            if !space.capture_key(&mut cursor, &mut slice) {
                *budget = slice.end();
                self.begin_vhost(&mut cursor, now, Some(vhost), out)?;
                return Some(cursor);
            }
        }
        *budget = slice.end();
        Some(cursor)
    }

    /// Goes on to the virtual host after this one; writes what it has counted.
    fn begin_vhost(
        &self,
        cursor: &mut Cursor,
        now: Millis,
        after: Option<VhostId>,
        out: &mut Vec<Vec<u8>>,
    ) -> Option<VhostId> {
        let from = after.map_or(Unbounded, Excluded);
        let (vhost, space) = self.spaces.range((from, Unbounded)).next()?;
        let counters = space.store.counters;
        *cursor = Cursor {
            vhost: Some(*vhost),
            id: 0,
            end: counters.id,
            part: Part::Whole,
        };
        let mut record = Vec::new();
        begin_keys(&mut record, now, *vhost);
        Change::Counters(counters).encode(0, &mut record);
        out.push(record);
        Some(*vhost)
    }
}

/// The records of one slice.
struct Slice<'a> {
    record: Vec<u8>,
    now: Millis,
    vhost: VhostId,
    left: usize,
    out: &'a mut Vec<Vec<u8>>,
}

impl Slice<'_> {
    fn put(&mut self, id: u64, change: &Change) {
        if self.record.is_empty() {
            begin_keys(&mut self.record, self.now, self.vhost);
        }
        change.encode(id, &mut self.record);
        if self.record.len() >= RECORD_BYTES {
            self.out.push(core::mem::take(&mut self.record));
        }
        self.left = self.left.saturating_sub(1);
    }

    fn end(self) -> usize {
        if !self.record.is_empty() {
            self.out.push(self.record);
        }
        self.left
    }
}

impl Keyspace {
    /// The next key, or a part of it. False when there is none.
    fn capture_key(&self, cursor: &mut Cursor, slice: &mut Slice<'_>) -> bool {
        let next = cursor.id.saturating_add(1);
        let mut keys = self.store.keys.range(next..);
        let Some((id, key)) = keys.next().filter(|(id, _)| *id <= cursor.end) else {
            return false;
        };
        if id != next && !matches!(cursor.part, Part::Whole) {
            // The key that was gone through is gone.
            (cursor.id, cursor.part) = (id - 1, Part::Whole);
            return true;
        }
        cursor.id = id - 1;
        if matches!(cursor.part, Part::Whole) {
            capture_head(key, slice);
        }
        match capture_part(key, &cursor.part, slice) {
            Some(part) => cursor.part = part,
            None => (cursor.id, cursor.part) = (id, Part::Whole),
        }
        true
    }
}

fn capture_head(key: &Key, slice: &mut Slice<'_>) {
    let created = Change::Created {
        of: key.body.key_type(),
        expires_at: key.expires_at,
        name: key.name.clone(),
    };
    slice.put(key.id, &created);
    let body = match &key.body {
        Body::Value { version, datum } => Change::Value {
            version: *version,
            datum: datum.clone(),
        },
        Body::Counter(value) => Change::Counter { value: *value },
        Body::Lock { token } => Change::Lock { token: *token },
        Body::List(list) => {
            let (low, high) = list.bounds();
            Change::Bounds { low, high }
        }
        Body::Map(_) | Body::Set(_) | Body::Ranking(_) => return,
    };
    slice.put(key.id, &body);
}

/// More of a key; `None` when that was all of it.
fn capture_part(key: &Key, part: &Part, slice: &mut Slice<'_>) -> Option<Part> {
    let id = key.id;
    let after = match part {
        Part::After(name) => Excluded(&**name),
        Part::Whole | Part::Items(_) | Part::Nodes(_) => Unbounded,
    };
    match &key.body {
        Body::Value { .. } | Body::Counter(_) | Body::Lock { .. } => {}
        Body::Map(map) => {
            for (field, datum) in map.fields().range::<str, _>((after, Unbounded)) {
                let field = field.clone();
                let last = field.clone();
                let datum = datum.clone();
                slice.put(id, &Change::Field { field, datum });
                if slice.left == 0 {
                    return Some(Part::After(last));
                }
            }
        }
        Body::Set(set) => {
            for member in set.members().range::<str, _>((after, Unbounded)) {
                let members = vec![member.clone()];
                slice.put(id, &Change::Members { members });
                if slice.left == 0 {
                    return Some(Part::After(member.clone()));
                }
            }
        }
        Body::List(list) => {
            let from = match part {
                Part::Items(from) => *from,
                Part::Whole | Part::After(_) | Part::Nodes(_) => i64::MIN,
            };
            for (position, item) in list.from(from) {
                let items = vec![item.clone()];
                let first = *position;
                slice.put(id, &Change::Items { first, items });
                if slice.left == 0 {
                    return Some(Part::Items(first.saturating_add(1)));
                }
            }
        }
        Body::Ranking(ranking) => {
            let from = match part {
                Part::Nodes(from) => *from,
                Part::Whole | Part::After(_) | Part::Items(_) => 0,
            };
            for number in from.. {
                let Some(node) = ranking.node(number) else {
                    break;
                };
                if let Some((member, score)) = node {
                    let member = member.into();
                    slice.put(id, &Change::Score { member, score });
                } else {
                    slice.left = slice.left.saturating_sub(1);
                }
                if slice.left == 0 {
                    return Some(Part::Nodes(number + 1));
                }
            }
        }
    }
    None
}
