//! Deliveries: which queue, which message, which consumer.
//!
//! Queues with something to deliver and somebody to take it wait in line, each gets a bounded turn.
//! Within a queue the lanes pick the message, and the consumers that can take one take turns. A
//! turn's leases are one record; its deliveries wait for it.

use bytes::Bytes;

use crate::engine::{Cx, Engine};
use crate::on_settle::SettleScratch;
use crate::paging::READS_MAX;
use crate::queue::Queue;
use crate::queue::entries::{Flags, Place, Slot};
use crate::queue::leases::NEVER;
use crate::queue::picks::Taken;
use crate::queue::turns::Turn;
use crate::queues::QueueIndex;
use crate::record::{Kind, begin, put_positions};
use crate::throttle::{self, Admission, Scratch};
use crate::{
    DeliveryBatch, DeliveryDurability, DeliveryItem, Event, FrameLimit, Got, LeaseMode, Lsn,
    Millis, Ordering, Span, SubId,
};

/// Buffers used again in every pass.
#[derive(Debug, Default)]
pub(crate) struct PassScratch {
    pub(crate) positions: Vec<u64>,
    pub(crate) settle: SettleScratch,
    /// Queues whose timers are due.
    pub(crate) due: Vec<QueueIndex>,
    batches: Vec<OpenBatch>,
    /// Positions leased without a timeout.
    pub(crate) untimed: Vec<u64>,
    /// Ends of leases that are as long as was asked for, with their positions.
    asked: Vec<(Millis, u64)>,
    /// Consumers that asked once and were given something.
    served: Vec<u32>,
    /// Messages that are gone once they are delivered.
    pub(crate) gone: Vec<Slot>,
    /// Pages that this pass may still read.
    pub(crate) reads: u32,
    pub(crate) throttle: Scratch,
}

/// Who a message is taken for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taker {
    /// The consumer's number; of one without a lease it does not matter.
    pub(crate) number: u64,
    pub(crate) lease: LeaseMode,
    /// The largest message that it can be sent.
    pub(crate) frame_limit: FrameLimit,
    /// How long a timed lease lasts; `None` = the queue's visibility timeout.
    pub(crate) lease_ms: Option<u64>,
}

/// What was taken out of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Picked {
    /// A message.
    Message {
        slot: Slot,
        /// What throttles were charged for it.
        permit: u32,
        /// The end of its lease.
        expires_at: Millis,
    },
    /// The next message waits for a throttle; there may be another one.
    Again,
    /// The next message is in the first page of this lane.
    InPage(u32),
    /// There is none.
    Nothing,
}

/// What became of one step of a queue's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    /// A message was delivered, or a consumer that can take none left the line.
    One,
    /// The next message is in the first page of this lane.
    InPage(u32),
    /// There is no message or no consumer.
    Nothing,
}

/// Deliveries gathered for one consumer in one turn.
#[derive(Debug)]
struct OpenBatch {
    sub: SubId,
    consumer: u32,
    batch: DeliveryBatch,
}

/// Messages a queue may deliver before the next one has its turn.
const TURN_MESSAGES: u32 = 1024;
/// Turns in one pass.
const PASS_TURNS: usize = 8;

impl PassScratch {
    /// A new pass may read pages.
    pub(crate) const fn allow_reads(&mut self) {
        self.reads = READS_MAX;
        self.throttle.reads = throttle::READS_MAX;
    }
}

impl Engine {
    /// One pass over the line of queues.
    pub(crate) fn deliver(&mut self, cx: &mut Cx<'_>) {
        self.pass.allow_reads();
        for _ in 0..PASS_TURNS.min(self.runnable.len()) {
            let Some(index) = self.runnable.pop_front() else {
                break;
            };
            self.queues.at_mut(index).runnable = false;
            self.serve(cx, index, cx.now);
            self.touch(index);
        }
    }

    /// One turn of a queue, unless messages are left that expired by `expired_by`: those leave
    /// first.
    pub(crate) fn serve(&mut self, cx: &mut Cx<'_>, index: QueueIndex, expired_by: Millis) {
        if self.queues.at(index).has_expired(expired_by) {
            return;
        }
        let mut pass = core::mem::take(&mut self.pass);
        for _ in 0..TURN_MESSAGES {
            match self.serve_one(cx, index, &mut pass) {
                Served::One => {}
                Served::InPage(lane) if pass.reads > 0 => {
                    pass.reads -= 1;
                    self.load_page(cx, index, lane);
                }
                Served::InPage(_) | Served::Nothing => break,
            }
        }
        let after = self.write_leases(cx, index, &mut pass);
        let remaining = self.queues.at(index).depth();
        for open in pass.batches.drain(..) {
            let (token, batch) = (open.sub.token, open.batch);
            let mut asked_once = false;
            if let Some(it) = self.consumers.at_mut(open.consumer) {
                it.batch = u32::MAX;
                asked_once = it.terms.once.is_some();
            }
            let event = if asked_once {
                pass.served.push(open.consumer);
                let batch = Some(batch);
                let result = Ok(Got { batch, remaining });
                Event::Got { token, result }
            } else {
                Event::Delivery { token, batch }
            };
            cx.emit(open.sub.conn, after, event);
        }
        let mut served = core::mem::take(&mut pass.served);
        self.pass = pass;
        self.end_served(cx, &mut served);
        self.pass.served = served;
    }

    /// Delivers one message to the consumer whose turn it is.
    fn serve_one(&mut self, cx: &mut Cx<'_>, index: QueueIndex, pass: &mut PassScratch) -> Served {
        let queue = self.queues.at_mut(index);
        let Some(turn) = queue.next_turn() else {
            return Served::Nothing;
        };
        let Some(taker) = self.consumers.ready(turn.consumer) else {
            queue.turns.pop(turn);
            return Served::One;
        };
        match self.pick_for(cx, index, taker, pass) {
            Picked::Again => Served::One,
            Picked::InPage(lane) => Served::InPage(lane),
            Picked::Nothing => Served::Nothing,
            Picked::Message {
                slot,
                permit,
                expires_at,
            } => {
                self.put_delivery(index, turn, (slot, permit), (cx.now, expires_at), pass);
                Served::One
            }
        }
    }

    /// Takes the next message of a queue that no throttle holds.
    pub(crate) fn pick_for(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        taker: Taker,
        pass: &mut PassScratch,
    ) -> Picked {
        let throttled = self.queues.at(index).throttled.is_any();
        if throttled {
            match self.admit(cx, (index, taker.frame_limit), &mut pass.throttle) {
                Admission::Go => {}
                Admission::Again => return Picked::Again,
                Admission::InPage(lane) => return Picked::InPage(lane),
                Admission::Nothing => return Picked::Nothing,
            }
        }
        let queue = self.queues.at_mut(index);
        let (expires_at, taken) = queue.take_for(taker, cx.now);
        let slot = match taken {
            Taken::Message(slot) => slot,
            Taken::InPage(lane) => return Picked::InPage(lane),
            Taken::Nothing => return Picked::Nothing,
        };
        let permit = if throttled {
            self.unwake(cx.now, index, slot);
            self.charge(cx.now, index, &mut pass.throttle)
        } else {
            0
        };
        Picked::Message {
            slot,
            permit,
            expires_at,
        }
    }

    /// A leased message joins the deliveries of its consumer in this turn.
    fn put_delivery(
        &mut self,
        index: QueueIndex,
        turn: Turn,
        (slot, permit): (Slot, u32),
        (now, expires_at): (Millis, Millis),
        pass: &mut PassScratch,
    ) {
        let queue = self.queues.at_mut(index);
        let consumer = turn.consumer;
        let Some((it, conn)) = self.consumers.with_conn(consumer) else {
            return;
        };
        let entry = queue.entries.at(slot);
        let mut alarm = None;
        let durable = !entry.flags.has(Flags::TRANSIENT);
        match it.terms.lease {
            LeaseMode::Timed if durable && it.terms.once.is_some() => {
                pass.asked.push((expires_at, entry.position));
            }
            LeaseMode::Timed if durable => pass.positions.push(entry.position),
            LeaseMode::Timed => {}
            LeaseMode::NoAck if entry.place != Place::Leased => pass.gone.push(slot),
            LeaseMode::Connection | LeaseMode::NoAck => {
                if durable {
                    pass.untimed.push(entry.position);
                }
                it.holds.push(now, slot);
                let timeout_ms = it.terms.ack_timeout_ms.filter(|_| it.alarm.is_none());
                alarm = timeout_ms.map(|ms| now.after_ms(ms));
            }
        }
        if pass
            .batches
            .get(it.batch as usize)
            .is_none_or(|open| open.consumer != consumer)
        {
            it.batch = u32::try_from(pass.batches.len()).unwrap_or(u32::MAX);
            let batch = new_batch(queue, it.number, (now, expires_at));
            pass.batches.push(OpenBatch {
                sub: it.sub,
                consumer,
                batch,
            });
        }
        if let Some(open) = pass.batches.get_mut(it.batch as usize) {
            open.batch.throttled |= permit != 0;
            let item = add_item(queue, (slot, permit), &mut open.batch);
            conn.outbound_bytes += item.budget_bytes();
        }
        it.take_credit(conn);
        if it.can_take(conn) {
            queue.turns.rotate(turn);
        } else {
            it.is_ready = false;
            queue.turns.pop(turn);
        }
        if let Some(at) = alarm {
            self.arm_alarm(consumer, at);
        }
    }

    /// Writes what the turn charged and its leases; returns the log position its deliveries wait
    /// for.
    pub(crate) fn write_leases(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        pass: &mut PassScratch,
    ) -> Lsn {
        let charged = !pass.throttle.charged.is_empty();
        if charged {
            // Also of a fast queue: a crash must not let more go than the limits say.
            let permits = core::mem::take(&mut pass.throttle.permits);
            self.write_charges(cx, &mut pass.throttle.charged, permits);
            self.queues.at_mut(index).last_lsn = cx.journal.end();
        }
        let queue = self.queues.at(index);
        let fast = queue.config.durability == DeliveryDurability::Fast;
        if !pass.gone.is_empty() {
            if fast && queue.remembers_deliveries() {
                self.note_gone(cx, index, &pass.gone);
            }
            self.remove_all(cx, index, &pass.gone);
            pass.gone.clear();
        }
        let queue = self.queues.at(index);
        if !queue.remembers_deliveries() {
            pass.positions.clear();
            pass.untimed.clear();
            pass.asked.clear();
        }
        let before = queue.last_lsn;
        self.write_leased(cx, index, pass);
        let queue = self.queues.at_mut(index);
        if !fast {
            return queue.last_lsn;
        }
        // Nobody waits for what a fast queue says of its leases.
        queue.last_lsn = before;
        if queue.config.ordering == Ordering::None && !charged {
            queue.stored_lsn
        } else {
            // The next of a group goes only when the one before it left for good.
            queue.last_lsn
        }
    }

    fn write_leased(&mut self, cx: &mut Cx<'_>, index: QueueIndex, pass: &mut PassScratch) {
        let queue = self.queues.at(index);
        let timed_end = cx.now.after_ms(queue.config.lease_ms);
        let fast = queue.config.durability == DeliveryDurability::Fast;
        let id = queue.identity.id;
        pass.asked.sort_unstable();
        let mut asked: Vec<(Millis, Vec<u64>)> = Vec::new();
        for (end, position) in pass.asked.drain(..) {
            match asked.last_mut().filter(|last| last.0 == end) {
                Some((_, positions)) => positions.push(position),
                None => asked.push((end, vec![position])),
            }
        }
        let asked = asked.iter_mut().map(|(end, positions)| (positions, *end));
        let others = [(&mut pass.positions, timed_end), (&mut pass.untimed, NEVER)];
        for (positions, end) in others.into_iter().chain(asked) {
            if positions.is_empty() {
                continue;
            }
            positions.sort_unstable();
            begin(&mut self.record, Kind::Leased, id, cx.now);
            self.record.extend_from_slice(&end.0.to_be_bytes());
            put_positions(&mut self.record, positions);
            positions.clear();
            let end = self.append(cx);
            if fast {
                cx.journal.note_deliveries(&self.record);
            }
            self.queues.at_mut(index).last_lsn = end;
        }
    }
}

impl Queue {
    /// Takes the next message for a consumer, with the end of its lease.
    fn take_for(&mut self, taker: Taker, now: Millis) -> (Millis, Taken) {
        let expires_at = match taker.lease {
            LeaseMode::Timed => now.after_ms(taker.lease_ms.unwrap_or(self.config.lease_ms)),
            LeaseMode::Connection | LeaseMode::NoAck => NEVER,
        };
        let taken = self.take_next(taker.frame_limit);
        if let Taken::Message(slot) = taken
            && self.is_leased_to(taker, slot)
        {
            self.lease(slot, taker.number, (now, expires_at));
        }
        (expires_at, taken)
    }

    /// What may not fit a frame has a lease, whatever was asked for: it could not come back.
    fn is_leased_to(&self, taker: Taker, slot: Slot) -> bool {
        let entry = self.entries.at(slot);
        match taker.lease {
            LeaseMode::Timed | LeaseMode::Connection => true,
            LeaseMode::NoAck => {
                let (form, len) = (entry.flags.form(), entry.len);
                taker.frame_limit.may_be_exceeded(form, len)
            }
        }
    }
}

pub(crate) fn new_batch(
    queue: &Queue,
    consumer: u64,
    (leased_at, lease_expires_at): (Millis, Millis),
) -> DeliveryBatch {
    DeliveryBatch {
        consumer,
        queue_id: queue.identity.id,
        queue: std::sync::Arc::clone(&queue.identity.name),
        leased_at,
        lease_expires_at,
        counts_returns: queue
            .config
            .amqp
            .as_ref()
            .is_some_and(|policy| policy.counts_returns()),
        ..DeliveryBatch::default()
    }
}

pub(crate) fn add_item(
    queue: &Queue,
    (slot, permit): (Slot, u32),
    batch: &mut DeliveryBatch,
) -> DeliveryItem {
    let entry = queue.entries.at(slot);
    let key = queue.lanes.at(entry.lane).key.as_bytes();
    let start = u32::try_from(batch.keys.len()).unwrap_or(u32::MAX);
    batch.keys.extend_from_slice(key);
    let mut item = DeliveryItem {
        id: entry.id,
        at: entry.at,
        len: entry.len,
        form: entry.flags.form(),
        has_attributes: entry.flags.has(Flags::ATTRIBUTES),
        is_leased: entry.place == Place::Leased,
        chunk: 0,
        start: 0,
        fairness_key: Span {
            start,
            len: u32::try_from(key.len()).unwrap_or(0),
        },
        weight: entry.weight,
        attempts: entry.failures.saturating_add(1),
        deliveries: entry.deliveries,
        redrives: u32::from(entry.redrives),
        permit,
    };
    if entry.flags.has(Flags::TRANSIENT) {
        item.at = DeliveryItem::RESOLVED;
        if let Some((buffer, start)) = queue.transient.buffer_of(entry) {
            item.start = start;
            item.chunk = chunk_of(buffer, &mut batch.chunks);
        }
    }
    batch.items.push(item);
    item
}

/// The number of a buffer among the chunks of a batch. Neighbours mostly share one.
fn chunk_of(buffer: &Bytes, chunks: &mut Vec<Bytes>) -> u32 {
    let is_last = chunks
        .last()
        .is_some_and(|last| (last.as_ptr(), last.len()) == (buffer.as_ptr(), buffer.len()));
    if !is_last {
        chunks.push(buffer.clone());
    }
    u32::try_from(chunks.len() - 1).unwrap_or(u32::MAX)
}
