//! The deliveries of one bucket over time, and how many more fit its limits.
//!
//! Limits of up to [`EXACT_MAX`] deliveries are exact to the millisecond: the newest deliveries'
//! instants are kept. Larger ones are counted in slots of a 1024th of their window, and a slot
//! leaves the window with its last millisecond, never earlier. A delivery that was granted and has
//! not left the broker counts as happening now, whenever that is asked.

use std::collections::VecDeque;

use super::ThrottleLimit;
use super::rules::Rules;
use crate::Millis;

/// Limits of at most this many deliveries are exact.
pub(crate) const EXACT_MAX: u64 = 1024;

/// Slots in a window of a larger limit.
const SLOTS: u64 = 1024;

/// When one more delivery fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NextRoom {
    Now,
    /// Then, if nothing else is delivered before.
    At(Millis),
    /// After a granted delivery left the broker, or came back.
    OnRelease,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// The newest deliveries, oldest first.
    instants: VecDeque<Millis>,
    /// Granted, and not yet left or come back.
    reserved: u64,
    coarse: Vec<Coarse>,
    /// The version of the rules that `coarse` was made for.
    version: u64,
}

/// Deliveries inside one window, by slot.
#[derive(Clone, Debug)]
struct Coarse {
    window_ms: u64,
    /// Slot numbers with their deliveries, oldest first.
    slots: VecDeque<(u64, u64)>,
    inside: u64,
}

impl History {
    /// How many more deliveries fit all limits.
    pub(crate) fn room(&self, rules: &Rules, now: Millis) -> u64 {
        let room = |limit: &ThrottleLimit| {
            let taken = self.counted(*limit, now);
            limit.max_deliveries.saturating_sub(taken)
        };
        rules.limits().iter().map(room).min().unwrap_or(u64::MAX)
    }

    /// Deliveries and grants inside a limit's window.
    pub(crate) fn counted(&self, limit: ThrottleLimit, now: Millis) -> u64 {
        let coarse = self.coarse_of(limit).map(|it| it.inside_at(now));
        let inside = coarse.unwrap_or_else(|| {
            let left = |at: &Millis| at.after_ms(limit.window_ms) <= now;
            (self.instants.len() - self.instants.partition_point(left)) as u64
        });
        inside + self.reserved
    }

    fn coarse_of(&self, limit: ThrottleLimit) -> Option<&Coarse> {
        let of = |it: &&Coarse| it.window_ms == limit.window_ms;
        let is_coarse = limit.max_deliveries > EXACT_MAX;
        is_coarse.then(|| self.coarse.iter().find(of)).flatten()
    }

    /// When one more delivery fits all limits.
    pub(crate) fn next_room(&self, rules: &Rules, now: Millis) -> NextRoom {
        let next = rules.limits().iter().map(|limit| {
            let max = limit.max_deliveries;
            let Some(left) = max.checked_sub(self.reserved).filter(|left| *left > 0) else {
                return NextRoom::OnRelease;
            };
            // The delivery that must have left the window: then `left - 1` are inside.
            let end = match self.coarse_of(*limit) {
                Some(coarse) => coarse.end_of_last_but(left),
                None => {
                    let before = usize::try_from(left).ok();
                    let at = before.and_then(|left| self.instants.len().checked_sub(left));
                    let at = at.and_then(|at| self.instants.get(at));
                    at.map(|at| at.after_ms(limit.window_ms))
                }
            };
            match end.filter(|end| *end > now) {
                Some(end) => NextRoom::At(end),
                None => NextRoom::Now,
            }
        });
        next.max().unwrap_or(NextRoom::Now)
    }

    /// A delivery is granted.
    pub(crate) fn reserve(&mut self, rules: &Rules, now: Millis) {
        self.follow(rules, now);
        self.reserved += 1;
    }

    /// A granted delivery never left.
    pub(crate) fn give_back(&mut self) {
        self.reserved = self.reserved.saturating_sub(1);
    }

    /// A granted delivery left now.
    pub(crate) fn release(&mut self, rules: &Rules, now: Millis) {
        self.give_back();
        self.add(rules, now, 1);
    }

    /// Deliveries that left at `at`; times only grow.
    pub(crate) fn add(&mut self, rules: &Rules, at: Millis, count: u64) {
        self.follow(rules, at);
        let exact = usize::try_from(count).unwrap_or(usize::MAX);
        for _ in 0..exact.min(rules.instants_max()) {
            self.instants.push_back(at);
        }
        self.trim(rules, at);
        for coarse in &mut self.coarse {
            coarse.add(at, count);
        }
    }

    pub(crate) const fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Forgets instants that no limit asks for.
    fn trim(&mut self, rules: &Rules, now: Millis) {
        let surplus = self.instants.len().saturating_sub(rules.instants_max());
        self.instants.drain(..surplus);
        let longest_ms = rules.longest_ms();
        while self
            .instants
            .pop_front_if(|at| at.after_ms(longest_ms) <= now)
            .is_some()
        {}
    }

    /// Keeps one count per window that the rules count in slots. A new one begins with the
    /// deliveries whose instants are known.
    fn follow(&mut self, rules: &Rules, now: Millis) {
        if self.version == rules.version() {
            return;
        }
        self.version = rules.version();
        let asked = rules.coarse();
        self.coarse.retain(|it| asked.contains(&it.window_ms));
        for window_ms in asked {
            if self.coarse.iter().any(|it| it.window_ms == *window_ms) {
                continue;
            }
            let mut fresh = Coarse {
                window_ms: *window_ms,
                slots: VecDeque::new(),
                inside: 0,
            };
            for at in &self.instants {
                fresh.add(*at, 1);
            }
            fresh.expire(now);
            self.coarse.push(fresh);
        }
        self.trim(rules, now);
    }

    /// From when on nothing of it matters; `None` while something is granted.
    pub(crate) fn idle_at(&self, rules: &Rules) -> Option<Millis> {
        if self.reserved > 0 {
            return None;
        }
        let exact = self.instants.back();
        let exact = exact.map(|at| at.after_ms(rules.longest_ms()));
        let coarse = self.coarse.iter().filter_map(Coarse::idle_at).max();
        Some(exact.max(coarse).unwrap_or_default())
    }

    /// Deliveries that left, oldest first, as far as their instants are known.
    pub(crate) fn instants(&self) -> impl ExactSizeIterator<Item = Millis> {
        self.instants.iter().copied()
    }

    /// Windows counted in slots: each with its slots and their deliveries.
    pub(crate) fn slots(&self) -> impl ExactSizeIterator<Item = (u64, &VecDeque<(u64, u64)>)> {
        self.coarse.iter().map(|it| (it.window_ms, &it.slots))
    }

    /// Puts in what a snapshot says.
    pub(crate) fn load_instant(&mut self, at: Millis) {
        let last = self.instants.back().copied().unwrap_or_default();
        self.instants.push_back(at.max(last));
    }

    /// Puts in what a snapshot says of one window.
    pub(crate) fn load_slot(&mut self, window_ms: u64, slot: (u64, u64)) {
        let known = self.coarse.iter_mut().find(|it| it.window_ms == window_ms);
        let coarse = match known {
            Some(coarse) => coarse,
            None => self.coarse.push_mut(Coarse {
                window_ms,
                slots: VecDeque::new(),
                inside: 0,
            }),
        };
        coarse.slots.push_back(slot);
        coarse.inside = coarse.inside.saturating_add(slot.1);
    }

    /// What a snapshot says is loaded, under rules of this version.
    pub(crate) const fn loaded(&mut self, version: u64) {
        self.version = version;
    }

    /// Memory besides the structure itself.
    pub(crate) fn memory_bytes(&self) -> usize {
        let slots = self.coarse.iter().map(|it| it.slots.capacity());
        self.instants.capacity() * size_of::<Millis>()
            + self.coarse.capacity() * size_of::<Coarse>()
            + slots.sum::<usize>() * size_of::<(u64, u64)>()
    }
}

impl Coarse {
    const fn slot_ms(&self) -> u64 {
        self.window_ms.div_ceil(SLOTS)
    }

    /// When the slot's last millisecond leaves the window.
    const fn end(&self, slot: u64) -> Millis {
        let last = slot.saturating_add(1).saturating_mul(self.slot_ms()) - 1;
        Millis(last).after_ms(self.window_ms)
    }

    fn add(&mut self, at: Millis, count: u64) {
        self.expire(at);
        let slot = at.0 / self.slot_ms();
        match self.slots.back_mut() {
            Some((last, deliveries)) if *last >= slot => {
                *deliveries = deliveries.saturating_add(count);
            }
            _ => self.slots.push_back((slot, count)),
        }
        self.inside = self.inside.saturating_add(count);
    }

    fn expire(&mut self, now: Millis) {
        while let Some((slot, count)) = self.slots.front().copied()
            && self.end(slot) <= now
        {
            self.slots.pop_front();
            self.inside = self.inside.saturating_sub(count);
        }
    }

    fn inside_at(&self, now: Millis) -> u64 {
        let left = self.slots.iter().take_while(|it| self.end(it.0) <= now);
        let left = left.map(|(_, count)| *count).sum::<u64>();
        self.inside.saturating_sub(left)
    }

    /// When fewer than `left` deliveries are inside; `None` when so few were counted at all.
    fn end_of_last_but(&self, left: u64) -> Option<Millis> {
        let mut inside = self.inside;
        let mut end = None;
        for (slot, count) in &self.slots {
            if inside < left {
                break;
            }
            inside = inside.saturating_sub(*count);
            end = Some(self.end(*slot));
        }
        end
    }

    fn idle_at(&self) -> Option<Millis> {
        self.slots.back().map(|(slot, _)| self.end(*slot))
    }
}
