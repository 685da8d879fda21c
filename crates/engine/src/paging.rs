//! Long backlogs leave memory page by page and come back when their turn comes.
//!
//! Paging out is not recorded: until a snapshot has the page, a restart finds its messages in the
//! log. Paging in is recorded before anything can happen to the messages.

use crate::engine::{Cx, Engine};
use crate::page::{PageHead, PagedMessage, begin_page, put_paged, read_page};
use crate::queue::entries::Slot;
use crate::queue::lines::LineCursor;
use crate::queue::page_ref::PageRef;
use crate::queue::picks::{LaneWalk, Taken};
use crate::queues::QueueIndex;
use crate::record::encode_page_loaded;
use crate::{PageSlot, QueueId};

/// Pages that one step reads at most: each is one read of the disk.
pub(crate) const READS_MAX: u32 = 16;

/// Pages that one step makes at most.
pub(crate) const WRITES_MAX: u32 = 32;

/// Lanes that one step looks at for pages of a deleted queue.
const LANES_MAX: u32 = 16 * 1024;

/// A page that could not be read is tried again after this time.
const RETRY_MS: u64 = 1_000;

/// What paging works with, and how it went so far.
#[derive(Debug, Default)]
pub(crate) struct Paging {
    /// The newest page's id.
    pub(crate) last_id: u64,
    pub(crate) errors: PageErrors,
    /// Queues with lanes long enough for a page.
    pub(crate) full: Vec<QueueIndex>,
    bytes: Vec<u8>,
    messages: Vec<PagedMessage>,
}

/// Pages that did not come back at the first attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageErrors {
    /// Reads that failed.
    pub unreadable: u64,
    /// Reads that brought another page than the one asked for, or a damaged one.
    pub wrong: u64,
}

/// What is taken out of a queue's lanes next.
pub(crate) enum Next<'a> {
    /// One that waits for a throttle by itself (it was the first of its lane before), or else the
    /// oldest ready message.
    Oldest,
    /// Any ready message, going over all of them once.
    Any(&'a mut LaneWalk),
}

/// How taking a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Took<T = Slot> {
    /// This message.
    Message(T),
    /// There is none.
    Nothing,
    /// There may be one in a page that this step may not read any more.
    OutOfReads,
}

impl Engine {
    /// Pages that could not be read, or were not what they should be, since the engine was made.
    #[must_use]
    pub const fn page_errors(&self) -> PageErrors {
        self.paging.errors
    }

    /// Slots of all pages, in no order: others are not needed by the engine.
    pub fn page_slots(&self) -> impl Iterator<Item = PageSlot> {
        let queues = self.queues.iter().map(|(_, queue)| queue);
        let pages = queues
            .chain(self.graveyard.queues())
            .flat_map(|queue| queue.lanes.with_pages());
        pages.flat_map(|(_, pages)| pages.iter().map(|page| page.slot))
    }

    /// Takes a message with a position below `limit` out of its lane, reading its page if need be.
    pub(crate) fn take_ready(
        &mut self,
        cx: &mut Cx<'_>,
        (index, limit): (QueueIndex, u64),
        next: &mut Next<'_>,
        reads: &mut u32,
    ) -> Took {
        loop {
            let queue = self.queues.at_mut(index);
            let (mut fresh, mut all) = (LineCursor::default(), u32::MAX);
            let (lines, looks) = match next {
                Next::Oldest => (&mut fresh, &mut all),
                Next::Any(walk) => (&mut walk.lines, &mut walk.looks),
            };
            if queue.throttled.in_lines > 0
                && let Some(slot) = queue.take_from_lines(lines, limit, looks)
            {
                return Took::Message(slot);
            }
            let taken = match next {
                Next::Oldest => queue.lanes.take_oldest(&queue.entries, limit),
                Next::Any(walk) => queue.lanes.take_before(&queue.entries, limit, walk),
            };
            match taken {
                Taken::Message(slot) => {
                    self.unwake(cx.now, index, slot);
                    return Took::Message(slot);
                }
                Taken::Nothing => return Took::Nothing,
                Taken::InPage(_) if *reads == 0 => return Took::OutOfReads,
                Taken::InPage(lane) => {
                    *reads -= 1;
                    self.load_page(cx, index, lane);
                }
            }
        }
    }

    /// Brings the first page of a lane, whose front is empty, into memory; a lane whose page
    /// cannot be read now loses its turns for a while.
    pub(crate) fn load_page(&mut self, cx: &mut Cx<'_>, index: QueueIndex, lane: u32) {
        let queue = self.queues.at(index);
        let Some(page) = queue.lanes.first_page(lane).cloned() else {
            return;
        };
        let id = queue.identity.id;
        let mut messages = core::mem::take(&mut self.paging.messages);
        if self.read_messages(cx, id, &page, &mut messages) {
            encode_page_loaded(&mut self.record, id, cx.now, page.id);
            let end = self.append(cx);
            let queue = self.queues.at_mut(index);
            // A delivery that waits for no lease waits for this: else a restart would find the
            // messages in their page, as if they had never left it.
            queue.stored_lsn = end;
            queue.last_lsn = end;
            queue.preserve_page(lane, &page);
            queue.load_page(lane, &messages);
            cx.journal.free_page(page.slot);
        } else {
            self.queues
                .at_mut(index)
                .stall(lane, cx.now.after_ms(RETRY_MS));
        }
        messages.clear();
        self.paging.messages = messages;
    }

    /// Reads a page and checks that it is the one that is described; false when it is not, or
    /// cannot be read.
    pub(crate) fn read_messages(
        &mut self,
        cx: &mut Cx<'_>,
        queue: QueueId,
        page: &PageRef,
        out: &mut Vec<PagedMessage>,
    ) -> bool {
        out.clear();
        if !cx.journal.read_page(page.slot, &mut self.paging.bytes) {
            self.paging.errors.unreadable += 1;
            return false;
        }
        let segments = &self.segments;
        let good = page.decode(queue, &self.paging.bytes, out, |at| segments.segment_of(at));
        self.paging.errors.wrong += u64::from(!good);
        good
    }

    /// Makes pages of what is far behind in its lane, `most` at most; [`Engine::has_full_lanes`]
    /// says whether there is more. The record under construction is finished: before that its
    /// messages have no place in the log.
    pub(crate) fn make_pages(&mut self, cx: &mut Cx<'_>, most: u32) {
        let mut left = most;
        while left > 0
            && let Some(index) = self.paging.full.pop()
        {
            let Some(queue) = self.queues.get_mut(index) else {
                continue;
            };
            queue.fills_pages = false;
            while left > 0
                && let Some(lane) = self.queues.at_mut(index).lanes.pop_full()
            {
                while left > 0 && self.make_page(cx, index, lane) {
                    left -= 1;
                }
                if left == 0 {
                    self.queues.at_mut(index).lanes.push_full(lane);
                }
            }
            self.touch(index);
        }
    }

    /// [`Engine::make_pages`] has something to do.
    pub(crate) const fn has_full_lanes(&self) -> bool {
        !self.paging.full.is_empty()
    }

    /// Makes one page of a lane's back; false when it is too short or the page cannot be written.
    fn make_page(&mut self, cx: &mut Cx<'_>, index: QueueIndex, lane: u32) -> bool {
        let mut messages = core::mem::take(&mut self.paging.messages);
        let queue = self.queues.at_mut(index);
        let made = queue.lanes.next_page(&queue.entries, lane, &mut messages)
            && self.put_page(cx, index, lane, &messages);
        messages.clear();
        self.paging.messages = messages;
        made
    }

    fn put_page(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        lane: u32,
        messages: &[PagedMessage],
    ) -> bool {
        let queue = self.queues.at_mut(index);
        if messages.is_empty() {
            queue.lanes.add_page(&mut queue.entries, lane, None);
            return true;
        }
        let id = self.paging.last_id + 1;
        let segments = &self.segments;
        let Some(mut page) = PageRef::of(messages, (id, PageSlot(0)), |at| segments.segment_of(at))
        else {
            return false;
        };
        page.encode(queue.identity.id, messages, &mut self.paging.bytes);
        let Some(slot) = cx.journal.write_page(&self.paging.bytes) else {
            return false;
        };
        self.paging.last_id = id;
        page.slot = slot;
        page.is_odd = self.generation.is_odd();
        queue.preserve_next_page(lane);
        queue.lanes.add_page(&mut queue.entries, lane, Some(page));
        true
    }

    /// Frees pages of a deleted queue from lane `from` on, `budget` at most; true when it has none
    /// left.
    pub(crate) fn free_pages(
        &mut self,
        cx: &mut Cx<'_>,
        (queue, from): (&mut crate::queue::Queue, &mut u32),
        budget: u32,
    ) -> bool {
        let mut looks = LANES_MAX;
        for _ in 0..budget {
            let Some(page) = queue.lanes.detach_any(from, &mut looks) else {
                return looks > 0;
            };
            for (segment, needed) in &page.segments {
                self.segments.remove_many(*segment, *needed);
            }
            cx.journal.free_page(page.slot);
        }
        false
    }
}

impl PageRef {
    /// The page's bytes.
    pub(crate) fn encode(&self, queue: QueueId, messages: &[PagedMessage], out: &mut Vec<u8>) {
        begin_page(out, self.head(queue));
        for message in messages {
            put_paged(out, message);
        }
    }

    const fn head(&self, queue: QueueId) -> PageHead {
        PageHead {
            id: self.id,
            queue,
            count: self.count,
        }
    }

    /// The page's messages into `out`; false when the bytes are not what is described.
    pub(crate) fn decode(
        &self,
        queue: QueueId,
        bytes: &[u8],
        out: &mut Vec<PagedMessage>,
        segment_of: impl Fn(crate::Lsn) -> u64,
    ) -> bool {
        out.clear();
        let Some(messages) = read_page(bytes, self.head(queue)) else {
            return false;
        };
        out.extend(messages);
        let found = Self::of(out, (self.id, self.slot), segment_of);
        let found = found.map(|found| Self {
            is_odd: self.is_odd,
            ..found
        });
        found.as_ref() == Some(self)
    }
}
