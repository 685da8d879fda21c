//! The subscriptions of a client, which outlive its connections.
//!
//! Owns: what is needed to open a subscription again, where its deliveries go, and how many came.
//! Refuses to know: how deliveries are read, and when connections come and go.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tanda_wire::fila::EncodeError;
use tanda_wire::fila::consume::Consume;
use tokio::sync::mpsc;

use crate::core::CreditWindow;
use crate::error::SubscriptionError;
use crate::throttle::Throttle;

/// Names a subscription of this client for as long as the client lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SlotId(pub(crate) u64);

/// What the reader of a subscription gets. After the last one the channel ends.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// The body of a `Delivery` frame, not yet read.
    Frame(Bytes),
    /// It ended, and why.
    End(SubscriptionError),
}

/// What both ends of a subscription count with.
#[derive(Debug)]
pub(crate) struct Flow {
    /// `None`: unlimited.
    pub(crate) window: Option<CreditWindow>,
    /// Bytes of frames the reader has not taken yet.
    pub(crate) buffered_bytes: AtomicUsize,
    /// Bound on `buffered_bytes` of an unlimited subscription.
    pub(crate) buffer_bytes_max: usize,
}

/// A subscription before it stands.
#[derive(Debug)]
pub(crate) struct NewSubscription {
    pub(crate) slot: SlotId,
    pub(crate) queue: Arc<str>,
    pub(crate) throttles: Vec<Throttle>,
    pub(crate) flow: Arc<Flow>,
    pub(crate) incoming: mpsc::UnboundedSender<Incoming>,
}

impl NewSubscription {
    /// Appends the body of its `Consume`.
    pub(crate) fn write_consume(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let credit = self.flow.window.as_ref().map_or(0, CreditWindow::prefetch);
        self.write_with_credit(credit, out)
    }

    fn write_with_credit(&self, credit: u32, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let throttles = self.throttles.iter().map(Throttle::to_wire).collect();
        Consume {
            queue: &self.queue,
            credit,
            throttles,
        }
        .encode(out)
    }
}

#[derive(Debug)]
struct Slot {
    subscription: NewSubscription,
    /// `None` while there is no connection, or the `Consume` on it is not answered yet.
    request_id: Option<u32>,
    /// Messages that came, over all connections.
    delivered: u64,
}

/// All subscriptions that stand or will stand again.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    slots: BTreeMap<SlotId, Slot>,
    by_request: HashMap<u32, SlotId>,
}

/// What became of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivered {
    /// The reader will see it.
    Buffered,
    /// The subscription has ended; cancel it on the connection.
    Ended,
}

impl Subscriptions {
    /// Records a subscription that stands.
    pub(crate) fn insert(&mut self, subscription: NewSubscription, request_id: u32) {
        let slot = subscription.slot;
        self.by_request.insert(request_id, slot);
        let entry = Slot {
            subscription,
            request_id: Some(request_id),
            delivered: 0,
        };
        self.slots.insert(slot, entry);
    }

    /// The connection is gone: none of them stands any more.
    pub(crate) fn detach(&mut self) {
        self.by_request.clear();
        self.slots
            .values_mut()
            .for_each(|slot| slot.request_id = None);
    }

    /// All of them, to be opened again.
    pub(crate) fn slots(&self) -> impl Iterator<Item = SlotId> {
        self.slots.keys().copied()
    }

    /// Whether it was neither cancelled nor ended.
    pub(crate) fn contains(&self, slot: SlotId) -> bool {
        self.slots.contains_key(&slot)
    }

    /// Appends the body of the `Consume` that opens it again; the credit leaves out what is
    /// unsettled. Does nothing for one that has ended.
    pub(crate) fn write_reopen(&self, slot: SlotId, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let Some(Slot {
            subscription,
            delivered,
            ..
        }) = self.slots.get(&slot)
        else {
            return Ok(());
        };
        let window = subscription.flow.window.as_ref();
        let credit = window.map_or(0, |window| window.reopen(*delivered));
        subscription.write_with_credit(credit, out)
    }

    /// It stands again. `false`: it was cancelled meanwhile.
    pub(crate) fn attach(&mut self, slot: SlotId, request_id: u32) -> bool {
        let Some(entry) = self.slots.get_mut(&slot) else {
            return false;
        };
        entry.request_id = Some(request_id);
        self.by_request.insert(request_id, slot);
        true
    }

    /// The request ID of a subscription that stands, and the credit to grant it.
    pub(crate) fn take_grant(&self, slot: SlotId) -> Option<(u32, u32)> {
        let entry = self.slots.get(&slot)?;
        // While it does not stand, opening it again grants what is due.
        let request_id = entry.request_id?;
        let credit = entry.subscription.flow.window.as_ref()?.take_grant()?;
        Some((request_id, credit))
    }

    /// Passes a frame on to its reader.
    pub(crate) fn deliver(&mut self, request_id: u32, messages: u32, body: Bytes) -> Delivered {
        let slot_id = self.by_request.get(&request_id).copied();
        let Some(slot_id) = slot_id else {
            return Delivered::Ended;
        };
        let Some(slot) = self.slots.get_mut(&slot_id) else {
            return Delivered::Ended;
        };
        slot.delivered += u64::from(messages);
        let flow = &slot.subscription.flow;
        let buffered = flow.buffered_bytes.fetch_add(body.len(), Ordering::Relaxed) + body.len();
        let buffer_bytes_max = flow.buffer_bytes_max;
        if flow.window.is_none() && buffered > buffer_bytes_max {
            self.end(slot_id, SubscriptionError::BufferFull { buffer_bytes_max });
            return Delivered::Ended;
        }
        if slot
            .subscription
            .incoming
            .send(Incoming::Frame(body))
            .is_err()
        {
            self.remove(slot_id);
            return Delivered::Ended;
        }
        Delivered::Buffered
    }

    /// Ends the subscription of a request with an error for its reader.
    pub(crate) fn end_request(&mut self, request_id: u32, error: SubscriptionError) {
        if let Some(slot) = self.by_request.get(&request_id).copied() {
            self.end(slot, error);
        }
    }

    /// Ends a subscription with an error for its reader.
    pub(crate) fn end(&mut self, slot: SlotId, error: SubscriptionError) {
        if let Some(entry) = self.slots.get(&slot) {
            // A reader that went away does not want to know.
            drop(entry.subscription.incoming.send(Incoming::End(error)));
        }
        self.remove(slot);
    }

    /// Ends all of them with this error.
    pub(crate) fn end_all(&mut self, error: &SubscriptionError) {
        let slots: Vec<SlotId> = self.slots().collect();
        for slot in slots {
            self.end(slot, error.clone());
        }
    }

    /// Forgets a subscription and returns its request ID if it stands. Its reader sees the end
    /// after what is buffered.
    pub(crate) fn remove(&mut self, slot: SlotId) -> Option<u32> {
        let request_id = self.slots.remove(&slot)?.request_id?;
        self.by_request.remove(&request_id);
        Some(request_id)
    }
}
