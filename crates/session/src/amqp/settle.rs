//! Acknowledgements of all kinds: `ack`, `nack`, `reject`, `recover`.

use tanda_engine::{PoolChange, Request, Settlement};
use tanda_wire::amqp::{ReplyCode, basic};

use super::channel::{Channel, Mode};
use super::fault::Fault;
use super::link::Link;
use super::open::Open;
use crate::own_settlements::OwnSettlements;
use crate::unacked::HeldMessage;

/// Settlements of one request at most.
const ITEMS_MAX: usize = 16 << 10;

/// Which messages a method speaks of.
#[derive(Clone, Copy, Debug)]
struct Which {
    tag: u64,
    multiple: bool,
}

impl Open {
    #[inline]
    pub(super) fn on_ack(
        &mut self,
        link: &mut Link,
        number: u16,
        ack: &basic::Ack,
    ) -> Result<(), Fault> {
        let which = Which {
            tag: ack.delivery_tag,
            multiple: ack.multiple,
        };
        self.settle(link, number, which, Settlement::Ack)
    }

    pub(super) fn on_nack(
        &mut self,
        link: &mut Link,
        number: u16,
        nack: &basic::Nack,
    ) -> Result<(), Fault> {
        let which = Which {
            tag: nack.delivery_tag,
            multiple: nack.multiple,
        };
        let requeue = nack.requeue;
        self.settle(link, number, which, Settlement::Nack { requeue })
    }

    pub(super) fn on_reject(
        &mut self,
        link: &mut Link,
        number: u16,
        reject: &basic::Reject,
    ) -> Result<(), Fault> {
        let which = Which {
            tag: reject.delivery_tag,
            multiple: false,
        };
        let requeue = reject.requeue;
        self.settle(link, number, which, Settlement::Nack { requeue })
    }

    /// All messages of the channel go back.
    pub(super) fn on_recover(
        &mut self,
        link: &mut Link,
        number: u16,
        requeue: bool,
    ) -> Result<(), Fault> {
        if !requeue {
            return Err(Fault::new(ReplyCode::NotImplemented, "requeue=false"));
        }
        let Some(channel) = self.channels.find(number) else {
            return Ok(());
        };
        let mut held = Vec::with_capacity(channel.unacked.len());
        channel
            .unacked
            .take_upto(u64::MAX, |_, message| held.push(message));
        for message in held {
            self.settle_one(number, message, Settlement::Nack { requeue: true });
        }
        self.flush(link);
        Ok(())
    }

    #[inline]
    fn settle(
        &mut self,
        link: &mut Link,
        number: u16,
        which: Which,
        settlement: Settlement,
    ) -> Result<(), Fault> {
        let Some(channel) = self.channels.find(number) else {
            return Ok(());
        };
        if let Mode::Tx(_) = channel.mode {
            return settle_in_tx(channel, which, settlement);
        }
        if !which.multiple {
            let message = channel.unacked.take(which.tag);
            let message = message.ok_or_else(|| unknown_tag(which.tag))?;
            self.settle_one(number, message, settlement);
        } else {
            let upto = upto(channel, which)?;
            let mut taken = Vec::new();
            channel
                .unacked
                .take_upto(upto, |_, message| taken.push(message));
            for message in taken {
                self.settle_one(number, message, settlement);
            }
        }
        if self.settled.len() >= ITEMS_MAX {
            self.flush(link);
        }
        Ok(())
    }

    #[inline]
    fn settle_one(&mut self, number: u16, message: HeldMessage, settlement: Settlement) {
        if message.consumer == HeldMessage::LOST {
            return;
        }
        self.settled.push(message.settled(settlement));
        if message.consumer == HeldMessage::GET {
            return;
        }
        add(&mut self.freed, message.consumer, 1);
        add(&mut self.pool_freed, number, 1);
    }

    /// Settles what is not for the peer to settle. What a consumer did not get it may have again.
    pub(super) fn settle_own(
        &mut self,
        link: &mut Link,
        (number, consumer): (u16, Option<u32>),
        own: OwnSettlements,
    ) {
        if own.items.is_empty() {
            return;
        }
        Self::settle_now(link, own.items);
        if let Some(consumer) = consumer
            && own.unfit > 0
        {
            add(&mut self.freed, consumer, own.unfit);
            add(&mut self.pool_freed, number, i64::from(own.unfit));
            self.grant(link);
        }
    }

    /// The broker took back what a consumer of the channel had.
    pub(super) fn lose(&mut self, number: u16, consumer: u32) {
        let Some(channel) = self.channels.find(number) else {
            return;
        };
        let mut lost = channel.unacked.lose(consumer);
        if let Mode::Tx(tx) = &mut channel.mode {
            let before = tx.settled.len();
            tx.settled
                .retain(|(_, message, _)| message.consumer != consumer);
            lost += before - tx.settled.len();
        }
        add(
            &mut self.pool_freed,
            number,
            i64::try_from(lost).unwrap_or(i64::MAX),
        );
    }

    /// Settled in a transaction that was committed.
    pub(super) fn note_freed(&mut self, number: u16, message: &HeldMessage) {
        if message.consumer != HeldMessage::GET {
            add(&mut self.freed, message.consumer, 1);
            add(&mut self.pool_freed, number, 1);
        }
    }

    /// Lets consumers have as many messages again as were settled.
    pub(super) fn grant(&mut self, link: &mut Link) {
        for (token, credit) in self.freed.drain(..) {
            let consumer = self.consumers.by_token.get(&token);
            if consumer.is_some_and(|consumer| consumer.is_limited) {
                let sub = link.sub_id(token);
                link.requests.push(Request::Grant { sub, credit });
            }
        }
        for (number, count) in self.pool_freed.drain(..) {
            let channel = self.channels.peek(number);
            if channel.is_some_and(|channel| channel.shared_prefetch.is_some()) {
                link.requests.push(Request::Pool {
                    conn: link.conn,
                    pool: u32::from(number),
                    change: PoolChange::Add(count),
                });
            }
        }
    }

    /// What a channel that ended has taken and not settled goes back, and so do its consumers'
    /// queues and limits.
    pub(super) fn give_back(&mut self, link: &mut Link, mut ended: Channel) {
        // Consumers that live took theirs along; those of ended ones and of `get` are left.
        let items = ended
            .unacked
            .iter()
            .filter(|message| message.consumer != HeldMessage::LOST)
            .map(|message| message.settled(Settlement::Requeue));
        Self::settle_now(link, items.collect());
        if ended.shared_prefetch.is_some() {
            link.requests.push(Request::Pool {
                conn: link.conn,
                pool: u32::from(ended.number),
                change: PoolChange::Unlimited,
            });
        }
        if let Some(queue) = ended.reply_queue.take() {
            self.remove_reply_queue(link, queue);
        }
    }
}

/// The highest tag that is meant; 0 means all.
fn upto(channel: &Channel, which: Which) -> Result<u64, Fault> {
    if which.tag == 0 {
        return Ok(u64::MAX);
    }
    if !channel.unacked.contains(which.tag) {
        return Err(unknown_tag(which.tag));
    }
    Ok(which.tag)
}

fn settle_in_tx(channel: &mut Channel, which: Which, settlement: Settlement) -> Result<(), Fault> {
    let mut taken = Vec::new();
    if which.multiple {
        let upto = upto(channel, which)?;
        channel
            .unacked
            .take_upto(upto, |tag, message| taken.push((tag, message, settlement)));
    } else {
        let message = channel.unacked.take(which.tag);
        let message = message.ok_or_else(|| unknown_tag(which.tag))?;
        taken.push((which.tag, message, settlement));
    }
    taken.retain(|(_, message, _)| message.consumer != HeldMessage::LOST);
    if let Mode::Tx(tx) = &mut channel.mode {
        tx.settled.append(&mut taken);
    }
    Ok(())
}

fn unknown_tag(tag: u64) -> Fault {
    Fault::precondition(format!("unknown delivery tag {tag}"))
}

/// Adds to the count of a key; most of a read's settlements are of one.
#[inline]
fn add<K: PartialEq, N: core::ops::AddAssign>(counts: &mut Vec<(K, N)>, key: K, more: N) {
    match counts.iter_mut().rev().find(|(known, _)| *known == key) {
        Some((_, count)) => *count += more,
        None => counts.push((key, more)),
    }
}
