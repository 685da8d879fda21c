//! What the broker says, and what it means for a client.

use tanda_wire::amqp::{Method, basic, channel, confirm, connection, queue, tx};

use super::contents;
use super::link::{CHANNEL, Incoming, Link};
use super::{AmqpClient, Call, Cx};
use crate::failure::{Check, Violation, ensure};
use crate::history::amqp::{Arrived, Holder, Outcome, origin_of};
use crate::invariants::amqp::unexpected;

/// Where a delivery came from.
struct From<'a> {
    queue: String,
    delivery_tag: u64,
    no_ack: bool,
    redelivered: bool,
    exchange: &'a [u8],
    key: &'a [u8],
}

impl AmqpClient {
    pub(super) fn on_method(
        &mut self,
        link: &mut Link,
        incoming: &Incoming,
        cx: &mut Cx<'_>,
    ) -> Check {
        let method = incoming.method()?;
        match method {
            Method::Basic(basic::Method::Deliver(_) | basic::Method::GetOk(_)) => {
                let from = self.whence(&method)?;
                self.on_delivery(link, incoming, &from, cx)
            }
            Method::Basic(basic::Method::Return(_)) => {
                let (tag, _) = contents::read(&incoming.properties)?;
                cx.history.amqp.on_returned(tag)
            }
            Method::Basic(basic::Method::Ack(it)) => {
                let outcome = Outcome::Confirmed(cx.now);
                self.on_confirm((it.delivery_tag, it.multiple), outcome, cx)
            }
            Method::Basic(basic::Method::Nack(it)) => {
                self.on_confirm((it.delivery_tag, it.multiple), Outcome::Refused, cx)
            }
            Method::Basic(basic::Method::Cancel(it)) => {
                let tag = String::from_utf8_lossy(it.consumer_tag.as_bytes()).into_owned();
                self.on_cancelled(&tag, cx);
                Ok(())
            }
            Method::Channel(channel::Method::Close(it)) => {
                let text = it.reply_text.to_string();
                cx.trace
                    .note(cx.now, || format!("  channel closed: {text}"));
                unexpected::on_close(it.reply_code, &text)?;
                self.on_channel_closed(link, cx);
                Ok(())
            }
            Method::Connection(connection::Method::Close(it)) => {
                let text = it.reply_text.to_string();
                cx.trace.note(cx.now, || format!("  closed: {text}"));
                self.forget(cx);
                link.say(0, &connection::CloseOk {});
                link.is_over = true;
                unexpected::on_close(it.reply_code, &text)
            }
            Method::Connection(_)
            | Method::Channel(_)
            | Method::Access(_)
            | Method::Exchange(_)
            | Method::Queue(_)
            | Method::Basic(_)
            | Method::Confirm(_)
            | Method::Tx(_) => self.on_answer(&method, cx),
        }
    }

    /// Where a message came from.
    fn whence<'a>(&mut self, method: &Method<'a>) -> Result<From<'a>, Violation> {
        if let Method::Basic(basic::Method::Deliver(it)) = method {
            let tag = String::from_utf8_lossy(it.consumer_tag.as_bytes()).into_owned();
            let starting = match &self.channel.call {
                Some(Call::Consume(started, queue)) if *started == tag => Some(queue),
                _ => None,
            };
            let queue = self.channel.consumers.get(&tag).or(starting).cloned();
            return Ok(From {
                queue: queue.ok_or_else(|| stray(method))?,
                delivery_tag: it.delivery_tag,
                no_ack: tag.starts_with('n'),
                redelivered: it.redelivered,
                exchange: it.exchange.as_bytes(),
                key: it.routing_key.as_bytes(),
            });
        }
        if let Method::Basic(basic::Method::GetOk(it)) = method
            && let Some(Call::Get(queue)) = self.channel.call.take()
        {
            return Ok(From {
                queue,
                delivery_tag: it.delivery_tag,
                no_ack: false,
                redelivered: it.redelivered,
                exchange: it.exchange.as_bytes(),
                key: it.routing_key.as_bytes(),
            });
        }
        Err(stray(method))
    }

    fn on_delivery(
        &mut self,
        link: &Link,
        incoming: &Incoming,
        from: &From<'_>,
        cx: &mut Cx<'_>,
    ) -> Check {
        let (tag, deaths) = contents::read(&incoming.properties)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let is_stale = self.channel.is_stale;
        let is_unsure = matches!(self.channel.call, Some(Call::Commit(..)));
        let holder = Holder {
            conn: link.conn,
            delivery_tag: from.delivery_tag,
            is_unsure,
        };
        let message = Arrived {
            queue: from.queue.clone(),
            tag,
            is_redelivered: from.redelivered,
            exchange: text(from.exchange),
            key: text(from.key),
            properties: incoming.properties.clone(),
            body: incoming.body.clone(),
            deaths,
            holder: Some(holder).filter(|_| !from.no_ack),
            is_stale,
        };
        let (conn, number) = (link.conn, from.delivery_tag);
        cx.trace.note(cx.now, || {
            let Arrived { queue, deaths, .. } = &message;
            format!("  c{conn} gets {tag} of {queue} as {number}, {deaths:?}, stale {is_stale}")
        });
        cx.history.amqp.on_delivery(cx.now, &message)?;
        if !from.no_ack && !is_stale {
            let id = (tag, origin_of(&from.queue).to_owned());
            self.channel.held.insert(from.delivery_tag, id);
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
    fn on_cancelled(&mut self, tag: &str, cx: &mut Cx<'_>) {
        let Some(queue) = self.channel.consumers.remove(tag) else {
            return;
        };
        for id in self.channel.held.values() {
            if id.1 == queue {
                cx.history.amqp.on_unsure(id, true);
            }
        }
    }

    fn on_channel_closed(&mut self, link: &mut Link, cx: &mut Cx<'_>) {
        // What a commit was to do was not done.
        if let Some(Call::Commit(tx, acked)) = self.channel.call.take() {
            self.channel.call = Some(Call::Rollback(tx, acked));
        }
        self.forget(cx);
        if !link.has_ended {
            link.tell(&channel::CloseOk {});
            link.is_open = false;
            link.say(CHANNEL, &channel::Open {});
        }
    }

    fn on_answer(&mut self, method: &Method<'_>, cx: &mut Cx<'_>) -> Check {
        let call = self.channel.call.take().ok_or_else(|| stray(method))?;
        match (call, method) {
            (
                Call::Change(change),
                Method::Queue(
                    queue::Method::DeclareOk(_)
                    | queue::Method::BindOk(_)
                    | queue::Method::UnbindOk(_)
                    | queue::Method::DeleteOk(_),
                )
                | Method::Exchange(_),
            ) => cx.history.amqp.on_changed(&change),
            (Call::Select, Method::Confirm(confirm::Method::SelectOk(_)))
            | (Call::Select, Method::Tx(tx::Method::SelectOk(_))) => {
                self.channel.is_selected = true;
            }
            (Call::Qos, Method::Basic(basic::Method::QosOk(_))) => self.channel.has_qos = true,
            (Call::Consume(tag, queue), Method::Basic(basic::Method::ConsumeOk(_))) => {
                self.channel.consumers.insert(tag, queue);
            }
            (Call::Cancel(tag), Method::Basic(basic::Method::CancelOk(_))) => {
                self.channel.consumers.remove(&tag);
            }
            (Call::Get(_), Method::Basic(basic::Method::GetEmpty(_)))
            | (Call::Purge, Method::Queue(queue::Method::PurgeOk(_))) => {}
            (Call::Recover, Method::Basic(basic::Method::RecoverOk(_))) => {
                self.channel.is_stale = false;
            }
            (Call::Barrier(acked), Method::Queue(queue::Method::DeclareOk(_))) => {
                for id in acked {
                    cx.history.amqp.on_ack_taken(&id, self.channel.epoch);
                }
            }
            (Call::Commit(number, _), Method::Tx(tx::Method::CommitOk(_))) => {
                for id in self.channel.held.values() {
                    cx.history.amqp.on_unsure(id, false);
                }
                let outcome = Outcome::Confirmed(cx.now);
                return cx.history.amqp.on_tx_ended(number, outcome);
            }
            (Call::Rollback(number, acked), Method::Tx(tx::Method::RollbackOk(_))) => {
                self.channel.held.extend(acked);
                return cx.history.amqp.on_tx_ended(number, Outcome::RolledBack);
            }
            (_, method) => return Err(stray(method)),
        }
        Ok(())
    }
}

fn stray(method: &Method<'_>) -> Violation {
    unexpected::of(format!("{method:?} answers nothing"))
}
