//! Messages in lines, lanes and queues that wait, and how they go on.

use super::Queue;
use super::entries::{NIL, Place, Slot};
use super::expiry::Whereabouts;
use super::throttled::Hold;
use crate::Millis;

/// How far a walk over the lines has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LineCursor {
    from: (u32, u32),
}

/// What became of waking.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Woken {
    /// Messages that are back in their lanes.
    pub(crate) moved: u64,
    /// More of them could be.
    pub(crate) more: bool,
}

impl Queue {
    /// Leader: a message that is out of its lane waits for a bucket. True when the bucket is to be
    /// told.
    pub(crate) fn line_up(&mut self, hold: Hold, slot: Slot) -> bool {
        let entry = self.entries.at_mut(slot);
        entry.place = Place::Throttled;
        entry.next = NIL;
        let (lane, position) = (entry.lane, entry.position);
        let priority = self.lanes.priority(lane);
        let line = self.throttled.line_of(hold, lane, priority);
        let expires = self.expires_at(slot).is_some();
        self.list_expiry(slot, Whereabouts::InLine(hold));
        let it = self.throttled.line_mut(line);
        if !expires && (it.fifo.head == NIL || position > it.fifo.tail_position) {
            it.fifo.push(&mut self.entries, slot, position);
        } else {
            it.returned.insert(position, slot);
        }
        self.throttled.in_lines += 1;
        if let Some(wait) = self.throttled.wait_mut(hold, priority) {
            wait.in_lines += 1;
        }
        self.throttled.list(hold, priority)
    }

    /// Leader: a lane waits for a bucket. True when the bucket is to be told.
    pub(crate) fn block_lane(&mut self, hold: Hold, lane: u32) -> bool {
        self.lanes.block(lane);
        let priority = self.lanes.priority(lane);
        if let Some(wait) = self.throttled.wait_mut(hold, priority)
            && !wait.lanes.contains(&lane)
        {
            wait.lanes.push(lane);
        }
        self.throttled.list(hold, priority)
    }

    /// Leader: a bucket has room for so many. Lanes and the queue that wait for it go on, and so
    /// many messages of its lines come back into their lanes that no more than `room` are woken.
    pub(crate) fn wake(&mut self, hold: Hold, priority: u8, room: u64) -> Woken {
        let Some(wait) = self.throttled.wait_mut(hold, priority) else {
            return Woken::default();
        };
        let opens = core::mem::take(&mut wait.closed);
        let lanes = core::mem::take(&mut wait.lanes);
        let most = room.saturating_sub(wait.woken).min(wait.in_lines);
        self.throttled.closed -= u32::from(opens);
        for lane in lanes {
            self.lanes.unblock(lane);
        }
        let (mut woken, mut moved) = (0, 0);
        while woken < most
            && moved < room
            && let Some(slot) = self.next_in_line(hold, priority)
        {
            moved += 1;
            let lane = self.entries.at(slot).lane;
            // In a lane that waits as a whole, or that some consumers cannot take from, it takes no
            // room from those that could go.
            if !self.lanes.at(lane).blocked && !self.lanes.is_wide(lane) {
                woken += 1;
                self.throttled.woken.insert((lane, slot), hold);
                if let Some(wait) = self.throttled.wait_mut(hold, priority) {
                    wait.woken += 1;
                }
            }
            self.rejoin_lane(slot);
        }
        Woken {
            moved,
            more: woken < most && moved == room,
        }
    }

    /// A message that is out of its line is ready again.
    pub(crate) fn rejoin_lane(&mut self, slot: Slot) {
        let entry = self.entries.at_mut(slot);
        entry.place = Place::Ready;
        entry.next = NIL;
        self.lanes.push_returned(&self.entries, slot);
        self.list_ready(slot);
    }

    /// Takes the next message out of its line, by turn and position.
    fn next_in_line(&mut self, hold: Hold, priority: u8) -> Option<Slot> {
        let line = self.throttled.wait(hold, priority)?.current;
        if line == NIL {
            return None;
        }
        let quantum = self.lanes.quantum();
        let it = self.throttled.line_mut(line);
        let weight = self.lanes.at(it.lane).weight.max(1);
        if it.deficit <= 0 {
            it.deficit = i64::from(weight).saturating_mul(quantum);
        }
        it.deficit -= 1;
        let (turn_over, next) = (it.deficit <= 0, it.next);
        let slot = self.pop_line(hold, priority, line);
        if turn_over
            && let Some(wait) = self.throttled.wait_mut(hold, priority)
            && wait.current == line
        {
            wait.current = next;
        }
        slot
    }

    /// Takes the first message of a line; an empty line goes.
    fn pop_line(&mut self, hold: Hold, priority: u8, line: u32) -> Option<Slot> {
        let it = self.throttled.line_mut(line);
        let head = it.fifo.head;
        let first = it.returned.first_key_value();
        let returned = first
            .filter(|(position, _)| head == NIL || **position < self.entries.at(head).position);
        let slot = if let Some((position, slot)) = returned.map(|(a, b)| (*a, *b)) {
            it.returned.remove(&position);
            slot
        } else if head == NIL {
            return None;
        } else {
            it.fifo.head = self.entries.at(head).next;
            head
        };
        self.left_line(hold, priority, line);
        Some(slot)
    }

    /// A message is out of its line; an empty line goes.
    fn left_line(&mut self, hold: Hold, priority: u8, line: u32) {
        let it = self.throttled.line(line);
        let is_empty = it.fifo.head == NIL && it.returned.is_empty();
        self.throttled.in_lines -= 1;
        if let Some(wait) = self.throttled.wait_mut(hold, priority) {
            wait.in_lines -= 1;
        }
        if is_empty {
            self.throttled.remove_line(hold, priority, line);
        }
    }

    /// Leader: takes a message that expires out of its line, wherever it is there.
    pub(super) fn take_from_line(&mut self, hold: Hold, slot: Slot) -> bool {
        let entry = self.entries.at(slot);
        let (lane, position) = (entry.lane, entry.position);
        let line = self.throttled.by_lane.get(&(hold.bucket, lane)).copied();
        let Some(line) = line else { return false };
        let found = self.throttled.line_mut(line).returned.remove(&position);
        if found.is_some() {
            self.left_line(hold, self.lanes.priority(lane), line);
        }
        found.is_some()
    }

    /// Leader: takes any message with a position below `limit` out of its line, going over the
    /// lines once, `looks` of them at most.
    pub(crate) fn take_from_lines(
        &mut self,
        cursor: &mut LineCursor,
        limit: u64,
        looks: &mut u32,
    ) -> Option<Slot> {
        while *looks > 0 {
            *looks -= 1;
            let next = self.throttled.by_lane.range(cursor.from..).next();
            let ((bucket, lane), line) = next.map(|(key, line)| (*key, *line))?;
            let it = self.throttled.line(line);
            let hold = Hold {
                throttle: it.throttle,
                bucket,
            };
            let returned = it.returned.first_key_value().map(|(position, _)| *position);
            let head = (it.fifo.head != NIL).then(|| self.entries.at(it.fifo.head).position);
            if [returned, head].into_iter().flatten().any(|it| it < limit) {
                return self.pop_line(hold, self.lanes.priority(lane), line);
            }
            cursor.from = (bucket, lane.saturating_add(1));
        }
        None
    }

    /// Leader: what waits for throttles that apply no more goes on, `budget` messages at most.
    /// Buckets that are to forget a unit of this queue go to `out`. True when there is no more.
    pub(crate) fn drain_throttled(&mut self, budget: u64, out: &mut Vec<(u32, u8)>) -> bool {
        let mut left = budget;
        while let Some(at) = self
            .throttled
            .active
            .iter()
            .position(|it| it.subscribers == 0)
        {
            let Some(it) = self.throttled.active.get_mut(at) else {
                break;
            };
            let throttle = it.throttle;
            let Some((bucket, priority)) = it.waits.keys().next().copied() else {
                self.throttled.active.remove(at);
                continue;
            };
            let hold = Hold { throttle, bucket };
            if left == 0 {
                return false;
            }
            left -= 1;
            let before = self.throttled.in_lines;
            let parked = self
                .throttled
                .wait(hold, priority)
                .map_or(0, |it| it.in_lines);
            while left > 0
                && let Some(slot) = self.next_in_line(hold, priority)
            {
                self.rejoin_lane(slot);
                left -= 1;
            }
            if before - self.throttled.in_lines < parked {
                return false;
            }
            self.wake(hold, priority, 0);
            let it = self.throttled.active.get_mut(at);
            let wait = it.and_then(|it| it.waits.remove(&(bucket, priority)));
            if wait.is_some_and(|it| it.listed) {
                out.push((bucket, priority));
            }
        }
        self.throttled.woken.retain(|_, hold| {
            let mut active = self.throttled.active.iter();
            active.any(|it| it.throttle == hold.throttle)
        });
        true
    }

    /// Messages that wait for a bucket at a priority.
    pub(crate) fn waiting_for(&self, hold: Hold, priority: u8) -> u64 {
        let Some(wait) = self.throttled.wait(hold, priority) else {
            return 0;
        };
        if wait.closed {
            return self.lanes.ready();
        }
        let lanes = wait.lanes.iter().map(|lane| self.lanes.blocked_in(*lane));
        wait.in_lines + lanes.sum::<u64>()
    }

    /// Leader: lanes that waited for memory try again.
    pub(crate) fn end_holds(&mut self, now: Millis) {
        while let Some((_, lane)) = self.throttled.held.pop_front_if(|(at, _)| *at <= now) {
            self.lanes.unblock(lane);
        }
    }

    /// Leader: a ready message that is out of its lane is looked at again later.
    pub(crate) fn postpone(&mut self, slot: Slot, due: Millis) {
        self.entries.at_mut(slot).place = Place::Delayed;
        self.delayed.insert((due, slot));
        self.list_expiry(slot, Whereabouts::Delayed(due));
    }
}

impl Queue {
    /// Panics when what waits contradicts lanes and messages.
    pub(crate) fn assert_throttled(&self) {
        let it = &self.throttled;
        let name = &self.identity.name;
        let slots = self.entries.live_slots(0, self.entries.slots());
        let parked = slots.filter(|slot| self.entries.at(*slot).place == Place::Throttled);
        assert_eq!(
            parked.count() as u64,
            it.in_lines,
            "{name}: parked messages"
        );
        let waits = || it.active.iter().flat_map(|it| it.waits.values());
        let sum = waits().map(|it| it.in_lines).sum::<u64>();
        assert_eq!(sum, it.in_lines, "{name}: messages that wait for buckets");
        let closed = waits().filter(|it| it.closed).count();
        assert_eq!(closed, it.closed as usize, "{name}: buckets that close it");
        let lines = waits().map(|it| it.lines as usize).sum::<usize>();
        assert_eq!(lines, it.by_lane.len(), "{name}: lines");
        for wait in waits() {
            assert!(wait.listed || !wait.waits(), "{name}: nobody wakes a unit");
        }
        let woken = waits().map(|it| it.woken).sum::<u64>();
        let known = it.woken.values().filter(|hold| {
            let mut active = it.active.iter();
            active.any(|it| it.throttle == hold.throttle)
        });
        assert!(woken <= known.count() as u64, "{name}: woken messages");
        for (lane, slot) in it.woken.keys() {
            let entry = self.entries.at(*slot);
            assert_eq!(
                (entry.lane, entry.place),
                (*lane, Place::Ready),
                "{name}: {} is woken",
                entry.id
            );
        }
        for (lane, _) in self.lanes.blocked() {
            let waits = waits().any(|it| it.lanes.contains(&lane))
                || it.held.iter().any(|(_, held)| *held == lane);
            assert!(waits, "{name}: nobody unblocks lane {lane}");
        }
    }
}
