//! Grants that have not left the broker yet.
//!
//! A delivery of a throttled message carries a permit: the buckets that were charged for it. When
//! it leaves, the time of that is what the windows count; when it comes back, nothing was. The log
//! learns of charges when they are granted, and later, up to which record all of them have left.

use std::collections::VecDeque;

use crate::queue::entries::NIL;
use crate::{Lsn, Millis};

/// How long a release may go unrecorded.
const NOTE_MS: u64 = 100;

/// All permits that are out.
#[derive(Debug, Default)]
pub(crate) struct Permits {
    charges: Vec<Charge>,
    free: Vec<u32>,
    /// Turns of which something is out, oldest first.
    turns: VecDeque<Turn>,
    /// The number of the first of `turns`.
    first_turn: u64,
    /// Position after the newest record of charges.
    end: Lsn,
    /// The log knows that all charges before this position have left.
    noted: Lsn,
    newest_release: Millis,
    /// Permits that are out.
    out: u64,
}

/// One bucket of a permit.
#[derive(Clone, Copy, Debug)]
struct Charge {
    bucket: u32,
    /// The permit's next charge; `NIL` = none.
    next: u32,
    turn: u64,
}

/// Charges that were recorded together.
#[derive(Clone, Copy, Debug)]
struct Turn {
    at: Lsn,
    out: u32,
}

/// That all charges in records before a position left no later than a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Released {
    pub(crate) before: Lsn,
    pub(crate) by: Millis,
}

impl Permits {
    /// Begins a permit of this turn; `charge` adds buckets to it. The number of a permit is never
    /// 0.
    pub(crate) fn grant(&mut self, buckets: impl Iterator<Item = u32>) -> u32 {
        let turn = self.first_turn + self.turns.len() as u64;
        let mut head = NIL;
        for bucket in buckets {
            let charge = Charge {
                bucket,
                next: head,
                turn,
            };
            head = if let Some(free) = self.free.pop() {
                if let Some(it) = self.charges.get_mut(free as usize) {
                    *it = charge;
                }
                free
            } else {
                self.charges.push(charge);
                u32::try_from(self.charges.len() - 1).unwrap_or(NIL)
            };
        }
        self.out += u64::from(head != NIL);
        head.wrapping_add(1)
    }

    /// The turn's charges were recorded from `at` to `end`.
    pub(crate) fn end_turn(&mut self, at: Lsn, end: Lsn, permits: u32) {
        self.turns.push_back(Turn { at, out: permits });
        self.end = end;
    }

    /// A permit is over, because its delivery left or came back; its buckets go to `out`.
    pub(crate) fn finish(&mut self, permit: u32, out: &mut Vec<u32>) {
        let mut walk = permit.wrapping_sub(1);
        let mut turn = None;
        while let Some(charge) = self.charges.get(walk as usize).copied() {
            out.push(charge.bucket);
            self.free.push(walk);
            turn = Some(charge.turn);
            walk = charge.next;
        }
        let Some(turn) = turn else { return };
        self.out -= 1;
        let at = turn.checked_sub(self.first_turn);
        let at = at.and_then(|at| usize::try_from(at).ok());
        if let Some(turn) = at.and_then(|at| self.turns.get_mut(at)) {
            turn.out -= 1;
        }
        while self.turns.pop_front_if(|turn| turn.out == 0).is_some() {
            self.first_turn += 1;
        }
        if self.out == 0 && self.charges.len() > 4096 {
            self.charges = Vec::new();
            self.free = Vec::new();
        }
    }

    /// Deliveries left now.
    pub(crate) const fn on_release(&mut self, now: Millis) {
        self.newest_release = now;
    }

    /// After recovery: all charges of earlier runs count as left by now. `noted`: the log knows it.
    pub(crate) const fn start(&mut self, now: Millis, end: Lsn, noted: bool) {
        self.newest_release = now;
        self.end = end;
        if noted {
            self.noted = end;
        }
    }

    /// A record about charges was written up to here.
    pub(crate) const fn on_written(&mut self, end: Lsn) {
        self.end = end;
    }

    /// Position after the newest record about charges.
    pub(crate) const fn end(&self) -> Lsn {
        self.end
    }

    /// What the log is to learn with the next record.
    pub(crate) fn released(&self) -> Released {
        Released {
            before: self.turns.front().map_or(self.end, |turn| turn.at),
            by: self.newest_release,
        }
    }

    /// The log knows it now.
    pub(crate) const fn on_noted(&mut self, released: Released) {
        self.noted = released.before;
    }

    /// When a release is to be recorded, if no record of charges does so before.
    pub(crate) fn note_at(&self) -> Option<Millis> {
        let is_news = self.released().before > self.noted;
        is_news.then(|| self.newest_release.after_ms(NOTE_MS))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.charges.capacity() * size_of::<Charge>()
            + self.free.capacity() * size_of::<u32>()
            + self.turns.capacity() * size_of::<Turn>()
    }

    /// Buckets of all permits that are out, with repeats.
    pub(crate) fn charged(&self) -> Vec<u32> {
        let mut free = self.free.clone();
        free.sort_unstable();
        let charges = (0..).zip(&self.charges);
        let out = charges.filter(|(at, _)| free.binary_search(at).is_err());
        out.map(|(_, charge)| charge.bucket).collect()
    }
}
