//! Records read back. Nothing in them is trusted: every read says so when bytes are missing.

use super::{Kind, UnclassifiedFields, VERSION, more, stored};
use crate::{Form, Lsn, MessageId, Millis, QueueId, ReplayError};

/// A cursor over one record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    record: &'a [u8],
    at: usize,
}

/// What every record starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) queue: QueueId,
    pub(crate) time: Millis,
}

/// One message of a `Stored` record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredMessage<'a> {
    pub(crate) key: &'a str,
    pub(crate) weight: u32,
    pub(crate) due: Option<Millis>,
    pub(crate) dedup: Option<u128>,
    pub(crate) group: Option<u128>,
    pub(crate) priority: u8,
    /// Attributes follow the payload in its content.
    pub(crate) attributes: bool,
    pub(crate) unclassified: Option<UnclassifiedFields<'a>>,
    pub(crate) expires: Option<Millis>,
    pub(crate) form: Form,
    /// Offset of the content in this record, or its position when it is elsewhere.
    pub(crate) content: Result<usize, Lsn>,
    pub(crate) len: u32,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(record: &'a [u8]) -> Self {
        Self { record, at: 0 }
    }

    pub(crate) fn problem(&self, what: &str) -> ReplayError {
        let (at, len) = (self.at, self.record.len());
        ReplayError {
            problem: format!("{what} at byte {at} of a record of {len} bytes"),
        }
    }

    /// Whether bytes are left.
    pub(crate) const fn has_more(&self) -> bool {
        self.at < self.record.len()
    }

    /// Bytes read so far.
    pub(super) const fn offset(&self) -> usize {
        self.at
    }

    /// The next `len` bytes.
    pub(crate) fn bytes(&mut self, len: u32) -> Result<&'a [u8], ReplayError> {
        self.take(len as usize)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], ReplayError> {
        let end = self.at.checked_add(len);
        let bytes = end.and_then(|end| self.record.get(self.at..end));
        let bytes = bytes.ok_or_else(|| self.problem(&format!("{len} bytes are missing")))?;
        self.at += len;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ReplayError> {
        let bytes = self.take(N)?;
        bytes
            .first_chunk()
            .copied()
            .ok_or_else(|| self.problem("bytes are missing"))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, ReplayError> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    pub(crate) fn u16(&mut self) -> Result<u16, ReplayError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, ReplayError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, ReplayError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    pub(crate) fn u128(&mut self) -> Result<u128, ReplayError> {
        Ok(u128::from_be_bytes(self.array()?))
    }

    pub(crate) fn millis(&mut self) -> Result<Millis, ReplayError> {
        self.u64().map(Millis)
    }

    fn text(&mut self, bytes: &'a [u8]) -> Result<&'a str, ReplayError> {
        core::str::from_utf8(bytes).map_err(|error| self.problem(&format!("bad text ({error})")))
    }

    /// Text with a u16 length.
    pub(crate) fn short(&mut self) -> Result<&'a str, ReplayError> {
        let len = u16::from_be_bytes(self.array()?);
        let bytes = self.take(usize::from(len))?;
        self.text(bytes)
    }

    /// Text with a u32 length.
    pub(crate) fn long(&mut self) -> Result<&'a str, ReplayError> {
        let len = self.u32()?;
        let bytes = self.take(len as usize)?;
        self.text(bytes)
    }

    /// Bytes with a u32 length.
    pub(crate) fn long_bytes(&mut self) -> Result<&'a [u8], ReplayError> {
        let len = self.u32()?;
        self.take(len as usize)
    }

    pub(crate) fn varint(&mut self) -> Result<u64, ReplayError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.problem("a number has no end"))
    }

    /// Positions, in the order they were written.
    pub(crate) fn positions(&mut self) -> Result<Vec<u64>, ReplayError> {
        let count = self.u32()? as usize;
        if count > super::POSITIONS_MAX {
            return Err(self.problem(&format!("{count} positions in one record")));
        }
        let mut positions = Vec::new();
        let mut end = 0_u64;
        while positions.len() < count {
            let zigzag = self.varint()?;
            let distance = (zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed();
            let start = end.wrapping_add(distance.cast_unsigned());
            let run = self.varint()?;
            let room = (count - positions.len()) as u64;
            if run == 0 || run > room || start.checked_add(run).is_none() {
                return Err(self.problem(&format!("a run of {run} positions from {start}")));
            }
            positions.extend(start..start + run);
            end = start + run;
        }
        Ok(positions)
    }

    pub(crate) fn header(&mut self) -> Result<Header, ReplayError> {
        let kind = self.u8()?;
        let version = self.u8()?;
        if version != VERSION {
            let what = format!("record version {version}, this build reads version {VERSION}");
            return Err(self.problem(&what));
        }
        let kind = Kind::from_byte(kind)
            .ok_or_else(|| self.problem(&format!("record kind {kind} is unknown")))?;
        let queue = QueueId(self.u32()?);
        let (_term, _index) = (self.u32()?, self.u64()?);
        Ok(Header {
            kind,
            queue,
            time: self.millis()?,
        })
    }

    /// The head of a `Stored` record: first position, first id, count.
    pub(crate) fn stored_head(&mut self) -> Result<(u64, MessageId, u32), ReplayError> {
        Ok((self.u64()?, MessageId(self.u128()?), self.u32()?))
    }

    pub(crate) fn stored_message(&mut self) -> Result<StoredMessage<'a>, ReplayError> {
        let flags = self.u8()?;
        let has = |flag: u8| flags & flag != 0;
        let key = if has(stored::KEY) { self.short()? } else { "" };
        let weight = if has(stored::WEIGHT) { self.u32()? } else { 1 };
        let due = if has(stored::DUE) {
            Some(self.millis()?)
        } else {
            None
        };
        let dedup = if has(stored::DEDUP) {
            Some(self.u128()?)
        } else {
            None
        };
        let group = if has(stored::GROUP) {
            Some(self.u128()?)
        } else {
            None
        };
        let priority = if has(stored::PRIORITY) { self.u8()? } else { 0 };
        let (mut attributes, mut unclassified, mut form) = (false, None, Form::Fila);
        let mut expires = None;
        if has(stored::MORE) {
            let more = self.u8()?;
            if more & !more::ALL != 0 {
                return Err(self.problem(&format!("a message with unknown fields {more:#x}")));
            }
            attributes = more & more::ATTRIBUTES != 0;
            if more & more::UNCLASSIFIED != 0 {
                unclassified = Some(self.unclassified()?);
            }
            if more & more::EXPIRES != 0 {
                expires = Some(self.millis()?);
            }
            if more & more::FORM != 0 {
                form = self.form()?;
            }
        }
        let len = self.u32()?;
        let content = if has(stored::ELSEWHERE) {
            Err(Lsn(self.u64()?))
        } else {
            let start = self.at;
            self.take(len as usize)?;
            Ok(start)
        };
        Ok(StoredMessage {
            key,
            weight,
            due,
            dedup,
            group,
            priority,
            attributes,
            unclassified,
            expires,
            form,
            content,
            len,
        })
    }

    /// The form of a content.
    pub(crate) fn form(&mut self) -> Result<Form, ReplayError> {
        let byte = self.u8()?;
        Form::from_byte(byte)
            .ok_or_else(|| self.problem(&format!("content form {byte} is unknown")))
    }
}
