//! Records: the engine's decisions as bytes in the log (docs/formats/records.md).
//!
//! Every record starts with the same 26 bytes; the rest depends on its kind. All integers are
//! big-endian. Writers append to a reused buffer; readers borrow and never panic.

mod classified;
mod image;
mod reader;

use crate::{Form, Lsn, MessageId, Millis, QueueId};
pub(crate) use classified::{
    Classified, ClassifiedFields, FailedTry, UnclassifiedFields, add_classified,
};
pub(crate) use image::{
    Image, ImageContent, KeyImage, PagedLane, begin_counted, encode_page_loaded, encode_pages,
    finish_counted,
};
pub(crate) use reader::{Header, Reader};

/// The version of every record layout; a newer one is refused.
pub(crate) const VERSION: u8 = 1;

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// A queue with its policies; written again when its old record's segment is to be freed.
    Queue = 1,
    /// A queue and its dead-letter queue are gone.
    QueueDeleted = 2,
    /// Messages came in.
    Stored = 3,
    /// Messages were leased.
    Leased = 4,
    /// Leased messages are pending again, the attempt not counted.
    Returned = 5,
    /// Leased messages failed and are pending again, each with a not-before time.
    Failed = 6,
    /// Leases end at other times.
    Extended = 7,
    /// Messages left: acked, purged, dropped.
    Removed = 8,
    /// Messages moved to another queue: dead-lettered or redriven.
    Moved = 9,
    /// A runtime configuration entry.
    Config = 10,
    /// Counters and switches of the whole shard.
    Shard = 11,
    /// Leased messages went back to their place; the delivery counts, no failure does.
    Requeued = 12,
    /// Messages with their whole state: in snapshots and backups.
    Image = 13,
    /// Pages of one lane: in snapshots.
    Pages = 14,
    /// The messages of a page are in memory from here on.
    PageLoaded = 15,
    /// Deduplication keys: in snapshots and backups.
    Remembered = 16,
    /// A snapshot counts from here on: the log may have lost what lies before its position.
    Snapshot = 17,
    /// Charges of throttles, what became of them, and the state of buckets.
    Throttle = 18,
    /// What a script said of messages that were stored without it, or failed to say.
    Classified = 19,
    /// An API key was made or revoked, or what is remembered of those that are gone.
    ApiKey = 20,
    /// What an API key may do.
    Acl = 21,
    /// A virtual host was made or deleted, or what is remembered of those that are gone.
    Vhost = 22,
    /// An exchange was declared, or exchanges are gone.
    Exchange = 23,
    /// A binding was made or removed.
    Binding = 24,
    /// A user was made, changed or deleted, or what is remembered of those that are gone.
    User = 25,
    /// What a user may do.
    Permission = 26,
    /// Records that happened together: all of them count, or none.
    Atomic = 27,
    /// What became of keys of a virtual host.
    Keys = 28,
}

impl Kind {
    pub(crate) const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Queue,
            2 => Self::QueueDeleted,
            3 => Self::Stored,
            4 => Self::Leased,
            5 => Self::Returned,
            6 => Self::Failed,
            7 => Self::Extended,
            8 => Self::Removed,
            9 => Self::Moved,
            10 => Self::Config,
            11 => Self::Shard,
            12 => Self::Requeued,
            13 => Self::Image,
            14 => Self::Pages,
            15 => Self::PageLoaded,
            16 => Self::Remembered,
            17 => Self::Snapshot,
            18 => Self::Throttle,
            19 => Self::Classified,
            20 => Self::ApiKey,
            21 => Self::Acl,
            22 => Self::Vhost,
            23 => Self::Exchange,
            24 => Self::Binding,
            25 => Self::User,
            26 => Self::Permission,
            27 => Self::Atomic,
            28 => Self::Keys,
            _ => return None,
        })
    }
}

/// Why messages moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum MoveReason {
    /// To the dead-letter queue: counters are kept until it is redriven.
    DeadLetter = 1,
    /// Back from it: attempts start again, `redrives` grows.
    Redrive = 2,
    /// To the dead-letter queue, as no script could classify it: it was never delivered.
    Unclassified = 3,
}

/// Bits of a stored message that say which optional fields follow.
pub(crate) mod stored {
    pub(crate) const KEY: u8 = 1;
    pub(crate) const WEIGHT: u8 = 2;
    pub(crate) const DUE: u8 = 4;
    pub(crate) const DEDUP: u8 = 8;
    pub(crate) const GROUP: u8 = 16;
    pub(crate) const PRIORITY: u8 = 32;
    /// The content lies in an earlier record: its position follows instead of its bytes.
    pub(crate) const ELSEWHERE: u8 = 64;
    /// A byte of more flags follows these fields.
    pub(crate) const MORE: u8 = 128;
}

/// Bits of the second byte of flags of a stored message.
pub(crate) mod more {
    /// Attributes follow the payload in the content.
    pub(crate) const ATTRIBUTES: u8 = 1;
    /// It is unclassified: what is known of that follows.
    pub(crate) const UNCLASSIFIED: u8 = 2;
    /// Its own time to leave undelivered follows.
    pub(crate) const EXPIRES: u8 = 4;
    /// A byte follows: the form of its content, if it is not Fila's.
    pub(crate) const FORM: u8 = 8;
    pub(crate) const ALL: u8 = ATTRIBUTES | UNCLASSIFIED | EXPIRES | FORM;
}

/// Begins a record in `out`. `term` and `index` are for a replicated log and 0 here.
pub(crate) fn begin(out: &mut Vec<u8>, kind: Kind, queue: QueueId, now: Millis) {
    out.clear();
    out.push(kind as u8);
    out.push(VERSION);
    out.extend_from_slice(&queue.0.to_be_bytes());
    out.extend_from_slice(&0_u32.to_be_bytes());
    out.extend_from_slice(&0_u64.to_be_bytes());
    out.extend_from_slice(&now.0.to_be_bytes());
}

/// The record that says that snapshot `sequence` counts.
#[must_use]
pub fn snapshot_record(now: Millis, sequence: u64) -> Vec<u8> {
    let mut record = Vec::new();
    begin(&mut record, Kind::Snapshot, QueueId(0), now);
    record.extend_from_slice(&sequence.to_be_bytes());
    record
}

/// The number of the snapshot that a record says counts; `None` for all other records.
#[must_use]
pub fn named_snapshot(record: &[u8]) -> Option<u64> {
    let mut reader = Reader::new(record);
    let header = reader.header().ok()?;
    (header.kind == Kind::Snapshot).then(|| reader.u64().ok())?
}

/// Where `Stored` keeps its first position, first id and count, so that they can be set last.
const STORED_HEAD: usize = 26;

/// Begins a `Stored` record; [`finish_stored`] fills in what is known only at its end.
pub(crate) fn begin_stored(out: &mut Vec<u8>, queue: QueueId, now: Millis) {
    begin(out, Kind::Stored, queue, now);
    out.extend_from_slice(&[0; 28]);
}

/// Fills in the head of a `Stored` record: its messages have consecutive positions and ids.
pub(crate) fn finish_stored(out: &mut [u8], position: u64, id: MessageId, count: u32) {
    let Some(head) = out.get_mut(STORED_HEAD..STORED_HEAD + 28) else {
        return;
    };
    let (first, rest) = head.split_at_mut(8);
    let (second, third) = rest.split_at_mut(16);
    first.copy_from_slice(&position.to_be_bytes());
    second.copy_from_slice(&id.to_bytes());
    third.copy_from_slice(&count.to_be_bytes());
}

/// The optional fields of a stored message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StoredFields<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) weight: u32,
    pub(crate) due: Option<Millis>,
    pub(crate) dedup: Option<u128>,
    pub(crate) group: Option<u128>,
    pub(crate) priority: u8,
    pub(crate) unclassified: Option<UnclassifiedFields<'a>>,
    /// Its own time to leave undelivered.
    pub(crate) expires: Option<Millis>,
    pub(crate) form: Form,
}

/// Where a stored message's content is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StoredContent<'a> {
    /// In this record.
    Here {
        content: &'a [u8],
        /// What follows it: a script's attributes; empty = none.
        attributes: &'a [u8],
    },
    /// In an earlier record.
    Elsewhere { at: Lsn, len: u32 },
}

/// Appends one message to a `Stored` record; returns the offset of its content in the record.
pub(crate) fn add_stored(
    out: &mut Vec<u8>,
    fields: &StoredFields<'_>,
    content: StoredContent<'_>,
) -> usize {
    let flag_at = out.len();
    let mut flags = 0;
    out.push(0);
    if !fields.key.is_empty() {
        flags |= stored::KEY;
        put_short(out, fields.key);
    }
    if fields.weight > 1 {
        flags |= stored::WEIGHT;
        out.extend_from_slice(&fields.weight.to_be_bytes());
    }
    if let Some(due) = fields.due {
        flags |= stored::DUE;
        out.extend_from_slice(&due.0.to_be_bytes());
    }
    if let Some(hash) = fields.dedup {
        flags |= stored::DEDUP;
        out.extend_from_slice(&hash.to_be_bytes());
    }
    if let Some(hash) = fields.group {
        flags |= stored::GROUP;
        out.extend_from_slice(&hash.to_be_bytes());
    }
    if fields.priority != 0 {
        flags |= stored::PRIORITY;
        out.push(fields.priority);
    }
    flags |= add_more(out, fields, content);
    let start = match content {
        StoredContent::Here {
            content,
            attributes,
        } => {
            put_len(out, content.len() + attributes.len());
            let start = out.len();
            out.extend_from_slice(content);
            out.extend_from_slice(attributes);
            start
        }
        StoredContent::Elsewhere { at, len } => {
            flags |= stored::ELSEWHERE;
            out.extend_from_slice(&len.to_be_bytes());
            out.extend_from_slice(&at.0.to_be_bytes());
            out.len()
        }
    };
    if let Some(byte) = out.get_mut(flag_at) {
        *byte = flags;
    }
    start
}

/// Appends the second byte of flags and its fields, if there are any.
fn add_more(out: &mut Vec<u8>, fields: &StoredFields<'_>, content: StoredContent<'_>) -> u8 {
    let has_attributes = match content {
        StoredContent::Here { attributes, .. } => !attributes.is_empty(),
        StoredContent::Elsewhere { .. } => false,
    };
    let flags = [
        (has_attributes, more::ATTRIBUTES),
        (fields.unclassified.is_some(), more::UNCLASSIFIED),
        (fields.expires.is_some(), more::EXPIRES),
        (fields.form != Form::Fila, more::FORM),
    ];
    let set = flags.into_iter().filter(|(is_set, _)| *is_set);
    let more = set.fold(0, |all, (_, flag)| all | flag);
    if more == 0 {
        return 0;
    }
    out.push(more);
    if let Some(fields) = &fields.unclassified {
        fields.encode(out);
    }
    if let Some(at) = fields.expires {
        out.extend_from_slice(&at.0.to_be_bytes());
    }
    if fields.form != Form::Fila {
        out.push(fields.form.byte());
    }
    stored::MORE
}

/// Appends a u32 length. Contents and counts are bounded far below 4 GiB before they come here.
pub(crate) fn put_len(out: &mut Vec<u8>, len: usize) {
    let len = u32::try_from(len).unwrap_or(u32::MAX);
    out.extend_from_slice(&len.to_be_bytes());
}

/// Appends bytes of at most 65,535 with their u16 length.
pub(crate) fn put_short(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(bytes.get(..usize::from(len)).unwrap_or_default());
}

/// Appends bytes with their u32 length.
pub(crate) fn put_long(out: &mut Vec<u8>, bytes: &[u8]) {
    put_len(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// Appends a number in 7-bit groups, least significant first.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    #[expect(clippy::cast_possible_truncation, reason = "below 0x80")]
    out.push(value as u8);
}

/// Most positions in one record: writers split before, readers refuse more.
pub(crate) const POSITIONS_MAX: usize = 1 << 20;

/// Appends positions in the order given, as runs of consecutive ones: the count, then per run the
/// distance of its start from the end of the run before (zigzag) and its length.
pub(crate) fn put_positions(out: &mut Vec<u8>, positions: &[u64]) {
    put_len(out, positions.len());
    let mut end = 0_u64;
    let mut rest = positions;
    while let Some(start) = rest.first().copied() {
        let expected = (start..).zip(rest).take_while(|(a, b)| a == *b).count();
        let distance = start.wrapping_sub(end).cast_signed();
        put_varint(out, ((distance << 1) ^ (distance >> 63)).cast_unsigned());
        put_varint(out, expected as u64);
        end = start.wrapping_add(expected as u64);
        rest = rest.get(expected..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests;
