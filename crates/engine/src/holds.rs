//! The messages that one consumer holds until its connection is gone.
//!
//! Every delivery would cost a tree two walks. So this is a line in the order of delivery: settled
//! messages leave it when they are at its front, others when they are most of it. A slot in the
//! line may be settled, or hold another message by now; who takes one looks whether the consumer
//! holds it.

use crate::Millis;
use crate::queue::entries::Slot;
use crate::steady::Line;

/// Holds of one consumer.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    /// Slots with the time of their delivery; contains all that are held.
    line: Line<(Millis, Slot)>,
    /// How many are held.
    live: u32,
    /// How many were settled out of order since a part of the line was swept.
    unswept: u32,
}

/// Settled messages that a line may keep besides as many as are held.
const SLACK: usize = 64;
/// While there are more of them, a part of the line is swept for each so many that are settled.
const SWEEP_EVERY: u32 = 512;

impl Holds {
    /// How many messages are held.
    pub(crate) const fn len(&self) -> u32 {
        self.live
    }

    /// A message was delivered.
    #[inline]
    pub(crate) fn push(&mut self, now: Millis, slot: Slot) {
        self.line.push_back((now, slot));
        self.live += 1;
    }

    /// A message that was held is not any more. True when a part of the line is worth
    /// [`Self::sweep`].
    #[inline]
    #[must_use]
    pub(crate) fn remove(&mut self, slot: Slot) -> bool {
        self.live = self.live.saturating_sub(1);
        if self.live == 0 {
            self.line.clear();
            return false;
        }
        if self.line.front().is_some_and(|front| front.1 == slot) {
            self.line.pop_front();
            return false;
        }
        self.unswept += 1;
        self.unswept >= SWEEP_EVERY && self.line.len() > 2 * self.live as usize + SLACK
    }

    /// Drops what is not held any more from a part of the line.
    pub(crate) fn sweep(&mut self, is_held: impl Fn(Millis, Slot) -> bool) {
        self.unswept = 0;
        self.line.sweep_some(|(at, slot)| is_held(*at, *slot));
    }

    /// When the message that is held longest was delivered.
    pub(crate) fn oldest(&mut self, is_held: impl Fn(Millis, Slot) -> bool) -> Option<Millis> {
        while let Some((at, slot)) = self.line.front().copied() {
            if is_held(at, slot) {
                return Some(at);
            }
            self.line.pop_front();
        }
        None
    }

    /// All slots that may be held, in the order of delivery.
    pub(crate) fn take(&mut self) -> Line<(Millis, Slot)> {
        self.live = 0;
        core::mem::take(&mut self.line)
    }

    /// Those slots, which stay.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Millis, Slot)> {
        self.line.iter().copied()
    }
}
