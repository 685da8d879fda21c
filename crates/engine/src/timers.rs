//! What happens by itself: delays end, leases expire, keys are forgotten.

use crate::engine::{Cx, Engine};
use crate::queues::QueueIndex;

/// Steps of each kind that one queue's timer may take in one pass; more wait for the next.
const TIMER_STEPS: usize = 1024;
/// Queues whose timers are looked at in one pass.
const TIMER_QUEUES: usize = 64;

impl Engine {
    pub(crate) fn run_timers(&mut self, cx: &mut Cx<'_>) {
        for _ in 0..TIMER_QUEUES {
            let Some((at, index)) = self.timers.first().copied() else {
                break;
            };
            if at > cx.now {
                break;
            }
            self.timers.pop_first();
            self.queues.at_mut(index).armed = None;
            self.run_queue_timers(cx, index);
        }
    }

    fn run_queue_timers(&mut self, cx: &mut Cx<'_>, index: QueueIndex) {
        self.queues.at_mut(index).release_due(cx.now, TIMER_STEPS);
        self.expire_leases(cx, index, TIMER_STEPS);
        self.forget_keys(index, cx.now, TIMER_STEPS);
        self.touch(index);
    }
}
