//! Messages and settlements that take effect together or not at all.
//!
//! First everything is looked at without changing anything; when nothing is refused, everything is
//! done in one atomic step. A settlement of what is not leased any more refuses nothing: its
//! message has left another way, and whoever commits is not to lose what else he said.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::{Cx, Engine};
use crate::incoming::Incoming;
use crate::on_publish::{LastTarget, routes_of};
use crate::placing::Target;
use crate::publish_routed::watched;
use crate::queues::QueueIndex;
use crate::topology::LastRoute;
use crate::watch::Seen;
use crate::{
    Event, Lsn, MessageId, Overflow, PublishBatch, PublishError, PublishItem, PublishResult,
    PublishTarget, ReplyTo, SettleBatch, SettleError, SettleItem, SettleQueue, SettleResult,
    Settlement,
};

/// Bytes of contents in one transaction: they are one record of the log, which takes no more than
/// 256 MiB.
const BYTES_MAX: usize = 192 << 20;

/// Stands for messages of a transaction that was refused for something else.
const NOT_STORED: PublishResult = PublishResult::Stored(MessageId::NIL);

/// What is to be stored, before anything is.
type Checked = Result<(Vec<Target>, Vec<Seen>), PublishError>;

/// Nothing may be done because of this settlement.
fn is_refusal(result: &SettleResult) -> bool {
    !matches!(result, Ok(_) | Err(SettleError::MessageNotFound))
}

impl Engine {
    pub(crate) fn on_transaction(
        &mut self,
        cx: &mut Cx<'_>,
        reply: ReplyTo,
        (publish, settle): (&PublishBatch, &SettleBatch),
    ) {
        self.finish_store(cx);
        let checked = self.check_publishes(cx, publish);
        let settled = self.check_settlements(settle);
        let is_refused = checked.iter().any(Result::is_err) || settled.iter().any(is_refusal);
        let (published, settled, after) = if is_refused {
            let published = checked.into_iter().map(|result| match result {
                Ok(_) => NOT_STORED,
                Err(error) => PublishResult::Refused(error),
            });
            (published.collect(), settled, self.queues.last_lsn)
        } else {
            let (published, settled) = self.atomically(cx, |engine, cx| {
                let published = engine.publish_checked(cx, publish, checked);
                (published, engine.settle_checked(cx, settle))
            });
            (published, settled, cx.journal.end())
        };
        let after = if publish.confirm { after } else { Lsn::ZERO };
        let event = Event::Committed {
            token: reply.token,
            published,
            settled,
        };
        cx.emit(reply.conn, after, event);
    }

    fn check_publishes(&mut self, cx: &mut Cx<'_>, batch: &PublishBatch) -> Vec<Checked> {
        let lens = batch.items.iter().map(|item| item.content.len as usize);
        if lens.sum::<usize>() > BYTES_MAX {
            let refused = batch.items.iter();
            return refused.map(|_| Err(PublishError::TooLarge)).collect();
        }
        let mut last = LastTarget::default();
        let mut coming = BTreeMap::new();
        let items = batch.items.iter();
        items
            .map(|item| self.check_publish(cx, (item, batch), &mut last, &mut coming))
            .collect()
    }

    fn check_publish(
        &mut self,
        cx: &mut Cx<'_>,
        (item, batch): (&PublishItem, &PublishBatch),
        last: &mut LastTarget,
        coming: &mut BTreeMap<QueueIndex, u64>,
    ) -> Checked {
        let mut route = LastRoute::default();
        let indexes = self.transaction_targets(item, batch, (last, &mut route))?;
        let new = Incoming::new(item, &batch.data);
        let targets = indexes.into_iter().map(|index| {
            let target = self.target(cx, index, &new)?;
            // Those of the same transaction are not in the queue yet.
            let before = coming.entry(index).or_default();
            let queue = self.queues.at(index);
            if queue.overflow() == Some(Overflow::Reject)
                && queue.is_full_for((new.form, new.content), *before)
            {
                return Err(PublishError::QueueFull);
            }
            *before += 1;
            Ok(target)
        });
        let targets = targets.collect::<Result<_, _>>()?;
        Ok((targets, route.watches))
    }

    /// The queues that an item goes to, each once.
    fn transaction_targets(
        &mut self,
        item: &PublishItem,
        batch: &PublishBatch,
        (last, route): (&mut LastTarget, &mut LastRoute),
    ) -> Result<Vec<QueueIndex>, PublishError> {
        let mut indexes = match item.target {
            PublishTarget::Refused(error) => return Err(error),
            PublishTarget::Route | PublishTarget::Topic => {
                self.find_route(batch, item, route);
                let queues = route.queues()?.to_vec();
                if queues.iter().any(|it| self.queues.at(*it).is_dead_letter()) {
                    return Err(PublishError::ReservedQueueName);
                }
                queues
            }
            PublishTarget::Name(name) => vec![self.publish_target(last, name, batch)?],
            PublishTarget::Queues(routes) => {
                let ids = routes_of(batch, routes).iter();
                let found = ids.map(|id| {
                    let index = self.queues.index_of(*id);
                    let index = index.ok_or(PublishError::QueueNotFound)?;
                    if self.queues.at(index).is_dead_letter() {
                        return Err(PublishError::ReservedQueueName);
                    }
                    Ok(index)
                });
                found.collect::<Result<Vec<_>, _>>()?
            }
        };
        indexes.sort_unstable();
        indexes.dedup();
        Ok(indexes)
    }

    fn publish_checked(
        &mut self,
        cx: &mut Cx<'_>,
        batch: &PublishBatch,
        checked: Vec<Checked>,
    ) -> Vec<PublishResult> {
        let checked = batch.items.iter().zip(checked);
        let results = checked.map(|(item, targets)| {
            let (targets, seen) = match targets {
                Ok(checked) => checked,
                Err(error) => return PublishResult::Refused(error),
            };
            let placed = self.put_in_all(cx, &Incoming::new(item, &batch.data), targets);
            let stored = placed.stored.map(PublishResult::Stored);
            let duplicate = placed.duplicate.map(PublishResult::Duplicate);
            let result = stored.or(duplicate).unwrap_or(PublishResult::Unroutable);
            if seen.is_empty() {
                return result;
            }
            let receivers = self.tell_of(cx, (item, batch), &seen);
            watched(result, receivers)
        });
        results.collect()
    }

    fn settle_queue(&self, item: &SettleItem, batch: &SettleBatch) -> Option<QueueIndex> {
        match item.queue {
            SettleQueue::Name(name) => self.queues.find_in(batch.vhost, name.text(&batch.data)),
            SettleQueue::Id(id) | SettleQueue::Held { queue: id, .. } => self.queues.index_of(id),
        }
    }

    fn check_settlements(&self, batch: &SettleBatch) -> Vec<SettleResult> {
        let mut seen = BTreeSet::new();
        let results = batch.items.iter().map(|item| {
            if let Settlement::Refused(error) = item.settlement {
                return Err(error);
            }
            let index = self.settle_queue(item, batch);
            let index = index.ok_or(SettleError::MessageNotFound)?;
            let lease = self.queues.at(index).lease_meant(item);
            let is_new = seen.insert((index, item.id));
            let found = lease.filter(|_| is_new);
            found
                .map(|_| Default::default())
                .ok_or(SettleError::MessageNotFound)
        });
        results.collect()
    }

    fn settle_checked(&mut self, cx: &mut Cx<'_>, batch: &SettleBatch) -> Vec<SettleResult> {
        let mut results = Vec::with_capacity(batch.items.len());
        let mut scratch = core::mem::take(&mut self.pass.settle);
        let items = batch.items.iter();
        let items = items.map(|item| (self.settle_queue(item, batch), item));
        let items: Vec<_> = items.collect();
        for run in items.chunk_by(|a, b| a.0 == b.0) {
            let Some((Some(index), _)) = run.first() else {
                results.extend(run.iter().map(|_| Err(SettleError::MessageNotFound)));
                continue;
            };
            for (_, item) in run {
                // No script is asked: what it says would come too late.
                let declared = self.queues.at(*index).config.amqp.is_some();
                let item = &item.on_queue_of(declared);
                results.push(self.settle_one(cx.now, *index, item, &mut scratch));
            }
            self.finish_settle(cx, *index, &mut scratch);
            self.atomic.note_touched(*index);
            self.send_within(cx, *index);
            if let Some(dead_letters) = self.dead_letters_of(*index) {
                self.atomic.note_touched(dead_letters);
            }
        }
        self.pass.settle = scratch;
        results
    }
}
