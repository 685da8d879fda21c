//! Messages on their way to the peer: `deliver` and `get_ok`.
//!
//! Head and body are written straight from the engine's buffers into the output. Messages of other
//! doors are converted in between.

use tanda_engine::{DeliveryBatch, DeliveryItem, Request, SettleItem, SettleQueue, Settlement};
use tanda_wire::firemq::consume::{Cancelled, Deliver, GetOk};
use tanda_wire::firemq::frame::{FrameTooLarge, Framing, write_head};

use super::fault::Fault;
use super::link::Link;
use super::open::Open;
use super::outbound::clip;
use crate::convert::{FireForm, FireScratch, to_fire};
use crate::unacked::HeldMessage;

/// Where a message goes.
#[derive(Clone, Copy, Debug)]
struct To {
    /// Subscription or request.
    number: u64,
    tag: u64,
    /// The frame may be larger than the peer expects: the message is gone from its queue.
    no_ack: bool,
    frame_max: u32,
}

impl Open {
    pub(super) fn on_delivery(&mut self, link: &mut Link, token: u32, batch: &DeliveryBatch) {
        let Some(sub) = self.subs.by_token.get(&token) else {
            self.give_back(link, batch, &batch.items);
            return link.outbound.count_drained(batch.budget_bytes());
        };
        let (id, no_ack) = (sub.id, sub.no_ack);
        let frame_max = link.frame_max;
        let mut unfit = Vec::new();
        link.outbound.deliveries(batch.budget_bytes(), |out| {
            let mut scratch = FireScratch::default();
            for item in &batch.items {
                let to = To {
                    number: id,
                    tag: self.last_tag + 1,
                    no_ack,
                    frame_max,
                };
                let message = to_fire(batch, item, frame_max as usize, &mut scratch);
                if write_deliver(out, to, item, &message).is_err() {
                    unfit.push(*item);
                    continue;
                }
                self.last_tag = to.tag;
                if !no_ack {
                    let held = held(batch, item, token);
                    self.unacked.push(to.tag, held);
                }
            }
        });
        if !unfit.is_empty() {
            self.pass_over(link, batch, &unfit);
            // The peer has not spent this credit.
            link.requests.push(Request::Grant {
                sub: link.sub_id(token),
                credit: u32::try_from(unfit.len()).unwrap_or(u32::MAX),
            });
        }
    }

    /// Messages that fit no frame stay in the queue, for others; the peer gets what is behind them.
    fn pass_over(&mut self, link: &mut Link, batch: &DeliveryBatch, items: &[DeliveryItem]) {
        self.pool_freed += i64::try_from(items.len()).unwrap_or(0);
        let items = items.iter().map(|item| SettleItem {
            queue: SettleQueue::Id(batch.queue_id),
            id: item.id,
            settlement: Settlement::Unfit {
                consumer: batch.consumer,
                deliveries: item.deliveries,
                redrives: item.redrives,
                pause_ms: self.unfit.pause_ms(item.id),
            },
        });
        let items = items.collect();
        Self::settle_now(link, items);
    }

    /// The broker ends a subscription. Who asked for that already hears the answer to it.
    pub(super) fn cancel(&mut self, link: &mut Link, token: u32, fault: Fault) {
        let Some(sub) = self.subs.by_token.get(&token) else {
            return;
        };
        if sub.is_ending {
            return;
        }
        if let Some(sub) = self.subs.remove(token) {
            match sub.starting {
                // It has not begun for the peer.
                Some(rid) => link.outbound.error(&fault.of(rid)),
                None => link.outbound.frame(&Cancelled {
                    sub: sub.id,
                    code: fault.code,
                    msg: clip(&fault.text),
                }),
            }
        }
    }

    /// The answer to `get`; the message goes back when it does not fit a frame.
    pub(super) fn say_got(
        &mut self,
        link: &mut Link,
        (rid, no_ack): (u64, bool),
        batch: &DeliveryBatch,
        remaining: u64,
    ) {
        let Some(item) = batch.items.first() else {
            return;
        };
        let to = To {
            number: rid,
            tag: self.last_tag + 1,
            no_ack,
            frame_max: link.frame_max,
        };
        let mut scratch = FireScratch::default();
        let message = to_fire(batch, item, link.frame_max as usize, &mut scratch);
        let mut written = Ok(());
        link.outbound.deliveries(batch.budget_bytes(), |out| {
            written = write_got(out, to, (item, remaining), &message);
        });
        match written {
            Ok(()) => {
                self.last_tag = to.tag;
                if !no_ack {
                    self.unacked
                        .push(to.tag, held(batch, item, HeldMessage::GET));
                }
            }
            Err(error) => {
                self.pass_over(link, batch, &batch.items);
                let text = format!("the message is too large: {error}");
                link.outbound.error(&Fault::precondition(text).of(rid));
            }
        }
    }

    /// Messages that the peer does not get.
    pub(super) fn give_back(
        &mut self,
        link: &mut Link,
        batch: &DeliveryBatch,
        items: &[DeliveryItem],
    ) {
        self.pool_freed += i64::try_from(items.len()).unwrap_or(0);
        let items = items.iter().map(|item| SettleItem::unsent(batch, item));
        Self::settle_now(link, items.collect());
    }
}

fn held(batch: &DeliveryBatch, item: &DeliveryItem, consumer: u32) -> HeldMessage {
    HeldMessage {
        id: item.id,
        queue: batch.queue_id,
        consumer,
        holder: batch.holder(),
    }
}

#[inline]
fn write_deliver(
    out: &mut Vec<u8>,
    to: To,
    item: &DeliveryItem,
    message: &FireForm<'_>,
) -> Result<(), FrameTooLarge> {
    let deliver = Deliver {
        sub: to.number,
        tag: to.tag,
        redelivered: item.deliveries > 1,
        exchange: &message.exchange,
        key: &message.key,
        props: message.props,
        headers: message.headers,
    };
    let max = if to.no_ack { u32::MAX } else { to.frame_max };
    write_head(out, Framing::Stream, &deliver, message.body.len(), max)?;
    out.extend_from_slice(message.body);
    Ok(())
}

fn write_got(
    out: &mut Vec<u8>,
    to: To,
    (item, remaining): (&DeliveryItem, u64),
    message: &FireForm<'_>,
) -> Result<(), FrameTooLarge> {
    let got = GetOk {
        rid: to.number,
        tag: to.tag,
        redelivered: item.deliveries > 1,
        exchange: &message.exchange,
        key: &message.key,
        remaining,
        props: message.props,
        headers: message.headers,
    };
    let max = if to.no_ack { u32::MAX } else { to.frame_max };
    write_head(out, Framing::Stream, &got, message.body.len(), max)?;
    out.extend_from_slice(message.body);
    Ok(())
}
