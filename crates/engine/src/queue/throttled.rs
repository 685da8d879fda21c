//! Messages that wait for room in a bucket.
//!
//! What waits depends on the throttle's key: the whole queue (no key), a lane (the fairness key:
//! its messages share the bucket, so they stay where they are), or one message. It is then out of
//! its lane, in a line per bucket and lane, and the lines of a bucket take turns by weight
//! as lanes do. When a bucket has room, as many of them as fit are *woken*: back in their lanes, at
//! their positions, to be picked in their turn.

use std::collections::{BTreeMap, VecDeque};

use super::entries::{NIL, Slot};
use super::long_lane::Fifo;
use crate::Millis;
use crate::steady::Chunks;
use crate::throttle::Scope;

/// A bucket and the throttle it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(crate) throttle: u32,
    pub(crate) bucket: u32,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Throttled {
    /// Throttles that apply to the queue, and those for whose buckets messages still wait.
    pub(crate) active: Vec<Active>,
    lines: Chunks<Line>,
    free_lines: Vec<u32>,
    /// Lines by bucket and lane.
    pub(super) by_lane: BTreeMap<(u32, u32), u32>,
    /// Woken messages that were not picked yet, by lane.
    pub(super) woken: BTreeMap<(u32, Slot), Hold>,
    /// Messages that wait each by itself.
    pub(crate) in_lines: u64,
    /// Buckets that the whole queue waits for.
    pub(crate) closed: u32,
    /// Lanes that wait for memory, with the time to try again.
    pub(crate) held: VecDeque<(Millis, u32)>,
}

/// A throttle on this queue.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) throttle: u32,
    pub(crate) scope: Scope,
    /// Subscribers of this queue that declare it; 0 = it applies no more.
    pub(crate) subscribers: u32,
    /// By bucket and priority.
    pub(super) waits: BTreeMap<(u32, u8), Wait>,
}

/// What waits for one bucket at one priority.
#[derive(Debug)]
pub(super) struct Wait {
    /// The bucket knows of it.
    pub(super) listed: bool,
    pub(super) closed: bool,
    /// Lanes that wait as a whole; each may have left meanwhile.
    pub(super) lanes: Vec<u32>,
    /// The line whose turn it is.
    pub(super) current: u32,
    pub(super) lines: u32,
    /// Messages in the lines.
    pub(super) in_lines: u64,
    pub(super) woken: u64,
}

/// Parked messages of one lane, by position.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) throttle: u32,
    pub(super) lane: u32,
    pub(super) fifo: Fifo,
    /// Those that came after a later one.
    pub(super) returned: BTreeMap<u64, Slot>,
    pub(super) deficit: i64,
    pub(super) prev: u32,
    pub(super) next: u32,
}

impl Default for Wait {
    fn default() -> Self {
        Self {
            listed: false,
            closed: false,
            lanes: Vec::new(),
            current: NIL,
            lines: 0,
            in_lines: 0,
            woken: 0,
        }
    }
}

impl Wait {
    pub(super) const fn is_empty(&self) -> bool {
        !self.listed && !self.closed && self.lanes.is_empty() && self.lines == 0 && self.woken == 0
    }

    pub(super) const fn waits(&self) -> bool {
        self.closed || !self.lanes.is_empty() || self.lines > 0
    }
}

impl Throttled {
    /// Throttles that apply.
    pub(crate) fn applying(&self) -> impl Iterator<Item = (u32, Scope)> {
        let applying = self.active.iter().filter(|it| it.subscribers > 0);
        applying.map(|it| (it.throttle, it.scope))
    }

    /// Some throttle applies, or messages wait for one that did.
    pub(crate) const fn is_any(&self) -> bool {
        !self.active.is_empty()
    }

    pub(crate) fn declare(&mut self, throttle: u32, scope: Scope) {
        let known = self.active.iter_mut().find(|it| it.throttle == throttle);
        if let Some(it) = known {
            it.subscribers += 1;
            return;
        }
        self.active.push(Active {
            throttle,
            scope,
            subscribers: 1,
            waits: BTreeMap::new(),
        });
    }

    /// One subscriber less declares it. True when it applies no more.
    pub(crate) fn withdraw(&mut self, throttle: u32) -> bool {
        let known = self.active.iter_mut().find(|it| it.throttle == throttle);
        let Some(it) = known else { return false };
        it.subscribers -= 1;
        it.subscribers == 0
    }

    pub(super) fn wait(&self, hold: Hold, priority: u8) -> Option<&Wait> {
        let mut active = self.active.iter();
        let active = active.find(|it| it.throttle == hold.throttle)?;
        active.waits.get(&(hold.bucket, priority))
    }

    pub(super) fn wait_mut(&mut self, hold: Hold, priority: u8) -> Option<&mut Wait> {
        let mut active = self.active.iter_mut();
        let active = active.find(|it| it.throttle == hold.throttle)?;
        Some(active.waits.entry((hold.bucket, priority)).or_default())
    }

    fn drop_empty(&mut self, hold: Hold, priority: u8) {
        let mut active = self.active.iter_mut();
        let Some(active) = active.find(|it| it.throttle == hold.throttle) else {
            return;
        };
        let key = (hold.bucket, priority);
        if active.waits.get(&key).is_some_and(Wait::is_empty) {
            active.waits.remove(&key);
        }
    }

    /// A message of this lane would overtake one that waits for the bucket, if it went now that
    /// the bucket has this much room.
    pub(crate) fn has_others(&self, hold: Hold, (lane, priority): (u32, u8), room: u64) -> bool {
        let waiting = self.wait(hold, priority);
        waiting.is_some_and(|it| it.in_lines.saturating_add(it.woken) >= room)
            || self.by_lane.contains_key(&(hold.bucket, lane))
    }

    /// The message was woken and not picked yet.
    pub(crate) fn is_woken(&self, lane: u32, slot: Slot) -> bool {
        !self.woken.is_empty() && self.woken.contains_key(&(lane, slot))
    }

    pub(crate) fn has_woken(&self) -> bool {
        !self.woken.is_empty()
    }

    /// A woken message left its lane; the bucket that woke it may wake another one.
    pub(crate) fn unwake(&mut self, (lane, priority): (u32, u8), slot: Slot) -> Option<Hold> {
        let hold = self.woken.remove(&(lane, slot))?;
        if let Some(it) = self.wait_mut(hold, priority) {
            it.woken = it.woken.saturating_sub(1);
        }
        self.drop_empty(hold, priority);
        Some(hold)
    }

    /// Woken messages of a lane that is to wait as a whole: they are like others.
    pub(crate) fn unwake_lane(&mut self, lane: u32, priority: u8, out: &mut Vec<Hold>) {
        while let Some((key, _)) = self.woken.range((lane, 0)..=(lane, NIL)).next() {
            let slot = key.1;
            out.extend(self.unwake((lane, priority), slot));
        }
    }

    /// Notes that the bucket knows of what waits here; true when it did not.
    pub(super) fn list(&mut self, hold: Hold, priority: u8) -> bool {
        let it = self.wait_mut(hold, priority);
        it.is_some_and(|it| !core::mem::replace(&mut it.listed, true))
    }

    /// The bucket forgets this unit; true when something still waits, and it has to be told again.
    pub(crate) fn unlist(&mut self, hold: Hold, priority: u8) -> bool {
        let Some(it) = self.wait_mut(hold, priority) else {
            return false;
        };
        it.listed = false;
        let waits = it.waits();
        self.drop_empty(hold, priority);
        waits
    }

    /// Notes that the bucket was told of what waits here.
    pub(crate) fn relist(&mut self, hold: Hold, priority: u8) {
        self.list(hold, priority);
    }

    /// The whole queue waits for a bucket. True when the bucket is to be told.
    pub(crate) fn close(&mut self, hold: Hold) -> bool {
        let Some(it) = self.wait_mut(hold, 0) else {
            return false;
        };
        if !core::mem::replace(&mut it.closed, true) {
            self.closed += 1;
        }
        self.list(hold, 0)
    }

    /// Buckets that know of units of this queue.
    pub(crate) fn listed(&self) -> impl Iterator<Item = u32> {
        let waits = self.active.iter().flat_map(|it| &it.waits);
        waits.filter(|(_, it)| it.listed).map(|(key, _)| key.0)
    }

    /// Takes some of what waits out of the books of a deleted queue; the buckets that know of it go
    /// to `out`. True when nothing is left.
    pub(crate) fn forget_some(&mut self, budget: usize, out: &mut Vec<u32>) -> bool {
        for _ in 0..budget {
            let Some(active) = self.active.last_mut() else {
                return true;
            };
            match active.waits.pop_last() {
                Some(((bucket, _), wait)) if wait.listed => out.push(bucket),
                Some(_) => {}
                None => _ = self.active.pop(),
            }
        }
        self.active.is_empty()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let waits = self.active.iter().map(|it| it.waits.len()).sum::<usize>();
        self.lines.capacity() * (size_of::<Line>() + size_of::<u32>())
            + self.by_lane.len() * (size_of::<((u32, u32), u32)>() + 8)
            + waits * (size_of::<((u32, u8), Wait)>() + 8)
            + self.woken.len() * (size_of::<((u32, Slot), Hold)>() + 8)
            + self.held.len() * size_of::<(Millis, u32)>()
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "line numbers come from add_line and stay valid until removed"
    )]
    pub(super) fn line(&self, line: u32) -> &Line {
        &self.lines[line as usize]
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "line numbers come from add_line and stay valid until removed"
    )]
    pub(super) fn line_mut(&mut self, line: u32) -> &mut Line {
        &mut self.lines[line as usize]
    }

    /// The line of a bucket and lane; a new one goes to the end of the round.
    pub(super) fn line_of(&mut self, hold: Hold, lane: u32, priority: u8) -> u32 {
        if let Some(line) = self.by_lane.get(&(hold.bucket, lane)) {
            return *line;
        }
        let fresh = Line {
            throttle: hold.throttle,
            lane,
            fifo: Fifo::EMPTY,
            returned: BTreeMap::new(),
            deficit: 0,
            prev: NIL,
            next: NIL,
        };
        let line = if let Some(line) = self.free_lines.pop() {
            *self.line_mut(line) = fresh;
            line
        } else {
            self.lines.push(fresh);
            u32::try_from(self.lines.len() - 1).unwrap_or(NIL)
        };
        self.by_lane.insert((hold.bucket, lane), line);
        let Some(wait) = self.wait_mut(hold, priority) else {
            return line;
        };
        wait.lines += 1;
        let current = wait.current;
        if current == NIL {
            wait.current = line;
            let it = self.line_mut(line);
            (it.prev, it.next) = (line, line);
            return line;
        }
        let last = self.line(current).prev;
        let it = self.line_mut(line);
        (it.prev, it.next) = (last, current);
        self.line_mut(last).next = line;
        self.line_mut(current).prev = line;
        line
    }

    pub(super) fn remove_line(&mut self, hold: Hold, priority: u8, line: u32) {
        let it = self.line(line);
        let (lane, prev, next) = (it.lane, it.prev, it.next);
        self.by_lane.remove(&(hold.bucket, lane));
        self.line_mut(prev).next = next;
        self.line_mut(next).prev = prev;
        self.free_lines.push(line);
        if let Some(wait) = self.wait_mut(hold, priority) {
            wait.lines -= 1;
            if wait.current == line {
                wait.current = if wait.lines == 0 { NIL } else { next };
            }
        }
        if self.free_lines.len() == self.lines.len() {
            self.lines = Chunks::new();
            self.free_lines = Vec::new();
        }
    }
}
