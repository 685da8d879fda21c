//! What a capture takes of a queue: its messages as they were when the capture began.
//!
//! Every entry carries one bit, the generation in which it was last captured or came in. A capture
//! begins by turning the engine's generation over: from then on each entry with the other bit is
//! still to be captured. Whoever changes such an entry calls [`Queue::preserve`] first; the walk
//! takes the others. New messages carry the new bit: their own records follow in the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::entries::{Entry, Flags, NIL, Place, Slot};
use super::page_ref::PageRef;
use super::page_walks::PageCursor;
use super::{Queue, Unclassified};
use crate::record::{
    Image, ImageContent, Kind, PagedLane, UnclassifiedFields, begin_counted, encode_pages,
    finish_counted,
};
use crate::{DeliveryDurability, Millis};

/// The engine's present generation, seen by all its queues.
#[derive(Clone, Debug, Default)]
pub(crate) struct Generation(Arc<AtomicBool>);

impl Generation {
    /// Turns it over: nothing is captured any more.
    pub(crate) fn turn(&self) {
        self.0.fetch_xor(true, Ordering::Relaxed);
    }

    pub(crate) fn is_odd(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flags of a message that is captured, or needs not to be.
    pub(crate) fn mark(&self, flags: Flags) -> Flags {
        if self.is_odd() {
            flags.with(Flags::GENERATION)
        } else {
            flags.without(Flags::GENERATION)
        }
    }

    /// Whether flags carry its mark.
    pub(crate) fn is_marked(&self, flags: Flags) -> bool {
        flags.has(Flags::GENERATION) == self.is_odd()
    }
}

impl Unclassified {
    /// As it is recorded.
    pub(crate) fn fields(&self) -> UnclassifiedFields<'_> {
        UnclassifiedFields {
            tries: self.tries,
            timeouts: self.timeouts,
            version: self.version,
            dedup: self.dedup,
            idempotency_key: &self.idempotency_key,
        }
    }

    /// As it was recorded.
    pub(crate) fn of(fields: UnclassifiedFields<'_>) -> Self {
        Self {
            tries: fields.tries,
            timeouts: fields.timeouts,
            version: fields.version,
            dedup: fields.dedup,
            idempotency_key: fields.idempotency_key.into(),
        }
    }
}

/// An `Image` record is closed when it has grown to this.
const RECORD_BYTES: usize = 256 << 10;

/// Images that were taken and not yet handed on.
#[derive(Debug, Default)]
pub(crate) struct Images {
    /// The record under construction; empty when there is none.
    open: Vec<u8>,
    count: u32,
    full: Vec<Vec<u8>>,
}

impl Images {
    fn close(&mut self) {
        finish_counted(&mut self.open, self.count);
        self.full.push(core::mem::take(&mut self.open));
        self.count = 0;
    }
}

impl Queue {
    /// Call before an entry changes: takes its image when a capture still needs it.
    #[inline]
    pub(crate) fn preserve(&mut self, slot: Slot) {
        if !self.generation.is_marked(self.entries.at(slot).flags) {
            self.capture(slot, None);
        }
    }

    /// Like [`Self::preserve`], of a message that is delayed until then.
    pub(super) fn preserve_delayed(&mut self, slot: Slot, due: Millis) {
        if !self.generation.is_marked(self.entries.at(slot).flags) {
            self.capture(slot, Some(due));
        }
    }

    #[cold]
    fn capture(&mut self, slot: Slot, due: Option<Millis>) {
        let entry = *self.entries.at(slot);
        let knows_due = due.is_some() || entry.place != Place::Delayed;
        assert!(
            knows_due,
            "{} is delayed, and nobody says until when",
            entry.id
        );
        self.entries.at_mut(slot).flags = self.generation.mark(entry.flags);
        if entry.flags.has(Flags::TRANSIENT) {
            return;
        }
        if self.images.open.is_empty() {
            let id = self.identity.id;
            // The time of the capture stands in the record of the shard.
            begin_counted(&mut self.images.open, Kind::Image, id, Millis(0));
        }
        let mut open = core::mem::take(&mut self.images.open);
        self.image(slot, &entry, due).encode(&mut open);
        self.images.open = open;
        self.images.count += 1;
        if self.images.open.len() >= RECORD_BYTES {
            self.images.close();
        }
    }

    fn image(&self, slot: Slot, entry: &Entry, due: Option<Millis>) -> Image<'_> {
        let lane = self.lanes.at(entry.lane);
        let group = if entry.group == NIL {
            self.group_of.get(&slot).copied()
        } else {
            Some(self.groups.key(entry.group))
        };
        // A fast queue's leases are in memory only, also those of the reclaim grace.
        let committed = self.config.durability == DeliveryDurability::Committed;
        let lease = match entry.place {
            Place::Leased => {
                let lease = self.leases.find(entry.id);
                let lease = lease.filter(|lease| !lease.reclaim && lease.slot == slot);
                lease.map(|lease| lease.expires_at)
            }
            Place::Deciding => self.deciding.get(&slot).copied().flatten(),
            Place::Free
            | Place::New
            | Place::Ready
            | Place::Delayed
            | Place::Behind
            | Place::Throttled
            | Place::Parked
            | Place::Stopped
            | Place::Departing
            | Place::Aside => None,
        };
        let unclassified = entry.flags.has(Flags::UNCLASSIFIED).then(|| {
            let known = self.unclassified.get(&slot);
            known.map_or(UnclassifiedFields::NEW, Unclassified::fields)
        });
        Image {
            position: entry.position,
            id: entry.id,
            content: ImageContent::At {
                at: entry.at,
                len: entry.len,
            },
            key: &lane.key,
            priority: self.lanes.priority(entry.lane),
            weight: entry.weight,
            key_weight: lane.weight,
            deliveries: entry.deliveries,
            failures: entry.failures,
            redrives: entry.redrives,
            due: due.or_else(|| self.behind_due.get(&slot).copied()),
            lease: lease.filter(|_| committed),
            group,
            dedup: entry.flags.has(Flags::DEDUP),
            attributes: entry.flags.has(Flags::ATTRIBUTES),
            unclassified,
            expires: self.own_expiry(slot),
            form: entry.flags.form(),
        }
    }

    /// Takes messages in at most `budget` slots from `from` on; those that are delayed come later.
    /// Returns where to go on, `None` at the end.
    pub(crate) fn capture_slots(&mut self, from: Slot, budget: u32) -> Option<Slot> {
        let end = from.saturating_add(budget).min(self.entries.slots());
        for slot in from..end {
            let place = self.entries.live(slot).map(|entry| entry.place);
            if place.is_some_and(|place| place != Place::Delayed) {
                self.preserve(slot);
            }
        }
        (end < self.entries.slots()).then_some(end)
    }

    /// Takes the next delayed messages after `cursor`, `budget` at most; says how many it met.
    pub(crate) fn capture_delayed(
        &mut self,
        cursor: &mut Option<(Millis, Slot)>,
        budget: usize,
    ) -> usize {
        use core::ops::Bound::{Excluded, Unbounded};
        let from = cursor.map_or(Unbounded, Excluded);
        let next = self.delayed.range((from, Unbounded)).take(budget);
        let next: Vec<_> = next.copied().collect();
        for (due, slot) in &next {
            self.preserve_delayed(*slot, *due);
        }
        *cursor = next.last().copied().or(*cursor);
        next.len()
    }

    /// The record of the keys in at most `budget` slots from `from` on.
    pub(crate) fn captured_keys(&self, from: usize, budget: usize) -> Option<Vec<u8>> {
        let mut record = Vec::new();
        begin_counted(&mut record, Kind::Remembered, self.identity.id, Millis(0));
        let mut count = 0;
        for key in self.dedup.images(from, budget) {
            key.encode(&mut record);
            count += 1;
        }
        finish_counted(&mut record, count);
        (count > 0).then_some(record)
    }

    #[cold]
    pub(super) fn capture_page(&mut self, lane: u32, page: &PageRef) {
        let record = self.pages_record(lane, &[page]);
        self.images.full.push(record);
    }

    fn pages_record(&self, lane: u32, pages: &[&PageRef]) -> Vec<u8> {
        let it = self.lanes.at(lane);
        let of = PagedLane {
            key: &it.key,
            priority: self.lanes.priority(lane),
            weight: it.weight,
        };
        let mut record = Vec::new();
        encode_pages(&mut record, (self.identity.id, Millis(0)), of, pages);
        record
    }

    /// Takes pages and looks at lanes, about `left` together. Returns whether there may be more.
    pub(crate) fn capture_pages(&mut self, cursor: &mut PageCursor, left: &mut usize) -> bool {
        const RECORD_PAGES: usize = 1024;
        let is_odd = self.generation.is_odd();
        loop {
            let most = RECORD_PAGES.min(*left + 1);
            let Some(taken) = self.lanes.mark_pages(cursor, is_odd, most) else {
                return false;
            };
            if !taken.is_empty() {
                let pages: Vec<_> = taken.iter().collect();
                let record = self.pages_record(cursor.lane, &pages);
                self.images.full.push(record);
            }
            if taken.len() < most {
                *cursor = PageCursor {
                    lane: cursor.lane + 1,
                    from: 0,
                };
            }
            *left = left.saturating_sub(taken.len() + 1);
            if *left == 0 {
                return true;
            }
        }
    }

    /// Hands on the images taken so far.
    pub(crate) fn take_images(&mut self, out: &mut Vec<Vec<u8>>) {
        if !self.images.open.is_empty() {
            self.images.close();
        }
        out.append(&mut self.images.full);
    }
}
