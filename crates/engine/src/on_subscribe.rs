//! Connections and subscriptions come and go.

use crate::consumers::Terms;
use crate::engine::{Cx, Engine};
use crate::queue::entries::Flags;
use crate::queues::QueueIndex;
use crate::record::{Kind, begin, put_positions};
use crate::throttle::{Outcome, check_declarations};
use crate::{
    ConnId, DeliveryBatch, DeliveryDurability, Event, Held, LeaseMode, SubId, SubscribeError,
    SubscribeSpec, SubscriptionEnd,
};

impl Engine {
    pub(crate) fn on_subscribe(&mut self, cx: &mut Cx<'_>, sub: SubId, spec: &SubscribeSpec) {
        let token = sub.token;
        let index = match self.check_subscribe(sub, spec) {
            Ok(index) => index,
            Err(error) => {
                let after = self.queues.last_lsn;
                cx.emit(sub.conn, after, Event::SubscribeFailed { token, error });
                return;
            }
        };
        let terms = Terms {
            credit: spec.credit,
            lease: spec.lease,
            throttles: spec.throttles.as_slice().into(),
        };
        self.declare(cx.now, index, &spec.throttles);
        let (consumer, number) = self.consumers.insert(sub, index, terms);
        let queue = self.queues.at_mut(index);
        queue.consumers.push(consumer);
        let after = queue.last_lsn;
        cx.emit(
            sub.conn,
            after,
            Event::Subscribed {
                token,
                consumer: number,
            },
        );
        self.refresh_consumer(consumer);
    }

    fn check_subscribe(
        &self,
        sub: SubId,
        spec: &SubscribeSpec,
    ) -> Result<QueueIndex, SubscribeError> {
        let index = self
            .queues
            .find_in(spec.vhost, &spec.queue)
            .ok_or(SubscribeError::QueueNotFound)?;
        if spec.pool.is_some() || spec.exclusive || spec.lease == LeaseMode::NoAck {
            let text = "such consumers are not implemented yet";
            return Err(SubscribeError::AccessRefused(text.to_owned()));
        }
        check_declarations(&spec.throttles, &self.config.limits)?;
        let limits_max = 4 * self.config.limits.throttle_limits_max;
        self.throttles.check(&spec.throttles, limits_max)?;
        if self.consumers.find(sub).is_some() {
            return Err(SubscribeError::TokenInUse);
        }
        let conn = self.consumers.conn(sub.conn);
        let max = conn.map_or(0, |conn| conn.limits.subscriptions_max);
        if conn.is_none_or(|conn| conn.consumers.len() >= max as usize) {
            return Err(SubscribeError::TooMany { max });
        }
        Ok(index)
    }

    /// Puts a consumer in line if it can take a message.
    pub(crate) fn refresh_consumer(&mut self, consumer: u32) {
        let Some((it, conn)) = self.consumers.with_conn(consumer) else {
            return;
        };
        if it.is_ready || it.credit == Some(0) || !conn.has_room() {
            return;
        }
        it.is_ready = true;
        let index = it.queue;
        self.queues
            .at_mut(index)
            .ready_consumers
            .push_back(consumer);
        self.touch(index);
    }

    pub(crate) fn on_grant(&mut self, sub: SubId, credit: u32) {
        let Some(consumer) = self.consumers.find(sub) else {
            return;
        };
        if let Some(it) = self.consumers.at_mut(consumer) {
            it.credit = it.credit.map(|left| left.saturating_add(credit));
        }
        self.refresh_consumer(consumer);
    }

    pub(crate) fn on_drained(&mut self, conn: ConnId, bytes: u64) {
        let Some(it) = self.consumers.conn_mut(conn) else {
            return;
        };
        let had_room = it.has_room();
        it.outbound_bytes = it.outbound_bytes.saturating_sub(bytes);
        if !had_room && it.has_room() {
            self.refresh_consumers_of(conn);
        }
    }

    fn refresh_consumers_of(&mut self, conn: ConnId) {
        let Some(it) = self.consumers.conn_mut(conn) else {
            return;
        };
        for consumer in it.consumers.clone() {
            self.refresh_consumer(consumer);
        }
    }

    /// What it holds stays with the connection only where that is implemented: not yet.
    pub(crate) fn on_unsubscribe(&mut self, cx: &mut Cx<'_>, sub: SubId, _held: Held) {
        if let Some(consumer) = self.consumers.find(sub) {
            self.end_consumer(cx, consumer);
        }
    }

    pub(crate) fn on_disconnect(&mut self, cx: &mut Cx<'_>, conn: ConnId) {
        let Some(it) = self.consumers.conn(conn) else {
            return;
        };
        for consumer in it.consumers.clone() {
            self.end_consumer(cx, consumer);
        }
        self.consumers.disconnect(conn);
    }

    /// Ends a subscription: leases with a timeout stay, those of the connection are requeued.
    fn end_consumer(&mut self, cx: &mut Cx<'_>, consumer: u32) {
        let Some(it) = self.consumers.remove(consumer) else {
            return;
        };
        let queue = self.queues.at_mut(it.queue);
        if let Some(at) = queue.consumers.iter().position(|other| *other == consumer) {
            queue.consumers.remove(at);
        }
        let mut ready = queue.ready_consumers.iter();
        if it.is_ready
            && let Some(at) = ready.position(|other| *other == consumer)
        {
            queue.ready_consumers.remove(at);
        }
        if it.lease == LeaseMode::Connection {
            let mut positions = Vec::new();
            for id in &it.held {
                let Some(lease) = queue.leases.find(*id) else {
                    continue;
                };
                let entry = queue.entries.at(lease.slot);
                if !entry.flags.has(Flags::TRANSIENT) {
                    positions.push(entry.position);
                }
                queue.give_back(lease.slot, None);
            }
            self.write_requeued(cx, it.queue, &mut positions);
        }
        self.withdraw(cx.now, it.queue, &it.throttles);
        self.touch(it.queue);
    }

    /// Ends every subscription of a queue that is deleted.
    pub(crate) fn end_subscriptions(&mut self, cx: &mut Cx<'_>, index: QueueIndex) {
        let after = self.queues.last_lsn;
        for consumer in core::mem::take(&mut self.queues.at_mut(index).consumers) {
            let Some(it) = self.consumers.remove(consumer) else {
                continue;
            };
            self.withdraw(cx.now, index, &it.throttles);
            let reason = SubscriptionEnd::QueueDeleted;
            let event = Event::SubscriptionEnded {
                token: it.sub.token,
                reason,
            };
            cx.emit(it.sub.conn, after, event);
        }
    }

    pub(crate) fn on_undelivered(&mut self, cx: &mut Cx<'_>, conn: ConnId, batch: &DeliveryBatch) {
        if let Some(it) = self.consumers.conn_mut(conn) {
            it.outbound_bytes = it.outbound_bytes.saturating_sub(batch.budget_bytes());
        }
        let permits = batch.items.iter().map(|item| item.permit);
        let mut buckets = self.end_permits(cx.now, permits, Outcome::CameBack);
        self.write_came_back(cx, &mut buckets);
        self.follow_buckets(cx.now, buckets);
        let Some(index) = self.queues.index_of(batch.queue_id) else {
            self.refresh_consumers_of(conn);
            return;
        };
        if let Some(consumer) = self.consumers.by_number(batch.consumer) {
            let count = u32::try_from(batch.items.len()).unwrap_or(u32::MAX);
            consumer.credit = consumer.credit.map(|left| left.saturating_add(count));
        }
        let mut positions = Vec::new();
        for item in &batch.items {
            let queue = self.queues.at_mut(index);
            let Some(lease) = queue.leases.find(item.id) else {
                continue;
            };
            queue.preserve(lease.slot);
            let entry = queue.entries.at_mut(lease.slot);
            // This lease may have ended while the delivery waited, and another have begun.
            let lease_of = (lease.consumer, entry.deliveries, u32::from(entry.redrives));
            if lease_of != (batch.consumer, item.deliveries, item.redrives) {
                continue;
            }
            entry.deliveries = entry.deliveries.saturating_sub(1);
            if !entry.flags.has(Flags::TRANSIENT) {
                positions.push(entry.position);
            }
            queue.give_back(lease.slot, None);
            if let Some(consumer) = self.consumers.by_number(batch.consumer) {
                consumer.held.remove(&item.id);
            }
        }
        let queue = self.queues.at(index);
        if !positions.is_empty() && queue.config.durability == DeliveryDurability::Committed {
            begin(&mut self.record, Kind::Returned, queue.identity.id, cx.now);
            put_positions(&mut self.record, &positions);
            self.queues.at_mut(index).last_lsn = self.append(cx);
        }
        self.touch(index);
        // The subscription may go on (its content could not be read), and so do others of the
        // connection: they have room again.
        self.refresh_consumers_of(conn);
    }
}
