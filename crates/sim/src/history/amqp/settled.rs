//! What clients do with what they hold, and what is known of it.

use crate::failure::Check;

use super::{Amqp, CopyId, Outcome, Tx};

/// A settlement of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settlement {
    Ack,
    Requeue,
    /// Without requeue: dead-lettered, or dropped.
    Reject,
}

impl Amqp {
    /// A settlement was sent.
    pub(crate) fn on_settle_sent(&mut self, id: &CopyId, settlement: Settlement) {
        let queues = &self.queues;
        let Some(copy) = self.copies.get_mut(id) else {
            return;
        };
        copy.holder = None;
        match settlement {
            Settlement::Ack => copy.may_be_gone = true,
            Settlement::Requeue => self.counts.requeued += 1,
            Settlement::Reject => {
                let queue = queues.get(&copy.place);
                let has_dead = queue.is_some_and(|it| it.draw.dead_key.is_some());
                copy.rejects += u64::from(copy.place == id.1);
                copy.may_be_gone |= !has_dead;
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
    pub(crate) fn on_unsure(&mut self, id: &CopyId, is_unsure: bool) {
        if let Some(copy) = self.copies.get_mut(id)
            && let Some(holder) = &mut copy.holder
        {
            holder.is_unsure = is_unsure;
        }
    }

    /// The broker has surely taken an acknowledgement that was sent in this epoch.
    pub(crate) fn on_ack_taken(&mut self, id: &CopyId, epoch: u64) {
        if epoch != self.epoch {
            return;
        }
        self.counts.acked += 1;
        if let Some(copy) = self.copies.get_mut(id) {
            copy.is_gone = true;
        }
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
    pub(crate) fn on_commit_sent(&mut self, number: usize, acked: Vec<CopyId>) {
        for id in &acked {
            self.on_unsure(id, true);
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
