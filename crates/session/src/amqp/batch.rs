//! Messages of one read on their way to becoming one request.

use tanda_engine::{PublishItem, Span};

/// Messages that are sent together; all their bytes stand in one buffer.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Envelopes, back to back; the last may be unfinished. See [`crate::envelope`].
    pub(super) data: Vec<u8>,
    /// The finished ones.
    pub(super) items: Vec<PublishItem>,
    /// More routing keys of items.
    pub(super) extra_keys: Vec<Span>,
    /// Runs of items of one kind.
    pub(super) segments: Vec<Segment>,
    /// Somebody wants to hear that the messages are safe.
    pub(super) confirm: bool,
}

/// A run of messages of one channel whose envelopes follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// The channel.
    pub(super) channel: u16,
    /// Which opening of that channel number it was.
    pub(super) epoch: u32,
    /// The confirm tag of the first message, when they are confirmed.
    pub(super) first_tag: Option<u64>,
    /// They come back when they reach no queue.
    pub(super) mandatory: bool,
    /// Where the first envelope begins.
    pub(super) start: usize,
    /// Messages.
    pub(super) count: usize,
    /// Something else stands behind the last envelope: no more can be added.
    pub(super) is_closed: bool,
}

impl Batch {
    /// Whether there is no message, finished or not.
    pub(super) fn is_empty(&self) -> bool {
        self.data.is_empty() && self.items.is_empty()
    }

    /// The segment that a message of this kind can join.
    pub(super) fn joins(&self, channel: (u16, u32), mandatory: bool) -> Option<&Segment> {
        self.segments.last().filter(|last| {
            (last.channel, last.epoch) == channel && last.mandatory == mandatory && !last.is_closed
        })
    }

    /// Counts a finished message whose envelope begins at `start`.
    pub(super) fn push(&mut self, item: PublishItem, segment: Segment) {
        self.confirm |= segment.first_tag.is_some();
        let kind = (segment.channel, segment.epoch);
        let joins = self.joins(kind, segment.mandatory).is_some();
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

/// A range moved by `base` bytes.
#[inline]
pub(super) fn shifted(span: Span, base: u32) -> Span {
    Span {
        start: span.start.saturating_add(base),
        len: span.len,
    }
}

/// A length or position in a buffer of less than 4 GiB.
#[inline]
pub(super) fn position(len: usize) -> u32 {
    debug_assert!(u32::try_from(len).is_ok(), "{len} bytes in one request");
    u32::try_from(len).unwrap_or(u32::MAX)
}
