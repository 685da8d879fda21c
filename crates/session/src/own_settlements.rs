//! Deliveries that a session settles by itself: those that fit no frame of the peer, which stay in
//! their queue for others, and those that the engine waits for although the peer acknowledges
//! nothing.

use tanda_engine::{DeliveryBatch, DeliveryItem, FrameLimit, SettleItem, SettleQueue, Settlement};

use crate::unacked::HeldMessage;

/// The settlements of one batch.
#[derive(Debug, Default)]
pub(crate) struct OwnSettlements {
    pub(crate) items: Vec<SettleItem>,
    /// How many of them the peer did not get.
    pub(crate) unfit: u32,
}

impl OwnSettlements {
    /// A message fits no frame of the peer.
    pub(crate) fn unfit(&mut self, batch: &DeliveryBatch, item: &DeliveryItem, limit: FrameLimit) {
        self.unfit += 1;
        self.items.push(SettleItem {
            queue: SettleQueue::Id(batch.queue_id),
            id: item.id,
            settlement: Settlement::Unfit {
                consumer: batch.consumer,
                deliveries: item.deliveries,
                redrives: item.redrives,
                frame_limit: limit,
            },
        });
    }

    /// A message was written for a peer that acknowledges nothing.
    pub(crate) fn sent(&mut self, batch: &DeliveryBatch, item: &DeliveryItem) {
        if item.is_leased {
            let held = HeldMessage {
                id: item.id,
                queue: batch.queue_id,
                consumer: HeldMessage::GET,
                holder: batch.holder(),
            };
            self.items.push(held.settled(Settlement::Ack));
        }
    }
}
