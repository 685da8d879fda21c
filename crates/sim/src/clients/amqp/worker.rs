//! Work in transactions: takes messages, publishes others, and commits both.

use super::link::{Ask, Link};
use super::{AmqpClient, Call, Cx};
use crate::history::amqp::Settlement;
use crate::random::Random;

/// Messages of one transaction.
const MESSAGES_MAX: usize = 6;

impl AmqpClient {
    pub(super) fn work(&mut self, random: &mut Random, link: &mut Link, cx: &mut Cx<'_>) {
        if !self.channel.is_selected {
            link.ask(Ask::Transactions);
            return self.call(cx, Call::Select);
        }
        match random.below(8) {
            0 | 1 if self.channel.held.len() < MESSAGES_MAX => self.get(random, link, cx),
            2 | 3 => {
                if let Some((delivery_tag, id)) = self.channel.held.pop_first() {
                    link.ask(Ask::Settle {
                        delivery_tag,
                        multiple: false,
                        settlement: Settlement::Ack,
                        by_nack: false,
                    });
                    self.channel.tx_acked.push((delivery_tag, id));
                }
            }
            4 | 5 => {
                let tx = self.tx(cx);
                let tag = self.publish(random, link, cx, (Some(tx), false));
                cx.history.amqp.on_tx_publish(tx, tag);
            }
            6 => self.commit(link, cx),
            _ if random.one_in(3) => self.roll_back(link, cx),
            _ => {}
        }
    }

    fn tx(&mut self, cx: &mut Cx<'_>) -> usize {
        let amqp = &mut cx.history.amqp;
        *self.channel.tx.get_or_insert_with(|| amqp.on_tx_begun())
    }

    fn commit(&mut self, link: &mut Link, cx: &mut Cx<'_>) {
        let number = self.tx(cx);
        self.channel.tx = None;
        let acked = core::mem::take(&mut self.channel.tx_acked);
        let ids = acked.iter().map(|(_, id)| id.clone());
        cx.history
            .amqp
            .on_commit_sent((number, self.conn), ids.collect());
        for id in self.channel.held.values() {
            cx.history.amqp.on_unsure((id, self.conn), true);
        }
        link.ask(Ask::Commit);
        self.call(cx, Call::Commit(number, acked));
    }

    fn roll_back(&mut self, link: &mut Link, cx: &mut Cx<'_>) {
        let number = self.tx(cx);
        self.channel.tx = None;
        let acked = core::mem::take(&mut self.channel.tx_acked);
        link.ask(Ask::RollBack);
        self.call(cx, Call::Rollback(number, acked));
    }
}
