//! What clients do with what they hold, and what is known of it.

use tanda_engine::Millis;

use crate::failure::Check;

use super::{Amqp, CopyId, Holder, Outcome, Tx, origin_of};

/// A settlement of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settlement {
    Ack,
    Requeue,
    /// Without requeue: dead-lettered, or dropped.
    Reject,
}

impl Amqp {
    /// A settlement was sent of what a client got as this.
    pub(crate) fn on_settle_sent(
        &mut self,
        (id, held): (&CopyId, (u64, u64)),
        settlement: Settlement,
    ) {
        let queues = &self.queues;
        let Some(copy) = self.copies.get_mut(id) else {
            return;
        };
        // It may have been taken away for want of an acknowledgement, and be with another one.
        let is_holder = |it: Holder| (it.conn, it.delivery_tag) == held;
        copy.holder = copy.holder.filter(|it| !is_holder(*it));
        match settlement {
            Settlement::Ack => copy.may_be_gone = true,
            Settlement::Requeue => self.counts.requeued += 1,
            Settlement::Reject => {
                let queue = queues.get(&copy.place);
                let has_dead = queue.is_some_and(|it| it.draw.keeps_dead());
                copy.rejects += u64::from(copy.place == id.1);
                copy.may_be_gone |= !has_dead;
            }
        }
    }

    /// Whoever holds a message of this queue may have lost it, as some acknowledgement did not come
    /// in time.
    pub(crate) fn may_have_timed_out(&self, now: Millis, queue: &str, holder: Holder) -> bool {
        let queue = self.queues.get(queue);
        let timeout_ms = queue.and_then(|it| it.draw.ack_timeout_ms);
        timeout_ms.is_some_and(|ms| holder.since.after_ms(ms) <= now)
    }

    /// A queue was purged: what it held, or its queue of dead letters, may be gone.
    pub(crate) fn on_purged(&mut self, queue: &str) {
        let origin = origin_of(queue);
        for (tag, message) in self.sent.iter().enumerate() {
            if message.may.contains(origin) {
                let copy = self.copies.entry((tag, origin.to_owned())).or_default();
                copy.may_be_gone = true;
            }
        }
    }

    /// It goes back to its queue: its channel or connection is over.
    pub(crate) fn on_gone(&mut self, id: &CopyId, conn: u64) {
        if let Some(copy) = self.copies.get_mut(id)
            && copy.holder.is_some_and(|holder| holder.conn == conn)
        {
            copy.holder = None;
        }
    }

    /// Nothing will be heard of a publish.
    pub(crate) fn on_unknown(&mut self, tag: usize) {
        if let Some(message) = self.sent.get_mut(tag)
            && message.outcome == Outcome::Open
        {
            message.outcome = Outcome::Unknown;
        }
    }

    /// The channel of a transaction is gone.
    pub(crate) fn on_tx_gone(&mut self, number: usize, outcome: Outcome) {
        let Some(tx) = self.txs.get_mut(number) else {
            return;
        };
        tx.outcome = outcome;
        self.counts.unknown_commits += u64::from(outcome == Outcome::Unknown);
        for tag in tx.tags.clone() {
            if let Some(message) = self.sent.get_mut(tag) {
                message.outcome = outcome;
            }
        }
    }

    /// The broker may end the channel of what is held, before its client knows.
    pub(crate) fn on_unsure(&mut self, (id, conn): (&CopyId, u64), is_unsure: bool) {
        if let Some(copy) = self.copies.get_mut(id)
            && let Some(holder) = copy.holder.as_mut().filter(|it| it.conn == conn)
        {
            holder.is_unsure = is_unsure;
        }
    }

    /// The broker has surely taken an acknowledgement that was sent in this epoch.
    pub(crate) fn on_ack_taken(&mut self, id: &CopyId, epoch: u64) {
        if epoch != self.epoch || self.has_ack_timeout(id) {
            return;
        }
        self.counts.acked += 1;
        if let Some(copy) = self.copies.get_mut(id) {
            copy.is_gone = true;
        }
    }

    /// Some queue takes back what is not acknowledged in time.
    pub(crate) fn has_ack_timeouts(&self) -> bool {
        let mut queues = self.queues.values();
        queues.any(|it| it.draw.ack_timeout_ms.is_some())
    }

    /// An acknowledgement of it may have come too late, from whomever.
    pub(super) fn has_ack_timeout(&self, (_, queue): &CopyId) -> bool {
        let queue = self.queues.get(queue);
        queue.is_some_and(|it| it.draw.ack_timeout_ms.is_some())
    }

    /// A transaction begins. Returns its number.
    pub(crate) fn on_tx_begun(&mut self) -> usize {
        self.txs.push(Tx {
            tags: Vec::new(),
            acked: Vec::new(),
            outcome: Outcome::Open,
            is_seen: false,
            is_undone: false,
        });
        self.txs.len() - 1
    }

    /// A message belongs to a transaction.
    pub(crate) fn on_tx_publish(&mut self, tx: usize, tag: usize) {
        if let Some(tx) = self.txs.get_mut(tx) {
            tx.tags.push(tag);
        }
    }

    /// The commit of a transaction is sent, with these acknowledgements.
    pub(crate) fn on_commit_sent(&mut self, (number, conn): (usize, u64), acked: Vec<CopyId>) {
        for id in &acked {
            self.on_unsure((id, conn), true);
            if let Some(copy) = self.copies.get_mut(id) {
                copy.may_be_gone = true;
                copy.tx = Some(number);
            }
        }
        if let Some(tx) = self.txs.get_mut(number) {
            tx.acked = acked;
        }
    }

    /// A transaction came to its end.
    pub(crate) fn on_tx_ended(&mut self, number: usize, outcome: Outcome) -> Check {
        let Some(tx) = self.txs.get_mut(number) else {
            return Ok(());
        };
        tx.outcome = outcome;
        let (tags, acked) = (tx.tags.clone(), tx.acked.clone());
        for tag in tags {
            self.on_verdict(tag, outcome)?;
        }
        if !matches!(outcome, Outcome::Confirmed(_)) {
            return Ok(());
        }
        self.counts.committed += 1;
        for id in acked {
            if self.has_ack_timeout(&id) {
                continue;
            }
            let outlives = self.outlives(&id);
            if let Some(copy) = self.copies.get_mut(&id) {
                copy.holder = None;
                copy.is_gone = true;
                copy.is_gone_for_good = outlives;
            }
        }
        Ok(())
    }

    /// A crash does not take it.
    pub(crate) fn outlives(&self, (tag, queue): &CopyId) -> bool {
        let is_persistent = self.sent.get(*tag).is_some_and(|it| it.is_persistent);
        is_persistent && self.queues.get(queue).is_some_and(|it| it.draw.durable)
    }
}
