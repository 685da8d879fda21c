//! Deliveries that have not left: the engine gets them back, so that others need not wait for their
//! leases to end.

use std::sync::Arc;

use tanda_engine::{
    DeliveryBatch, DeliveryItem, MessageId, Millis, QueueId, Request, SettleBatch, SettleItem,
    SettleQueue, Settlement,
};

use super::link::Link;
use super::slots::Slots;

/// A message goes back only while its lease has this long to live: else it comes back by itself
/// before the request does any good.
const GIVE_BACK_MARGIN_MS: u64 = 1_000;

/// Messages that were leased together.
#[derive(Debug)]
pub(super) struct Lot {
    /// Its name.
    pub(super) queue: Arc<str>,
    queue_id: QueueId,
    consumer: u64,
    lease_expires_at: Millis,
    items: Vec<Leased>,
}

#[derive(Debug)]
struct Leased {
    id: MessageId,
    deliveries: u32,
    redrives: u32,
}

impl Lot {
    /// These items of a batch.
    pub(super) fn of(batch: &DeliveryBatch, items: &[DeliveryItem]) -> Self {
        let items = items.iter().map(|item| Leased {
            id: item.id,
            deliveries: item.deliveries,
            redrives: item.redrives,
        });
        Self {
            queue: Arc::clone(&batch.queue),
            queue_id: batch.queue_id,
            consumer: batch.consumer,
            lease_expires_at: batch.lease_expires_at,
            items: items.collect(),
        }
    }
}

impl Link {
    /// Messages whose subscription or permission is gone: the peer does not get them.
    pub(super) fn give_back(&mut self, lot: &Lot) {
        if self.now.after_ms(GIVE_BACK_MARGIN_MS) >= lot.lease_expires_at {
            return;
        }
        let items = lot.items.iter().map(|item| SettleItem {
            queue: SettleQueue::Id(lot.queue_id),
            id: item.id,
            settlement: Settlement::Unsent {
                consumer: lot.consumer,
                deliveries: item.deliveries,
                redrives: item.redrives,
            },
        });
        let items = items.collect();
        let reply = self.reply_to(Slots::NO_ANSWER);
        self.requests.push(Request::Settle {
            reply,
            batch: SettleBatch {
                items,
                ..SettleBatch::default()
            },
        });
    }
}
