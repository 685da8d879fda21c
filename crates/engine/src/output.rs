//! What the engine wants to be told to connections.

use std::sync::Arc;

use bytes::Bytes;

use crate::{
    AdminReply, ConnId, Content, Form, GetError, Got, KeyAnswer, KeyError, Lsn, MessageId, Millis,
    PublishResult, QueueId, SettleResult, Span, SubscribeError, TopologyError, VhostId,
    WatchedMessage,
};

/// One effect. It may leave only when the log is durable up to `after`.
#[derive(Clone, Debug)]
pub struct Output {
    /// Whom it concerns.
    pub conn: ConnId,
    /// The log position it waits for.
    pub after: Lsn,
    /// What to say.
    pub event: Event,
}

/// What a session is told. Tokens are its own.
#[derive(Clone, Debug)]
pub enum Event {
    /// Answer to `Publish`.
    Published {
        /// The request's token.
        token: u32,
        /// One per item, in request order.
        results: Vec<PublishResult>,
    },
    /// Answer to `Settle`.
    Settled {
        /// The request's token.
        token: u32,
        /// One per item, in request order.
        results: Vec<SettleResult>,
    },
    /// Answer to `Transaction`: everything of it took effect, unless a result says that something
    /// was refused: then nothing did.
    Committed {
        /// The request's token.
        token: u32,
        /// One per message, in request order.
        published: Vec<PublishResult>,
        /// One per settlement, in request order.
        settled: Vec<SettleResult>,
    },
    /// Answer to `Get`.
    Got {
        /// The request's token.
        token: u32,
        /// The messages, or that there are none.
        result: Result<Got, GetError>,
    },
    /// Answer to `Subscribe`: always before the first delivery.
    Subscribed {
        /// The subscription's token.
        token: u32,
        /// The broker's number for this consumer.
        consumer: u64,
    },
    /// Answer to `Subscribe`: refused.
    SubscribeFailed {
        /// The subscription's token.
        token: u32,
        /// Why.
        error: SubscribeError,
    },
    /// Messages for a subscription.
    Delivery {
        /// The subscription's token.
        token: u32,
        /// The messages.
        batch: DeliveryBatch,
    },
    /// The broker ended a subscription.
    SubscriptionEnded {
        /// The subscription's token.
        token: u32,
        /// Why.
        reason: SubscriptionEnd,
    },
    /// Answer to `Admin`.
    Admin {
        /// The request's token.
        token: u32,
        /// The answer.
        reply: Box<AdminReply>,
    },
    /// Answer to `Keys`.
    Keys {
        /// The request's token.
        token: u32,
        /// The virtual host.
        vhost: VhostId,
        /// What the command came to.
        result: Box<Result<KeyAnswer, KeyError>>,
    },
    /// Answer to `Watch`: always before the first `Watched`.
    Watching {
        /// The watch's token.
        token: u32,
        /// That it began, or why not.
        result: Result<(), TopologyError>,
    },
    /// A message for a watch.
    Watched {
        /// The watch's token.
        token: u32,
        /// The message.
        message: Box<WatchedMessage>,
    },
    /// The exchange of a watch was deleted, and the watch is over.
    WatchEnded {
        /// The watch's token.
        token: u32,
    },
    /// The log failed: nothing sent from now on can be confirmed. The token's request, if any,
    /// has an unknown outcome.
    StorageFailed {
        /// The request's token.
        token: u32,
    },
}

/// Why the broker ended a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscriptionEnd {
    /// Its queue was deleted.
    QueueDeleted,
    /// It held a message unsettled for too long; all it held were requeued.
    AckTimedOut {
        /// [`crate::SubscribeSpec::ack_timeout_ms`]
        timeout_ms: u64,
    },
}

/// Messages delivered together to one subscription, leased in the same instant.
#[derive(Clone, Debug, Default)]
pub struct DeliveryBatch {
    /// The broker's number for the consumer that holds the leases.
    pub consumer: u64,
    /// The queue.
    pub queue_id: QueueId,
    /// The queue's name.
    pub queue: Arc<str>,
    /// When they were leased.
    pub leased_at: Millis,
    /// When the leases end; `Millis(u64::MAX)` when they live as long as the connection.
    pub lease_expires_at: Millis,
    /// The messages, in delivery order.
    pub items: Vec<DeliveryItem>,
    /// Fairness keys of the items, back to back.
    pub keys: Vec<u8>,
    /// Deliveries of it are charged to throttles: [`crate::Engine::released`] is to know when they
    /// leave.
    pub throttled: bool,
    /// The queue's consumers are told how often a message came back (`x-queue-type: quorum`).
    pub counts_returns: bool,
    /// Buffers that hold the contents; the node fills it for contents that lie in the log.
    pub chunks: Vec<Bytes>,
}

impl DeliveryBatch {
    /// The consumer, as settlements of what it got name it.
    #[must_use]
    pub fn holder(&self) -> u32 {
        crate::settle::holder_of(self.consumer)
    }

    /// The content (headers and payload) of an item, once the node has resolved it.
    #[must_use]
    pub fn content(&self, item: &DeliveryItem) -> &[u8] {
        let start = item.start as usize;
        let content = self
            .chunks
            .get(item.chunk as usize)
            .and_then(|chunk| chunk.get(start..start.checked_add(item.len as usize)?))
            .unwrap_or_default();
        if item.has_attributes {
            Content::new(item.form, content).without_attributes()
        } else {
            content
        }
    }

    /// The fairness key of an item; empty for the unkeyed group.
    #[must_use]
    pub fn fairness_key(&self, item: &DeliveryItem) -> &str {
        item.fairness_key.text(&self.keys)
    }

    /// How often an item came back before this delivery, where its consumers are told; else 0.
    #[inline]
    #[must_use]
    pub const fn returns(&self, item: &DeliveryItem) -> u32 {
        if self.counts_returns {
            item.deliveries.saturating_sub(1)
        } else {
            0
        }
    }

    /// Bytes this batch weighs against the connection's outbound budget.
    #[must_use]
    pub fn budget_bytes(&self) -> u64 {
        self.items.iter().map(DeliveryItem::budget_bytes).sum()
    }
}

/// One delivered message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryItem {
    /// Which message.
    pub id: MessageId,
    /// Where its content lies in the log; [`DeliveryItem::RESOLVED`] when `chunk` is already set.
    pub at: Lsn,
    /// Length of the content, with what a script said of the message behind it.
    pub len: u32,
    /// The layout of its content.
    pub form: Form,
    /// A script said something of it ([`Content::attributes`]).
    pub has_attributes: bool,
    /// It has a lease; else it is gone from its queue, or only looked at.
    pub is_leased: bool,
    /// Index into [`DeliveryBatch::chunks`].
    pub chunk: u32,
    /// First byte of the content inside that chunk.
    pub start: u32,
    /// Range in [`DeliveryBatch::keys`].
    pub fairness_key: Span,
    /// The message's weight.
    pub weight: u32,
    /// Failed deliveries and this one: 1 on the first delivery.
    pub attempts: u32,
    /// Deliveries, this one included; above 1 it was out before, whether that failed or not.
    /// Starts again at a redrive; a fast queue forgets it at a restart.
    pub deliveries: u32,
    /// Times it was redriven.
    pub redrives: u32,
    /// What throttles were charged for it; 0 = nothing, or it has left. The engine's.
    pub permit: u32,
}

impl DeliveryItem {
    /// `at` of a content that does not lie in the log.
    pub const RESOLVED: Lsn = Lsn(u64::MAX);

    /// Fixed cost of an item in the outbound budget, about its metadata on the wire.
    pub const OVERHEAD_BYTES: u64 = 96;

    /// Bytes this item weighs against the connection's outbound budget.
    #[must_use]
    pub fn budget_bytes(&self) -> u64 {
        u64::from(self.len) + Self::OVERHEAD_BYTES
    }
}
