//! Messages taken out of their place by something else than a delivery: a purge, a redrive, the
//! maximum length.

use super::Queue;
use super::entries::{Place, Slot};
use crate::Millis;

/// Older messages that are not ready are passed over when the oldest ready one is asked for: this
/// many per step.
const PASSED_MAX: usize = 256;

impl Queue {
    /// Leader: takes the delayed message that is due first and has a position below `limit`.
    pub(crate) fn take_first_delayed(&mut self, limit: u64) -> Option<Slot> {
        let entries = &self.entries;
        let below = |(_, slot): &&(Millis, Slot)| entries.at(*slot).position < limit;
        let found = *self.delayed.iter().find(below)?;
        self.delayed.remove(&found);
        Some(found.1)
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
        Some(found.1)
    }

    /// The oldest ready message, where arrivals are kept.
    pub(crate) fn take_oldest_ready(&mut self, limit: u64) -> Option<Slot> {
        let arrivals = self.arrivals.as_mut()?;
        let mut passed = Vec::new();
        let mut found = None;
        while let Some((position, slot)) = arrivals.front().copied() {
            if position >= limit || passed.len() >= PASSED_MAX {
                break;
            }
            arrivals.pop_front();
            let entry = if slot < self.entries.slots() {
                Some(self.entries.at(slot))
            } else {
                None
            };
            let here = entry.filter(|e| e.place != Place::Free && e.position == position);
            match here.map(|entry| entry.place) {
                None => {}
                Some(Place::Ready) if self.lanes.take_if_first(&self.entries, slot) => {
                    found = Some(slot);
                    break;
                }
                Some(_) => passed.push((position, slot)),
            }
        }
        for kept in passed.into_iter().rev() {
            arrivals.push_front(kept);
        }
        found
    }
}
