//! `ack` and `nack`.

use tanda_engine::{PoolChange, Request, SettleBatch, SettleItem, Settlement};
use tanda_wire::firemq::consume::{Ack, Nack};

use super::fault::Fault;
use super::link::Link;
use super::open::Open;
use super::pending::Waiting;
use super::subscribe::POOL;
use crate::pending::NO_ANSWER;
use crate::unacked::HeldMessage;

/// Settlements of one request at most.
const ITEMS_MAX: usize = 16 << 10;

impl Open {
    #[inline]
    pub(super) fn on_ack(&mut self, link: &mut Link, ack: &Ack) -> Result<(), Fault> {
        self.settle(link, (ack.tag, ack.multiple), Settlement::Ack)
    }

    pub(super) fn on_nack(&mut self, link: &mut Link, nack: &Nack) -> Result<(), Fault> {
        let requeue = nack.requeue;
        self.settle(
            link,
            (nack.tag, nack.multiple),
            Settlement::Nack { requeue },
        )
    }

    /// Settles one delivery, or all up to it. The one that is named must be unsettled.
    #[inline]
    fn settle(
        &mut self,
        link: &mut Link,
        (tag, multiple): (u64, bool),
        settlement: Settlement,
    ) -> Result<(), Fault> {
        if multiple {
            if !self.unacked.contains(tag) {
                return Err(unknown_tag(tag));
            }
            let Self {
                unacked, settled, ..
            } = self;
            let mut freed = 0;
            unacked.take_upto(tag, |_, message| {
                settled.push(message.settled(settlement));
                freed += i64::from(message.consumer != HeldMessage::GET);
            });
            self.pool_freed += freed;
        } else {
            let message = self.unacked.take(tag).ok_or_else(|| unknown_tag(tag))?;
            self.settled.push(message.settled(settlement));
            self.pool_freed += i64::from(message.consumer != HeldMessage::GET);
        }
        if self.settled.len() >= ITEMS_MAX {
            self.flush(link);
        }
        Ok(())
    }

    /// Sends what was gathered from this read: messages first, so that a message that is passed on
    /// is safe before its original goes.
    pub(super) fn flush(&mut self, link: &mut Link) {
        self.send_batch(link);
        // Of messages that were refused at once there may be no answer that says it.
        self.confirms.say(&mut link.outbound);
        if !self.settled.is_empty() {
            let items = core::mem::take(&mut self.settled);
            let token = link.pending.insert(Waiting::Settle);
            let reply = link.reply_to(token);
            let batch = SettleBatch {
                vhost: link.vhost,
                items,
                ..SettleBatch::default()
            };
            link.requests.push(Request::Settle { reply, batch });
        }
        self.report_freed(link);
    }

    /// Lets the peer hold as many messages again as it does not hold any more.
    pub(super) fn report_freed(&mut self, link: &mut Link) {
        let freed = core::mem::take(&mut self.pool_freed);
        if freed > 0 && self.has_pool {
            link.requests.push(Request::Pool {
                conn: link.conn,
                pool: POOL,
                change: PoolChange::Add(freed),
            });
        }
    }

    /// Settles messages whose settlement nobody asked for.
    pub(super) fn settle_now(link: &mut Link, items: Vec<SettleItem>) {
        if items.is_empty() {
            return;
        }
        let reply = link.reply_to(NO_ANSWER);
        let batch = SettleBatch {
            vhost: link.vhost,
            items,
            ..SettleBatch::default()
        };
        link.requests.push(Request::Settle { reply, batch });
    }
}

fn unknown_tag(tag: u64) -> Fault {
    Fault::precondition(format!("unknown delivery tag {tag}"))
}
