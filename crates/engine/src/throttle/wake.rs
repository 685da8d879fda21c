//! Room comes back: deliveries leave or return, windows pass, throttles end.

use super::ThrottleSpec;
use crate::engine::{Cx, Engine};
use crate::queue::throttled::Hold;
use crate::queues::QueueIndex;
use crate::{DeliveryBatch, Millis};

/// Messages that one pass puts back into their lanes at most.
const WAKE_MESSAGES: u64 = 4096;
/// Buckets that one pass looks at at most.
const WAKE_BUCKETS: usize = 1024;

impl Engine {
    /// A delivery leaves the broker now: this is when its throttles count it. Call it for every
    /// batch that [`DeliveryBatch::throttled`] is set of, once, unless it comes back through
    /// [`Engine::undelivered`].
    pub fn released(&mut self, now: Millis, batch: &mut DeliveryBatch) {
        if core::mem::replace(&mut batch.throttled, false) {
            let permits = batch.items.iter_mut();
            let permits = permits.map(|item| core::mem::take(&mut item.permit));
            let buckets = self.end_permits(now, permits, Outcome::Left);
            self.follow_buckets(now, buckets);
        }
    }

    /// Ends permits; returns the buckets that were charged, each as often as it was, for
    /// [`Self::follow_buckets`]: until then they are all there.
    pub(crate) fn end_permits(
        &mut self,
        now: Millis,
        permits: impl Iterator<Item = u32>,
        outcome: Outcome,
    ) -> Vec<u32> {
        let mut buckets = Vec::new();
        for permit in permits {
            self.throttles.permits.finish(permit, &mut buckets);
        }
        if outcome == Outcome::Left {
            self.throttles.permits.on_release(now);
        }
        for bucket in &buckets {
            match outcome {
                Outcome::Left => self.throttles.release(*bucket, now),
                Outcome::CameBack => {
                    let change = crate::throttle::history::History::give_back;
                    self.throttles.buckets.change(*bucket, change);
                }
            }
        }
        buckets
    }

    /// What follows from the end of permits; buckets of which nothing matters any more go.
    pub(crate) fn follow_buckets(&mut self, now: Millis, mut buckets: Vec<u32>) {
        buckets.sort_unstable();
        buckets.dedup();
        for bucket in buckets {
            self.throttles.follow(bucket, now);
        }
    }

    /// A subscriber declares these.
    pub(crate) fn declare(&mut self, now: Millis, index: QueueIndex, throttles: &[ThrottleSpec]) {
        for spec in throttles {
            let at = self.throttles.declare(spec, index, now);
            let Some(scope) = self.throttles.at(at).map(|it| it.scope) else {
                continue;
            };
            self.queues.at_mut(index).throttled.declare(at, scope);
        }
    }

    /// A subscriber that declared these is gone.
    pub(crate) fn withdraw(&mut self, now: Millis, index: QueueIndex, throttles: &[ThrottleSpec]) {
        for spec in throttles {
            let at = self.throttles.find(&spec.name, &spec.key);
            let queue = self.queues.get_mut(index);
            if let (Some(at), Some(queue)) = (at, queue)
                && queue.throttled.withdraw(at)
                && !self.throttles.draining.contains(&index)
            {
                self.throttles.draining.push(index);
            }
            self.throttles.withdraw(spec, index, now);
        }
    }

    /// Timers of throttles, and what follows of them; a bounded part of it.
    pub(crate) fn run_throttles(&mut self, cx: &mut Cx<'_>) {
        if !self.throttles.has_work(cx.now) {
            return;
        }
        self.recheck_buckets(cx.now);
        self.drain_queues(cx.now);
        for _ in 0..WAKE_BUCKETS {
            let Some(bucket) = self.throttles.buckets.pop_due(cx.now) else {
                break;
            };
            self.throttles.follow(bucket, cx.now);
        }
        let mut left = WAKE_MESSAGES;
        for _ in 0..WAKE_BUCKETS {
            if left == 0 {
                break;
            }
            let Some(bucket) = self.throttles.buckets.pop_open() else {
                break;
            };
            self.open(cx.now, bucket, &mut left);
        }
        self.note_released(cx);
    }

    /// After a change of limits: room may have come, or be later than a timer says.
    fn recheck_buckets(&mut self, now: Millis) {
        let Some((throttle, from)) = self.throttles.recheck.pop_front() else {
            return;
        };
        let end = self.throttles.buckets.end();
        let most = u32::try_from(WAKE_BUCKETS).unwrap_or(u32::MAX);
        let to = from.saturating_add(most).min(end);
        for bucket in from..to {
            let it = self.throttles.buckets.live(bucket);
            if it.is_some_and(|it| it.throttle == throttle) {
                self.throttles.follow(bucket, now);
            }
        }
        if to < self.throttles.buckets.end() && self.throttles.at(throttle).is_some() {
            self.throttles.recheck.push_back((throttle, to));
        }
    }

    /// What waits for throttles that apply no more goes on.
    fn drain_queues(&mut self, now: Millis) {
        let Some(index) = self.throttles.draining.pop() else {
            return;
        };
        let Some(queue) = self.queues.get_mut(index) else {
            return;
        };
        let mut units = Vec::new();
        let done = queue.drain_throttled(WAKE_MESSAGES, &mut units);
        for (bucket, priority) in units {
            let it = self.throttles.buckets.at_mut(bucket);
            it.units.retain(|unit| *unit != (index, priority));
            self.throttles.follow(bucket, now);
        }
        if !done {
            self.throttles.draining.push(index);
        }
        self.touch(index);
    }

    /// A bucket may have room: each queue that waits for it gets as many messages back as fit. Who
    /// is first takes the room; the others wait again.
    fn open(&mut self, now: Millis, bucket: u32, left: &mut u64) {
        let Some(it) = self.throttles.buckets.live(bucket) else {
            return;
        };
        let (throttle, units) = (it.throttle, it.units.len());
        let hold = Hold { throttle, bucket };
        let room = self.throttles.room(bucket, now);
        let mut more = false;
        for _ in 0..units {
            if room == 0 || *left == 0 {
                break;
            }
            let units = &mut self.throttles.buckets.at_mut(bucket).units;
            let Some((index, priority)) = units.pop_front() else {
                break;
            };
            let Some(queue) = self.queues.get_mut(index) else {
                continue;
            };
            let woken = queue.wake(hold, priority, room.min(*left));
            *left = left.saturating_sub(woken.moved.max(1));
            more |= woken.more;
            if queue.throttled.unlist(hold, priority) {
                queue.throttled.relist(hold, priority);
                let units = &mut self.throttles.buckets.at_mut(bucket).units;
                units.push_back((index, priority));
            }
            self.touch(index);
        }
        if more || *left == 0 {
            self.throttles.follow(bucket, now);
        } else {
            self.throttles.rest(bucket, now);
        }
    }

    /// Panics when buckets and queues do not agree on who waits.
    pub(crate) fn assert_units(&self) {
        self.throttles.assert_invariants();
        let mut listed = Vec::new();
        for (index, queue) in self.queues.iter() {
            listed.extend(queue.throttled.listed().map(|bucket| (bucket, index)));
            for (throttle, _) in queue.throttled.applying() {
                let it = self.throttles.at(throttle);
                let declared = it.is_some_and(|it| it.queues.contains_key(&index));
                assert!(declared, "throttle {throttle} on {}", queue.identity.name);
            }
        }
        let mut known = Vec::new();
        for bucket in 0..self.throttles.buckets.end() {
            let it = self.throttles.buckets.live(bucket);
            let units = it.into_iter().flat_map(|it| &it.units);
            let units = units.filter(|(index, _)| {
                let dead = self.graveyard.holds(*index);
                assert!(dead || self.queues.get(*index).is_some(), "queue {index}");
                !dead
            });
            known.extend(units.map(|(index, _)| (bucket, *index)));
        }
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(listed, known, "who waits for buckets");
    }

    /// Buckets forget the units of a queue that was deleted. Some may have found out themselves.
    pub(crate) fn forget_units(&mut self, now: Millis, index: QueueIndex, buckets: &[u32]) {
        for bucket in buckets {
            if let Some(it) = self.throttles.buckets.live_mut(*bucket) {
                it.units.retain(|unit| unit.0 != index);
                self.throttles.follow(*bucket, now);
            }
        }
    }
}

/// What became of a granted delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It left for its consumer.
    Left,
    /// It never left.
    CameBack,
}
