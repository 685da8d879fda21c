//! Consuming: subscriptions, single gets, and settlements after a consumer's manner.

use std::collections::BTreeMap;

use super::link::{Ask, Link};
use super::{AmqpClient, Call, Cx};
use crate::history::amqp::{CopyId, Dead, Door, Settlement, There};
use crate::random::Random;

/// Messages on their way to the one who drains, at least.
const DRAINER_CREDIT: u64 = 50;

/// How a consumer treats what it gets: percents of its actions; the rest of 100 waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taking {
    consumers_max: usize,
    prefetch: u16,
    ack: u64,
    requeue: u64,
    reject: u64,
}

impl Taking {
    pub(crate) fn draw(random: &mut Random) -> Self {
        let [ack, requeue, reject] = *random
            .pick(&[
                [80, 5, 5],
                [40, 40, 5],
                [20, 10, 60],
                [0, 60, 0],
                [60, 20, 20],
            ])
            .unwrap_or(&[100, 0, 0]);
        Self {
            consumers_max: random.length(3),
            prefetch: u16::try_from(random.below(6)).unwrap_or(1),
            ack,
            requeue,
            reject,
        }
    }
}

impl AmqpClient {
    pub(super) fn consume(
        &mut self,
        random: &mut Random,
        link: &mut Link,
        cx: &mut Cx<'_>,
        taking: Taking,
    ) {
        if self.door == Door::Amqp && !self.channel.has_qos {
            link.ask(Ask::Prefetch {
                count: taking.prefetch,
                is_global: random.one_in(4),
            });
            return self.call(cx, Call::Qos);
        }
        match random.below(12) {
            0..=1 if self.channel.consumers.len() < taking.consumers_max => {
                self.subscribe(random, link, cx, taking);
            }
            2 => self.get(random, link, cx),
            3 if random.one_in(6) => self.cancel(random, link, cx),
            4 if self.door == Door::Amqp && random.one_in(10) => self.recover(link, cx),
            4 | 6 if self.door == Door::Fire => self.grant(random, link, taking),
            5 => self.barrier(link, cx),
            _ => self.settle(random, link, cx, taking),
        }
    }

    /// Lets a consumer have some more.
    pub(super) fn grant(&mut self, random: &mut Random, link: &mut Link, taking: Taking) {
        let tags: Vec<String> = self.channel.credit.keys().cloned().collect();
        let Some(tag) = random.pick(&tags) else {
            return;
        };
        let more = 1 + random.below(taking.prefetch.into());
        if let Some(credit) = self.channel.credit.get_mut(tag) {
            *credit += more;
            link.ask(Ask::Credit(tag, more));
        }
    }

    /// Subscribes to everything, acknowledges everything.
    pub(super) fn drain(&mut self, link: &mut Link, cx: &mut Cx<'_>) {
        let queues = cx.history.amqp.queues.iter();
        let now = cx.now;
        let missing = queues
            .filter(|(_, it)| it.known.there == There::Yes && it.stays_a_while(now))
            .map(|(name, _)| name)
            .find(|name| !self.channel.consumers.values().any(|it| it == *name));
        if let Some(name) = missing.cloned() {
            return self.consume_from(link, cx, (name, false), DRAINER_CREDIT);
        }
        for (tag, credit) in &mut self.channel.credit {
            if *credit < DRAINER_CREDIT {
                link.ask(Ask::Credit(tag, DRAINER_CREDIT));
                *credit += DRAINER_CREDIT;
            }
        }
        if let Some(last) = self.channel.held.keys().next_back().copied() {
            for (number, id) in core::mem::take(&mut self.channel.held) {
                let held = (self.conn, number);
                let amqp = &mut cx.history.amqp;
                amqp.on_settle_sent((&id, held), Settlement::Ack);
                self.channel.acked.push(id);
            }
            link.ask(Ask::Settle {
                delivery_tag: last,
                multiple: true,
                settlement: Settlement::Ack,
                by_nack: false,
            });
        }
    }

    /// A queue that is there for sure, to take from.
    pub(super) fn draw_queue(random: &mut Random, cx: &Cx<'_>) -> Option<(String, bool, bool)> {
        let queues = cx.history.amqp.queues.iter();
        let queues = queues.filter(|(_, it)| {
            // What waits to come back is not for consumers.
            let comes_back = it.draw.ttl_ms.is_some() && it.draw.dead_key.is_some();
            let is_dead = it.draw.dead == Some(Dead::Stay);
            let is_there = it.known.there == There::Yes && !it.draw.comes_and_goes();
            is_there && (!comes_back || is_dead)
        });
        let queues: Vec<_> = queues
            .map(|(name, it)| (name.clone(), it.draw.is_lossy, it.draw.single_active))
            .collect();
        random.pick(&queues).cloned()
    }

    fn subscribe(&mut self, random: &mut Random, link: &mut Link, cx: &mut Cx<'_>, taking: Taking) {
        if let Some((name, is_lossy, _)) = Self::draw_queue(random, cx) {
            let no_ack = is_lossy && random.one_in(2);
            let credit = match self.door {
                Door::Amqp => 0,
                Door::Fire => u64::from(taking.prefetch) * random.below(3),
            };
            self.consume_from(link, cx, (name, no_ack), credit);
        }
    }

    pub(super) fn consume_from(
        &mut self,
        link: &mut Link,
        cx: &mut Cx<'_>,
        (name, no_ack): (String, bool),
        credit: u64,
    ) {
        self.channel.since.entry(name.clone()).or_insert(cx.now);
        self.channel.tags += 1;
        let mark = if no_ack { "n" } else { "c" };
        let tag = format!("{mark}{}", self.channel.tags);
        link.ask(Ask::Consume {
            tag: &tag,
            queue: &name,
            no_ack,
            credit,
        });
        if self.door == Door::Fire {
            self.channel.credit.insert(tag.clone(), credit);
        }
        self.call(cx, Call::Consume(tag.clone(), name.clone()));
        let asked = self.channel.asked;
        self.channel.began.insert(tag.clone(), asked.tick);
        cx.history.amqp.on_consume_sent(&name, &tag, asked);
    }

    pub(super) fn get(&mut self, random: &mut Random, link: &mut Link, cx: &mut Cx<'_>) {
        if let Some((name, _, false)) = Self::draw_queue(random, cx) {
            self.get_from(link, cx, name);
        }
    }

    pub(super) fn get_from(&mut self, link: &mut Link, cx: &mut Cx<'_>, name: String) {
        self.channel.gets.entry(name.clone()).or_insert(cx.now);
        link.ask(Ask::Get(&name));
        self.call(cx, Call::Get(name));
    }

    pub(super) fn cancel(&mut self, random: &mut Random, link: &mut Link, cx: &mut Cx<'_>) {
        let tags: Vec<String> = self.channel.consumers.keys().cloned().collect();
        if let Some(tag) = random.pick(&tags) {
            link.ask(Ask::Cancel(tag));
            self.call(cx, Call::Cancel(tag.clone()));
        }
    }

    fn recover(&mut self, link: &mut Link, cx: &mut Cx<'_>) {
        link.ask(Ask::Recover);
        for (number, id) in core::mem::take(&mut self.channel.held) {
            let (amqp, held) = (&mut cx.history.amqp, (self.conn, number));
            amqp.on_settle_sent((&id, held), Settlement::Requeue);
        }
        self.channel.is_stale = true;
        self.call(cx, Call::Recover);
    }

    pub(super) fn settle(
        &mut self,
        random: &mut Random,
        link: &mut Link,
        cx: &mut Cx<'_>,
        taking: Taking,
    ) {
        let tags: Vec<u64> = self.channel.held.keys().copied().collect();
        let Some(delivery_tag) = random.pick(&tags).copied() else {
            return;
        };
        let draw = random.below(100);
        let settlement = if draw < taking.ack {
            Settlement::Ack
        } else if draw < taking.ack + taking.requeue {
            Settlement::Requeue
        } else if draw < taking.ack + taking.requeue + taking.reject {
            Settlement::Reject
        } else {
            return;
        };
        // By FireMQ nothing of many is settled when the last was taken back meanwhile.
        let may_fail = self.door == Door::Fire && cx.history.amqp.has_ack_timeouts();
        let multiple = random.one_in(3) && !may_fail;
        let by_nack = settlement != Settlement::Ack && (multiple || random.one_in(2));
        link.ask(Ask::Settle {
            delivery_tag,
            multiple,
            settlement,
            by_nack,
        });
        let rest = self.channel.held.split_off(&(delivery_tag + 1));
        let mut settled = core::mem::replace(&mut self.channel.held, rest);
        if !multiple {
            let one = settled.remove(&delivery_tag);
            self.channel.held.append(&mut settled);
            settled.extend(one.map(|id| (delivery_tag, id)));
        }
        self.note(link, cx, settlement, settled);
    }

    fn note(
        &mut self,
        link: &Link,
        cx: &mut Cx<'_>,
        settlement: Settlement,
        settled: BTreeMap<u64, CopyId>,
    ) {
        let conn = link.line.conn;
        cx.trace
            .note(cx.now, || format!("  c{conn} {settlement:?} {settled:?}"));
        for (number, id) in settled {
            let amqp = &mut cx.history.amqp;
            amqp.on_settle_sent((&id, (conn, number)), settlement);
            if settlement == Settlement::Ack {
                self.channel.acked.push(id);
            }
        }
    }
}
