//! Messages whose time has come leave.

use crate::dead_letter::Reason;
use crate::engine::{Cx, Engine};
use crate::paging::READS_MAX;
use crate::queue::expiry::Expired;
use crate::queues::QueueIndex;
use crate::{Millis, throttle};

/// Turns of a queue with messages that are to be delivered at once or never.
const INSTANT_TURNS: usize = 64;
/// Messages that leave before them in one step.
const INSTANT_STEPS: usize = 4096;

impl Engine {
    /// Messages of a queue whose time has come by `until` leave, in `budget` steps at most.
    pub(crate) fn expire_messages(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        until: Millis,
        budget: usize,
    ) {
        if !self.queues.at(index).has_expired(until) {
            return;
        }
        let mut reads = READS_MAX;
        let mut slots = Vec::new();
        let room = self.queues.at(index).departures.room();
        for _ in 0..budget.min(room) {
            match self.queues.at_mut(index).take_expired(until) {
                Expired::Message(slot) => {
                    self.unwake(cx.now, index, slot);
                    slots.push(slot);
                }
                Expired::InPage(lane) if reads > 0 => {
                    reads -= 1;
                    self.load_page(cx, index, lane);
                }
                Expired::NotNow => {}
                Expired::InPage(_) | Expired::Nothing => break,
            }
        }
        self.queues.at_mut(index).expired += slots.len() as u64;
        self.die(cx, index, &slots, Reason::Expired);
    }

    /// A message that came at this time is to be delivered at once, or never.
    pub(crate) fn note_instant(&mut self, index: QueueIndex, at: Millis) {
        let instant = (index, Millis(at.0.saturating_sub(1)));
        if self.instant.last() != Some(&instant) {
            self.instant.push(instant);
        }
    }

    /// Delivers messages that leave with this step if nobody takes them. What expired before goes
    /// first; very many of those take several steps, in which nothing else of the queue expires.
    pub(crate) fn deliver_instant(&mut self, cx: &mut Cx<'_>) {
        if self.instant.is_empty() {
            return;
        }
        self.pass.reads = READS_MAX;
        self.pass.throttle.reads = throttle::READS_MAX;
        let mut left = INSTANT_STEPS;
        let newest = Millis(cx.now.0.saturating_sub(1));
        for (index, before) in core::mem::take(&mut self.instant) {
            let before = before.min(newest);
            for _ in 0..INSTANT_TURNS {
                if self.queues.get_mut(index).is_none() {
                    break;
                }
                let expired = self.queues.at(index).expired;
                self.expire_messages(cx, index, before, left);
                let gone = self.queues.at(index).expired - expired;
                left = left.saturating_sub(usize::try_from(gone).unwrap_or(left));
                if left == 0 && self.queues.at(index).has_expired(before) {
                    self.instant.push((index, before));
                    break;
                }
                let queue = self.queues.at(index);
                if !queue.has_expired(cx.now) || !queue.can_deliver() {
                    break;
                }
                self.serve(cx, index, before);
                self.touch(index);
            }
            if self.queues.get_mut(index).is_some() {
                self.touch(index);
            }
        }
    }

    /// Messages of a queue whose time has come leave, unless some are to be delivered before.
    pub(crate) fn expire_due(&mut self, cx: &mut Cx<'_>, index: QueueIndex, budget: usize) {
        if !self.instant.iter().any(|(of, _)| *of == index) {
            self.expire_messages(cx, index, cx.now, budget);
        }
    }
}
