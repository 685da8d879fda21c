//! Messages for who asks once: leased for a time, maybe after a wait; and a look at what comes
//! next.
//!
//! Who asks for leases stands in the queue's line of consumers like a subscription that ends with
//! its first turn in which it gets something. So waiting is fair in the order of arrival, beside
//! subscriptions too.

use crate::consumers::{Once, Standing, Terms};
use crate::engine::{Cx, Engine};
use crate::paging::READS_MAX;
use crate::queue::entries::Slot;
use crate::queue::looks::Look;
use crate::queues::QueueIndex;
use crate::schedule::{add_item, new_batch};
use crate::{
    ConnId, DeliveryBatch, Event, FrameLimit, GetError, Got, Held, LeaseMode, Millis, ReplyTo,
    SubId,
};

/// Messages that expired and are in the way of who asks.
const EXPIRED_MAX: usize = 1024;

/// Who does not want to wait does so, until its connection has room or the queue has put away what
/// expired; and no longer than this.
const HELD_UP_MS: u64 = 1000;

impl Engine {
    /// Answers at once, or leaves a consumer that is answered later.
    pub(crate) fn pop(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        reply: ReplyTo,
        (max, lease_ms, wait_ms): (u32, Option<u64>, u64),
    ) {
        let sub = SubId {
            conn: reply.conn,
            token: reply.token,
        };
        self.queues.at_mut(index).used_at = cx.now;
        if max == 0 || self.consumers.find(sub).is_some() {
            return self.answer_empty(cx, index, sub);
        }
        self.expire_messages(cx, index, cx.now, EXPIRED_MAX);
        let terms = Terms {
            credit: Some(max),
            lease: LeaseMode::Timed,
            once: Some(Once { lease_ms }),
            pool: None,
            priority: 0,
            frame_limit: FrameLimit::None,
            ack_timeout_ms: None,
            throttles: Box::default(),
        };
        let (consumer, _) = self.consumers.insert(sub, index, (terms, Standing::Live));
        self.queues.at_mut(index).consumers.push(consumer);
        self.choose_active(index);
        self.refresh_consumer(consumer);
        self.pass.allow_reads();
        self.serve(cx, index, cx.now);
        self.touch(index);
        if self.consumers.find(sub) != Some(consumer) {
            return;
        }
        let conn = self.consumers.conn(sub.conn);
        let held_up =
            conn.is_some_and(|conn| !conn.has_room()) || self.queues.at(index).has_expired(cx.now);
        let wait_ms = if held_up {
            wait_ms.max(HELD_UP_MS)
        } else {
            wait_ms
        };
        if wait_ms == 0 {
            self.end_wait(cx, consumer);
        } else {
            self.arm_alarm(consumer, cx.now.after_ms(wait_ms));
        }
    }

    /// Who asked once has waited for long enough.
    pub(crate) fn end_wait(&mut self, cx: &mut Cx<'_>, consumer: u32) {
        let Some(it) = self.consumers.at(consumer) else {
            return;
        };
        let (sub, index) = (it.sub, it.queue);
        self.answer_empty(cx, index, sub);
        self.end_consumer(cx, consumer, Held::Requeue);
    }

    /// Who waits, for messages or for a key, is to wait no longer.
    pub(crate) fn on_cancel_wait(&mut self, cx: &mut Cx<'_>, reply: ReplyTo) {
        if self.cancel_keys(cx, reply) {
            return;
        }
        let sub = SubId {
            conn: reply.conn,
            token: reply.token,
        };
        let waits = self.consumers.find(sub).filter(|consumer| {
            let it = self.consumers.at(*consumer);
            it.is_some_and(|it| it.terms.once.is_some())
        });
        if let Some(consumer) = waits {
            self.end_wait(cx, consumer);
        }
    }

    /// Messages that were popped never reached their client, whose connection is gone.
    pub(crate) fn on_got_undelivered(
        &mut self,
        cx: &mut Cx<'_>,
        conn: ConnId,
        mut batch: DeliveryBatch,
    ) {
        // Nobody of the same connection may get them.
        for consumer in self.consumers.asking_of(conn) {
            self.end_consumer(cx, consumer, Held::Requeue);
        }
        for item in &mut batch.items {
            // It left, as far as throttles know.
            item.permit = 0;
        }
        self.on_undelivered(cx, conn, &batch);
    }

    /// Nothing is ready.
    fn answer_empty(&self, cx: &mut Cx<'_>, index: QueueIndex, sub: SubId) {
        let queue = self.queues.at(index);
        let (batch, remaining) = (None, queue.depth());
        let event = Event::Got {
            token: sub.token,
            result: Ok(Got { batch, remaining }),
        };
        cx.emit(sub.conn, queue.last_lsn, event);
    }

    /// Those who asked once and got something have what they wanted.
    pub(crate) fn end_served(&mut self, cx: &mut Cx<'_>, served: &mut Vec<u32>) {
        for consumer in served.drain(..) {
            self.end_consumer(cx, consumer, Held::Requeue);
        }
    }

    /// The messages that would be delivered next; nothing changes.
    pub(crate) fn look(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        most: u32,
    ) -> Option<DeliveryBatch> {
        self.expire_messages(cx, index, cx.now, EXPIRED_MAX);
        let mut slots = Vec::new();
        for _ in 0..=READS_MAX {
            slots.clear();
            let queue = self.queues.at(index);
            match queue.lanes.look(&queue.entries, most, &mut slots) {
                Look::Done => break,
                Look::InPage(lane) => self.load_page(cx, index, lane),
            }
        }
        self.touch(index);
        self.show(cx.now, index, &slots)
    }

    /// The oldest message that could be delivered now; nothing changes.
    pub(crate) fn look_at_oldest(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
    ) -> Option<DeliveryBatch> {
        self.expire_messages(cx, index, cx.now, EXPIRED_MAX);
        let mut slots = Vec::new();
        for _ in 0..=READS_MAX {
            match self.queues.at_mut(index).oldest_ready() {
                Some((_, Some(slot))) => {
                    slots.push(slot);
                    break;
                }
                Some((lane, None)) => self.load_page(cx, index, lane),
                None => break,
            }
        }
        self.touch(index);
        self.show(cx.now, index, &slots)
    }

    /// Messages as they are delivered, but without leases.
    fn show(&self, now: Millis, index: QueueIndex, slots: &[Slot]) -> Option<DeliveryBatch> {
        let queue = self.queues.at(index);
        // No lease is of a consumer of this number.
        let mut batch = new_batch(queue, u64::MAX, (now, Millis(0)));
        for slot in slots {
            add_item(queue, (*slot, 0), &mut batch);
        }
        (!batch.items.is_empty()).then_some(batch)
    }
}

/// The answer to who waits when the queue is deleted.
pub(crate) const fn queue_gone(token: u32) -> Event {
    Event::Got {
        token,
        result: Err(GetError::NotFound),
    }
}
