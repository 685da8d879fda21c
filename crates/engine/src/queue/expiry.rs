//! When messages are to leave undelivered, and which is next.
//!
//! A message's time is its own, or its queue's: so long after it came in. Where the queue's counts,
//! ready messages cost no index: lanes are in the order of positions, so the next one is the first
//! of some lane. All others that wait are in an index: those with a time of their own, and those
//! that are out of their lane. A message with its own time is never in a page, and never in the
//! middle of a chain: it can leave from anywhere.
//!
//! Owns that order. It refuses to know what becomes of a message whose time has come.

use std::collections::BTreeMap;

use ahash::RandomState;

use super::Queue;
use super::entries::{Flags, Place, Slot};
use super::picks::Taken;
use super::throttled::Hold;
use crate::steady::SteadyMap;
use crate::{MessageId, Millis};

/// See the module.
#[derive(Debug)]
pub(crate) struct Expiry {
    /// Messages leave so long after they came in. 0 = unless they are delivered at once.
    pub(crate) ttl_ms: Option<u64>,
    /// Times of messages that have their own, which comes before their queue's.
    own: SteadyMap<Slot, Millis>,
    /// Messages that wait and are not found by their position, and where they are to be found. A
    /// message that is leased since may be here too.
    index: BTreeMap<(Millis, Slot), Whereabouts>,
    /// When the oldest ready message goes by its queue's time; `Millis(0)` while it is in a page,
    /// which has to be read.
    oldest: Option<Millis>,
}

/// What is to be known of a message that waits to take it out of its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    /// Its entry says all.
    Known,
    /// Among the delayed ones, until this time.
    Delayed(Millis),
    /// In a line of this bucket.
    InLine(Hold),
}

/// A step towards messages whose time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expired {
    /// This one is out of its lane or list.
    Message(Slot),
    /// The oldest is in the first page of this lane, which is to be read.
    InPage(u32),
    /// One is leased, or cannot leave now: it is looked at again when it comes back.
    NotNow,
    /// There is none.
    Nothing,
}

/// Messages of an ordering group that are walked over to find one in its middle. One that is
/// farther behind leaves when its group lets it go.
const WALK_MAX: usize = 1024;

impl Expiry {
    pub(super) fn new(hasher: RandomState) -> Self {
        Self {
            ttl_ms: None,
            own: SteadyMap::new(hasher),
            index: BTreeMap::new(),
            oldest: None,
        }
    }

    /// When the next message goes, or a page has to be read to know.
    pub(super) fn next(&self) -> Option<Millis> {
        let listed = self.index.first_key_value().map(|((at, _), _)| *at);
        [listed, self.oldest].into_iter().flatten().min()
    }

    /// Rough bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        let node = size_of::<((Millis, Slot), Whereabouts)>() + 8;
        self.index.len() * node + self.own.memory_bytes()
    }
}

impl Queue {
    /// The own time of a message that is to be stored with this `ttl_ms`; `None` when its queue's
    /// comes first.
    pub(crate) fn expiry_of(&self, id: MessageId, ttl_ms: Option<u64>) -> Option<Millis> {
        let ttl_ms = ttl_ms?;
        let is_first = self.expiry.ttl_ms.is_none_or(|of_queue| ttl_ms < of_queue);
        is_first.then(|| id.enqueued_at().after_ms(ttl_ms))
    }

    /// Replicated: a message that was just stored leaves at this time, before its queue says so.
    pub(crate) fn keep_expiry(&mut self, slot: Slot, at: Millis) {
        let entry = self.entries.at_mut(slot);
        entry.flags = entry.flags.with(Flags::EXPIRES);
        self.expiry.own.insert(slot, at);
    }

    /// The message's own time to leave.
    pub(crate) fn own_expiry(&self, slot: Slot) -> Option<Millis> {
        let has_own = self.entries.at(slot).flags.has(Flags::EXPIRES);
        has_own.then(|| self.expiry.own.get(&slot).copied())?
    }

    /// When a message leaves undelivered.
    pub(crate) fn expires_at(&self, slot: Slot) -> Option<Millis> {
        let entry = self.entries.at(slot);
        if entry.flags.has(Flags::EXPIRES) {
            return self.expiry.own.get(&slot).copied();
        }
        let ttl_ms = self.expiry.ttl_ms?;
        Some(entry.id.enqueued_at().after_ms(ttl_ms))
    }

    /// A message waits at this place, out of its lane.
    pub(super) fn list_expiry(&mut self, slot: Slot, whereabouts: Whereabouts) {
        if let Some(at) = self.expires_at(slot) {
            self.expiry.index.insert((at, slot), whereabouts);
        }
    }

    /// A message is in its lane.
    pub(super) fn list_ready(&mut self, slot: Slot) {
        if self.entries.at(slot).flags.has(Flags::EXPIRES) {
            self.list_expiry(slot, Whereabouts::Known);
        } else {
            self.unlist_expiry(slot);
        }
    }

    pub(super) fn unlist_expiry(&mut self, slot: Slot) {
        if !self.expiry.index.is_empty()
            && let Some(at) = self.expires_at(slot)
        {
            self.expiry.index.remove(&(at, slot));
        }
    }

    /// A message leaves, or goes where nothing expires.
    pub(super) fn forget_expiry(&mut self, slot: Slot) {
        self.unlist_expiry(slot);
        if self.entries.at(slot).flags.has(Flags::EXPIRES) {
            self.expiry.own.remove(&slot);
        }
    }

    /// Notes when the oldest ready message goes.
    pub(crate) fn look_at_oldest(&mut self) {
        let Some(ttl_ms) = self.expiry.ttl_ms else {
            return;
        };
        let oldest = self.lanes.peek_oldest(&self.entries);
        self.expiry.oldest = oldest.map(|(_, slot)| {
            slot.map_or(Millis(0), |slot| {
                let id = self.entries.at(slot).id;
                id.enqueued_at().after_ms(ttl_ms)
            })
        });
    }

    /// Some message's time had come at `now`, and it waits, or a page has to be read to know.
    pub(crate) fn has_expired(&self, now: Millis) -> bool {
        self.expiry.next().is_some_and(|at| at <= now)
    }

    /// Leader: takes a message whose time has come by `now` out of its place.
    pub(crate) fn take_expired(&mut self, now: Millis) -> Expired {
        let first = self.expiry.index.first_entry();
        if let Some(first) = first.filter(|it| it.key().0 <= now) {
            let ((_, slot), whereabouts) = first.remove_entry();
            return if self.take_listed(slot, whereabouts) {
                Expired::Message(slot)
            } else {
                Expired::NotNow
            };
        }
        self.look_at_oldest();
        if self.expiry.oldest.is_none_or(|at| at > now) {
            return Expired::Nothing;
        }
        let Some((lane, slot)) = self.lanes.peek_oldest(&self.entries) else {
            return Expired::Nothing;
        };
        if slot.is_none() {
            return Expired::InPage(lane);
        }
        match self.lanes.take_first(&self.entries, lane) {
            Taken::Message(slot) => Expired::Message(slot),
            Taken::InPage(lane) => Expired::InPage(lane),
            Taken::Nothing => Expired::Nothing,
        }
    }

    fn take_listed(&mut self, slot: Slot, whereabouts: Whereabouts) -> bool {
        let entry = self.entries.at(slot);
        match (entry.place, whereabouts) {
            (Place::Ready, _) => self.lanes.take_returned(&self.entries, slot),
            (Place::Delayed, Whereabouts::Delayed(due)) => {
                let found = self.delayed.remove(&(due, slot));
                if found {
                    self.preserve_delayed(slot, due);
                }
                found
            }
            (Place::Throttled, Whereabouts::InLine(hold)) => self.take_from_line(hold, slot),
            (Place::Behind, _) => {
                let group = entry.group;
                self.groups
                    .take_waiting(&mut self.entries, group, slot, WALK_MAX)
            }
            // What removes them takes them out.
            (Place::Parked | Place::Stopped, _) => true,
            (
                Place::Delayed
                | Place::Throttled
                | Place::Free
                | Place::New
                | Place::Leased
                | Place::Deciding
                | Place::Departing
                | Place::Aside,
                _,
            ) => false,
        }
    }

    /// Panics when a message that waits would not be found in time.
    pub(super) fn assert_expiry(&self) {
        let name = &self.identity.name;
        let slots = || self.entries.live_slots(0, self.entries.slots());
        let own = slots().filter(|slot| self.entries.at(*slot).flags.has(Flags::EXPIRES));
        assert_eq!(own.count(), self.expiry.own.len(), "{name}: own times");
        for (at, slot) in self.expiry.index.keys() {
            let is_there = self.entries.live(*slot).is_some();
            assert!(is_there, "{name}: slot {slot} expires and is free");
            assert_eq!(self.expires_at(*slot), Some(*at), "{name}: {slot} expires");
        }
        for slot in slots() {
            let Some(at) = self.expires_at(slot) else {
                continue;
            };
            let entry = self.entries.at(slot);
            let listed = match entry.place {
                Place::Ready => entry.flags.has(Flags::EXPIRES),
                Place::Delayed | Place::Throttled | Place::Parked | Place::Stopped => true,
                // One far behind was looked at in vain.
                Place::Behind => self.groups.waiting() <= WALK_MAX as u64,
                Place::Free
                | Place::New
                | Place::Leased
                | Place::Deciding
                | Place::Departing
                | Place::Aside => false,
            };
            let found = self.expiry.index.contains_key(&(at, slot));
            assert!(found || !listed, "{name}: {} expires unseen", entry.id);
        }
        if let Some(ttl_ms) = self.expiry.ttl_ms {
            let oldest = slots().filter(|slot| {
                let entry = self.entries.at(*slot);
                entry.place == Place::Ready && !entry.flags.has(Flags::EXPIRES)
            });
            let oldest = oldest.map(|slot| self.entries.at(slot).id.enqueued_at());
            if let Some(oldest) = oldest.min()
                && self.stalled.is_empty()
            {
                let noted = self.expiry.oldest;
                let in_time = noted.is_some_and(|at| at <= oldest.after_ms(ttl_ms));
                assert!(
                    in_time,
                    "{name}: the oldest expires unseen, noted {noted:?}"
                );
            }
        }
    }
}
