//! Subscriptions end: by their session's word, with their connection or queue, or because they held
//! a message for too long.
//!
//! Messages whose lease ends with the connection stay with it when their subscription is cancelled,
//! if its session wants so: the consumer is *kept* until they are settled. A queue with a single
//! active consumer waits for that before the next one is served.

use crate::consumers::{Consumer, Standing};
use crate::dead_letter::Reason;
use crate::engine::{Cx, Engine};
use crate::on_pop::queue_gone;
use crate::queue::Queue;
use crate::queue::entries::{Flags, Place, Slot};
use crate::queue::leases::Lease;
use crate::queues::QueueIndex;
use crate::{
    ConnId, DeliveryDurability, Event, Held, LeaseMode, Millis, SettleItem, SubId, SubscriptionEnd,
};

/// Consumers that one pass looks at whether they hold a message for too long.
const ALARMS_MAX: usize = 64;

impl Engine {
    pub(crate) fn on_unsubscribe(&mut self, cx: &mut Cx<'_>, sub: SubId, held: Held) {
        if let Some(consumer) = self.consumers.find(sub) {
            self.end_consumer(cx, consumer, held);
        }
    }

    pub(crate) fn on_disconnect(&mut self, cx: &mut Cx<'_>, conn: ConnId) {
        self.keyspaces.forget_conn(conn);
        self.forget_watches(conn);
        let Some(it) = self.consumers.conn_mut(conn) else {
            return;
        };
        // Nothing goes to it any more, also when one of its consumers makes room for another.
        it.limits.outbound_bytes_max = 0;
        // Taken out first: each is then removed without looking for it.
        for consumer in core::mem::take(&mut it.consumers) {
            self.end_consumer(cx, consumer, Held::Requeue);
        }
        self.delete_owned(cx, conn);
        self.consumers.disconnect(conn);
    }

    /// Ends a consumer: leases with a timeout stay, those of the connection are requeued, or kept.
    pub(crate) fn end_consumer(&mut self, cx: &mut Cx<'_>, consumer: u32, held: Held) {
        let Some(it) = self.consumers.at(consumer) else {
            return;
        };
        let (index, was_live) = (it.queue, it.standing == Standing::Live);
        let once = it.terms.once.is_some();
        let stays = held == Held::Keep && it.holds.len() > 0;
        if was_live {
            self.leave_queue(cx, index, consumer);
        }
        if stays {
            self.consumers.keep(consumer);
            self.queues.at_mut(index).kept.push(consumer);
        } else {
            self.requeue_held(cx, index, consumer);
            self.drop_consumer(index, consumer);
        }
        if was_live && !once && self.delete_if_left(cx, index) {
            return;
        }
        self.choose_active(index);
        self.touch(index);
    }

    /// A subscription takes nothing more from its queue.
    fn leave_queue(&mut self, cx: &Cx<'_>, index: QueueIndex, consumer: u32) {
        let Some(it) = self.consumers.at_mut(consumer) else {
            return;
        };
        let (was_ready, place) = (it.is_ready, it.terms.place_in_line());
        it.is_ready = false;
        let throttles = core::mem::take(&mut it.terms.throttles);
        let queue = self.queues.at_mut(index);
        if let Some(at) = queue.consumers.iter().position(|other| *other == consumer) {
            queue.consumers.remove(at);
        }
        if was_ready {
            queue.turns.remove(place, consumer);
        }
        queue.exclusive = queue.exclusive.filter(|other| *other != consumer);
        queue.used_at = cx.now;
        self.withdraw(cx.now, index, &throttles);
    }

    /// Nothing is left of a consumer.
    fn drop_consumer(&mut self, index: QueueIndex, consumer: u32) {
        if let Some(gone) = self.consumers.remove(consumer) {
            self.forget_alarm(&gone, consumer);
        }
        let queue = self.queues.at_mut(index);
        queue.active = queue.active.filter(|other| *other != consumer);
        if let Some(at) = queue.kept.iter().position(|other| *other == consumer) {
            queue.kept.swap_remove(at);
        }
    }

    /// Leased messages go back to their old positions: nacked, or their consumer is gone.
    pub(crate) fn requeue_all(&mut self, cx: &mut Cx<'_>, index: QueueIndex, slots: &[Slot]) {
        if slots.is_empty() {
            return;
        }
        let mut positions = Vec::with_capacity(slots.len());
        let mut spent = Vec::new();
        let queue = self.queues.at_mut(index);
        for slot in slots {
            if queue.is_spent(*slot) {
                spent.push(*slot);
                continue;
            }
            let entry = queue.entries.at(*slot);
            if !entry.flags.has(Flags::TRANSIENT) {
                positions.push(entry.position);
            }
            queue.give_back(*slot, None);
        }
        self.die(cx, index, &spent, Reason::DeliveryLimit);
        positions.sort_unstable();
        self.write_requeued(cx, index, &mut positions);
        self.make_way(cx, index);
    }

    /// A message was leased to a consumer until its connection is gone.
    pub(crate) fn hold(&mut self, now: Millis, number: u64, slot: Slot) {
        let Some(consumer) = self.consumers.index_of(number) else {
            return;
        };
        let Some(it) = self.consumers.at_mut(consumer) else {
            return;
        };
        it.holds.push(now, slot);
        if let Some(ms) = it.terms.ack_timeout_ms.filter(|_| it.alarm.is_none()) {
            self.arm_alarm(consumer, now.after_ms(ms));
        }
    }

    /// Nothing was got.
    pub(crate) fn drop_idle_getter(&mut self, index: QueueIndex, consumer: u32) {
        let it = self.consumers.at(consumer);
        if it.is_some_and(|it| it.holds.len() == 0) {
            self.drop_consumer(index, consumer);
        }
    }

    /// A message that a consumer held until its connection is gone has been settled.
    pub(crate) fn unhold(&mut self, number: u64, slot: Slot) {
        let Some(consumer) = self.consumers.index_of(number) else {
            return;
        };
        let Some(it) = self.consumers.at_mut(consumer) else {
            return;
        };
        if it.terms.lease == LeaseMode::Timed {
            return;
        }
        let index = it.queue;
        if it.holds.remove(slot) {
            let queue = self.queues.at(index);
            it.holds.sweep(|at, slot| queue.is_held(number, (at, slot)));
        }
        if it.holds.len() == 0 && it.standing != Standing::Live {
            self.drop_consumer(index, consumer);
            self.choose_active(index);
        }
    }

    /// The next consumer of a queue that serves one at a time, when the one before has settled what
    /// it held: the first that came of those with the highest priority.
    pub(crate) fn choose_active(&mut self, index: QueueIndex) {
        let queue = self.queues.at(index);
        if !queue.has_single_active() || queue.active.is_some() {
            return;
        }
        let mut best: Option<(i32, u32)> = None;
        for consumer in &queue.consumers {
            let priority = self
                .consumers
                .at(*consumer)
                .map_or(0, |it| it.terms.priority);
            if best.is_none_or(|best| priority > best.0) {
                best = Some((priority, *consumer));
            }
        }
        self.queues.at_mut(index).active = best.map(|(_, consumer)| consumer);
        if let Some((_, consumer)) = best {
            self.refresh_consumer(consumer);
        }
    }

    /// Ends every subscription of a queue that is deleted.
    pub(crate) fn end_subscriptions(&mut self, cx: &mut Cx<'_>, index: QueueIndex) {
        let after = self.queues.last_lsn;
        let queue = self.queues.at_mut(index);
        let consumers = core::mem::take(&mut queue.consumers);
        for consumer in consumers
            .into_iter()
            .chain(core::mem::take(&mut queue.kept))
        {
            let Some(it) = self.consumers.remove(consumer) else {
                continue;
            };
            self.forget_alarm(&it, consumer);
            if it.standing != Standing::Live {
                continue;
            }
            self.withdraw(cx.now, index, &it.terms.throttles);
            let event = if it.terms.once.is_some() {
                queue_gone(it.sub.token)
            } else {
                Event::SubscriptionEnded {
                    token: it.sub.token,
                    reason: SubscriptionEnd::QueueDeleted,
                }
            };
            cx.emit(it.sub.conn, after, event);
        }
    }

    /// A consumer that may hold a message only for so long is looked at when that is over.
    pub(crate) fn arm_alarm(&mut self, consumer: u32, at: Millis) {
        if let Some(it) = self.consumers.at_mut(consumer) {
            it.alarm = Some(at);
            self.alarms.insert((at, consumer));
        }
    }

    fn forget_alarm(&mut self, gone: &Consumer, consumer: u32) {
        if let Some(at) = gone.alarm {
            self.alarms.remove(&(at, consumer));
        }
    }

    /// Consumers that held a message for too long end.
    pub(crate) fn run_alarms(&mut self, cx: &mut Cx<'_>) {
        for _ in 0..ALARMS_MAX {
            let Some((at, consumer)) = self.alarms.first().copied().filter(|it| it.0 <= cx.now)
            else {
                return;
            };
            self.alarms.remove(&(at, consumer));
            self.on_alarm(cx, consumer);
        }
    }

    fn on_alarm(&mut self, cx: &mut Cx<'_>, consumer: u32) {
        let Some(it) = self.consumers.at_mut(consumer) else {
            return;
        };
        it.alarm = None;
        if it.terms.once.is_some() {
            return self.end_wait(cx, consumer);
        }
        let Some(timeout_ms) = it.terms.ack_timeout_ms else {
            return;
        };
        let (number, queue) = (it.number, self.queues.at(it.queue));
        let oldest = it
            .holds
            .oldest(|at, slot| queue.is_held(number, (at, slot)));
        let Some(end) = oldest.map(|at| at.after_ms(timeout_ms)) else {
            return;
        };
        if end > cx.now {
            return self.arm_alarm(consumer, end);
        }
        let event = Event::SubscriptionEnded {
            token: it.sub.token,
            reason: SubscriptionEnd::AckTimedOut { timeout_ms },
        };
        cx.emit(it.sub.conn, queue.last_lsn, event);
        self.end_consumer(cx, consumer, Held::Requeue);
    }
}

impl Queue {
    /// A message that was leased to a consumer at that time still is.
    pub(crate) fn is_held(&self, consumer: u64, (at, slot): (Millis, Slot)) -> bool {
        let entry = self.entries.live(slot);
        let Some(entry) = entry.filter(|it| it.place == Place::Leased) else {
            return false;
        };
        let lease = self.leases.find(entry.id);
        lease.is_some_and(|it| it.consumer == consumer && it.slot == slot && it.since == at)
    }

    /// The lease that a settlement means.
    pub(crate) fn lease_meant(&self, item: &SettleItem) -> Option<Lease> {
        let lease = self.leases.find(item.id);
        lease.filter(|lease| item.queue.means(lease.consumer))
    }

    /// It serves one consumer at a time.
    pub(crate) fn has_single_active(&self) -> bool {
        let policy = self.config.amqp.as_ref();
        policy.is_some_and(|policy| policy.single_active_consumer)
    }

    /// This consumer is served when it is its turn.
    pub(crate) fn may_serve(&self, consumer: u32) -> bool {
        !self.has_single_active() || self.active == Some(consumer)
    }

    /// That messages were delivered is written down: so that a lease holds after a restart, or that
    /// the next consumer is told.
    pub(crate) fn remembers_deliveries(&self) -> bool {
        self.config.durability == DeliveryDurability::Committed || self.config.amqp.is_some()
    }
}
