//! Whether the next message of a queue may go, and what it is charged to.
//!
//! Keys are looked at when a message's turn comes, so that declaring a throttle reads no backlog.
//! All buckets of a message must have room; then all are charged, or none.

use super::history::NextRoom;
use super::registry::Scope;
use super::wanted::{Scratch, Wanted};
use crate::engine::{Cx, Engine};
use crate::journal::ContentRead;
use crate::queue::entries::Slot;
use crate::queue::picks::Taken;
use crate::queue::throttled::Hold;
use crate::queues::QueueIndex;
use crate::{FrameLimit, Millis};

/// What became of a look at the next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It may go: `wanted` names its buckets.
    Go,
    /// It has to wait, or something like that: look at the next one.
    Again,
    /// The next message is in the first page of this lane.
    InPage(u32),
    /// There is none, or this pass may read no more.
    Nothing,
}

/// Contents that one pass reads from the disk at most, to look at headers.
pub(crate) const READS_MAX: u32 = 64;

/// A lane that waits for memory, and a message whose content cannot be read, is tried again after
/// this time.
const RETRY_MS: u64 = 1_000;

impl Engine {
    /// Looks at the message whose turn it is, for a consumer with such frames.
    pub(crate) fn admit(
        &mut self,
        cx: &mut Cx<'_>,
        (index, limit): (QueueIndex, FrameLimit),
        scratch: &mut Scratch,
    ) -> Admission {
        scratch.wanted.clear();
        scratch.bytes.clear();
        if self.close_queue(cx.now, index, scratch) {
            return Admission::Nothing;
        }
        let queue = self.queues.at(index);
        let Some(lane) = queue.lanes.turn_lane(&queue.entries, limit) else {
            return Admission::Nothing;
        };
        if self.block_lane(cx.now, (index, lane), scratch) {
            return Admission::Again;
        }
        let queue = self.queues.at_mut(index);
        let by_message = queue.throttled.applying().any(|it| it.1 == Scope::Message);
        match queue.lanes.head_of(&queue.entries, lane) {
            Taken::Message(_) if !by_message => Admission::Go,
            Taken::Message(slot) => self.admit_message(cx, (index, lane, slot), scratch),
            Taken::InPage(_) if by_message && self.lines_are_full(index) => {
                self.hold_lane(cx.now, (index, lane), scratch);
                Admission::Again
            }
            Taken::InPage(lane) => Admission::InPage(lane),
            Taken::Nothing => Admission::Nothing,
        }
    }

    /// Charges the message that was admitted; returns its permit, 0 when no throttle applies to it.
    pub(crate) fn charge(&mut self, now: Millis, index: QueueIndex, scratch: &mut Scratch) -> u32 {
        let before = scratch.charged.len();
        for wanted in &scratch.wanted {
            let bucket = self.throttles.bucket(wanted.key(&scratch.bytes));
            self.throttles.reserve(bucket, now);
            scratch.charged.push(bucket);
        }
        let charged = scratch.charged.get(before..).unwrap_or_default();
        let permit = self.throttles.permits.grant(charged.iter().copied());
        scratch.permits += u32::from(permit != 0);
        for (wanted, bucket) in scratch.wanted.iter().zip(charged) {
            if self.throttles.room(*bucket, now) == 0 {
                self.on_full(now, index, wanted, *bucket);
            }
        }
        permit
    }

    /// A bucket has no room any more: what waits for it as a whole does so from now on.
    fn on_full(&mut self, now: Millis, index: QueueIndex, wanted: &Wanted, bucket: u32) {
        let hold = Hold {
            throttle: wanted.throttle,
            bucket,
        };
        if wanted.scope == Scope::Queue {
            let is_news = self.queues.at_mut(index).throttled.close(hold);
            self.tell(now, index, 0, (hold, is_news));
        }
    }

    /// A bucket has to know what waits for it.
    fn tell(
        &mut self,
        now: Millis,
        index: QueueIndex,
        priority: u8,
        (hold, is_news): (Hold, bool),
    ) {
        if is_news {
            let units = &mut self.throttles.buckets.at_mut(hold.bucket).units;
            units.push_back((index, priority));
        }
        self.throttles.follow(hold.bucket, now);
    }

    /// Throttles without a key: true when one has no room, and the queue waits.
    fn close_queue(&mut self, now: Millis, index: QueueIndex, scratch: &mut Scratch) -> bool {
        self.want_queue(index, scratch);
        let Some(hold) = self.full(&scratch.wanted, now) else {
            return false;
        };
        let is_news = self.queues.at_mut(index).throttled.close(hold);
        self.tell(now, index, 0, (hold, is_news));
        true
    }

    /// The first bucket without room.
    fn full(&self, wanted: &[Wanted], now: Millis) -> Option<Hold> {
        wanted.iter().find_map(|it| {
            let bucket = it.bucket?;
            let throttle = it.throttle;
            (self.throttles.room(bucket, now) == 0).then_some(Hold { throttle, bucket })
        })
    }

    /// Throttles by fairness key: true when one has no room, and the lane waits.
    fn block_lane(
        &mut self,
        now: Millis,
        (index, lane): (QueueIndex, u32),
        scratch: &mut Scratch,
    ) -> bool {
        let first = scratch.wanted.len();
        self.want_lane((index, lane), scratch);
        if self.lacks_memory(scratch) {
            self.hold_lane(now, (index, lane), scratch);
            return true;
        }
        let wanted = scratch.wanted.get(first..).unwrap_or_default();
        let Some(hold) = self.full(wanted, now) else {
            return false;
        };
        self.block(now, (index, lane), hold, scratch);
        true
    }

    fn block(
        &mut self,
        now: Millis,
        (index, lane): (QueueIndex, u32),
        hold: Hold,
        scratch: &mut Scratch,
    ) {
        let queue = self.queues.at_mut(index);
        let is_news = queue.block_lane(hold, lane);
        let priority = queue.lanes.priority(lane);
        self.unwake_lane(now, (index, lane), scratch);
        self.tell(now, index, priority, (hold, is_news));
    }

    /// Woken messages of a lane that waits would keep others from being woken as long as it does.
    fn unwake_lane(
        &mut self,
        now: Millis,
        (index, lane): (QueueIndex, u32),
        scratch: &mut Scratch,
    ) {
        let queue = self.queues.at_mut(index);
        let priority = queue.lanes.priority(lane);
        let mut woken = core::mem::take(&mut scratch.holds);
        queue.throttled.unwake_lane(lane, priority, &mut woken);
        for hold in woken.drain(..) {
            self.throttles.follow(hold.bucket, now);
        }
        scratch.holds = woken;
    }

    /// There is no memory for another bucket that is wanted, or for more history.
    fn lacks_memory(&self, scratch: &Scratch) -> bool {
        let limits = &self.config.limits;
        let buckets = &self.throttles.buckets;
        let fresh = scratch.wanted.iter().any(|it| it.bucket.is_none());
        !scratch.wanted.is_empty()
            && (buckets.memory_bytes() >= limits.throttle_bytes_max
                || fresh && buckets.len() >= limits.throttle_buckets_max)
    }

    fn lines_are_full(&self, index: QueueIndex) -> bool {
        self.queues.at(index).throttled.in_lines >= u64::from(self.config.throttled_hot)
    }

    /// A lane waits for memory.
    fn hold_lane(&mut self, now: Millis, (index, lane): (QueueIndex, u32), scratch: &mut Scratch) {
        let queue = self.queues.at_mut(index);
        queue.lanes.block(lane);
        let again = now.after_ms(RETRY_MS);
        queue.throttled.held.push_back((again, lane));
        self.unwake_lane(now, (index, lane), scratch);
    }

    /// Throttles by header or attribute: the message goes, or waits by itself.
    fn admit_message(
        &mut self,
        cx: &mut Cx<'_>,
        (index, lane, slot): (QueueIndex, u32, Slot),
        scratch: &mut Scratch,
    ) -> Admission {
        let first = scratch.wanted.len();
        match self.read_headers(cx, (index, slot), scratch) {
            Some(ContentRead::Cached) => {}
            Some(ContentRead::FromDisk) => scratch.reads = scratch.reads.saturating_sub(1),
            Some(ContentRead::Unavailable) => {
                let queue = self.queues.at_mut(index);
                queue.lanes.take_first(&queue.entries, lane);
                self.unwake(cx.now, index, slot);
                let due = cx.now.after_ms(RETRY_MS);
                self.queues.at_mut(index).postpone(slot, due);
                return Admission::Again;
            }
            // Whoever reads it to send it finds the damage, and leaves it to its lease.
            Some(ContentRead::Damaged) => return Admission::Go,
            None => return Admission::Nothing,
        }
        self.want_message(index, slot, scratch);
        if self.lacks_memory(scratch) {
            self.hold_lane(cx.now, (index, lane), scratch);
            return Admission::Again;
        }
        let queue = self.queues.at(index);
        let priority = queue.lanes.priority(lane);
        let woken = queue.throttled.is_woken(lane, slot);
        let wanted = scratch.wanted.get(first..).unwrap_or_default();
        let full = wanted.iter().find_map(|it| {
            let bucket = it.bucket?;
            let throttle = it.throttle;
            let hold = Hold { throttle, bucket };
            let room = self.throttles.room(bucket, cx.now);
            let lane = (lane, priority);
            let waits = room == 0 || !woken && queue.throttled.has_others(hold, lane, room);
            waits.then_some(hold)
        });
        let Some(hold) = full else {
            return Admission::Go;
        };
        let queue = self.queues.at_mut(index);
        queue.lanes.take_first(&queue.entries, lane);
        self.unwake(cx.now, index, slot);
        let is_news = self.queues.at_mut(index).line_up(hold, slot);
        self.tell(cx.now, index, priority, (hold, is_news));
        Admission::Again
    }

    /// A message left its lane: if it was woken, the bucket that did so may wake another one.
    pub(crate) fn unwake(&mut self, now: Millis, index: QueueIndex, slot: Slot) {
        let queue = self.queues.at_mut(index);
        if !queue.throttled.has_woken() {
            return;
        }
        let lane = queue.entries.at(slot).lane;
        let priority = queue.lanes.priority(lane);
        if let Some(hold) = queue.throttled.unwake((lane, priority), slot) {
            self.throttles.follow(hold.bucket, now);
        }
    }

    /// What a message waits for, for operators: of the buckets without room the one that has room
    /// last. Of a message in a page only its lane and queue are known.
    pub(crate) fn waits_for(
        &self,
        cx: &mut Cx<'_>,
        (index, lane, slot): (QueueIndex, u32, Option<Slot>),
    ) -> Option<u32> {
        let mut scratch = Scratch {
            reads: 1,
            ..Scratch::default()
        };
        self.want_queue(index, &mut scratch);
        self.want_lane((index, lane), &mut scratch);
        if let Some(slot) = slot {
            let read = self.read_headers(cx, (index, slot), &mut scratch);
            if read.is_some_and(ContentRead::is_read) {
                self.want_message(index, slot, &mut scratch);
            }
        }
        let next = |it: &Wanted| {
            let bucket = it.bucket?;
            let next = self.throttles.next_room(bucket, cx.now);
            (next != NextRoom::Now).then_some((next, bucket))
        };
        let latest = scratch.wanted.iter().filter_map(next).max();
        latest.map(|(_, bucket)| bucket)
    }
}
