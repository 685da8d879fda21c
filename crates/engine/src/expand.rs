//! Records of a snapshot as small records of messages, for a backup.
//!
//! Owns reading the pages that a snapshot names and cutting what comes of it, so that contents can
//! be
//! put into one record after the other without holding much. It refuses to know where contents are:
//! [`crate::inline_contents`] puts them in.

use crate::page::{PageHead, PagedMessage, read_page};
use crate::queue::entries::Flags;
use crate::record::{
    Header, Image, ImageContent, Kind, PagedLane, Reader, UnclassifiedFields, begin_counted,
    finish_counted,
};
use crate::replay::ReadPage;
use crate::throttle::detach_state;
use crate::{QueueId, ReplayError};

/// Contents of the messages of one record, unless it has one message only.
const CONTENT_BYTES: usize = 1 << 20;
/// What each message takes beside its content, about.
const MESSAGE_BYTES: usize = 96;

/// Cuts a record of messages into records with about 1 MiB of contents each, and makes such records
/// of the messages of the pages that a record names. Others come out as they are. `out` is added
/// to.
///
/// # Errors
/// `ReplayError` when the record makes no sense, or a page cannot be read or is another one.
pub fn expand_state(
    record: &[u8],
    read: &mut ReadPage<'_>,
    out: &mut Vec<Vec<u8>>,
) -> Result<(), ReplayError> {
    let mut reader = Reader::new(record);
    let header = reader.header()?;
    let mut cut = Cut {
        header,
        record: Vec::new(),
        count: 0,
        bytes: 0,
        out,
    };
    if header.kind == Kind::Image {
        for _ in 0..reader.u32()? {
            cut.push(&reader.image()?);
        }
    } else if header.kind == Kind::Pages {
        let (lane, count) = reader.paged_lane()?;
        let mut bytes = Vec::new();
        for _ in 0..count {
            let page = reader.page()?;
            let messages = read(page.slot, &mut bytes)
                .then(|| read_page(&bytes, PageHead::of(&page, header.queue)))
                .flatten();
            let Some(messages) = messages else {
                let problem = format!("page {} in slot {} cannot be read", page.id, page.slot.0);
                return Err(reader.problem(&problem));
            };
            for message in messages {
                cut.push(&Image::of_paged(lane, &message));
            }
        }
    } else {
        let mut record = record.to_vec();
        if header.kind == Kind::Throttle {
            detach_state(&mut record);
        }
        cut.out.push(record);
    }
    cut.end();
    Ok(())
}

/// The record under construction.
struct Cut<'a> {
    header: Header,
    record: Vec<u8>,
    count: u32,
    bytes: usize,
    out: &'a mut Vec<Vec<u8>>,
}

impl Cut<'_> {
    fn push(&mut self, image: &Image<'_>) {
        let len = match image.content {
            ImageContent::At { len, .. } => len as usize,
            ImageContent::Here { bytes, .. } => bytes.len(),
        };
        let bytes = MESSAGE_BYTES + image.key.len() + len;
        if self.bytes + bytes > CONTENT_BYTES {
            self.end();
        }
        if self.count == 0 {
            let (queue, time) = (self.header.queue, self.header.time);
            begin_counted(&mut self.record, Kind::Image, queue, time);
        }
        image.encode(&mut self.record);
        self.count += 1;
        self.bytes += bytes;
    }

    fn end(&mut self) {
        if self.count > 0 {
            finish_counted(&mut self.record, self.count);
            self.out.push(core::mem::take(&mut self.record));
        }
        (self.count, self.bytes) = (0, 0);
    }
}

impl PageHead {
    /// What a page of `queue` must say of itself.
    pub(crate) const fn of(page: &crate::queue::page_ref::PageRef, queue: QueueId) -> Self {
        Self {
            id: page.id,
            queue,
            count: page.count,
        }
    }
}

impl<'a> Image<'a> {
    /// A message of a page of this lane.
    pub(crate) const fn of_paged(lane: PagedLane<'a>, message: &PagedMessage) -> Self {
        Self {
            position: message.position,
            id: message.id,
            content: ImageContent::At {
                at: message.at,
                len: message.len,
            },
            key: lane.key,
            priority: lane.priority,
            weight: message.weight,
            key_weight: lane.weight,
            deliveries: message.deliveries,
            failures: message.failures,
            redrives: message.redrives,
            due: None,
            lease: None,
            group: None,
            dedup: Flags::from_bits(message.flags).has(Flags::DEDUP),
            attributes: Flags::from_bits(message.flags).has(Flags::ATTRIBUTES),
            unclassified: if Flags::from_bits(message.flags).has(Flags::UNCLASSIFIED) {
                Some(UnclassifiedFields::NEW)
            } else {
                None
            },
            // A message with its own time is never in a page.
            expires: None,
            form: Flags::from_bits(message.flags).form(),
        }
    }
}
