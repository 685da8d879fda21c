//! What the broker says, and what it means for a client.

use super::link::{Delivered, Done, Link, Said};
use super::{AmqpClient, Call, Cx};
use crate::failure::{Check, Violation, ensure};
use crate::history::amqp::{AmqpQueue, Arrived, Change, Holder, Outcome, origin_of};
use crate::invariants::amqp::unexpected;
use crate::invariants::credit;

impl AmqpClient {
    pub(super) fn on_said(&mut self, link: &mut Link, said: Said, cx: &mut Cx<'_>) -> Check {
        match said {
            Said::Delivered(delivered) => self.on_delivery(link, delivered, cx),
            Said::Returned(content) => cx.history.amqp.on_returned(content.tag),
            Said::Verdict {
                number,
                multiple,
                is_taken,
            } => {
                let outcome = if is_taken {
                    Outcome::Confirmed(cx.now)
                } else {
                    Outcome::Refused
                };
                self.on_confirm((number, multiple), outcome, cx)
            }
            Said::Cancelled(tag) => self.on_cancelled(&tag, cx),
            Said::Done(done) => self.on_done(&done, cx),
            Said::Failed(code, text) => {
                cx.trace.note(cx.now, || format!("  failed: {text}"));
                if self.was_refused(code, cx)? {
                    return Ok(());
                }
                self.on_failed(cx)?;
                unexpected::on_close(code, &text)
            }
            Said::Complaint(code, text) => {
                cx.trace.note(cx.now, || format!("  complaint: {text}"));
                self.on_complaint(code, &text)
            }
            Said::Pause(is_paused) => {
                link.line.is_paused = is_paused;
                cx.history.amqp.counts.paused += u64::from(is_paused);
                Ok(())
            }
            Said::ChannelClosed(code, text) => {
                cx.trace
                    .note(cx.now, || format!("  channel closed: {text}"));
                if !self.was_refused(code, cx)? {
                    unexpected::on_close(code, &text)?;
                }
                self.on_channel_closed(cx);
                link.reopen();
                Ok(())
            }
            Said::Closed(code, text) => {
                cx.trace.note(cx.now, || format!("  closed: {text}"));
                self.forget(cx);
                link.agree();
                unexpected::on_close(code, &text)
            }
            // Who has asked for it hears nothing more.
            Said::Goodbye => Err(unexpected::of("a goodbye for nothing".to_owned())),
        }
    }

    /// The queue a message came from, and whether nobody has to settle it.
    fn whence(
        &mut self,
        delivered: &Delivered,
        cx: &mut Cx<'_>,
    ) -> Result<(String, bool), Violation> {
        let stray = || unexpected::of(format!("nobody asked for {delivered:?}"));
        let Some(tag) = &delivered.consumer else {
            let Some(Call::Get(queue)) = self.channel.call.take() else {
                return Err(stray());
            };
            self.on_risk(cx, false);
            cx.history.amqp.on_used(&queue, self.channel.asked)?;
            return Ok((queue, false));
        };
        let starting = match &self.channel.call {
            Some(Call::Consume(started, queue)) if started == tag => Some(queue),
            _ => None,
        };
        let queue = self.channel.consumers.get(tag).or(starting).cloned();
        Ok((queue.ok_or_else(stray)?, tag.starts_with('n')))
    }

    /// A message came to a consumer, maybe on credit.
    fn spend(&mut self, delivered: &Delivered) -> Check {
        let tag = delivered.consumer.as_ref();
        let Some(credit) = tag.and_then(|tag| self.channel.credit.get_mut(tag)) else {
            return Ok(());
        };
        ensure(*credit > 0, credit::NAME, || {
            format!("{delivered:?} came without credit")
        })?;
        *credit -= 1;
        Ok(())
    }

    fn on_delivery(&mut self, link: &Link, delivered: Delivered, cx: &mut Cx<'_>) -> Check {
        let (queue, no_ack) = self.whence(&delivered, cx)?;
        self.spend(&delivered)?;
        let is_stale = self.channel.is_stale;
        let is_unsure = matches!(self.channel.call, Some(Call::Commit(..))) || self.is_at_risk(cx);
        let (conn, number) = (link.line.conn, delivered.delivery_tag);
        let since = match delivered.consumer {
            Some(_) => &self.channel.since,
            None => &self.channel.gets,
        };
        let holder = Holder {
            conn,
            delivery_tag: number,
            since: since.get(&queue).copied().unwrap_or(cx.now),
            is_unsure,
        };
        let began = delivered.consumer.as_ref();
        let began = began.and_then(|tag| self.channel.began.get(tag).copied());
        let content = delivered.content;
        let message = Arrived {
            door: self.door,
            queue,
            tag: content.tag,
            is_redelivered: delivered.is_redelivered,
            exchange: delivered.exchange,
            key: delivered.key,
            properties: content.properties,
            body: content.body,
            deaths: content.deaths,
            asked: began.unwrap_or(self.channel.asked.tick),
            holder: Some(holder).filter(|_| !no_ack),
            is_stale,
        };
        cx.trace.note(cx.now, || {
            let Arrived {
                queue, tag, deaths, ..
            } = &message;
            format!("  c{conn} gets {tag} of {queue} as {number}, {deaths:?}, stale {is_stale}")
        });
        cx.history.amqp.on_delivery(cx.now, &message)?;
        if !no_ack && !is_stale {
            let id = (message.tag, origin_of(&message.queue).to_owned());
            self.channel.held.insert(number, id);
        }
        Ok(())
    }

    fn on_confirm(
        &mut self,
        (number, multiple): (u64, bool),
        outcome: Outcome,
        cx: &mut Cx<'_>,
    ) -> Check {
        ensure(
            self.channel.open.contains_key(&number),
            unexpected::NAME,
            || format!("{number} is confirmed as {outcome:?}, and does not wait for it"),
        )?;
        let rest = self.channel.open.split_off(&(number + 1));
        let mut done = core::mem::replace(&mut self.channel.open, rest);
        if !multiple {
            let one = done.remove(&number);
            self.channel.open.append(&mut done);
            done.extend(one.map(|tag| (number, tag)));
        }
        cx.trace.note(cx.now, || format!("  {done:?}: {outcome:?}"));
        for tag in done.into_values() {
            cx.history.amqp.on_verdict(tag, outcome)?;
        }
        Ok(())
    }

    /// The queue of a consumer is gone, and what was held of it.
    fn on_cancelled(&mut self, tag: &str, cx: &mut Cx<'_>) -> Check {
        self.channel.was_cancelled = true;
        self.channel.credit.remove(tag);
        let Some(queue) = self.channel.consumers.remove(tag) else {
            return Ok(());
        };
        cx.history.amqp.on_consumer_ended(&queue, tag, self.conn)?;
        for id in self.channel.held.values() {
            if id.1 == origin_of(&queue) {
                cx.history.amqp.on_unsure((id, self.conn), true);
            }
        }
        let begins = matches!(&self.channel.call, Some(Call::Consume(_, other)) if *other == queue);
        if !begins && !self.channel.consumers.values().any(|other| *other == queue) {
            self.channel.since.remove(&queue);
        }
        Ok(())
    }

    /// A settlement named what the client does not hold any more: nothing of it was done.
    fn on_complaint(&mut self, code: u16, text: &str) -> Check {
        if code == 406 && self.channel.was_cancelled && text.contains("unknown delivery tag") {
            self.channel.acked.clear();
            if let Some(Call::Barrier(acked)) = &mut self.channel.call {
                acked.clear();
            }
            return Ok(());
        }
        unexpected::on_close(code, text)
    }

    /// A request was not done, or nobody knows.
    fn on_failed(&mut self, cx: &mut Cx<'_>) -> Check {
        match self.channel.call.take() {
            Some(Call::Change(change)) => {
                cx.history.amqp.on_change_lost(&change, self.channel.epoch);
            }
            Some(Call::Consume(tag, _)) => drop(self.channel.credit.remove(&tag)),
            Some(Call::Name(_)) => cx.history.amqp.names_lost += 1,
            Some(_) => {}
            None => return Err(unexpected::of("nothing was asked that failed".to_owned())),
        }
        Ok(())
    }

    fn on_channel_closed(&mut self, cx: &mut Cx<'_>) {
        // What a commit was to do was not done.
        if let Some(Call::Commit(tx, acked)) = self.channel.call.take() {
            self.channel.call = Some(Call::Rollback(tx, acked));
        }
        self.forget(cx);
    }

    fn on_done(&mut self, done: &Done, cx: &mut Cx<'_>) -> Check {
        let stray = || unexpected::of(format!("{done:?} answers nothing"));
        if self.is_at_risk(cx) {
            self.on_risk(cx, false);
        }
        let call = self.channel.call.take().ok_or_else(stray)?;
        let asked = self.channel.asked;
        match (call, done) {
            (Call::Change(Change::Queue(name)), Done::Declared(declared)) => {
                ensure(name == *declared, unexpected::NAME, || {
                    format!("{declared:?} was declared instead of {name:?}")
                })?;
                cx.history.amqp.on_changed(&Change::Queue(name), asked);
            }
            (Call::Change(change), Done::Changed) => {
                if let Change::Bind(binding) = &change {
                    cx.history.amqp.on_seen(&binding.queue, asked)?;
                }
                cx.history.amqp.on_changed(&change, asked);
            }
            (Call::Name(draw), Done::Declared(name)) => {
                let queue = AmqpQueue::new(*draw);
                cx.history.amqp.on_named(name, queue, asked)?;
            }
            (Call::Look(queue), Done::Declared(_)) => cx.history.amqp.on_used(&queue, asked)?,
            (Call::Select, Done::Selected) => self.channel.is_selected = true,
            (Call::Qos, Done::Prefetch) => self.channel.has_qos = true,
            (Call::Consume(tag, queue), Done::Consuming) => {
                cx.history.amqp.on_consuming(&queue, &tag, asked)?;
                self.channel.consumers.insert(tag, queue);
            }
            (Call::Cancel(tag), Done::Cancelled) => {
                if let Some(queue) = self.channel.consumers.remove(&tag) {
                    cx.history.amqp.on_consumed(&queue, &tag, asked);
                }
                self.channel.credit.remove(&tag);
                self.channel.was_cancelled = true;
            }
            (Call::Get(queue), Done::Empty) => cx.history.amqp.on_used(&queue, asked)?,
            (Call::Purge, Done::Purged) => {}
            (Call::Recover, Done::Recovered) => self.channel.is_stale = false,
            (Call::Barrier(acked), Done::Declared(_)) => {
                for id in acked {
                    cx.history.amqp.on_ack_taken(&id, self.channel.epoch);
                }
            }
            (Call::Commit(number, _), Done::Committed) => {
                for id in self.channel.held.values() {
                    cx.history.amqp.on_unsure((id, self.conn), false);
                }
                let outcome = Outcome::Confirmed(cx.now);
                return cx.history.amqp.on_tx_ended(number, outcome);
            }
            (Call::Rollback(number, acked), Done::RolledBack) => {
                self.channel.held.extend(acked);
                return cx.history.amqp.on_tx_ended(number, Outcome::RolledBack);
            }
            _ => return Err(stray()),
        }
        Ok(())
    }
}
