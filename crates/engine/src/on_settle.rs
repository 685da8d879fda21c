//! Consumers settle what they hold.

use crate::dead_letter::Reason;
use crate::engine::{Cx, Engine};
use crate::moves::{Move, Retry};
use crate::queue::entries::{Flags, Slot};
use crate::queue::leases::{Lease, NEVER};
use crate::queues::QueueIndex;
use crate::record::{Kind, MoveReason, POSITIONS_MAX, begin, put_positions};
use crate::script::{Failing, FailureReason, NewAnswer, Owed};
use crate::{
    DeliveryDurability, Lsn, MessageId, Millis, Ordering, ReplyTo, SettleBatch, SettleError,
    SettleItem, SettleQueue, SettleResult, Settlement,
};

/// Settlements of one queue, written as one record of each kind.
#[derive(Debug, Default)]
pub(crate) struct SettleScratch {
    acked: Vec<Slot>,
    dead: Vec<Slot>,
    /// Rejected ones of a queue with an exchange for dead letters, and those returned too often.
    rejected: Vec<Slot>,
    spent: Vec<Slot>,
    failed: Timed,
    extended: Timed,
    requeued: Vec<u64>,
    /// Those whose delivery does not count.
    uncounted: Vec<u64>,
    /// Some message went back to its place.
    came_back: bool,
}

impl SettleScratch {
    /// A message failed and is due again then; without a position nothing is written.
    pub(crate) fn push_failed(&mut self, position: Option<u64>, due: Millis) {
        self.failed.push(position, due);
    }
}

/// Longest extension of a lease: about 317 years, and never [`NEVER`].
const EXTENSION_MS_MAX: u64 = 10_000_000_000_000;

/// Positions with a time each.
#[derive(Debug, Default)]
pub(crate) struct Timed {
    positions: Vec<u64>,
    times: Vec<Millis>,
}

impl Timed {
    pub(crate) fn push(&mut self, position: Option<u64>, time: Millis) {
        if let Some(position) = position {
            self.positions.push(position);
            self.times.push(time);
        }
    }
}

impl Engine {
    pub(crate) fn on_settle(&mut self, cx: &mut Cx<'_>, reply: ReplyTo, batch: &SettleBatch) {
        let mut results = Vec::with_capacity(batch.items.len());
        let mut answer = NewAnswer::new(reply);
        let mut after = Lsn::ZERO;
        let mut rest = batch.items.as_slice();
        while let Some(first) = rest.first() {
            let same = |item: &&SettleItem| match (first.queue, item.queue) {
                (SettleQueue::Name(a), SettleQueue::Name(b)) => {
                    a.of(&batch.data) == b.of(&batch.data)
                }
                (a, b) => a.id().is_some() && a.id() == b.id(),
            };
            let run = rest.iter().take_while(same).count();
            let (items, others) = rest.split_at(run);
            let answers = (&mut results, &mut answer);
            after = after.max(self.settle_run(cx, (first.queue, items), batch, answers));
            rest = others;
        }
        self.answer_settle(cx, answer, results, after);
    }

    /// Settles items of one queue; returns the log position their answers wait for.
    fn settle_run(
        &mut self,
        cx: &mut Cx<'_>,
        (queue, items): (SettleQueue, &[SettleItem]),
        batch: &SettleBatch,
        (results, answer): (&mut Vec<SettleResult>, &mut NewAnswer),
    ) -> Lsn {
        let index = match queue {
            SettleQueue::Name(name) => self.queues.find_in(batch.vhost, name.text(&batch.data)),
            SettleQueue::Id(id) | SettleQueue::Held { queue: id, .. } => self.queues.index_of(id),
        };
        let Some(index) = index else {
            results.extend(items.iter().map(|item| match item.settlement {
                // Whether the queue exists is not said to who may not know.
                Settlement::Refused(error) => Err(error),
                Settlement::Ack
                | Settlement::Fail { .. }
                | Settlement::Requeue
                | Settlement::Unsent { .. }
                | Settlement::Unfit { .. }
                | Settlement::Reject
                | Settlement::Nack { .. }
                | Settlement::Extend { .. } => Err(SettleError::MessageNotFound),
            }));
            return self.queues.last_lsn;
        };
        let declared = self.queues.at(index).config.amqp.is_some();
        let mut scratch = core::mem::take(&mut self.pass.settle);
        for items in items.chunks(POSITIONS_MAX) {
            for item in items {
                let item = &item.on_queue_of(declared);
                if let Some(lease) = self.asks_script(index, item) {
                    let owed = self.scripts.answers.owe(answer, results.len());
                    self.ask_about_nack(index, (lease, owed), item, &batch.data);
                    // Stands for what is decided later.
                    results.push(Ok(Millis(0)));
                    continue;
                }
                results.push(self.settle_one(cx.now, index, item, &mut scratch));
            }
            self.finish_settle(cx, index, &mut scratch);
        }
        let came_back = core::mem::take(&mut scratch.came_back);
        self.pass.settle = scratch;
        if came_back {
            self.make_way(cx, index);
        }
        self.touch(index);
        let queue = self.queues.at(index);
        let fast = queue.config.durability == DeliveryDurability::Fast;
        if fast && queue.config.ordering == Ordering::None {
            Lsn::ZERO
        } else {
            queue.last_lsn
        }
    }

    pub(crate) fn settle_one(
        &mut self,
        now: Millis,
        index: QueueIndex,
        item: &SettleItem,
        scratch: &mut SettleScratch,
    ) -> SettleResult {
        if let Settlement::Refused(error) = item.settlement {
            return Err(error);
        }
        let queue = self.queues.at_mut(index);
        let Some(lease) = queue.lease_meant(item) else {
            return Err(SettleError::MessageNotFound);
        };
        let entry = queue.entries.at(lease.slot);
        // `None`: nothing of a transient message is written.
        let position = (!entry.flags.has(Flags::TRANSIENT)).then_some(entry.position);
        let lease_of = (lease.consumer, entry.deliveries, u32::from(entry.redrives));
        let named = item.settlement.of_lease();
        if named.is_some_and(|named| named != lease_of) {
            return Err(SettleError::MessageNotFound);
        }
        match item.settlement {
            Settlement::Unfit { frame_limit, .. } => {
                queue.set_unfit(lease.slot, frame_limit);
                scratch.uncounted.extend(position);
                scratch.came_back = true;
            }
            Settlement::Ack => {
                queue.preserve(lease.slot);
                // Out of the leases at once: the same id later in the batch is not leased.
                queue.leases.remove(item.id);
                scratch.acked.push(lease.slot);
            }
            Settlement::Fail {
                error: _,
                retry_after_ms,
            } => {
                let delay_ms = retry_after_ms.or_else(|| lease.reclaim.then_some(0));
                match self.fail(index, lease.slot, Retry { now, delay_ms }) {
                    Some(due) => {
                        scratch.failed.push(position, due);
                        scratch.came_back = true;
                    }
                    None => self.set_dead(index, lease, item.id, scratch),
                }
            }
            Settlement::Reject => {
                queue.preserve(lease.slot);
                let entry = queue.entries.at_mut(lease.slot);
                entry.failures = entry.failures.saturating_add(1);
                self.set_dead(index, lease, item.id, scratch);
            }
            Settlement::Requeue if queue.is_spent(lease.slot) => {
                queue.leases.remove(item.id);
                scratch.spent.push(lease.slot);
            }
            Settlement::Requeue | Settlement::Unsent { .. } => {
                queue.give_back(lease.slot, None);
                scratch.requeued.extend(position);
                scratch.came_back = true;
            }
            Settlement::Extend { by_ms } => {
                let expires_at = now.after_ms(by_ms.min(EXTENSION_MS_MAX));
                if lease.expires_at != NEVER {
                    queue.extend_lease(item.id, lease, expires_at);
                    scratch.extended.push(position, expires_at);
                }
                return Ok(expires_at);
            }
            // A nack is one of the others by now.
            Settlement::Nack { .. } | Settlement::Refused(_) => {}
        }
        if lease.consumer != 0 {
            self.unhold(lease.consumer, lease.slot);
        }
        Ok(Millis(0))
    }

    /// The lease that an item says failed, when a script decides what follows.
    fn asks_script(&self, index: QueueIndex, item: &SettleItem) -> Option<Lease> {
        let queue = self.queues.at(index);
        let fails = matches!(item.settlement, Settlement::Fail { .. });
        (fails && queue.decides_failures()).then(|| queue.lease_meant(item))?
    }

    fn ask_about_nack(
        &mut self,
        index: QueueIndex,
        (lease, owed): (Lease, Owed),
        item: &SettleItem,
        data: &[u8],
    ) {
        let Settlement::Fail {
            error,
            retry_after_ms,
        } = item.settlement
        else {
            return;
        };
        let queue = self.queues.at_mut(index);
        let Some(hooks) = &mut queue.hooks else {
            return;
        };
        let error = hooks.keep_error(error.of(data));
        let retry_after_ms = if lease.reclaim {
            retry_after_ms.or(Some(0))
        } else {
            retry_after_ms
        };
        queue.ask_about_failure(Failing {
            slot: lease.slot,
            id: item.id,
            reason: FailureReason::Nack,
            error,
            retry_after_ms,
            owed: Some(owed),
        });
        self.unhold(lease.consumer, lease.slot);
    }

    /// A message whose delivery failed by a script's word goes to the dead-letter queue.
    pub(crate) fn push_dead(&self, index: QueueIndex, slot: Slot, scratch: &mut SettleScratch) {
        if self.dead_letters_of(index).is_some() {
            scratch.dead.push(slot);
        } else if self.queues.at(index).dead_letters.is_some() {
            scratch.rejected.push(slot);
        } else {
            scratch.acked.push(slot);
        }
    }

    /// The message goes to the dead-letter queue, or away when there is none.
    fn set_dead(
        &mut self,
        index: QueueIndex,
        lease: Lease,
        id: MessageId,
        scratch: &mut SettleScratch,
    ) {
        self.queues.at_mut(index).leases.remove(id);
        self.push_dead(index, lease.slot, scratch);
    }

    pub(crate) fn finish_settle(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        scratch: &mut SettleScratch,
    ) {
        // First: a message may be extended and then settled, but not the other way round.
        if self.queues.at(index).config.durability == DeliveryDurability::Committed {
            self.write_timed(cx, index, Kind::Extended, &mut scratch.extended);
        }
        scratch.extended = Timed::default();
        self.remove_all(cx, index, &scratch.acked);
        scratch.acked.clear();
        self.die(cx, index, &scratch.rejected, Reason::Rejected);
        scratch.rejected.clear();
        self.die(cx, index, &scratch.spent, Reason::DeliveryLimit);
        scratch.spent.clear();
        self.write_timed(cx, index, Kind::Failed, &mut scratch.failed);
        self.write_requeued(cx, index, &mut scratch.requeued);
        self.write_returned(cx, index, &mut scratch.uncounted);
        if let Some(to) = self.dead_letters_of(index)
            && !scratch.dead.is_empty()
        {
            let how = Move {
                from: index,
                to,
                reason: MoveReason::DeadLetter,
            };
            self.move_all(cx, how, &scratch.dead);
            scratch.dead.clear();
        }
    }

    /// Writes a `Failed` or `Extended` record: positions and a time for each.
    pub(crate) fn write_timed(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        kind: Kind,
        timed: &mut Timed,
    ) {
        if timed.positions.is_empty() {
            return;
        }
        let queue = self.queues.at(index).identity.id;
        begin(&mut self.record, kind, queue, cx.now);
        put_positions(&mut self.record, &timed.positions);
        for time in &timed.times {
            self.record.extend_from_slice(&time.0.to_be_bytes());
        }
        timed.positions.clear();
        timed.times.clear();
        self.queues.at_mut(index).last_lsn = self.append(cx);
    }

    /// Writes that leases ended as requeues. A fast queue's leases were never written.
    pub(crate) fn write_requeued(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        positions: &mut Vec<u64>,
    ) {
        let queue = self.queues.at(index);
        let committed = queue.config.durability == DeliveryDurability::Committed;
        if committed && !positions.is_empty() {
            begin(&mut self.record, Kind::Requeued, queue.identity.id, cx.now);
            put_positions(&mut self.record, positions);
            self.queues.at_mut(index).last_lsn = self.append(cx);
        }
        positions.clear();
    }

    /// Writes that leases ended without a delivery.
    pub(crate) fn write_returned(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        positions: &mut Vec<u64>,
    ) {
        let queue = self.queues.at(index);
        if !positions.is_empty() && queue.remembers_deliveries() {
            begin(&mut self.record, Kind::Returned, queue.identity.id, cx.now);
            put_positions(&mut self.record, positions);
            let end = self.append(cx);
            let queue = self.queues.at_mut(index);
            if queue.config.durability == DeliveryDurability::Committed {
                queue.last_lsn = end;
            }
        }
        positions.clear();
    }

    /// Leases whose time is over fail, `budget` at most; those of the reclaim grace just end.
    pub(crate) fn expire_leases(&mut self, cx: &mut Cx<'_>, index: QueueIndex, budget: usize) {
        let mut scratch = core::mem::take(&mut self.pass.settle);
        let mut came_back = false;
        for _ in 0..budget {
            let queue = self.queues.at_mut(index);
            let Some(slot) = queue.leases.pop_ended(&queue.entries, cx.now) else {
                break;
            };
            let entry = queue.entries.at(slot);
            let id = entry.id;
            let position = (!entry.flags.has(Flags::TRANSIENT)).then_some(entry.position);
            let Some(lease) = queue.leases.find(id) else {
                continue;
            };
            if lease.reclaim {
                queue.give_back(slot, None);
                continue;
            }
            if queue.decides_failures() {
                queue.ask_about_failure(Failing {
                    slot,
                    id,
                    reason: FailureReason::LeaseExpired,
                    error: bytes::Bytes::new(),
                    retry_after_ms: None,
                    owed: None,
                });
                continue;
            }
            match self.fail(
                index,
                slot,
                Retry {
                    now: cx.now,
                    delay_ms: None,
                },
            ) {
                Some(due) => {
                    scratch.failed.push(position, due);
                    came_back = true;
                }
                None => self.set_dead(index, lease, id, &mut scratch),
            }
        }
        self.finish_settle(cx, index, &mut scratch);
        self.pass.settle = scratch;
        if came_back {
            self.make_way(cx, index);
        }
    }
}
