//! Delayed messages leave their place: their time has come, or a purge or a redrive takes them.

use super::Queue;
use super::entries::Slot;
use crate::Millis;

impl Queue {
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

    /// Leader: takes the next delayed message after `cursor` with a position below `limit`.
    pub(crate) fn take_delayed_after(
        &mut self,
        cursor: &mut Option<(Millis, Slot)>,
        limit: u64,
    ) -> Option<Slot> {
        use core::ops::Bound::{Excluded, Unbounded};
        let from = cursor.map_or(Unbounded, Excluded);
        let mut found = None;
        for next in self.delayed.range((from, Unbounded)) {
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
