//! Messages on their way to the peer: `deliver` and `get_ok`.
//!
//! Head and body are written straight from the engine's buffers into the output. Messages of other
//! doors are converted in between.

use tanda_engine::{DeliveryBatch, DeliveryItem, Request, SettleItem};
use tanda_wire::firemq::consume::{Cancelled, Deliver, GetOk};
use tanda_wire::firemq::frame::{Framing, write_head};

use super::fault::Fault;
use super::link::Link;
use super::open::Open;
use super::outbound::clip;
use crate::convert::{FireForm, FireScratch, Unfit, to_fire};
use crate::own_settlements::OwnSettlements;
use crate::unacked::HeldMessage;

/// Where a message goes.
#[derive(Clone, Copy, Debug)]
struct To {
    /// Subscription or request.
    number: u64,
    tag: u64,
    frame_max: u32,
}

impl Open {
    pub(super) fn on_delivery(&mut self, link: &mut Link, token: u32, batch: &DeliveryBatch) {
        let Some(sub) = self.subs.by_token.get(&token) else {
            self.give_back(link, batch, &batch.items);
            return link.outbound.count_drained(batch.budget_bytes());
        };
        let (id, no_ack) = (sub.id, sub.no_ack);
        let (frame_max, limit) = (link.frame_max, link.frame_limit());
        let mut own = OwnSettlements::default();
        link.outbound.deliveries(batch.budget_bytes(), |out| {
            let mut scratch = FireScratch::default();
            for item in &batch.items {
                let to = To {
                    number: id,
                    tag: self.last_tag + 1,
                    frame_max: frame_max_of(item, (frame_max, no_ack)),
                };
                let message = to_fire(batch, item, to.frame_max as usize, &mut scratch);
                let written = message.and_then(|it| write_deliver(out, to, item, &it));
                if written.is_err() {
                    own.unfit(batch, item, limit);
                    continue;
                }
                self.last_tag = to.tag;
                if no_ack {
                    own.sent(batch, item);
                } else {
                    let held = held(batch, item, token);
                    self.unacked.push(to.tag, held);
                }
            }
        });
        let unfit = own.unfit;
        Self::settle_now(link, own.items);
        if unfit > 0 {
            // The peer has not spent this credit.
            self.pool_freed += i64::from(unfit) * i64::from(!no_ack);
            link.requests.push(Request::Grant {
                sub: link.sub_id(token),
                credit: unfit,
            });
        }
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

    /// The answer to `get`.
    ///
    /// # Errors
    /// The message fits no frame, and went back for others.
    pub(super) fn say_got(
        &mut self,
        link: &mut Link,
        (rid, no_ack): (u64, bool),
        batch: &DeliveryBatch,
        remaining: u64,
    ) -> Result<(), Unfit> {
        let Some(item) = batch.items.first() else {
            return Ok(());
        };
        let to = To {
            number: rid,
            tag: self.last_tag + 1,
            frame_max: frame_max_of(item, (link.frame_max, no_ack)),
        };
        let mut scratch = FireScratch::default();
        let message = to_fire(batch, item, to.frame_max as usize, &mut scratch);
        let mut written = Err(Unfit);
        link.outbound.deliveries(batch.budget_bytes(), |out| {
            written = message.and_then(|it| write_got(out, to, (item, remaining), &it));
        });
        let mut own = OwnSettlements::default();
        match written {
            Ok(()) => {
                self.last_tag = to.tag;
                if no_ack {
                    own.sent(batch, item);
                } else {
                    let held = held(batch, item, HeldMessage::GET);
                    self.unacked.push(to.tag, held);
                }
            }
            Err(Unfit) => own.unfit(batch, item, link.frame_limit()),
        }
        Self::settle_now(link, own.items);
        written
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

/// The largest frame for a message. Of one that is gone from its queue the engine knows that it
/// fits.
fn frame_max_of(item: &DeliveryItem, (frame_max, no_ack): (u32, bool)) -> u32 {
    if no_ack && !item.is_leased {
        u32::MAX
    } else {
        frame_max
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
) -> Result<(), Unfit> {
    let deliver = Deliver {
        sub: to.number,
        tag: to.tag,
        redelivered: item.deliveries > 1,
        exchange: &message.exchange,
        key: &message.key,
        props: message.props,
        headers: message.headers,
    };
    let body = message.body.len();
    write_head(out, Framing::Stream, &deliver, body, to.frame_max)?;
    out.extend_from_slice(message.body);
    Ok(())
}

fn write_got(
    out: &mut Vec<u8>,
    to: To,
    (item, remaining): (&DeliveryItem, u64),
    message: &FireForm<'_>,
) -> Result<(), Unfit> {
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
    let body = message.body.len();
    write_head(out, Framing::Stream, &got, body, to.frame_max)?;
    out.extend_from_slice(message.body);
    Ok(())
}
