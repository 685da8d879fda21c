//! A queue's messages leave memory and come back; what its structures take of it.

use hashbrown::HashMap;

use super::entries::{Entry, Flags, NIL, Place, Slot};
use super::leases::Lease;
use super::long_lane::PageRef;
use super::{Queue, Weighs};
use crate::page::PagedMessage;
use crate::{Millis, ReplayError};

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

    /// In replay: the next page of the lane of `key`, whose messages are not in memory.
    ///
    /// # Errors
    /// `ReplayError` when it is not behind the lane's other pages.
    pub(crate) fn attach_page(
        &mut self,
        (key, priority): (&str, u8),
        weight: u32,
        page: PageRef,
    ) -> Result<u32, ReplayError> {
        let weight = (weight.max(1), Weighs::Key);
        let lane = self.lanes.hold_many(key, priority, weight, page.count);
        let last = self.lanes.last_page(lane).map_or(0, |page| page.last);
        if page.first <= last || page.last >= self.next_position {
            let problem = format!("page {} of lane {key:?} is out of order: {page:?}", page.id);
            return Err(ReplayError { problem });
        }
        self.bytes += page.bytes;
        self.lanes.attach_ready(&self.entries, lane, page);
        Ok(lane)
    }

    /// In replay: the first page of a lane.
    pub(crate) fn first_page(&self, lane: u32) -> Option<&PageRef> {
        self.lanes.first_page(lane)
    }

    /// In replay: the messages of a lane's first page are in memory and have no place. They come
    /// back with their slots.
    pub(crate) fn load_page_in_replay(
        &mut self,
        lane: u32,
        messages: &[PagedMessage],
    ) -> Vec<Slot> {
        self.lanes.detach_ready(lane);
        self.insert_paged(lane, Place::New, messages)
    }

    /// Rough bytes of memory that the queue takes, contents of transient messages included.
    pub(crate) fn memory_bytes(&self) -> usize {
        let delayed = self.delayed.len() * (size_of::<(Millis, Slot)>() + NODE_BYTES);
        let leases = self.leases.len() * (size_of::<Lease>() + 4 * NODE_BYTES);
        let groups = self.groups.memory_bytes();
        let maps = map_bytes(&self.behind_due) + map_bytes(&self.group_of);
        let dedup = self.dedup.len() * (4 * size_of::<u128>() + 2 * NODE_BYTES);
        size_of::<Self>()
            + self.entries.bytes()
            + self.lanes.memory_bytes()
            + self.transient_bytes
            + delayed
            + leases
            + groups
            + maps
            + dedup
    }
}

fn map_bytes<K, V, S>(map: &HashMap<K, V, S>) -> usize {
    map.capacity() * (size_of::<(K, V)>() + 1)
}
