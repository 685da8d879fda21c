//! What the engine says, as frames.

use tanda_engine::{
    DeliveryBatch, Event, GetError, Got, SettleItem, SubscribeError, SubscriptionEnd,
};
use tanda_wire::amqp::{Arguments, MethodId, ReplyCode, ShortStr, basic};

use super::channel::ChannelState;
use super::consume::Stage;
use super::deliver::{self, Address, DeliverStart};
use super::fault::Fault;
use super::link::Link;
use super::open::Open;
use super::pending::{Call, Waiting};
use crate::answers::subscribe_refusal;
use crate::convert::{Scratch, Unfit};
use crate::own_settlements::OwnSettlements;
use crate::unacked::HeldMessage;

impl Open {
    /// Takes one event. Those of requests and consumers that ended meanwhile are ignored.
    ///
    /// # Errors
    /// The connection has to end.
    pub(super) fn on_event(&mut self, link: &mut Link, event: Event) -> Result<(), Fault> {
        match event {
            Event::Delivery { token, batch } => self.on_delivery(link, token, &batch),
            Event::Published { token, results } => self.on_published(link, token, &results),
            Event::Settled { token, .. } => drop(link.pending.remove(token)),
            Event::Subscribed { token, .. } => self.on_subscribed(link, token),
            Event::SubscribeFailed { token, error } => {
                return self.on_subscribe_failed(link, token, error);
            }
            Event::SubscriptionEnded { token, reason } => {
                self.on_subscription_ended(link, token, reason);
            }
            Event::Admin { token, reply } => return self.on_reply(link, token, *reply),
            Event::Got { token, result } => return self.on_got(link, token, result),
            Event::Committed {
                token,
                published,
                settled,
            } => {
                if let Some((number, call)) = self.answered(link, token)
                    && let Call::Commit {
                        published: sent,
                        settled: held,
                    } = call.call
                {
                    let results = (&published[..], &settled[..]);
                    self.on_committed(link, number, (&sent, held), results);
                }
            }
            Event::StorageFailed { token } => return self.on_storage_failed(link, token),
            // Of a door that this is not.
            Event::Keys { .. }
            | Event::Watching { .. }
            | Event::Watched { .. }
            | Event::WatchEnded { .. } => {}
        }
        Ok(())
    }

    /// Finds what an answer belongs to; its channel takes frames again.
    pub(super) fn answered(&mut self, link: &mut Link, token: u32) -> Option<(u16, Answered)> {
        match link.pending.remove(token)? {
            Waiting::Call {
                channel: number,
                method,
                no_wait,
                call,
            } => {
                let channel = self.channels.find(number)?;
                channel.is_busy = false;
                let is_open = channel.state == ChannelState::Open;
                let answered = Answered {
                    method,
                    no_wait,
                    is_open,
                    call,
                };
                Some((number, answered))
            }
            Waiting::Publish(_) | Waiting::Settle | Waiting::Vhost | Waiting::Closing => None,
        }
    }

    fn on_subscribed(&mut self, link: &mut Link, token: u32) {
        let Some(consumer) = self.consumers.by_token.get_mut(&token) else {
            return;
        };
        let no_wait = match consumer.stage {
            Stage::Starting { no_wait } => no_wait,
            Stage::Dropped => return self.on_dropped(token),
            Stage::Live | Stage::Ending => return,
        };
        consumer.stage = Stage::Live;
        if let Some(channel) = self.channels.find(consumer.channel) {
            channel.is_busy = false;
        }
        if !no_wait {
            let consumer_tag = ShortStr::clip(&consumer.tag);
            link.outbound
                .method(consumer.channel, basic::ConsumeOk { consumer_tag });
        }
    }

    /// A consumer started whose channel has ended.
    fn on_dropped(&mut self, token: u32) {
        if let Some(consumer) = self.consumers.by_token.remove(&token)
            && let Some(channel) = self.channels.find(consumer.channel)
        {
            channel.is_busy = false;
        }
    }

    fn on_subscribe_failed(
        &mut self,
        link: &mut Link,
        token: u32,
        error: SubscribeError,
    ) -> Result<(), Fault> {
        let Some(consumer) = self.consumers.by_token.remove(&token) else {
            return Ok(());
        };
        let number = consumer.channel;
        if let Some(channel) = self.channels.find(number) {
            channel.is_busy = false;
            channel.consumers.remove(&consumer.tag);
        }
        if consumer.stage == Stage::Dropped {
            return Ok(());
        }
        let fault = subscribe_fault(link, &consumer.queue, error).by(basic::Consume::ID);
        self.fail(link, number, fault)
    }

    /// Ends the channel of a fault, or says that the connection has to end.
    pub(super) fn fail(&mut self, link: &mut Link, number: u16, fault: Fault) -> Result<(), Fault> {
        if !fault.ends_channel_only() {
            return Err(fault);
        }
        self.fail_channel(link, number, &fault);
        Ok(())
    }

    fn on_subscription_ended(&mut self, link: &mut Link, token: u32, reason: SubscriptionEnd) {
        let Some(consumer) = self.consumers.by_token.get(&token) else {
            return;
        };
        match consumer.stage {
            Stage::Starting { .. } | Stage::Live => {}
            // Its `cancel-ok` follows.
            Stage::Ending => return,
            Stage::Dropped => return self.on_dropped(token),
        }
        let number = consumer.channel;
        let can_tell = link.capabilities.consumer_cancel_notify;
        if let SubscriptionEnd::AckTimedOut { timeout_ms } = reason
            && !can_tell
        {
            let fault = Fault::precondition(format!(
                "delivery acknowledgement on channel {number} timed out. \
                 Timeout value used: {timeout_ms} ms. \
                 This timeout value can be configured, see consumers doc guide to learn more"
            ));
            return self.fail_channel(link, number, &fault);
        }
        if let SubscriptionEnd::AckTimedOut { .. } = reason {
            self.lose(number, token);
            self.grant(link);
        }
        let Some(consumer) = self.consumers.by_token.remove(&token) else {
            return;
        };
        if let Some(channel) = self.channels.find(number) {
            channel.consumers.remove(&consumer.tag);
            channel.is_busy &= consumer.stage == Stage::Live;
            if channel.reply_queue.as_deref() == Some(&*consumer.queue) {
                channel.reply_queue = None;
            }
        }
        if can_tell {
            let cancel = basic::Cancel {
                consumer_tag: ShortStr::clip(&consumer.tag),
                no_wait: true,
            };
            link.outbound.method(number, cancel);
        }
    }

    fn on_delivery(&mut self, link: &mut Link, token: u32, batch: &DeliveryBatch) {
        let consumer = self.consumers.by_token.get(&token);
        let Some(consumer) = consumer.filter(|consumer| consumer.stage != Stage::Dropped) else {
            return give_back(link, batch);
        };
        let number = consumer.channel;
        let no_ack = consumer.no_ack;
        let mut start = DeliverStart::new(&consumer.tag);
        let Some(channel) = self.channels.find(number) else {
            return give_back(link, batch);
        };
        let (frame_max, limit) = (link.frame_max, link.frame_limit());
        let mut own = OwnSettlements::default();
        link.outbound.deliveries(batch.budget_bytes(), |out| {
            let mut scratch = Scratch::default();
            for item in &batch.items {
                let Ok(message) = deliver::message(batch, item, (frame_max, no_ack), &mut scratch)
                else {
                    own.unfit(batch, item, limit);
                    continue;
                };
                channel.last_tag += 1;
                let tag = channel.last_tag;
                if no_ack {
                    own.sent(batch, item);
                } else {
                    let held = HeldMessage {
                        id: item.id,
                        queue: batch.queue_id,
                        consumer: token,
                        holder: batch.holder(),
                    };
                    channel.unacked.push(tag, held);
                }
                let address = Address {
                    channel: number,
                    frame_max,
                    start: start.with(tag, item.deliveries > 1),
                    end: &[],
                };
                deliver::write(out, &address, &message);
            }
        });
        // Who acknowledges nothing has no limit that it would be given back.
        let limited = (!no_ack).then_some(token);
        self.settle_own(link, (number, limited), own);
    }

    fn on_got(
        &mut self,
        link: &mut Link,
        token: u32,
        result: Result<Got, GetError>,
    ) -> Result<(), Fault> {
        let Some((number, answered)) = self.answered(link, token) else {
            return Ok(());
        };
        let Call::Get { no_ack, queue } = answered.call else {
            return Ok(());
        };
        let got = match result {
            Ok(got) => got,
            Err(error) => {
                let fault = match error {
                    GetError::NotFound => Fault::no_queue(&queue, &link.vhost_name),
                    GetError::Topology(error) => Fault::of_topology(error),
                };
                return self.fail(link, number, fault.by(basic::Get::ID));
            }
        };
        let batch = got.batch.as_ref().filter(|batch| !batch.items.is_empty());
        let Some(batch) = batch else {
            if answered.is_open {
                link.outbound.method(number, basic::GetEmpty {});
            }
            return Ok(());
        };
        if !answered.is_open {
            give_back(link, batch);
            return Ok(());
        }
        if self.say_got(link, (number, no_ack), batch, got.remaining) == Err(Unfit) {
            // The next one may fit.
            self.ask_get(link, number, (no_ack, queue));
        }
        Ok(())
    }

    fn say_got(
        &mut self,
        link: &mut Link,
        (number, no_ack): (u16, bool),
        batch: &DeliveryBatch,
        remaining: u64,
    ) -> Result<(), Unfit> {
        let (Some(channel), Some(item)) = (self.channels.find(number), batch.items.first()) else {
            return Ok(());
        };
        let mut own = OwnSettlements::default();
        let mut scratch = Scratch::default();
        let size = (link.frame_max, no_ack);
        let Ok(message) = deliver::message(batch, item, size, &mut scratch) else {
            link.outbound.count_drained(batch.budget_bytes());
            own.unfit(batch, item, link.frame_limit());
            self.settle_own(link, (number, None), own);
            return Err(Unfit);
        };
        channel.last_tag += 1;
        let tag = channel.last_tag;
        if no_ack {
            own.sent(batch, item);
        } else {
            let held = HeldMessage {
                id: item.id,
                queue: batch.queue_id,
                consumer: HeldMessage::GET,
                holder: batch.holder(),
            };
            channel.unacked.push(tag, held);
        }
        let start = deliver::get_ok_start(tag, item.deliveries > 1);
        let remaining = u32::try_from(remaining).unwrap_or(u32::MAX);
        let address = Address {
            channel: number,
            frame_max: link.frame_max,
            start: &start,
            end: &remaining.to_be_bytes(),
        };
        link.outbound.deliveries(batch.budget_bytes(), |out| {
            deliver::write(out, &address, &message)
        });
        self.settle_own(link, (number, None), own);
        Ok(())
    }

    /// The outcome of the token's request is unknown, and the broker will not find out.
    fn on_storage_failed(&mut self, link: &mut Link, token: u32) -> Result<(), Fault> {
        let text = "the log failed: the outcome is unknown";
        let is_known =
            self.consumers.by_token.contains_key(&token) || link.pending.remove(token).is_some();
        if is_known {
            return Err(Fault::new(ReplyCode::InternalError, text));
        }
        Ok(())
    }
}

/// A method that was answered.
pub(super) struct Answered {
    pub(super) method: MethodId,
    pub(super) no_wait: bool,
    /// Its channel is still open.
    pub(super) is_open: bool,
    pub(super) call: Call,
}

fn subscribe_fault(link: &Link, queue: &str, error: SubscribeError) -> Fault {
    Fault::of_topology(subscribe_refusal(
        error,
        (queue, &link.vhost_name),
        "consumers",
    ))
}

/// Messages that were on their way to a consumer that is gone.
pub(super) fn give_back(link: &mut Link, batch: &DeliveryBatch) {
    link.outbound.count_drained(batch.budget_bytes());
    let items = batch
        .items
        .iter()
        .map(|item| SettleItem::unsent(batch, item));
    Open::settle_now(link, items.collect());
}
