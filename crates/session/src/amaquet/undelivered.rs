//! Answers that took something and never reached their client: it goes back.

use tanda_engine::{
    DeliveryBatch, DeliveryItem, KeyAnswer, Millis, Request, SettleBatch, SettleItem, VhostId,
};

use super::link::Link;
use crate::pending::NO_ANSWER;

/// What an answer took.
#[derive(Debug)]
pub(super) enum Lot {
    /// An item of a list, or a lock that was waited for.
    Keys {
        token: u32,
        vhost: VhostId,
        answer: Box<KeyAnswer>,
    },
    /// Messages of a queue that were leased together, without their contents.
    Popped(Box<DeliveryBatch>),
}

impl Lot {
    /// The messages of a batch.
    pub(super) fn popped(batch: &DeliveryBatch) -> Self {
        Self::popped_of(batch, batch.items.iter())
    }

    /// These messages of a batch.
    pub(super) fn popped_of<'a>(
        batch: &DeliveryBatch,
        items: impl Iterator<Item = &'a DeliveryItem>,
    ) -> Self {
        Self::Popped(Box::new(DeliveryBatch {
            items: items.copied().collect(),
            chunks: Vec::new(),
            ..batch.clone()
        }))
    }
}

/// Whether the messages of a batch are shown without being leased.
pub(super) fn is_look(batch: &DeliveryBatch) -> bool {
    batch.lease_expires_at == Millis(0)
}

impl Link {
    /// Gives something back that this client does not get.
    pub(super) fn give_back(&mut self, lot: Lot) {
        let Lot::Popped(batch) = lot else {
            return self.give_back_of_gone(lot);
        };
        // It may ask for them again.
        let items = batch
            .items
            .iter()
            .map(|item| SettleItem::unsent(&batch, item));
        let batch = SettleBatch {
            items: items.collect(),
            ..SettleBatch::default()
        };
        let reply = self.reply_to(NO_ANSWER);
        self.requests.push(Request::Settle { reply, batch });
    }

    /// Gives something back whose client is gone.
    pub(super) fn give_back_of_gone(&mut self, lot: Lot) {
        let request = match lot {
            Lot::Keys {
                token,
                vhost,
                answer,
            } => Request::KeysUndelivered {
                reply: self.reply_to(token),
                vhost,
                answer,
            },
            Lot::Popped(batch) => Request::GotUndelivered {
                conn: self.conn,
                batch,
            },
        };
        self.requests.push(request);
    }
}
