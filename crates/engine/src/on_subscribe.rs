//! Connections and subscriptions come, and are given credit.

use crate::consumers::{Standing, Terms};
use crate::engine::{Cx, Engine};
use crate::queue::entries::Flags;
use crate::queues::QueueIndex;
use crate::throttle::{Outcome, check_declarations};
use crate::{ConnId, DeliveryBatch, Event, SubId, SubscribeError, SubscribeSpec, TopologyError};

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
            once: None,
            pool: spec.pool,
            priority: spec.priority,
            frame_limit: spec.frame_limit,
            ack_timeout_ms: self.ack_timeout_ms(index, spec.ack_timeout_ms),
            throttles: spec.throttles.as_slice().into(),
        };
        self.declare(cx.now, index, &spec.throttles);
        let standing = Standing::Live;
        let (consumer, number) = self.consumers.insert(sub, index, (terms, standing));
        let queue = self.queues.at_mut(index);
        queue.consumers.push(consumer);
        if spec.exclusive {
            queue.exclusive = Some(consumer);
        }
        let after = queue.last_lsn;
        cx.emit(
            sub.conn,
            after,
            Event::Subscribed {
                token,
                consumer: number,
            },
        );
        self.choose_active(index);
        self.refresh_consumer(consumer);
        self.touch(index);
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
        self.check_owner(index, sub.conn)
            .map_err(|TopologyError { text, .. }| SubscribeError::ResourceLocked(text))?;
        self.check_exclusive(index, spec)?;
        check_declarations(&spec.throttles, &self.config.limits)?;
        let limits_max = 4 * self.config.limits.throttle_limits_max;
        self.throttles.check(&spec.throttles, limits_max)?;
        if self.consumers.find(sub).is_some() {
            return Err(SubscribeError::TokenInUse);
        }
        let conn = self.consumers.conn(sub.conn);
        let max = conn.map_or(0, |conn| conn.limits.subscriptions_max);
        if conn.is_none_or(|conn| conn.subscriptions >= max) {
            return Err(SubscribeError::TooMany { max });
        }
        Ok(index)
    }

    /// One consumer may want to be the only one.
    fn check_exclusive(
        &self,
        index: QueueIndex,
        spec: &SubscribeSpec,
    ) -> Result<(), SubscribeError> {
        let queue = self.queues.at(index);
        let others = queue.has_single_active() || !queue.consumers.is_empty();
        if queue.exclusive.is_some() || (spec.exclusive && others) {
            let text = format!("{} in exclusive use", self.text_of(index));
            return Err(SubscribeError::AccessRefused(text));
        }
        Ok(())
    }

    /// The queue's word on how long a message may be held goes before that of who asks.
    pub(crate) fn ack_timeout_ms(&self, index: QueueIndex, asked_ms: Option<u64>) -> Option<u64> {
        let policy = self.queues.at(index).config.amqp.as_ref();
        policy.and_then(|it| it.consumer_timeout_ms).or(asked_ms)
    }

    /// Puts a consumer in line if it can take a message.
    pub(crate) fn refresh_consumer(&mut self, consumer: u32) {
        let Some((it, conn)) = self.consumers.with_conn(consumer) else {
            return;
        };
        if it.is_ready || !it.can_take(conn) {
            return;
        }
        let queue = self.queues.at_mut(it.queue);
        if !queue.may_serve(consumer) {
            return;
        }
        it.is_ready = true;
        let index = it.queue;
        queue.turns.push(it.terms.place_in_line(), consumer);
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

    pub(crate) fn refresh_consumers_of(&mut self, conn: ConnId) {
        let Some(it) = self.consumers.conn_mut(conn) else {
            return;
        };
        for consumer in it.consumers.clone() {
            self.refresh_consumer(consumer);
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
        if let Some(consumer) = self.consumers.index_of(batch.consumer)
            && let Some((it, conn)) = self.consumers.with_conn(consumer)
        {
            it.give_credit(conn, u32::try_from(batch.items.len()).unwrap_or(u32::MAX));
        }
        if let Some(index) = self.queues.index_of(batch.queue_id) {
            self.take_back(cx, index, batch);
        }
        // The subscription may go on (its content could not be read), and so do others of the
        // connection: they have room again.
        self.refresh_consumers_of(conn);
    }

    /// Messages of a delivery that did not leave return to their places, the attempt not counted.
    fn take_back(&mut self, cx: &mut Cx<'_>, index: QueueIndex, batch: &DeliveryBatch) {
        let mut positions = Vec::new();
        let mut came_back = false;
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
            came_back = true;
            self.unhold(batch.consumer, lease.slot);
        }
        self.write_returned(cx, index, &mut positions);
        if came_back {
            self.make_way(cx, index);
        }
        self.touch(index);
    }
}
