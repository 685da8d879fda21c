//! Messages leave their place: to be delivered, as their time has come, or for a purge or a
//! redrive.

use super::Queue;
use super::entries::{Place, Slot};
use super::leases::Lease;
use super::picks::Taken;
use crate::{FrameLimit, MessageId, Millis};

impl Queue {
    /// Leader: a message's lease ends at another time.
    pub(crate) fn extend_lease(&mut self, id: MessageId, lease: Lease, expires_at: Millis) {
        self.preserve(lease.slot);
        let renewed = Lease {
            expires_at,
            reclaim: false,
            ..lease
        };
        self.leases.insert(id, renewed);
    }

    /// Leader: a message that was taken is leased.
    pub(crate) fn lease(
        &mut self,
        slot: Slot,
        consumer: u64,
        (since, expires_at): (Millis, Millis),
    ) {
        let entry = self.entries.at_mut(slot);
        entry.place = Place::Leased;
        self.leases.insert(
            entry.id,
            Lease {
                slot,
                consumer,
                since,
                expires_at,
                reclaim: false,
            },
        );
    }

    /// Leader: takes the next message, which is delivered and has no place any more: the same step
    /// leases it, or removes it.
    pub(crate) fn take_next(&mut self, limit: FrameLimit) -> Taken {
        let taken = self.lanes.pick(&self.entries, limit);
        if let Taken::Message(slot) = taken {
            self.preserve(slot);
            let entry = self.entries.at_mut(slot);
            entry.place = Place::New;
            entry.deliveries = entry.deliveries.saturating_add(1);
            self.remove_pending(slot);
        }
        taken
    }

    /// Leader: messages whose time has come become ready, `budget` at most.
    pub(crate) fn release_due(&mut self, now: Millis, budget: usize) -> usize {
        let mut released = 0;
        while released < budget {
            let Some((due, slot)) = self.delayed.first().copied() else {
                break;
            };
            if due > now {
                break;
            }
            self.delayed.pop_first();
            self.preserve_delayed(slot, due);
            self.settle_place(slot, None);
            released += 1;
        }
        released
    }

    /// Leader: takes the delayed message that is due first and has a position below `limit`.
    pub(crate) fn take_first_delayed(&mut self, limit: u64) -> Option<(Millis, Slot)> {
        let entries = &self.entries;
        let below = |(_, slot): &&(Millis, Slot)| entries.at(*slot).position < limit;
        let found = *self.delayed.iter().find(below)?;
        self.delayed.remove(&found);
        self.preserve_delayed(found.1, found.0);
        Some(found)
    }

    /// Leader: takes the next delayed message after `cursor` with a position below `limit`, looking
    /// at `looks` of them at most.
    pub(crate) fn take_delayed_after(
        &mut self,
        cursor: &mut Option<(Millis, Slot)>,
        limit: u64,
        looks: &mut u32,
    ) -> Option<Slot> {
        use core::ops::Bound::{Excluded, Unbounded};
        let from = cursor.map_or(Unbounded, Excluded);
        let mut found = None;
        for next in self.delayed.range((from, Unbounded)).take(*looks as usize) {
            *looks -= 1;
            *cursor = Some(*next);
            if self.entries.at(next.1).position < limit {
                found = Some(*next);
                break;
            }
        }
        let found = found?;
        self.delayed.remove(&found);
        self.preserve_delayed(found.1, found.0);
        Some(found.1)
    }
}
