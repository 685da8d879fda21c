//! Unclassified messages, and those that wait behind them.
//!
//! Owns who is tried again and when, and which messages of an ordered queue wait until the first
//! unclassified one is classified. It refuses to know scripts.

use std::collections::{BTreeMap, BTreeSet};

use super::entries::{Entries, Flags, Place, Slot};
use super::expiry::Whereabouts;
use super::{Queue, Unclassified};
use crate::{MessageId, Millis, Ordering};

/// When an unclassified message is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextTry {
    /// As soon as its turn comes.
    Soon,
    /// Not before this time.
    At(Millis),
    /// When the script changes.
    OnChange,
    /// A try is under way.
    Running,
}

/// One unclassified message.
#[derive(Debug)]
pub(crate) struct Parked {
    pub(crate) slot: Slot,
    next: NextTry,
    /// What the last try said.
    pub(crate) error: Box<str>,
}

/// The unclassified messages of a queue.
#[derive(Debug, Default)]
pub(crate) struct Parking {
    /// By position.
    parked: BTreeMap<u64, Parked>,
    /// All of them: the first is the oldest.
    ids: BTreeSet<MessageId>,
    /// Positions of those that are tried soon, at a time, and when the script changes.
    soon: BTreeSet<u64>,
    timed: BTreeSet<(Millis, u64)>,
    on_change: BTreeSet<u64>,
    /// The script changed: those that wait are looked at again.
    retry: Option<Retry>,
    /// Classified messages behind the first unclassified one, by position; of ordered queues only.
    stopped: BTreeMap<u64, Slot>,
}

/// How far the messages that wait have been told of a change of their script.
#[derive(Debug)]
struct Retry {
    /// Positions before this one have.
    next: u64,
    /// From here on messages came after the change.
    end: u64,
}

/// Rough bytes of one message here.
const PARKED_BYTES: usize = 256;
const STOPPED_BYTES: usize = 128;

impl Parking {
    pub(crate) fn unclassified(&self) -> usize {
        self.parked.len()
    }

    pub(crate) fn stopped(&self) -> usize {
        self.stopped.len()
    }

    /// The oldest unclassified message.
    pub(crate) fn oldest(&self) -> Option<MessageId> {
        self.ids.first().copied()
    }

    /// The first unclassified message in the queue's order.
    pub(crate) fn first(&self) -> Option<Slot> {
        self.parked.first_key_value().map(|(_, it)| it.slot)
    }

    /// The last one in the queue's order.
    pub(crate) fn newest(&self) -> Option<Slot> {
        self.parked.last_key_value().map(|(_, it)| it.slot)
    }

    pub(crate) fn get(&self, position: u64) -> Option<&Parked> {
        self.parked.get(&position)
    }

    /// When a message is tried again.
    pub(crate) fn next_try(&self, position: u64) -> Option<NextTry> {
        let next = self.parked.get(&position)?.next;
        let retry = self.retry.as_ref();
        let soon = retry.is_some_and(|it| (it.next..it.end).contains(&position));
        Some(match next {
            NextTry::At(_) | NextTry::OnChange if soon => NextTry::Soon,
            NextTry::At(_) | NextTry::OnChange | NextTry::Soon | NextTry::Running => next,
        })
    }

    /// When the next message becomes one to try.
    pub(crate) fn next_deadline(&self) -> Option<Millis> {
        self.timed.first().map(|(at, _)| *at)
    }

    /// Messages whose time has come are to be tried soon, `budget` at most.
    pub(crate) fn release_timed(&mut self, now: Millis, budget: usize) {
        for _ in 0..budget {
            let Some((_, position)) = self.timed.pop_first_if_due(now) else {
                break;
            };
            self.set_next(position, NextTry::Soon);
        }
    }

    /// Some can be tried, or are to be looked at whether they can.
    pub(crate) fn has_soon(&self) -> bool {
        !self.soon.is_empty() || self.retry.is_some()
    }

    /// Takes the next message to try: its position and slot. It counts as tried until
    /// [`Self::set_next`].
    pub(crate) fn begin_try(&mut self) -> Option<(u64, Slot)> {
        let position = *self.soon.first()?;
        if self.retry.as_ref().is_some_and(|it| position >= it.next) {
            // Not before those in front of it; and once tried it would be tried again.
            return None;
        }
        self.soon.remove(&position);
        let it = self.parked.get_mut(&position)?;
        it.next = NextTry::Running;
        Some((position, it.slot))
    }

    pub(crate) fn set_next(&mut self, position: u64, next: NextTry) {
        self.unlist(position);
        if let Some(it) = self.parked.get_mut(&position) {
            it.next = next;
            self.list(position, next);
        }
    }

    pub(crate) fn set_error(&mut self, position: u64, error: &str) {
        if let Some(it) = self.parked.get_mut(&position) {
            it.error = error.into();
        }
    }

    /// The script changed: all but those under way are tried soon. Messages from position `end` on
    /// come later. Next: [`Self::retry_some`].
    pub(crate) fn try_all_soon(&mut self, end: u64) {
        if !self.parked.is_empty() {
            self.retry = Some(Retry { next: 0, end });
        }
    }

    /// After a change of the script: looks at the next messages, `budget` at most.
    pub(crate) fn retry_some(&mut self, budget: usize) {
        let Some(retry) = self.retry.take() else {
            return;
        };
        let some = self.parked.range(retry.next..retry.end).take(budget);
        let some: Vec<_> = some.map(|(position, it)| (*position, it.next)).collect();
        for (position, next) in &some {
            match next {
                NextTry::At(_) | NextTry::OnChange => self.set_next(*position, NextTry::Soon),
                NextTry::Soon | NextTry::Running => {}
            }
        }
        if some.len() == budget
            && let Some((last, _)) = some.last()
        {
            let next = last + 1;
            self.retry = Some(Retry { next, ..retry });
        }
    }

    fn list(&mut self, position: u64, next: NextTry) {
        match next {
            NextTry::Soon => _ = self.soon.insert(position),
            NextTry::At(at) => _ = self.timed.insert((at, position)),
            NextTry::OnChange => _ = self.on_change.insert(position),
            NextTry::Running => {}
        }
    }

    fn unlist(&mut self, position: u64) {
        self.soon.remove(&position);
        self.on_change.remove(&position);
        if let Some(NextTry::At(at)) = self.parked.get(&position).map(|it| it.next) {
            self.timed.remove(&(at, position));
        }
    }

    fn is_before(&self, position: u64) -> bool {
        let parked = self.parked.first_key_value().map(|(at, _)| *at);
        let stopped = self.stopped.first_key_value().map(|(at, _)| *at);
        [parked, stopped]
            .into_iter()
            .flatten()
            .any(|it| it < position)
    }

    /// Messages that are behind no unclassified one any more.
    pub(crate) fn has_passable(&self) -> bool {
        self.first_passable().is_some()
    }

    fn first_passable(&self) -> Option<u64> {
        let (first, _) = self.stopped.first_key_value()?;
        let barrier = self.parked.first_key_value().map(|(at, _)| *at);
        barrier.is_none_or(|at| *first < at).then_some(*first)
    }

    /// Rough bytes of memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.parked.len() * PARKED_BYTES + self.stopped.len() * STOPPED_BYTES
    }

    fn assert_invariants(&self, entries: &Entries) {
        for (position, it) in &self.parked {
            let entry = entries.at(it.slot);
            assert_eq!(entry.position, *position, "position of {}", entry.id);
            assert_eq!(entry.place, Place::Parked, "place of {}", entry.id);
            assert!(self.ids.contains(&entry.id), "{} is not listed", entry.id);
            let lists = [
                self.soon.contains(position),
                self.on_change.contains(position),
                matches!(it.next, NextTry::At(at) if self.timed.contains(&(at, *position))),
            ];
            let expected = usize::from(it.next != NextTry::Running);
            let listed = lists.into_iter().filter(|is_there| *is_there).count();
            assert_eq!(listed, expected, "lists that {} is on", entry.id);
        }
        let listed = self.soon.len() + self.on_change.len() + self.timed.len();
        assert!(listed <= self.parked.len(), "tries of messages not here");
        assert_eq!(self.ids.len(), self.parked.len(), "ids of messages");
        for (position, slot) in &self.stopped {
            let entry = entries.at(*slot);
            assert_eq!(entry.position, *position, "position of {}", entry.id);
            assert_eq!(entry.place, Place::Stopped, "place of {}", entry.id);
        }
    }
}

/// Taking the first element of a set if its time has come.
trait PopDue {
    fn pop_first_if_due(&mut self, now: Millis) -> Option<(Millis, u64)>;
}

impl PopDue for BTreeSet<(Millis, u64)> {
    fn pop_first_if_due(&mut self, now: Millis) -> Option<(Millis, u64)> {
        self.first().filter(|(at, _)| *at <= now)?;
        self.pop_first()
    }
}

impl Queue {
    /// A message at `position` must wait for an unclassified one before it.
    pub(crate) fn is_stopped(&self, position: u64) -> bool {
        self.config.ordering != Ordering::None && self.parking.is_before(position)
    }

    /// Leader: a message without a place waits for a script. Its group and its not-before time are
    /// kept until then; `error` is what the last try said.
    pub(crate) fn park(
        &mut self,
        slot: Slot,
        (group, due): (Option<u128>, Option<Millis>),
        next: NextTry,
        error: &str,
    ) {
        let entry = self.entries.at_mut(slot);
        entry.place = Place::Parked;
        let (lane, position, id) = (entry.lane, entry.position, entry.id);
        self.lanes.add_pending(lane);
        self.keep_for_later(slot, group, due);
        self.list_expiry(slot, Whereabouts::Known);
        let parked = Parked {
            slot,
            next,
            error: error.into(),
        };
        self.parking.parked.insert(position, parked);
        self.parking.ids.insert(id);
        self.parking.list(position, next);
    }

    /// Leader: an unclassified message was classified; it goes where it belongs, or waits behind
    /// other unclassified ones.
    pub(crate) fn unpark(&mut self, slot: Slot, group: Option<u128>) {
        let (position, id) = {
            let entry = self.entries.at(slot);
            (entry.position, entry.id)
        };
        self.remove_parked(position, id);
        let due = self.behind_due.remove(&slot);
        self.group_of.remove(&slot);
        self.enter(slot, group, due);
    }

    /// Leader: a pending message waits behind an unclassified one.
    pub(super) fn stop(&mut self, slot: Slot, group: Option<u128>, due: Option<Millis>) {
        let entry = self.entries.at_mut(slot);
        entry.place = Place::Stopped;
        let position = entry.position;
        self.keep_for_later(slot, group, due);
        self.list_expiry(slot, Whereabouts::Known);
        self.parking.stopped.insert(position, slot);
    }

    fn keep_for_later(&mut self, slot: Slot, group: Option<u128>, due: Option<Millis>) {
        if let Some(group) = group {
            self.group_of.insert(slot, group);
        }
        if let Some(due) = due {
            self.behind_due.insert(slot, due);
        }
    }

    /// Leader: messages that are behind no unclassified one any more go on, `budget` at most.
    pub(crate) fn release_stopped(&mut self, budget: usize) {
        for _ in 0..budget {
            let Some(position) = self.parking.first_passable() else {
                break;
            };
            let Some(slot) = self.parking.stopped.remove(&position) else {
                break;
            };
            self.preserve(slot);
            let due = self.behind_due.remove(&slot);
            let group = self.group_of.remove(&slot);
            self.enter(slot, group, due);
        }
    }

    fn remove_parked(&mut self, position: u64, id: MessageId) {
        self.parking.unlist(position);
        self.parking.parked.remove(&position);
        self.parking.ids.remove(&id);
    }

    /// A message that is parked or stopped leaves for good. Returns its not-before time.
    pub(super) fn leave_parking(&mut self, slot: Slot) -> Option<Millis> {
        let entry = self.entries.at(slot);
        let (position, id) = (entry.position, entry.id);
        match entry.place {
            Place::Parked => self.remove_parked(position, id),
            Place::Stopped => _ = self.parking.stopped.remove(&position),
            Place::Free
            | Place::New
            | Place::Ready
            | Place::Delayed
            | Place::Behind
            | Place::Throttled
            | Place::Leased
            | Place::Deciding
            | Place::Departing
            | Place::Aside => return None,
        }
        self.behind_due.remove(&slot)
    }

    /// Messages with a position below `limit` that are stopped or parked. They stay there.
    pub(crate) fn parked_below(&self, limit: u64, most: usize) -> Vec<Slot> {
        let stopped = self.parking.stopped.range(..limit);
        let parked = self.parking.parked.range(..limit);
        let slots = stopped.map(|(_, slot)| *slot);
        let slots = slots.chain(parked.map(|(_, it)| it.slot));
        slots.take(most).collect()
    }

    /// Leader: a dead letter that was taken out of its lane, or out of the delayed ones with its
    /// time, waits for the end of a redrive.
    pub(crate) fn set_aside(&mut self, slot: Slot, due: Option<Millis>) {
        self.entries.at_mut(slot).place = Place::Aside;
        self.aside += 1;
        self.keep_for_later(slot, None, due);
    }

    /// Leader: a message that was set aside goes back to its place.
    pub(crate) fn put_back(&mut self, slot: Slot) {
        self.preserve(slot);
        self.aside -= 1;
        let due = self.behind_due.remove(&slot);
        self.settle_place(slot, due);
    }

    /// Leader: a script decides what follows the failed delivery of a leased message. The record of
    /// its lease stands until then.
    pub(crate) fn begin_deciding(&mut self, slot: Slot) {
        let entry = self.entries.at_mut(slot);
        entry.place = Place::Deciding;
        let lease = self.leases.remove(entry.id);
        let recorded = lease.filter(|lease| !lease.reclaim);
        let end = recorded.map(|lease| lease.expires_at);
        self.deciding.insert(slot, end);
    }

    /// Replicated: a script failed on a message.
    pub(crate) fn note_try(&mut self, slot: Slot, version: u64, timed_out: bool) {
        let entry = self.entries.at_mut(slot);
        entry.flags = entry.flags.with(Flags::UNCLASSIFIED);
        let mut it = self.unclassified.remove(&slot).unwrap_or_default();
        it.tries = it.tries.saturating_add(1);
        it.timeouts = if timed_out {
            it.timeouts.saturating_add(1)
        } else {
            0
        };
        it.version = version;
        self.unclassified.insert(slot, it);
    }

    /// Replicated: a message is classified. Its group is another matter.
    pub(crate) fn classify(&mut self, slot: Slot, key: &str, weight: u32, attributes: bool) {
        self.unclassified.remove(&slot);
        let entry = self.entries.at_mut(slot);
        let flags = entry.flags.without(Flags::UNCLASSIFIED);
        entry.flags = if attributes {
            flags.with(Flags::ATTRIBUTES)
        } else {
            flags.without(Flags::ATTRIBUTES)
        };
        entry.weight = weight.max(1);
        let (lane, is_pending) = (entry.lane, entry.place != Place::New);
        let priority = self.lanes.priority(lane);
        if is_pending {
            self.lanes.remove_pending(lane);
        }
        self.lanes.release(lane);
        let weight = (weight.max(1), super::Weighs::NewKey);
        let lane = self.lanes.hold(key, priority, weight);
        self.entries.at_mut(slot).lane = lane;
        if is_pending {
            self.lanes.add_pending(lane);
        }
    }

    /// Replicated: the content of a message is another one, elsewhere. Returns the old place.
    pub(crate) fn replace_content(
        &mut self,
        slot: Slot,
        at: crate::Lsn,
        len: u32,
    ) -> (crate::Lsn, u32) {
        let entry = self.entries.at_mut(slot);
        let old = (entry.at, entry.len);
        (entry.at, entry.len) = (at, len);
        self.bytes = self.bytes - u64::from(old.1) + u64::from(len);
        old
    }

    /// Tries, timeouts and all that is known of an unclassified message.
    pub(crate) fn unclassified(&self, slot: Slot) -> Unclassified {
        self.unclassified.get(&slot).cloned().unwrap_or_default()
    }

    /// Panics when parked messages contradict the rest of the queue.
    pub(super) fn assert_parking(&self) {
        self.parking.assert_invariants(&self.entries);
        let (mut deciding, mut aside, mut parked) = (0, 0, 0);
        for slot in self.entries.live_slots(0, self.entries.slots()) {
            let entry = self.entries.at(slot);
            let is_unclassified = entry.flags.has(Flags::UNCLASSIFIED);
            match entry.place {
                Place::Deciding => {
                    deciding += 1;
                    assert!(self.deciding.contains_key(&slot), "{} decides", entry.id);
                }
                Place::Aside => aside += 1,
                Place::Parked => parked += 1,
                Place::Free
                | Place::New
                | Place::Ready
                | Place::Delayed
                | Place::Behind
                | Place::Throttled
                | Place::Leased
                | Place::Departing
                | Place::Stopped => {}
            }
            let must_be_parked = is_unclassified && !self.is_dead_letter();
            let is_parked = entry.place == Place::Parked;
            assert_eq!(is_parked, must_be_parked, "{} parked", entry.id);
        }
        let counts = (self.deciding.len(), self.aside, self.parking.unclassified());
        assert_eq!((deciding, aside, parked), counts, "deciding, aside, parked");
        for (slot, _) in self.unclassified.iter() {
            let entry = self.entries.at(*slot);
            let known = entry.flags.has(Flags::UNCLASSIFIED);
            assert!(known, "slot {slot} is classified");
            let redriven = !self.is_dead_letter() || entry.place == Place::Aside;
            assert!(redriven, "{} is a dead letter with tries", entry.id);
        }
        if self.config.ordering == Ordering::None {
            assert_eq!(self.parking.stopped(), 0, "stopped in an unordered queue");
        }
    }
}
