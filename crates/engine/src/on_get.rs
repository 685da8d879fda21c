//! One message at once, without a subscription; limits that consumers share.
//!
//! What a connection got and has not settled hangs on a consumer that is none: one for each queue
//! it gets from, there while it holds something.

use crate::consumers::{Standing, Terms};
use crate::engine::{Cx, Engine};
use crate::queue::entries::{Flags, Place};
use crate::queues::QueueIndex;
use crate::schedule::{PassScratch, Picked, Taker, add_item, new_batch};
use crate::{
    ConnId, DeliveryBatch, Event, FrameLimit, GetError, GetSpec, Got, LeaseMode, Lsn, PoolChange,
    ReplyTo, SubId, Take, TopologyCode,
};

impl Engine {
    pub(crate) fn on_get(&mut self, cx: &mut Cx<'_>, reply: ReplyTo, spec: &GetSpec) {
        let named = self.named_queue(reply.conn, (spec.vhost, &spec.queue));
        let (after, result) = match named {
            Ok(index) => match spec.take {
                Take::Leased {
                    max,
                    lease_ms,
                    wait_ms,
                } => return self.pop(cx, index, reply, (max, lease_ms, wait_ms)),
                Take::Look { max } => {
                    let batch = self.look(cx, index, max);
                    self.shown(index, batch)
                }
                Take::Oldest => {
                    let batch = self.look_at_oldest(cx, index);
                    self.shown(index, batch)
                }
                Take::NoAck => {
                    // What may not fit is held until its session has sent it.
                    let may_hold = spec.frame_limit != FrameLimit::None;
                    let getter = may_hold.then(|| self.getter(index, (reply, None)));
                    let how = (LeaseMode::NoAck, spec.frame_limit);
                    let (after, got) = self.get(cx, index, (reply, getter), how);
                    (after, Ok(got))
                }
                Take::Held { ack_timeout_ms } => {
                    let getter = self.getter(index, (reply, ack_timeout_ms));
                    let how = (LeaseMode::Connection, spec.frame_limit);
                    let (after, got) = self.get(cx, index, (reply, Some(getter)), how);
                    (after, Ok(got))
                }
            },
            Err(error) if error.code == TopologyCode::NotFound => {
                (self.queues.last_lsn, Err(GetError::NotFound))
            }
            Err(error) => (self.queues.last_lsn, Err(GetError::Topology(error))),
        };
        let token = reply.token;
        cx.emit(reply.conn, after, Event::Got { token, result });
    }

    /// What is answered with messages that are only shown.
    fn shown(
        &self,
        index: QueueIndex,
        batch: Option<DeliveryBatch>,
    ) -> (Lsn, Result<Got, GetError>) {
        let queue = self.queues.at(index);
        let remaining = queue.depth();
        (queue.stored_lsn, Ok(Got { batch, remaining }))
    }

    fn get(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        (reply, getter): (ReplyTo, Option<(u32, u64)>),
        (lease, frame_limit): (LeaseMode, FrameLimit),
    ) -> (Lsn, Got) {
        self.queues.at_mut(index).used_at = cx.now;
        let taker = Taker {
            number: getter.map_or(0, |(_, number)| number),
            lease,
            frame_limit,
            lease_ms: None,
        };
        let mut pass = core::mem::take(&mut self.pass);
        pass.allow_reads();
        let batch = self.get_one(cx, index, taker, &mut pass);
        let after = self.write_leases(cx, index, &mut pass);
        self.pass = pass;
        if let (Some(batch), Some(conn)) = (&batch, self.consumers.conn_mut(reply.conn)) {
            // It goes whatever else is on its way, and counts: its session reports when it left.
            conn.outbound_bytes += batch.budget_bytes();
        }
        if let Some((consumer, _)) = getter {
            self.drop_idle_getter(index, consumer);
        }
        self.touch(index);
        let remaining = self.queues.at(index).depth();
        (after, Got { batch, remaining })
    }

    /// Takes the next message, if one can go.
    fn get_one(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        taker: Taker,
        pass: &mut PassScratch,
    ) -> Option<DeliveryBatch> {
        /// Messages that wait for a throttle each by itself are passed over up to here.
        const STEPS_MAX: u32 = 1024;
        for _ in 0..STEPS_MAX {
            match self.pick_for(cx, index, taker, pass) {
                Picked::Again => {}
                Picked::InPage(lane) if pass.reads > 0 => {
                    pass.reads -= 1;
                    self.load_page(cx, index, lane);
                }
                Picked::InPage(_) | Picked::Nothing => return None,
                Picked::Message {
                    slot,
                    permit,
                    expires_at,
                } => {
                    let queue = self.queues.at(index);
                    let mut batch = new_batch(queue, taker.number, (cx.now, expires_at));
                    batch.throttled = permit != 0;
                    add_item(queue, (slot, permit), &mut batch);
                    let entry = queue.entries.at(slot);
                    if entry.place != Place::Leased {
                        pass.gone.push(slot);
                        return Some(batch);
                    }
                    if !entry.flags.has(Flags::TRANSIENT) {
                        pass.untimed.push(entry.position);
                    }
                    self.hold(cx.now, taker.number, slot);
                    return Some(batch);
                }
            }
        }
        None
    }

    /// The one that holds what a connection gets from a queue.
    fn getter(
        &mut self,
        index: QueueIndex,
        (reply, ack_timeout_ms): (ReplyTo, Option<u64>),
    ) -> (u32, u64) {
        let sub = SubId {
            conn: reply.conn,
            token: reply.token,
        };
        for consumer in &self.queues.at(index).kept {
            if let Some(it) = self.consumers.at(*consumer)
                && it.standing == Standing::Getter
                && it.sub.conn == reply.conn
            {
                return (*consumer, it.number);
            }
        }
        let terms = Terms {
            credit: Some(0),
            lease: LeaseMode::Connection,
            once: None,
            pool: None,
            priority: 0,
            frame_limit: FrameLimit::None,
            ack_timeout_ms: self.ack_timeout_ms(index, ack_timeout_ms),
            throttles: Box::default(),
        };
        let getter = self.consumers.insert(sub, index, (terms, Standing::Getter));
        self.queues.at_mut(index).kept.push(getter.0);
        getter
    }

    pub(crate) fn on_pool(&mut self, conn: ConnId, pool: u32, change: PoolChange) {
        let Some(it) = self.consumers.conn_mut(conn) else {
            return;
        };
        let had_room = it.pool_has_room(pool);
        it.change_pool(pool, change);
        if !had_room && it.pool_has_room(pool) {
            self.refresh_consumers_of(conn);
        }
    }
}
