//! Ready messages go into their lanes and come out: the next one by priority, turn and position.

use super::entries::{Entries, Flags, NIL, Slot};
use super::lanes::{Lane, Lanes};
use super::lines::LineCursor;
use super::long_lane::Fifo;
use crate::FrameLimit;

/// How far [`Lanes::take_before`] has come.
#[derive(Debug, Default)]
pub(crate) struct LaneWalk {
    /// Lanes before this one have been looked at.
    lane: u32,
    /// How many more lanes and lines may be looked at.
    pub(crate) looks: u32,
    /// Among the messages that are in no lane.
    pub(crate) lines: LineCursor,
}

/// What was taken out of the lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// This message.
    Message(Slot),
    /// Nothing yet: the message is in the first page of this lane, which is to be read first.
    InPage(u32),
    /// There is none.
    Nothing,
}

impl Lanes {
    /// Puts a message into its lane, at the place its position gives it.
    pub(crate) fn push(&mut self, entries: &mut Entries, slot: Slot) {
        let entry = entries.at_mut(slot);
        entry.next = NIL;
        let (lane, position) = (entry.lane, entry.position);
        let is_transient = entry.flags.has(Flags::TRANSIENT);
        let hot = self.hot();
        let it = self.at_mut(lane);
        // What never leaves memory makes no lane long. Of two lanes of one key, one has pages.
        let stays = is_transient || it.width != 0;
        if it.behind.is_none() && (stays || it.ready < hot) {
            self.push_front(entries, slot);
        } else {
            self.push_long(entries, slot);
        }
        self.count_ready(entries, lane, position);
    }

    /// Puts a message that was picked before back to its position, which may be anywhere.
    pub(crate) fn push_returned(&mut self, entries: &Entries, slot: Slot) {
        let entry = entries.at(slot);
        let (lane, position) = (entry.lane, entry.position);
        let returned = &mut self.at_mut(lane).returned;
        returned.get_or_insert_default().insert(position, slot);
        self.count_ready(entries, lane, position);
    }

    /// A message at `position` is in its lane.
    fn count_ready(&mut self, entries: &Entries, lane: u32, position: u64) {
        self.ready += 1;
        let it = self.at_mut(lane);
        it.ready += 1;
        let blocked = it.blocked;
        self.blocked_ready += u64::from(blocked);
        let it = self.at_mut(lane);
        if !blocked && !it.is_on_ring() && it.may_join(entries, position) {
            self.join_ring(lane);
        }
        if self.oldest.is_some() && self.first(entries, lane).is_some_and(|it| it.0 == position) {
            self.note_first(entries, lane);
        }
    }

    /// Puts a message before everything that is behind the front. Not yet counted.
    pub(super) fn push_front(&mut self, entries: &mut Entries, slot: Slot) {
        let entry = entries.at(slot);
        let (lane, position) = (entry.lane, entry.position);
        let it = self.at_mut(lane);
        if it.front.head == NIL || position > it.front.tail_position {
            it.front.push(entries, slot, position);
        } else {
            it.returned.get_or_insert_default().insert(position, slot);
        }
    }

    /// The first message of a lane, by position; without a slot when it is in a page.
    pub(super) fn first(&self, entries: &Entries, lane: u32) -> Option<(u64, Option<Slot>)> {
        let it = self.at(lane);
        let back = it.returned.as_ref().and_then(|set| set.first_key_value());
        let back = back.map(|(position, slot)| (*position, Some(*slot)));
        let front = if it.front.head == NIL {
            let page = it.behind.as_ref().and_then(|it| it.pages.front());
            page.map(|page| (page.first, None))
        } else {
            Some((entries.at(it.front.head).position, Some(it.front.head)))
        };
        match (front, back) {
            (Some(front), Some(back)) => Some(if front.0 < back.0 { front } else { back }),
            (front, back) => front.or(back),
        }
    }

    /// Takes the first message out of a lane; the lane stays on its ring.
    fn pop_first(&mut self, entries: &Entries, lane: u32) -> Option<Slot> {
        let it = self.at(lane);
        let slot = if it.returned.is_none() {
            (it.front.head != NIL).then_some(it.front.head)?
        } else {
            self.first(entries, lane)?.1?
        };
        let it = self.at_mut(lane);
        if it.front.head == slot {
            it.front.head = entries.at(slot).next;
            if it.front.head == NIL && it.behind.is_some() {
                self.move_up(lane);
            }
        } else if let Some(set) = it.returned.as_mut() {
            set.remove(&entries.at(slot).position);
            if set.is_empty() {
                it.returned = None;
            }
        }
        self.count_taken(lane);
        Some(slot)
    }

    /// The next message by priority, turn and position, for a consumer with such frames.
    pub(crate) fn pick(&mut self, entries: &Entries, limit: FrameLimit) -> Taken {
        let Some((ring, lane)) = self.turn(entries, limit) else {
            return Taken::Nothing;
        };
        if self.is_first_paged(entries, lane) {
            return Taken::InPage(lane);
        }
        let (quantum, weight_max) = (self.quantum, self.weight_max);
        let it = self.at_mut(lane);
        if it.deficit <= 0 {
            let weight = it.weight.min(weight_max).max(1);
            it.deficit += i64::from(weight).saturating_mul(quantum);
        }
        it.deficit -= 1;
        let turn_over = it.deficit <= 0;
        let Some(slot) = self.pop_first(entries, lane) else {
            return Taken::Nothing;
        };
        let it = self.at(lane);
        let (next, is_empty) = (it.next, it.ready == 0);
        if turn_over || is_empty {
            self.end_turn(ring);
        }
        if is_empty {
            self.leave_ring(ring, lane);
        } else if turn_over && let Some(ring) = self.rings.get_mut(ring) {
            ring.current = next;
        }
        Taken::Message(slot)
    }

    /// The first message of a lane is in a page.
    fn is_first_paged(&self, entries: &Entries, lane: u32) -> bool {
        let it = self.at(lane);
        it.front.head == NIL
            && it.behind.is_some()
            && self.first(entries, lane).is_some_and(|it| it.1.is_none())
    }

    /// The first message of the lane whose turn it is.
    pub(crate) fn head_of(&self, entries: &Entries, lane: u32) -> Taken {
        match self.first(entries, lane) {
            Some((_, Some(slot))) => Taken::Message(slot),
            Some((_, None)) => Taken::InPage(lane),
            None => Taken::Nothing,
        }
    }

    /// Takes the first message of a lane without using up the lane's turn.
    pub(crate) fn take_first(&mut self, entries: &Entries, lane: u32) -> Taken {
        if self.is_first_paged(entries, lane) {
            return Taken::InPage(lane);
        }
        let Some(slot) = self.pop_first(entries, lane) else {
            return Taken::Nothing;
        };
        self.leave_if_empty(lane);
        Taken::Message(slot)
    }

    /// A message left its lane out of turn.
    fn leave_if_empty(&mut self, lane: u32) {
        let it = self.at_mut(lane);
        if it.ready == 0 {
            it.blocked = false;
            if !it.is_on_ring() {
                it.front = Fifo::EMPTY;
            } else if let Some(ring) = self.ring_of(lane) {
                self.leave_ring(ring, lane);
            }
        }
    }

    /// Takes a message out of its lane that was put there by [`Lanes::push_returned`].
    pub(crate) fn take_returned(&mut self, entries: &Entries, slot: Slot) -> bool {
        let entry = entries.at(slot);
        let lane = entry.lane;
        let it = self.at_mut(lane);
        let set = it.returned.as_mut();
        if set.and_then(|set| set.remove(&entry.position)).is_none() {
            return false;
        }
        it.returned.take_if(|set| set.is_empty());
        self.count_taken(lane);
        self.leave_if_empty(lane);
        true
    }

    /// A message is out of its lane.
    fn count_taken(&mut self, lane: u32) {
        let it = self.at_mut(lane);
        it.ready -= 1;
        let blocked = it.blocked;
        self.blocked_ready -= u64::from(blocked);
        self.ready -= 1;
    }

    /// Takes any ready message with a position below `limit`, going over the lanes once, as far as
    /// `walk` may look. Turns are left as they are; lanes whose page cannot be read are passed
    /// over.
    pub(crate) fn take_before(
        &mut self,
        entries: &Entries,
        limit: u64,
        walk: &mut LaneWalk,
    ) -> Taken {
        while walk.looks > 0
            && let Some(it) = self.lane(walk.lane)
        {
            walk.looks -= 1;
            let (lane, may_take) = (walk.lane, it.has_first() && !it.is_stalled());
            let first = may_take.then(|| self.first(entries, lane)).flatten();
            if first.is_some_and(|(position, _)| position < limit) {
                return self.take_first(entries, lane);
            }
            walk.lane += 1;
        }
        Taken::Nothing
    }

    /// Messages of the slot's lane that go before it, counted up to `most`.
    pub(crate) fn ahead(&self, entries: &Entries, slot: Slot, most: u64) -> u64 {
        let entry = entries.at(slot);
        let it = self.at(entry.lane);
        let mut ahead = it.returned_before(entry.position);
        let mut count = |mut walk: Slot| {
            while walk != NIL && walk != slot && ahead < most {
                if entries.at(walk).position < entry.position {
                    ahead += 1;
                }
                walk = entries.at(walk).next;
            }
        };
        count(it.front.head);
        if let Some(behind) = &it.behind {
            count(behind.back.head);
            let before = behind.pages.iter().filter(|it| it.last < entry.position);
            ahead += before.map(|page| u64::from(page.count)).sum::<u64>();
        }
        ahead.min(most)
    }
}

impl Lane {
    /// A message at `position` came: the lane, which is on no ring, has something to deliver.
    fn may_join(&mut self, entries: &Entries, position: u64) -> bool {
        match self.behind.as_deref_mut() {
            Some(behind) if behind.stalled => {
                behind.stalled = position >= behind.first(entries);
                !behind.stalled
            }
            _ => true,
        }
    }
}
