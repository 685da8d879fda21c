//! A long lane: its front in memory, pages in the middle, its back in memory.
//!
//! Positions grow from front to pages to back. Pages are made of the first messages of the back and
//! come back as the front when that has run empty; when there is none, the back becomes the front.

use std::collections::VecDeque;

use super::entries::{Entries, Flags, NIL, Slot};
use super::lanes::Lanes;
use super::page_ref::PageRef;
use crate::page::PagedMessage;

/// Messages in memory, linked in position order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fifo {
    pub(super) head: Slot,
    pub(super) tail: Slot,
    pub(super) tail_position: u64,
}

impl Fifo {
    pub(super) const EMPTY: Self = Self {
        head: NIL,
        tail: NIL,
        tail_position: 0,
    };

    /// Adds a message behind all others.
    pub(super) fn push(&mut self, entries: &mut Entries, slot: Slot, position: u64) {
        if self.head == NIL {
            self.head = slot;
        } else {
            entries.at_mut(self.tail).next = slot;
        }
        (self.tail, self.tail_position) = (slot, position);
    }
}

/// What a long lane has behind its front. There is always a page, or a message in the back.
#[derive(Debug)]
pub(crate) struct Behind {
    pub(crate) pages: VecDeque<PageRef>,
    /// Messages in pages.
    pub(super) paged: u32,
    pub(super) back: Fifo,
    /// Messages in the back.
    pub(super) back_len: u32,
    /// Its first page could not be read: the lane is off its ring until that is tried again.
    pub(super) stalled: bool,
}

impl Behind {
    pub(super) const fn new() -> Self {
        Self {
            pages: VecDeque::new(),
            paged: 0,
            back: Fifo::EMPTY,
            back_len: 0,
            stalled: false,
        }
    }

    /// The first position behind the front.
    pub(super) fn first(&self, entries: &Entries) -> u64 {
        match self.pages.front() {
            Some(page) => page.first,
            None => entries.at(self.back.head).position,
        }
    }

    fn last(&self) -> u64 {
        if self.back.head != NIL {
            return self.back.tail_position;
        }
        self.pages.back().map_or(0, |page| page.last)
    }

    const fn is_empty(&self) -> bool {
        self.paged == 0 && self.back.head == NIL
    }
}

impl Lanes {
    /// Puts a message into a long lane, or into one that becomes long. Not yet counted.
    pub(super) fn push_long(&mut self, entries: &mut Entries, slot: Slot) {
        let entry = entries.at(slot);
        let (lane, position) = (entry.lane, entry.position);
        let page_messages = self.page_messages;
        let it = self.at_mut(lane);
        let starts = it.front.head != NIL && position > it.front.tail_position;
        if it.behind.is_none() && starts {
            it.behind = Some(Box::new(Behind::new()));
        }
        let Some(behind) = it.behind.as_deref_mut() else {
            return self.push_front(entries, slot);
        };
        let fresh = behind.is_empty();
        if !fresh && position < behind.first(entries) {
            return self.push_front(entries, slot);
        }
        if !fresh && position < behind.last() {
            it.returned.get_or_insert_default().insert(position, slot);
            return;
        }
        behind.back.push(entries, slot, position);
        behind.back_len += 1;
        let enough = behind.back_len >= 2 * page_messages;
        // Told again and again while pages cannot be written.
        if enough && behind.back_len.is_multiple_of(page_messages) {
            self.full.push(lane);
        }
    }

    /// The front has run empty: the back becomes the front when there are no pages.
    pub(super) fn move_up(&mut self, lane: u32) {
        let it = self.at_mut(lane);
        if let Some(behind) = it.behind.take_if(|behind| behind.paged == 0) {
            it.front = behind.back;
        }
    }

    /// Messages in pages.
    pub(crate) const fn paged(&self) -> u64 {
        self.paged
    }

    /// A lane whose back is long enough for a page.
    pub(crate) fn pop_full(&mut self) -> Option<u32> {
        self.full.pop()
    }

    /// The lane's back may be long enough for another page.
    pub(crate) fn push_full(&mut self, lane: u32) {
        self.full.push(lane);
    }

    /// There are lanes whose back is long enough for a page.
    pub(crate) const fn has_full(&self) -> bool {
        !self.full.is_empty()
    }

    /// The messages that the next page of a lane is to be made of, into `out`; false when its back
    /// is too short. [`Lanes::add_page`] makes it so.
    pub(crate) fn next_page(
        &self,
        entries: &Entries,
        lane: u32,
        out: &mut Vec<PagedMessage>,
    ) -> bool {
        out.clear();
        let Some(behind) = self.lane(lane).and_then(|it| it.behind.as_deref()) else {
            return false;
        };
        if behind.back_len < 2 * self.page_messages {
            return false;
        }
        let mut walk = behind.back.head;
        while walk != NIL && out.len() < self.page_messages as usize {
            let entry = entries.at(walk);
            if !entry.flags.has(Flags::TRANSIENT) {
                out.push(entry.into());
            }
            walk = entry.next;
        }
        true
    }

    /// The first messages of a lane's back are in `page` now (`None` = all of them are transient):
    /// they leave memory. Transient ones between them stay, as if they had come back.
    pub(crate) fn add_page(&mut self, entries: &mut Entries, lane: u32, page: Option<PageRef>) {
        let limit = page.as_ref().map_or(u64::MAX, |page| page.last);
        let it = self.at_mut(lane);
        let Some(behind) = it.behind.as_deref_mut() else {
            return;
        };
        while behind.back.head != NIL {
            let slot = behind.back.head;
            let entry = entries.at_mut(slot);
            if entry.position > limit {
                break;
            }
            behind.back.head = entry.next;
            behind.back_len -= 1;
            entry.next = NIL;
            if entry.flags.has(Flags::TRANSIENT) {
                let position = entry.position;
                it.returned.get_or_insert_default().insert(position, slot);
            } else {
                entries.remove(slot);
            }
        }
        if let Some(page) = page {
            self.attach(lane, page);
        }
        self.drop_behind(lane);
    }

    /// A lane with nothing behind its front is not long any more.
    fn drop_behind(&mut self, lane: u32) {
        let it = self.at_mut(lane);
        it.behind.take_if(|behind| behind.is_empty());
    }

    /// A page is the newest of its lane.
    pub(crate) fn attach(&mut self, lane: u32, page: PageRef) {
        self.paged += u64::from(page.count);
        self.page_ref_bytes += page.memory_bytes();
        let it = self.at_mut(lane);
        let behind = it.behind.get_or_insert_with(|| Box::new(Behind::new()));
        behind.paged += page.count;
        behind.pages.push_back(page);
    }

    /// At the start: `count` messages of a lane, which are in one of its pages, are ready.
    pub(crate) fn page_is_ready(&mut self, entries: &Entries, lane: u32, count: u32) {
        self.ready += u64::from(count);
        let it = self.at_mut(lane);
        it.ready += count;
        let idle = it.pending == 0;
        it.pending += count;
        self.active += u64::from(idle);
        if !self.at(lane).is_on_ring() {
            self.join_ring(lane);
            self.note_first(entries, lane);
        }
    }

    /// Slots of the messages that the next page of a lane is to be made of.
    pub(crate) fn next_page_slots(&self, entries: &Entries, lane: u32) -> Vec<Slot> {
        let behind = self.lane(lane).and_then(|it| it.behind.as_deref());
        let mut walk = behind.map_or(NIL, |behind| behind.back.head);
        let mut slots = Vec::new();
        while walk != NIL && slots.len() < self.page_messages as usize {
            let entry = entries.at(walk);
            if !entry.flags.has(Flags::TRANSIENT) {
                slots.push(walk);
            }
            walk = entry.next;
        }
        slots
    }

    /// A page takes the place of the one with the same number.
    pub(super) fn replace_page(&mut self, lane: u32, page: PageRef) {
        let behind = self.lanes.get_mut(lane as usize);
        let pages = behind.and_then(|it| Some(&mut it.behind.as_deref_mut()?.pages));
        let Some(pages) = pages else { return };
        let index = pages.partition_point(|it| it.first < page.first);
        if let Some(old) = pages.get_mut(index).filter(|old| old.id == page.id) {
            self.page_ref_bytes = self.page_ref_bytes + page.memory_bytes() - old.memory_bytes();
            *old = page;
        }
    }

    /// Takes the next page from lane `from` on, of a queue that is taken apart; looks at `looks`
    /// lanes at most.
    pub(crate) fn detach_any(&mut self, from: &mut u32, looks: &mut u32) -> Option<PageRef> {
        while *looks > 0
            && let Some(it) = self.lane(*from)
        {
            *looks -= 1;
            if it.behind.as_ref().is_some_and(|it| !it.pages.is_empty()) {
                return self.detach(*from);
            }
            *from += 1;
        }
        None
    }

    /// Takes the first page out of a lane. Its messages are still counted.
    pub(crate) fn detach(&mut self, lane: u32) -> Option<PageRef> {
        let behind = self.at_mut(lane).behind.as_deref_mut()?;
        let page = behind.pages.pop_front()?;
        behind.paged -= page.count;
        self.paged -= u64::from(page.count);
        self.page_ref_bytes -= page.memory_bytes();
        Some(page)
    }

    /// The first page of a lane, whose front is empty, was read: its messages are the front.
    pub(crate) fn take_page(&mut self, lane: u32, front: &[Slot], entries: &mut Entries) {
        let mut fifo = Fifo::EMPTY;
        for slot in front {
            let position = entries.at(*slot).position;
            fifo.push(entries, *slot, position);
        }
        let it = self.at_mut(lane);
        debug_assert!(it.front.head == NIL, "a page is read over the front");
        it.front = fifo;
        self.drop_behind(lane);
    }

    /// The first page of a lane cannot be read: the lane loses its turns until
    /// [`Lanes::end_stall`].
    pub(crate) fn stall(&mut self, lane: u32) {
        let it = self.at_mut(lane);
        if let Some(behind) = it.behind.as_deref_mut() {
            behind.stalled = true;
        }
        let on_ring = it.is_on_ring();
        if on_ring && let Some(ring) = self.ring_of(lane) {
            self.leave_ring(ring, lane);
        }
    }

    /// A stalled lane has its turns again. Other lanes are left as they are.
    pub(crate) fn end_stall(&mut self, entries: &Entries, lane: u32) {
        let Some(it) = self.lanes.get_mut(lane as usize) else {
            return;
        };
        let blocked = it.blocked;
        let behind = it.behind.as_deref_mut();
        if let Some(behind) = behind.filter(|behind| behind.stalled) {
            behind.stalled = false;
            if !blocked {
                self.join_ring(lane);
            }
            self.note_first(entries, lane);
        }
    }
}
