//! What consumers held that are gone goes back to its queue.
//!
//! A few messages at once, many in slices. The queue delivers nothing until all are back: so they
//! come in their order, as if they had come back in one step. Other queues go on. Only where a
//! queue is longer than it may be, the oldest give way with each slice, and which key's turn is
//! next may be another one.

use crate::Millis;
use crate::QueueId;
use crate::engine::{Cx, Engine};
use crate::queue::entries::Slot;
use crate::queues::QueueIndex;
use crate::steady::Line;

/// So many slices go back at once.
const SLICES_AT_ONCE: usize = 4;

/// Messages on their way back.
#[derive(Debug)]
pub(crate) struct Return {
    queue: QueueId,
    /// The number of the consumer that is gone.
    consumer: u64,
    /// What it may have held.
    held: Line<(Millis, Slot)>,
}

impl Engine {
    /// What a consumer holds until its connection is gone goes back to the queue.
    pub(crate) fn requeue_held(&mut self, cx: &mut Cx<'_>, index: QueueIndex, consumer: u32) {
        let Some(it) = self.consumers.at_mut(consumer) else {
            return;
        };
        let number = it.number;
        let mut held = it.holds.take();
        if held.len() <= SLICES_AT_ONCE * self.config.slice() {
            return self.return_some(cx, index, (number, &mut held), usize::MAX);
        }
        let queue = self.queues.at_mut(index);
        queue.returning += 1;
        self.returns.push_back(Return {
            queue: queue.identity.id,
            consumer: number,
            held,
        });
    }

    /// Looks at so many of them, and returns those that the consumer held.
    fn return_some(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        (consumer, held): (u64, &mut Line<(Millis, Slot)>),
        most: usize,
    ) {
        let queue = self.queues.at(index);
        let some = core::iter::from_fn(|| held.pop_front()).take(most);
        let some = some.filter(|hold| queue.is_held(consumer, *hold));
        let mut slots: Vec<_> = some.map(|(_, slot)| slot).collect();
        // In their old order. A slot whose message was settled and that holds another one now may
        // be there twice.
        slots.sort_unstable_by_key(|slot| queue.entries.at(*slot).position);
        slots.dedup();
        self.requeue_all(cx, index, &slots);
    }

    /// A slice of what is on its way back.
    pub(crate) fn run_returns(&mut self, cx: &mut Cx<'_>) {
        let Some(mut it) = self.returns.pop_front() else {
            return;
        };
        // It goes with its queue.
        let Some(index) = self.queues.index_of(it.queue) else {
            return;
        };
        let most = self.config.slice();
        self.return_some(cx, index, (it.consumer, &mut it.held), most);
        if it.held.len() > 0 {
            self.returns.push_front(it);
        } else {
            self.queues.at_mut(index).returning -= 1;
        }
        self.touch(index);
    }
}
