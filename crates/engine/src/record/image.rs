//! Records that hold state instead of changes: messages, pages and remembered keys as they were at
//! one position of the log.

use super::{Kind, Reader, UnclassifiedFields, begin, put_len, put_short, put_varint};
use crate::queue::page_ref::PageRef;
use crate::{Form, Lsn, MessageId, Millis, PageSlot, QueueId, ReplayError, SegmentUse};

/// Bits of an image's message that say which optional fields follow.
mod has {
    pub(super) const KEY: u16 = 1;
    pub(super) const WEIGHTS: u16 = 2;
    pub(super) const DUE: u16 = 4;
    pub(super) const LEASE: u16 = 8;
    pub(super) const GROUP: u16 = 16;
    pub(super) const PRIORITY: u16 = 32;
    pub(super) const COUNTS: u16 = 64;
    /// Its deduplication key is remembered; nothing follows.
    pub(super) const DEDUP: u16 = 128;
    /// The content follows instead of its position in the log.
    pub(super) const CONTENT: u16 = 256;
    /// Attributes follow the payload in the content; nothing follows here.
    pub(super) const ATTRIBUTES: u16 = 512;
    pub(super) const UNCLASSIFIED: u16 = 1024;
    pub(super) const EXPIRES: u16 = 2048;
    /// A byte follows: the form of its content, if it is not Fila's.
    pub(super) const FORM: u16 = 4096;
    pub(super) const ALL: u16 = 2047 | EXPIRES | FORM;
}

/// Where an image's content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImageContent<'a> {
    /// In the log or in a copy.
    At { at: Lsn, len: u32 },
    /// In this record, from `offset` on.
    Here { offset: usize, bytes: &'a [u8] },
}

/// A message with its whole replicated state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Image<'a> {
    pub(crate) position: u64,
    pub(crate) id: MessageId,
    pub(crate) content: ImageContent<'a>,
    pub(crate) key: &'a str,
    pub(crate) priority: u8,
    pub(crate) weight: u32,
    /// What the message's fairness key weighs, whoever said so last.
    pub(crate) key_weight: u32,
    pub(crate) deliveries: u32,
    pub(crate) failures: u32,
    pub(crate) redrives: u16,
    pub(crate) due: Option<Millis>,
    /// When its recorded lease ends; `Millis(u64::MAX)` = with its connection.
    pub(crate) lease: Option<Millis>,
    pub(crate) group: Option<u128>,
    pub(crate) dedup: bool,
    /// Attributes follow the payload in its content.
    pub(crate) attributes: bool,
    pub(crate) unclassified: Option<UnclassifiedFields<'a>>,
    /// Its own time to leave undelivered.
    pub(crate) expires: Option<Millis>,
    pub(crate) form: Form,
}

/// Where a record of state keeps its count.
const COUNT: usize = 26;

/// Begins a record of state that counts its parts; [`finish_counted`] sets the count.
pub(crate) fn begin_counted(out: &mut Vec<u8>, kind: Kind, queue: QueueId, now: Millis) {
    begin(out, kind, queue, now);
    put_len(out, 0);
}

/// Sets the count of an `Image` or `Remembered` record.
pub(crate) fn finish_counted(out: &mut [u8], count: u32) {
    if let Some(place) = out.get_mut(COUNT..COUNT + 4) {
        place.copy_from_slice(&count.to_be_bytes());
    }
}

impl Image<'_> {
    /// Appends one message to an `Image` record.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.flags().to_be_bytes());
        out.extend_from_slice(&self.position.to_be_bytes());
        out.extend_from_slice(&self.id.to_bytes());
        if !self.key.is_empty() {
            put_short(out, self.key.as_bytes());
        }
        if self.has_weights() {
            out.extend_from_slice(&self.weight.to_be_bytes());
            out.extend_from_slice(&self.key_weight.to_be_bytes());
        }
        for time in [self.due, self.lease].into_iter().flatten() {
            out.extend_from_slice(&time.0.to_be_bytes());
        }
        if let Some(hash) = self.group {
            out.extend_from_slice(&hash.to_be_bytes());
        }
        if self.priority != 0 {
            out.push(self.priority);
        }
        if self.has_counts() {
            put_varint(out, u64::from(self.deliveries));
            put_varint(out, u64::from(self.failures));
            put_varint(out, u64::from(self.redrives));
        }
        if let Some(fields) = &self.unclassified {
            fields.encode(out);
        }
        if let Some(at) = self.expires {
            out.extend_from_slice(&at.0.to_be_bytes());
        }
        if self.form != Form::Fila {
            out.push(self.form.byte());
        }
        match self.content {
            ImageContent::At { at, len } => {
                out.extend_from_slice(&len.to_be_bytes());
                out.extend_from_slice(&at.0.to_be_bytes());
            }
            ImageContent::Here { offset: _, bytes } => {
                put_len(out, bytes.len());
                out.extend_from_slice(bytes);
            }
        }
    }

    fn flags(&self) -> u16 {
        let here = matches!(self.content, ImageContent::Here { .. });
        let fields = [
            (!self.key.is_empty(), has::KEY),
            (self.has_weights(), has::WEIGHTS),
            (self.due.is_some(), has::DUE),
            (self.lease.is_some(), has::LEASE),
            (self.group.is_some(), has::GROUP),
            (self.priority != 0, has::PRIORITY),
            (self.has_counts(), has::COUNTS),
            (self.dedup, has::DEDUP),
            (here, has::CONTENT),
            (self.attributes, has::ATTRIBUTES),
            (self.unclassified.is_some(), has::UNCLASSIFIED),
            (self.expires.is_some(), has::EXPIRES),
            (self.form != Form::Fila, has::FORM),
        ];
        let there = fields.into_iter().filter(|(is_there, _)| *is_there);
        there.fold(0, |flags, (_, bit)| flags | bit)
    }

    const fn has_weights(&self) -> bool {
        self.weight != 1 || self.key_weight != 1
    }

    const fn has_counts(&self) -> bool {
        self.deliveries != 0 || self.failures != 0 || self.redrives != 0
    }
}

/// The lane that pages belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PagedLane<'a> {
    pub(crate) key: &'a str,
    pub(crate) priority: u8,
    pub(crate) weight: u32,
}

/// Writes a `Pages` record.
pub(crate) fn encode_pages(
    out: &mut Vec<u8>,
    (queue, now): (QueueId, Millis),
    lane: PagedLane<'_>,
    pages: &[&PageRef],
) {
    begin(out, Kind::Pages, queue, now);
    put_short(out, lane.key.as_bytes());
    out.push(lane.priority);
    out.extend_from_slice(&lane.weight.to_be_bytes());
    put_len(out, pages.len());
    for page in pages {
        out.extend_from_slice(&page.id.to_be_bytes());
        out.extend_from_slice(&page.slot.0.to_be_bytes());
        out.extend_from_slice(&page.count.to_be_bytes());
        for number in [page.first, page.last, page.bytes] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        put_len(out, page.segments.len());
        for (segment, needed) in &*page.segments {
            for number in [*segment, needed.messages, needed.bytes] {
                out.extend_from_slice(&number.to_be_bytes());
            }
        }
    }
}

/// Writes a `PageLoaded` record: a page's messages are in memory from here on.
pub(crate) fn encode_page_loaded(out: &mut Vec<u8>, queue: QueueId, now: Millis, page: u64) {
    begin(out, Kind::PageLoaded, queue, now);
    out.extend_from_slice(&page.to_be_bytes());
}

/// A deduplication key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyImage {
    pub(crate) key: u128,
    /// The message it is remembered from.
    pub(crate) id: MessageId,
    /// When that message left; `None` = it is still there.
    pub(crate) left: Option<Millis>,
}

/// Stands for "still there".
const NOT_LEFT: u64 = u64::MAX;

impl KeyImage {
    /// Appends one key to a `Remembered` record.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.key.to_be_bytes());
        out.extend_from_slice(&self.id.to_bytes());
        let left = self.left.map_or(NOT_LEFT, |left| left.0);
        out.extend_from_slice(&left.to_be_bytes());
    }
}

impl<'a> Reader<'a> {
    /// One message of an `Image` record.
    pub(crate) fn image(&mut self) -> Result<Image<'a>, ReplayError> {
        let flags = self.u16()?;
        if flags & !has::ALL != 0 {
            return Err(self.problem(&format!("an image with unknown fields {flags:#x}")));
        }
        let has = |flag: u16| flags & flag != 0;
        let mut image = Image {
            position: self.u64()?,
            id: MessageId(self.u128()?),
            content: ImageContent::At {
                at: Lsn::ZERO,
                len: 0,
            },
            key: if has(has::KEY) { self.short()? } else { "" },
            priority: 0,
            weight: 1,
            key_weight: 1,
            deliveries: 0,
            failures: 0,
            redrives: 0,
            due: None,
            lease: None,
            group: None,
            dedup: has(has::DEDUP),
            attributes: has(has::ATTRIBUTES),
            unclassified: None,
            expires: None,
            form: Form::Fila,
        };
        if has(has::WEIGHTS) {
            (image.weight, image.key_weight) = (self.u32()?, self.u32()?);
        }
        if has(has::DUE) {
            image.due = Some(self.millis()?);
        }
        if has(has::LEASE) {
            image.lease = Some(self.millis()?);
        }
        if has(has::GROUP) {
            image.group = Some(self.u128()?);
        }
        if has(has::PRIORITY) {
            image.priority = self.u8()?;
        }
        if has(has::COUNTS) {
            image.deliveries = self.small("deliveries")?;
            image.failures = self.small("failures")?;
            image.redrives = self.small("redrives")?;
        }
        if has(has::UNCLASSIFIED) {
            image.unclassified = Some(self.unclassified()?);
        }
        if has(has::EXPIRES) {
            image.expires = Some(self.millis()?);
        }
        if has(has::FORM) {
            image.form = self.form()?;
        }
        let len = self.u32()?;
        image.content = if has(has::CONTENT) {
            let offset = self.offset();
            let bytes = self.bytes(len)?;
            ImageContent::Here { offset, bytes }
        } else {
            let at = Lsn(self.u64()?);
            ImageContent::At { at, len }
        };
        Ok(image)
    }

    pub(super) fn small<T: TryFrom<u64>>(&mut self, what: &str) -> Result<T, ReplayError> {
        let number = self.varint()?;
        T::try_from(number).map_err(|_large| self.problem(&format!("{number} {what}")))
    }

    /// The lane of a `Pages` record and how many pages follow.
    pub(crate) fn paged_lane(&mut self) -> Result<(PagedLane<'a>, u32), ReplayError> {
        let lane = PagedLane {
            key: self.short()?,
            priority: self.u8()?,
            weight: self.u32()?,
        };
        Ok((lane, self.u32()?))
    }

    /// One page of a `Pages` record. What its messages need adds up to its messages.
    pub(crate) fn page(&mut self) -> Result<PageRef, ReplayError> {
        let (id, slot, count) = (self.u64()?, PageSlot(self.u32()?), self.u32()?);
        let (first, last, bytes) = (self.u64()?, self.u64()?, self.u64()?);
        let mut segments = Vec::new();
        let (mut messages, mut content) = (0_u64, 0_u64);
        for _ in 0..self.u32()? {
            let segment = self.u64()?;
            let needed = SegmentUse {
                messages: self.u64()?,
                bytes: self.u64()?,
            };
            messages = messages.saturating_add(needed.messages);
            content = content.saturating_add(needed.bytes);
            segments.push((segment, needed));
        }
        let whole = messages == u64::from(count) && content == bytes;
        if !whole || count == 0 || first > last {
            return Err(self.problem(&format!("page {id} contradicts itself")));
        }
        Ok(PageRef {
            id,
            slot,
            count,
            first,
            last,
            bytes,
            segments: segments.into(),
            is_odd: false,
        })
    }

    /// One key of a `Remembered` record.
    pub(crate) fn key_image(&mut self) -> Result<KeyImage, ReplayError> {
        let (key, id) = (self.u128()?, MessageId(self.u128()?));
        let left = self.u64()?;
        Ok(KeyImage {
            key,
            id,
            left: (left != NOT_LEFT).then_some(Millis(left)),
        })
    }
}
