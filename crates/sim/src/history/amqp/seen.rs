//! Deliveries: what each proves.

use tanda_engine::Millis;

use crate::failure::Check;
use crate::invariants::amqp::{
    deaths, expires_on_time, lives, one_place, redelivered, refused, stays_gone, was_published,
};

use super::{Amqp, Arrived, Outcome, origin_of};

impl Amqp {
    /// A message came to a client.
    pub(crate) fn on_delivery(&mut self, now: Millis, message: &Arrived) -> Check {
        was_published::on_delivery(self, message)?;
        self.counts.delivered += 1;
        let sent_by = self.published(message.tag)?.door;
        self.counts.crossed += u64::from(message.door != sent_by);
        self.counts.redelivered += u64::from(message.is_redelivered);
        self.counts.dead_lettered += u64::from(!message.deaths.is_empty());
        if message.is_stale {
            return Ok(());
        }
        let origin = origin_of(&message.queue).to_owned();
        let id = (message.tag, origin);
        if self.may_be_late(now, message) {
            let copy = self.copies.entry(id).or_default();
            copy.holder = copy.holder.or(message.holder);
            copy.place.clone_from(&message.queue);
            return Ok(());
        }
        deaths::on_delivery(self, now, message)?;
        expires_on_time::on_delivery(self, now, message)?;
        let copy = self.copies.entry(id.clone()).or_default().clone();
        stays_gone::on_delivery(message, &copy)?;
        lives::on_delivery(message, &copy)?;
        redelivered::on_delivery(message, &copy)?;
        one_place::on_delivery(self, now, message, &copy)?;
        refused::on_delivery(self, message)?;
        self.note_tx(message, copy.tx);
        if self.is_draining {
            let drained = self.drained.entry(message.queue.clone()).or_default();
            drained.push(message.tag);
        }
        let (is_draining, next) = (self.is_draining, self.sent.len());
        let Some(copy) = self.copies.get_mut(&id) else {
            return Ok(());
        };
        let visit = (message.queue.clone(), message.deaths());
        copy.delivered.insert(visit, next);
        copy.deaths = copy.deaths.max(message.deaths());
        copy.holder = message.holder;
        copy.place.clone_from(&message.queue);
        copy.may_be_gone |= message.holder.is_none();
        if is_draining {
            copy.drained = Some(message.queue.clone());
        }
        Ok(())
    }

    /// It may have been taken back for want of an acknowledgement while it was on its way: it says
    /// nothing about where the message is.
    fn may_be_late(&self, now: Millis, message: &Arrived) -> bool {
        let holder = message.holder.filter(|_| !self.is_draining);
        holder.is_some_and(|it| self.may_have_timed_out(now, &message.queue, it))
    }

    /// What a transaction of unknown outcome has done.
    fn note_tx(&mut self, message: &Arrived, acked_by: Option<usize>) {
        let Some(published) = self.sent.get(message.tag) else {
            return;
        };
        let queue = self.queues.get(origin_of(&message.queue));
        let is_durable = published.is_persistent && queue.is_some_and(|it| it.draw.durable);
        let id = (message.tag, origin_of(&message.queue).to_owned());
        let is_late = self.has_ack_timeout(&id);
        let published_by = published.tx;
        if let Some(tx) = published_by.and_then(|tx| self.txs.get_mut(tx)) {
            tx.is_seen |= is_durable;
        }
        if let Some(tx) = acked_by.and_then(|tx| self.txs.get_mut(tx)) {
            // An acknowledgement that comes too late is none.
            tx.is_undone |= is_durable && !is_late && tx.outcome == Outcome::Unknown;
        }
    }
}
