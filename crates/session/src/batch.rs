//! Messages of one read on their way to becoming one request.

use bytes::Bytes;
use tanda_engine::{PublishBatch, PublishItem, Span, VhostId};

use crate::envelope::Envelope;

/// Messages that are sent together; all their bytes stand in one buffer.
#[derive(Debug)]
pub(crate) struct Batch<K> {
    /// Envelopes, back to back; the last may be unfinished. See [`crate::envelope`].
    pub(crate) data: Vec<u8>,
    /// The finished ones.
    pub(crate) items: Vec<PublishItem>,
    /// More routing keys of items.
    pub(crate) extra_keys: Vec<Span>,
    /// Runs of items of one kind.
    pub(crate) segments: Vec<Segment<K>>,
    /// Somebody wants to hear that the messages are safe.
    pub(crate) confirm: bool,
}

/// A run of messages of one kind whose envelopes follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment<K> {
    /// What they have in common for their protocol.
    pub(crate) kind: K,
    /// The confirm tag of the first message, when they are confirmed.
    pub(crate) first_tag: Option<u64>,
    /// They come back when they reach no queue.
    pub(crate) mandatory: bool,
    /// Where the first envelope begins.
    pub(crate) start: usize,
    /// Messages.
    pub(crate) count: usize,
    /// Something else stands behind the last envelope: no more can be added.
    pub(crate) is_closed: bool,
}

impl<K> Default for Batch<K> {
    fn default() -> Self {
        Self {
            data: Vec::new(),
            items: Vec::new(),
            extra_keys: Vec::new(),
            segments: Vec::new(),
            confirm: false,
        }
    }
}

impl<K: Copy + PartialEq> Batch<K> {
    /// Whether there is no message, finished or not.
    pub(crate) fn is_empty(&self) -> bool {
        self.data.is_empty() && self.items.is_empty()
    }

    /// The segment that a message of this kind can join.
    pub(crate) fn joins(&self, kind: K, mandatory: bool) -> Option<&Segment<K>> {
        self.segments
            .last()
            .filter(|last| last.kind == kind && last.mandatory == mandatory && !last.is_closed)
    }

    /// Counts a finished message whose envelope begins at `start`.
    pub(crate) fn push(&mut self, item: PublishItem, segment: Segment<K>) {
        self.confirm |= segment.first_tag.is_some();
        let joins = self.joins(segment.kind, segment.mandatory).is_some();
        match self.segments.last_mut() {
            Some(last) if joins => {
                last.count += 1;
                last.is_closed = segment.is_closed;
            }
            _ => self.segments.push(segment),
        }
        self.items.push(item);
    }
}

impl<K> Batch<K> {
    /// What is sent, and what is remembered of it.
    pub(crate) fn into_request(self, vhost: VhostId) -> (Published<K>, PublishBatch) {
        let data = Bytes::from(self.data);
        let published = Published {
            data: data.clone(),
            segments: self.segments,
        };
        let request = PublishBatch {
            vhost,
            data,
            items: self.items,
            routes: Vec::new(),
            extra_keys: self.extra_keys,
            confirm: self.confirm,
        };
        (published, request)
    }

    /// Puts bytes that a range of an item shall mean behind the last envelope.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Span {
        let start = position(self.data.len());
        self.data.extend_from_slice(bytes);
        Span {
            start,
            len: position(bytes.len()),
        }
    }
}

/// Messages on their way.
#[derive(Debug)]
pub(crate) struct Published<K> {
    /// Their envelopes.
    pub(crate) data: Bytes,
    /// Where they stand and whose they are.
    pub(crate) segments: Vec<Segment<K>>,
}

impl<K> Default for Published<K> {
    fn default() -> Self {
        Self {
            data: Bytes::new(),
            segments: Vec::new(),
        }
    }
}

impl<K> Published<K> {
    /// The envelopes of a run.
    pub(crate) fn envelopes(&self, segment: &Segment<K>) -> impl Iterator<Item = Envelope<'_>> {
        let mut rest = self.data.get(segment.start..).unwrap_or_default();
        core::iter::from_fn(move || {
            let envelope = Envelope::read(rest)?;
            rest = rest.get(envelope.len..).unwrap_or_default();
            Some(envelope)
        })
        .take(segment.count)
    }
}

/// A range moved by `base` bytes.
#[inline]
pub(crate) fn shifted(span: Span, base: u32) -> Span {
    Span {
        start: span.start.saturating_add(base),
        len: span.len,
    }
}

/// A length or position in a buffer of less than 4 GiB.
#[inline]
pub(crate) fn position(len: usize) -> u32 {
    debug_assert!(u32::try_from(len).is_ok(), "{len} bytes in one request");
    u32::try_from(len).unwrap_or(u32::MAX)
}
