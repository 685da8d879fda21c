//! Deleted queues.
//!
//! Their messages give back what they take of the log and of pages in slices, and buckets forget
//! them. What is then left is memory, and giving that back takes long where there are millions of
//! pieces: the engine hands it out, and whoever has time drops it.

use crate::Millis;
use crate::engine::{Cx, Engine};
use crate::jobs::SLICE_SLOTS;
use crate::queue::Queue;
use crate::queue::entries::{Flags, Slot};
use crate::queues::QueueIndex;

/// Pages freed in one slice.
const SLICE_PAGES: u32 = 256;
/// Buckets that forget a queue in one slice.
const SLICE_BUCKETS: usize = 1024;
/// Content bytes of transient messages freed in one slice, about.
const SLICE_BYTES: u64 = 64 << 20;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Graveyard {
    graves: Vec<Grave>,
    garbage: Vec<Grave>,
}

/// A deleted queue, and how far its taking apart has come.
#[derive(Debug)]
struct Grave {
    index: QueueIndex,
    queue: Box<Queue>,
    /// Lanes before this one have no pages.
    lane: u32,
    /// Slots before this one are free.
    slot: Slot,
}

/// The memory of deleted queues, to be dropped where that may take a while.
#[derive(Debug)]
pub struct Garbage {
    #[expect(dead_code, reason = "it is only dropped")]
    graves: Vec<Grave>,
}

impl Graveyard {
    pub(crate) fn add(&mut self, index: QueueIndex, queue: Box<Queue>) {
        self.graves.push(Grave {
            index,
            queue,
            lane: 0,
            slot: 0,
        });
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.graves.is_empty()
    }

    /// Those that are not taken apart yet.
    pub(crate) fn queues(&self) -> impl Iterator<Item = &Queue> {
        self.graves.iter().map(|grave| &*grave.queue)
    }

    /// A deleted queue has this index, so no other one does.
    pub(crate) fn holds(&self, index: QueueIndex) -> bool {
        self.graves.iter().any(|grave| grave.index == index)
    }
}

impl Engine {
    /// What is left of deleted queues, if there is any: to be dropped on a thread that nobody waits
    /// for.
    #[must_use]
    pub fn take_garbage(&mut self) -> Option<Garbage> {
        let graves = core::mem::take(&mut self.graveyard.garbage);
        (!graves.is_empty()).then_some(Garbage { graves })
    }

    /// One slice of the newest deleted queue.
    pub(crate) fn dismantle(&mut self, cx: &mut Cx<'_>) {
        let Some(mut grave) = self.graveyard.graves.pop() else {
            return;
        };
        if !self.dismantle_slice(cx, &mut grave) {
            self.graveyard.graves.push(grave);
            return;
        }
        self.uncount_memory(&grave.queue);
        self.queues.free_index(grave.index);
        self.graveyard.garbage.push(grave);
    }

    /// True when only memory is left.
    fn dismantle_slice(&mut self, cx: &mut Cx<'_>, grave: &mut Grave) -> bool {
        if !self.forget_some_units(cx.now, grave) {
            return false;
        }
        let pages = (&mut *grave.queue, &mut grave.lane);
        if !self.free_pages(cx, pages, SLICE_PAGES) {
            return false;
        }
        let queue = &mut grave.queue;
        let end = queue.entries.slots();
        let to = end.min(grave.slot.saturating_add(SLICE_SLOTS));
        let mut bytes = SLICE_BYTES;
        while grave.slot < to && bytes > 0 {
            let slot = grave.slot;
            grave.slot += 1;
            if queue.entries.live(slot).is_none() {
                continue;
            }
            let entry = queue.entries.remove(slot);
            if entry.flags.has(Flags::TRANSIENT) {
                bytes = bytes.saturating_sub(u64::from(entry.len));
                queue.drop_body(&entry);
            } else {
                self.segments.remove(entry.at, entry.len);
            }
        }
        queue.entries.len() == 0
    }

    fn forget_some_units(&mut self, now: Millis, grave: &mut Grave) -> bool {
        let mut buckets = Vec::new();
        let throttled = &mut grave.queue.throttled;
        let done = throttled.forget_some(SLICE_BUCKETS, &mut buckets);
        self.forget_units(now, grave.index, &buckets);
        done
    }
}
