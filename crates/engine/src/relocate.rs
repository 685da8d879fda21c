//! Contents move: what is left in mostly dead segments is copied elsewhere, and the messages are
//! told.
//!
//! Who copies asks which messages lie in the segments that are to be emptied, copies their contents
//! and says where they are now. Nothing of that is recorded: until a snapshot begun after it is
//! there, a restart finds the old places, which must be readable until then.

use std::collections::BTreeSet;

use crate::engine::{Cx, Engine};
use crate::page::PagedMessage;
use crate::queue::entries::{Flags, Slot};
use crate::queue::page_ref::PageRef;
use crate::queue::page_walks::PageCursor;
use crate::queues::QueueIndex;
use crate::{Journal, Lsn, Millis, Output, PageSlot, QueueId};

/// A message whose content lies in a segment that is to be emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survivor {
    queue: QueueId,
    position: u64,
    place: SurvivorPlace,
    /// Where its content lies.
    pub at: Lsn,
    /// Bytes of its content.
    pub len: u32,
}

/// Where a survivor was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SurvivorPlace {
    Memory(Slot),
    /// In the page of this number and first position.
    Page {
        lane: u32,
        id: u64,
        first: u64,
    },
}

/// A survivor's content has been copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// As [`Engine::survivors_slice`] told it.
    pub survivor: Survivor,
    /// Where its content lies as well.
    pub new_at: Lsn,
}

/// How far a walk over all messages has come; a new one is at the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub struct SurvivorCursor {
    queue: QueueIndex,
    slot: Slot,
    /// The queue's messages in memory have been looked at.
    among_pages: bool,
    page: PageCursor,
}

/// Slots looked at cost as much as one message.
const SLOTS_PER_COST: u32 = 8;

impl Engine {
    /// Adds to `out` more of the messages whose contents lie in `victims`; the work of about
    /// `budget` messages. True when all queues have been gone over. Messages that move while the
    /// walk goes on may be missed: their segments are then not empty afterwards.
    pub fn survivors_slice(
        &mut self,
        journal: &mut dyn Journal,
        victims: &BTreeSet<u64>,
        cursor: &mut SurvivorCursor,
        budget: u32,
        out: &mut Vec<Survivor>,
    ) -> bool {
        let mut left = budget.max(1);
        while cursor.queue < self.queues.end() {
            if left == 0 {
                return false;
            }
            left -= 1;
            let is_over = if cursor.among_pages {
                self.paged_survivors(journal, victims, cursor, &mut left, out)
            } else {
                self.survivors_in_memory(victims, cursor, &mut left, out);
                false
            };
            if is_over {
                *cursor = SurvivorCursor {
                    queue: cursor.queue + 1,
                    ..SurvivorCursor::default()
                };
            }
        }
        true
    }

    fn survivors_in_memory(
        &mut self,
        victims: &BTreeSet<u64>,
        cursor: &mut SurvivorCursor,
        left: &mut u32,
        out: &mut Vec<Survivor>,
    ) {
        let segments = &self.segments;
        let Some(queue) = self.queues.get_mut(cursor.queue) else {
            cursor.among_pages = true;
            return;
        };
        let looks = (*left + 1).saturating_mul(SLOTS_PER_COST);
        for slot in queue.entries.live_slots(cursor.slot, looks) {
            let entry = queue.entries.at(slot);
            let durable = !entry.flags.has(Flags::TRANSIENT);
            if durable && victims.contains(&segments.segment_of(entry.at)) {
                out.push(Survivor {
                    queue: queue.identity.id,
                    position: entry.position,
                    place: SurvivorPlace::Memory(slot),
                    at: entry.at,
                    len: entry.len,
                });
            }
        }
        let slots = queue.entries.slots();
        let looked = looks.min(slots.saturating_sub(cursor.slot));
        *left = left.saturating_sub(looked / SLOTS_PER_COST);
        cursor.slot = cursor.slot.saturating_add(looks);
        cursor.among_pages = cursor.slot >= slots;
    }

    /// Looks at pages; true when there are no more in the queue.
    fn paged_survivors(
        &mut self,
        journal: &mut dyn Journal,
        victims: &BTreeSet<u64>,
        cursor: &mut SurvivorCursor,
        left: &mut u32,
        out: &mut Vec<Survivor>,
    ) -> bool {
        loop {
            let Some(queue) = self.queues.get_mut(cursor.queue) else {
                return true;
            };
            let id = queue.identity.id;
            let mut looks = left.saturating_add(1);
            let before = looks;
            let found = queue
                .lanes
                .page_with(&mut cursor.page, &mut looks, |segment| {
                    victims.contains(&segment)
                });
            *left = left.saturating_sub(before - looks);
            let Some(page) = found else {
                return looks > 0;
            };
            *left = left.saturating_sub(page.count);
            let lane = cursor.page.lane;
            self.page_survivors(journal, (id, lane), &page, victims, out);
            if *left == 0 {
                return false;
            }
        }
    }

    fn page_survivors(
        &mut self,
        journal: &mut dyn Journal,
        (queue, lane): (QueueId, u32),
        page: &PageRef,
        victims: &BTreeSet<u64>,
        out: &mut Vec<Survivor>,
    ) {
        let place = SurvivorPlace::Page {
            lane,
            id: page.id,
            first: page.first,
        };
        // A page that cannot be read now keeps its segments.
        for message in self.messages_of(journal, queue, page) {
            if victims.contains(&self.segments.segment_of(message.at)) {
                out.push(Survivor {
                    queue,
                    position: message.position,
                    place,
                    at: message.at,
                    len: message.len,
                });
            }
        }
    }

    fn messages_of(
        &mut self,
        journal: &mut dyn Journal,
        queue: QueueId,
        page: &PageRef,
    ) -> Vec<PagedMessage> {
        let cx = &mut Cx {
            now: Millis(0),
            journal,
            out: &mut Vec::<Output>::new(),
        };
        let mut messages = Vec::new();
        if !self.read_messages(cx, queue, page, &mut messages) {
            messages.clear();
        }
        messages
    }

    /// The contents of these messages lie at new places, which are readable. Messages that are not
    /// where they were found stay as they are; pages are written to new slots. Moved messages of
    /// one page are best told one after the other, as they were found.
    pub fn relocate(&mut self, journal: &mut dyn Journal, moved: &[Moved]) {
        let mut rest = moved;
        while let Some(first) = rest.first() {
            let of = (first.survivor.queue, first.survivor.place);
            let same = |it: &&Moved| (it.survivor.queue, it.survivor.place) == of;
            let (these, others) = rest.split_at(rest.iter().take_while(same).count());
            rest = others;
            let Some(index) = self.queues.index_of(of.0) else {
                continue;
            };
            match of.1 {
                SurvivorPlace::Memory(slot) => self.relocate_entry(index, slot, first),
                SurvivorPlace::Page { lane, id, first } => {
                    self.relocate_page(journal, index, (lane, id, first), these);
                }
            }
        }
    }

    fn relocate_entry(&mut self, index: QueueIndex, slot: Slot, moved: &Moved) {
        let queue = self.queues.at_mut(index);
        let (position, at) = (moved.survivor.position, moved.survivor.at);
        let entry = queue.entries.live(slot);
        let here = entry.is_some_and(|it| (it.position, it.at) == (position, at));
        if here {
            // A capture under way may find either place: both are readable until a later one
            // counts.
            let entry = queue.entries.at_mut(slot);
            entry.at = moved.new_at;
            self.segments.add(moved.new_at, entry.len);
            self.segments.remove(at, entry.len);
        }
    }

    fn relocate_page(
        &mut self,
        journal: &mut dyn Journal,
        index: QueueIndex,
        (lane, id, first): (u32, u64, u64),
        moved: &[Moved],
    ) {
        let queue = self.queues.at(index);
        let queue_id = queue.identity.id;
        let Some(page) = queue.lanes.page_of(lane, id, first).cloned() else {
            return;
        };
        let mut messages = self.messages_of(journal, queue_id, &page);
        let mut moves = moved.iter().peekable();
        let mut places = Vec::with_capacity(moved.len());
        for message in &mut messages {
            let of = (message.position, message.at);
            let here = |it: &&Moved| (it.survivor.position, it.survivor.at) == of;
            if let Some(it) = moves.next_if(here) {
                places.push((message.at, it.new_at, message.len));
                message.at = it.new_at;
            }
        }
        let segments = &self.segments;
        let segment_of = |at| segments.segment_of(at);
        let Some(mut fresh) = PageRef::of(&messages, (id, PageSlot(0)), segment_of) else {
            return;
        };
        let mut bytes = Vec::new();
        fresh.encode(queue_id, &messages, &mut bytes);
        let Some(slot) = journal.write_page(&bytes) else {
            return;
        };
        fresh.slot = slot;
        let queue = self.queues.at_mut(index);
        queue.preserve_page(lane, &page);
        queue.replace_page(lane, fresh);
        journal.free_page(page.slot);
        for (old, new, len) in places {
            self.segments.add(new, len);
            self.segments.remove(old, len);
        }
    }
}
