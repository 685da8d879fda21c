//! A queue's messages leave memory and come back; what its structures take of it.

use super::entries::{Entry, Flags, NIL, Place, Slot};
use super::leases::Lease;
use super::page_ref::PageRef;
use super::{Queue, Weighs};
use crate::Millis;
use crate::page::PagedMessage;
use crate::record::PagedLane;

/// Rough bytes of one element in a tree or a hash table besides the element.
const NODE_BYTES: usize = 16;

impl From<&Entry> for PagedMessage {
    fn from(entry: &Entry) -> Self {
        Self {
            position: entry.position,
            id: entry.id,
            at: entry.at,
            len: entry.len,
            weight: entry.weight,
            deliveries: entry.deliveries,
            failures: entry.failures,
            redrives: entry.redrives,
            flags: entry.flags.bits(),
        }
    }
}

impl Queue {
    /// Leader: the messages of a lane's first page, which was read, are its front.
    pub(crate) fn load_page(&mut self, lane: u32, messages: &[PagedMessage]) {
        let slots = self.insert_paged(lane, Place::Ready, messages);
        self.lanes.detach(lane);
        self.lanes.take_page(lane, &slots, &mut self.entries);
    }

    fn insert_paged(&mut self, lane: u32, place: Place, messages: &[PagedMessage]) -> Vec<Slot> {
        let entries = messages.iter().map(|it| Entry {
            id: it.id,
            position: it.position,
            at: it.at,
            len: it.len,
            lane,
            next: NIL,
            weight: it.weight,
            group: NIL,
            deliveries: it.deliveries,
            failures: it.failures,
            redrives: it.redrives,
            place,
            flags: self.generation.mark(Flags::from_bits(it.flags)),
        });
        entries.map(|entry| self.entries.insert(entry)).collect()
    }

    /// Leader: the first page of a lane cannot be read; it is tried again at `again`.
    pub(crate) fn stall(&mut self, lane: u32, again: Millis) {
        self.lanes.stall(lane);
        self.stalled.push_back((again, lane));
    }

    /// Leader: pages that could not be read are tried again.
    pub(crate) fn end_stalls(&mut self, now: Millis) {
        while let Some((_, lane)) = self.stalled.pop_front_if(|(at, _)| *at <= now) {
            self.lanes.end_stall(&self.entries, lane);
        }
    }

    /// In replay: a page of the lane of `key` is there, its messages are not in memory. Returns
    /// the lane's number, which holds while the page or one of its messages is there.
    pub(crate) fn hold_page(&mut self, of: &PagedLane<'_>, page: &PageRef) -> u32 {
        let weight = (of.weight.max(1), Weighs::NewKey);
        let lane = self
            .lanes
            .hold_many(of.key, of.priority, weight, page.count);
        self.lanes.set_weight(lane, of.weight);
        self.bytes += page.bytes;
        self.next_position = self.next_position.max(page.last.saturating_add(1));
        lane
    }

    /// In replay: the messages of a page of a lane are in memory and have no place. They come back
    /// with their slots, in their order.
    pub(crate) fn load_held_page(&mut self, lane: u32, messages: &[PagedMessage]) -> Vec<Slot> {
        self.insert_paged(lane, Place::New, messages)
    }

    /// Call before a page changes its place or is read: takes its image when a capture needs it.
    pub(crate) fn preserve_page(&mut self, lane: u32, page: &PageRef) {
        if page.is_odd != self.generation.is_odd() {
            self.capture_page(lane, page);
        }
    }

    /// A page lies in another slot and names other segments.
    pub(crate) fn replace_page(&mut self, lane: u32, mut page: PageRef) {
        page.is_odd = self.generation.is_odd();
        self.lanes.replace_page(lane, page);
    }

    /// Call before a page is made: takes the images of its messages that a capture needs.
    pub(crate) fn preserve_next_page(&mut self, lane: u32) {
        for slot in self.lanes.next_page_slots(&self.entries, lane) {
            self.preserve(slot);
        }
    }

    /// Rough bytes of memory that the queue takes, contents of transient messages included.
    pub(crate) fn memory_bytes(&self) -> usize {
        let delayed = self.delayed.len() * (size_of::<(Millis, Slot)>() + NODE_BYTES);
        let leases = self.leases.len() * (size_of::<Lease>() + 4 * NODE_BYTES);
        let groups = self.groups.memory_bytes();
        let maps = self.behind_due.memory_bytes() + self.group_of.memory_bytes();
        let dedup = self.dedup.memory_bytes();
        size_of::<Self>()
            + self.entries.bytes()
            + self.lanes.memory_bytes()
            + self.transient.memory_bytes()
            + delayed
            + leases
            + self.script_bytes()
            + groups
            + maps
            + dedup
            + self.throttled.memory_bytes()
            + self.expiry.memory_bytes()
            + self.departures.memory_bytes()
    }
}

impl Queue {
    /// Rough bytes of what waits for scripts.
    fn script_bytes(&self) -> usize {
        let hooks = self.hooks.as_ref().map_or(0, |hooks| hooks.memory_bytes());
        let maps = self.unclassified.memory_bytes() + self.deciding.memory_bytes();
        self.parking.memory_bytes() + hooks + maps
    }
}
