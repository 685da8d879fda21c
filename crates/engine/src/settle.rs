//! What a consumer says of messages it holds.

use bytes::Bytes;

use crate::{DeliveryBatch, DeliveryItem, FrameLimit, MessageId, Millis, QueueId, Span, VhostId};

/// Settlements that arrived together and get one answer. Spans point into `data`.
#[derive(Clone, Debug, Default)]
pub struct SettleBatch {
    /// Where names of queues belong to.
    pub vhost: VhostId,
    /// The bytes they came in.
    pub data: Bytes,
    /// In request order.
    pub items: Vec<SettleItem>,
}

impl SettleBatch {
    pub(crate) fn weight_bytes(&self) -> usize {
        self.data.len() + size_of_val(self.items.as_slice())
    }
}

/// One message's settlement.
#[derive(Clone, Copy, Debug)]
pub struct SettleItem {
    /// The queue it was delivered from.
    pub queue: SettleQueue,
    /// Which message.
    pub id: MessageId,
    /// What to do with it.
    pub settlement: Settlement,
}

/// A queue, as who settles knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettleQueue {
    /// By name.
    Name(Span),
    /// By [`crate::DeliveryBatch::queue_id`].
    Id(QueueId),
    /// The same, if this consumer still has the message: what was taken back may be with another
    /// one by now, whose lease it is.
    Held {
        /// The queue.
        queue: QueueId,
        /// [`crate::DeliveryBatch::holder`]
        holder: u32,
    },
}

impl SettleQueue {
    /// The queue's number, if it says that.
    pub(crate) const fn id(self) -> Option<QueueId> {
        match self {
            Self::Name(_) => None,
            Self::Id(queue) | Self::Held { queue, .. } => Some(queue),
        }
    }

    /// Whether a lease of this consumer is meant.
    pub(crate) fn means(self, consumer: u64) -> bool {
        match self {
            Self::Name(_) | Self::Id(_) => true,
            Self::Held { holder, .. } => holder == holder_of(consumer),
        }
    }
}

/// The lower half of a consumer's number: so many do not live at the same time.
pub(crate) fn holder_of(consumer: u64) -> u32 {
    u32::try_from(consumer & u64::from(u32::MAX)).unwrap_or(0)
}

/// What becomes of a leased message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// Done: forget it.
    Ack,
    /// A failed attempt: retry or dead-letter by the queue's policy.
    Fail {
        /// The consumer's words.
        error: Span,
        /// Replaces the retry delay; 0 = at once.
        retry_after_ms: Option<u64>,
    },
    /// Back to its old position at once; not a failed attempt.
    Requeue,
    /// A delivery that was not passed on: back to its old position, if that very lease still
    /// stands; else `MessageNotFound`. By id alone it could take a later lease from its holder.
    Unsent {
        /// [`crate::DeliveryBatch::consumer`]
        consumer: u64,
        /// [`crate::DeliveryItem::deliveries`]
        deliveries: u32,
        /// [`crate::DeliveryItem::redrives`]: a redrive counts deliveries from the start.
        redrives: u32,
    },
    /// A delivery that fits no frame of this consumer, whoever else may take it: the lease ends as
    /// by [`Self::Unsent`] and is not counted, and the message is offered to consumers with larger
    /// frames only.
    Unfit {
        /// [`crate::DeliveryBatch::consumer`]
        consumer: u64,
        /// [`crate::DeliveryItem::deliveries`]
        deliveries: u32,
        /// [`crate::DeliveryItem::redrives`]
        redrives: u32,
        /// What it was too large for.
        frame_limit: FrameLimit,
    },
    /// Straight to the dead-letter queue; dropped when there is none.
    Reject,
    /// Not done, by a client of AMQP or FireMQ. On a queue of theirs: back to its old position, or
    /// dead-lettered. On a queue that Fila made: a failed attempt that is due at once, or straight
    /// to the dead-letter queue.
    Nack {
        /// Give it to a consumer again.
        requeue: bool,
    },
    /// The lease now ends this long after now.
    Extend {
        /// Milliseconds from now; may shorten the lease.
        by_ms: u64,
    },
    /// The session already refused it; kept so that results stay in request order.
    Refused(SettleError),
}

/// The answer for one item: when the lease now ends (only `Extend`, else zero), or why not.
pub type SettleResult = Result<Millis, SettleError>;

/// Why one item was not settled. Reaches: that item only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettleError {
    /// No such queue, or the message is not leased (any more).
    MessageNotFound,
    /// The caller may not consume there.
    Forbidden,
}

impl Settlement {
    /// The lease that it speaks of, where it names one: consumer, deliveries, redrives.
    pub(crate) const fn of_lease(self) -> Option<(u64, u32, u32)> {
        match self {
            Self::Unsent {
                consumer,
                deliveries,
                redrives,
            }
            | Self::Unfit {
                consumer,
                deliveries,
                redrives,
                frame_limit: _,
            } => Some((consumer, deliveries, redrives)),
            Self::Ack
            | Self::Fail { .. }
            | Self::Requeue
            | Self::Reject
            | Self::Nack { .. }
            | Self::Extend { .. }
            | Self::Refused(_) => None,
        }
    }
}

impl SettleItem {
    /// A delivery that never reached its client.
    #[must_use]
    pub const fn unsent(batch: &DeliveryBatch, item: &DeliveryItem) -> Self {
        Self {
            queue: SettleQueue::Id(batch.queue_id),
            id: item.id,
            settlement: Settlement::Unsent {
                consumer: batch.consumer,
                deliveries: item.deliveries,
                redrives: item.redrives,
            },
        }
    }

    /// What a nack means, on a queue that AMQP or FireMQ declared or on one that Fila made.
    pub(crate) fn on_queue_of(&self, declared: bool) -> Self {
        let settlement = match self.settlement {
            Settlement::Nack { requeue: true } if declared => Settlement::Requeue,
            Settlement::Nack { requeue: true } => Settlement::Fail {
                error: Span::default(),
                retry_after_ms: Some(0),
            },
            Settlement::Nack { requeue: false } => Settlement::Reject,
            other @ (Settlement::Ack
            | Settlement::Fail { .. }
            | Settlement::Requeue
            | Settlement::Unsent { .. }
            | Settlement::Unfit { .. }
            | Settlement::Reject
            | Settlement::Extend { .. }
            | Settlement::Refused(_)) => other,
        };
        Self {
            settlement,
            ..*self
        }
    }
}
