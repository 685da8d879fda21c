//! What the memory keeps of a page of a lane.
//!
//! Owns where the page is and what is known of it without reading it. It refuses to know the lane.

use crate::page::PagedMessage;
use crate::{Lsn, PageSlot, SegmentUse};

/// One page: where it is and what is to be known of it without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageRef {
    /// Its number, never used for another page.
    pub(crate) id: u64,
    pub(crate) slot: PageSlot,
    pub(crate) count: u32,
    /// Positions of its first and last message.
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// Content bytes of its messages.
    pub(crate) bytes: u64,
    /// What its messages need of each segment, in the order of their first messages.
    pub(crate) segments: Box<[(u64, SegmentUse)]>,
    /// The generation in which it was last captured or made, see [`super::capture`].
    pub(crate) is_odd: bool,
}

impl PageRef {
    /// What a page of `messages` is to be known by; `None` when their positions do not grow or
    /// there are none.
    pub(crate) fn of(
        messages: &[PagedMessage],
        (id, slot): (u64, PageSlot),
        segment_of: impl Fn(Lsn) -> u64,
    ) -> Option<Self> {
        let (first, last) = (messages.first()?.position, messages.last()?.position);
        let mut segments: Vec<(u64, SegmentUse)> = Vec::new();
        let (mut bytes, mut before) = (0, None);
        for message in messages {
            if before.is_some_and(|before| before >= message.position) {
                return None;
            }
            before = Some(message.position);
            bytes += u64::from(message.len);
            let segment = segment_of(message.at);
            let known = segments.iter_mut().rev().find(|it| it.0 == segment);
            let needed = match known {
                Some((_, needed)) => needed,
                None => &mut segments.push_mut((segment, SegmentUse::default())).1,
            };
            needed.messages += 1;
            needed.bytes += u64::from(message.len);
        }
        Some(Self {
            id,
            slot,
            count: u32::try_from(messages.len()).ok()?,
            first,
            last,
            bytes,
            segments: segments.into(),
            is_odd: false,
        })
    }

    /// Memory that it takes.
    pub(crate) const fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.segments.len() * size_of::<(u64, SegmentUse)>()
    }
}
