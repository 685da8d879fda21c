//! What happens by itself: delays end, leases expire, keys are forgotten.

use crate::engine::{Cx, Engine};
use crate::queues::QueueIndex;

/// Steps of each kind that one queue's timer may take in one pass; more wait for the next.
const TIMER_STEPS: usize = 1024;
/// Queues whose timers are looked at in one pass.
const TIMER_QUEUES: usize = 64;

impl Engine {
    pub(crate) fn run_timers(&mut self, cx: &mut Cx<'_>) {
        // Taken out first: a queue that has more to do than fits comes again in the next pass.
        let mut due = core::mem::take(&mut self.pass.due);
        while due.len() < TIMER_QUEUES
            && let Some((at, index)) = self.timers.first().copied()
            && at <= cx.now
        {
            self.timers.pop_first();
            self.queues.at_mut(index).armed = None;
            due.push(index);
        }
        for index in due.drain(..) {
            self.run_queue_timers(cx, index);
        }
        self.pass.due = due;
    }

    fn run_queue_timers(&mut self, cx: &mut Cx<'_>, index: QueueIndex) {
        if self.delete_if_unused(cx, index) {
            return;
        }
        let queue = self.queues.at_mut(index);
        queue.release_due(cx.now, TIMER_STEPS);
        queue.end_stalls(cx.now);
        queue.parking.release_timed(cx.now, TIMER_STEPS);
        queue.end_holds(cx.now);
        self.expire_leases(cx, index, TIMER_STEPS);
        self.expire_due(cx, index, TIMER_STEPS);
        self.retry_departures(index, cx.now);
        self.forget_keys(index, cx.now, TIMER_STEPS);
        self.touch(index);
    }
}
