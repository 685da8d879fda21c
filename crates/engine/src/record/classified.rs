//! What scripts said of messages that are stored: tries that failed, and classifications.

use super::{Reader, put_len, put_short, put_varint};
use crate::ReplayError;

/// Bits of an entry of a `Classified` record: what it is and which fields follow.
mod bit {
    /// A try that failed; else a classification.
    pub(super) const FAILED: u8 = 1;
    /// The try did not end in time.
    pub(super) const TIMED_OUT: u8 = 2;
    pub(super) const KEY: u8 = 4;
    pub(super) const WEIGHT: u8 = 8;
    pub(super) const GROUP: u8 = 16;
    pub(super) const DEDUP: u8 = 32;
    /// Attributes follow the payload in the message's content.
    pub(super) const ATTRIBUTES: u8 = 64;
    /// The content follows: it is another one than before.
    pub(super) const CONTENT: u8 = 128;
}

/// What is kept of an unclassified message besides what is kept of every message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnclassifiedFields<'a> {
    /// Tries that failed.
    pub(crate) tries: u32,
    /// The last so many of them did not end in time.
    pub(crate) timeouts: u32,
    /// The version of the queue's script that failed last.
    pub(crate) version: u64,
    /// The deduplication key's hash by the producer's values, while the key is not known.
    pub(crate) dedup: Option<u128>,
    /// The producer's idempotency key, if the deduplication key needs it later.
    pub(crate) idempotency_key: &'a [u8],
}

impl UnclassifiedFields<'_> {
    /// Nothing is known.
    pub(crate) const NEW: Self = Self {
        tries: 0,
        timeouts: 0,
        version: 0,
        dedup: None,
        idempotency_key: &[],
    };

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, u64::from(self.tries));
        put_varint(out, u64::from(self.timeouts));
        out.extend_from_slice(&self.version.to_be_bytes());
        out.push(u8::from(self.dedup.is_some()));
        if let Some(hash) = self.dedup {
            out.extend_from_slice(&hash.to_be_bytes());
        }
        put_short(out, self.idempotency_key);
    }
}

/// One entry of a `Classified` record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Classified<'a> {
    /// The script failed on the message: it is unclassified.
    Failed(FailedTry),
    /// The message is classified.
    Done(ClassifiedFields<'a>),
}

/// A script failed on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FailedTry {
    /// The queue's version of the script.
    pub(crate) version: u64,
    pub(crate) timed_out: bool,
}

/// A classification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClassifiedFields<'a> {
    /// Empty = the unkeyed group.
    pub(crate) key: &'a str,
    /// At least 1.
    pub(crate) weight: u32,
    pub(crate) group: Option<u128>,
    pub(crate) dedup: Option<u128>,
    /// The message's content has attributes behind its payload.
    pub(crate) attributes: bool,
    /// The new content and its offset in the record.
    pub(crate) content: Option<(usize, &'a [u8])>,
}

/// Appends an entry to a `Classified` record. Returns the offset of the content, if there is one;
/// the one in `entry` does not matter.
pub(crate) fn add_classified(
    out: &mut Vec<u8>,
    position: u64,
    entry: &Classified<'_>,
) -> Option<usize> {
    let flags_at = out.len();
    out.push(0);
    out.extend_from_slice(&position.to_be_bytes());
    let mut offset = None;
    let flags = match entry {
        Classified::Failed(failed) => {
            out.extend_from_slice(&failed.version.to_be_bytes());
            bit::FAILED | if failed.timed_out { bit::TIMED_OUT } else { 0 }
        }
        Classified::Done(done) => {
            let (flags, at) = done.encode(out);
            offset = at;
            flags
        }
    };
    if let Some(byte) = out.get_mut(flags_at) {
        *byte = flags;
    }
    offset
}

impl ClassifiedFields<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> (u8, Option<usize>) {
        let mut flags = 0;
        if !self.key.is_empty() {
            flags |= bit::KEY;
            put_short(out, self.key.as_bytes());
        }
        if self.weight > 1 {
            flags |= bit::WEIGHT;
            out.extend_from_slice(&self.weight.to_be_bytes());
        }
        for (hash, bit) in [(self.group, bit::GROUP), (self.dedup, bit::DEDUP)] {
            if let Some(hash) = hash {
                flags |= bit;
                out.extend_from_slice(&hash.to_be_bytes());
            }
        }
        if self.attributes {
            flags |= bit::ATTRIBUTES;
        }
        let mut offset = None;
        if let Some((_, bytes)) = self.content {
            flags |= bit::CONTENT;
            put_len(out, bytes.len());
            offset = Some(out.len());
            out.extend_from_slice(bytes);
        }
        (flags, offset)
    }
}

impl<'a> Reader<'a> {
    pub(super) fn unclassified(&mut self) -> Result<UnclassifiedFields<'a>, ReplayError> {
        Ok(UnclassifiedFields {
            tries: self.small("tries")?,
            timeouts: self.small("timeouts")?,
            version: self.u64()?,
            dedup: match self.u8()? {
                0 => None,
                1 => Some(self.u128()?),
                n => return Err(self.problem(&format!("presence byte {n}"))),
            },
            idempotency_key: {
                let len = self.u16()?;
                self.bytes(u32::from(len))?
            },
        })
    }

    /// One entry of a `Classified` record, with its position.
    pub(crate) fn classified(&mut self) -> Result<(u64, Classified<'a>), ReplayError> {
        let flags = self.u8()?;
        let has = |bit: u8| flags & bit != 0;
        let position = self.u64()?;
        if has(bit::FAILED) {
            let failed = FailedTry {
                version: self.u64()?,
                timed_out: has(bit::TIMED_OUT),
            };
            return Ok((position, Classified::Failed(failed)));
        }
        let mut done = ClassifiedFields {
            key: if has(bit::KEY) { self.short()? } else { "" },
            weight: if has(bit::WEIGHT) { self.u32()? } else { 1 },
            attributes: has(bit::ATTRIBUTES),
            ..ClassifiedFields::default()
        };
        if has(bit::GROUP) {
            done.group = Some(self.u128()?);
        }
        if has(bit::DEDUP) {
            done.dedup = Some(self.u128()?);
        }
        if has(bit::CONTENT) {
            let len = self.u32()?;
            let offset = self.offset();
            done.content = Some((offset, self.bytes(len)?));
        }
        Ok((position, Classified::Done(done)))
    }
}
