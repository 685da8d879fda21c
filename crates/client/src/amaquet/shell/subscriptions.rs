//! The subscriptions of a client.
//!
//! Owns: which events are whose, and what is dropped when nobody reads.
//! Refuses to know: connections; their request ids are only numbers here.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use crate::amaquet::error::{RequestError, SubscriptionError};
use crate::amaquet::subscription::Event;

/// A subscription that is asked for.
#[derive(Debug)]
pub(crate) struct NewSubscription {
    /// Numbers subscriptions of a client.
    pub(crate) slot: u64,
    pub(crate) key: String,
    pub(crate) channel: String,
    pub(crate) buffer: u32,
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) end: oneshot::Sender<SubscriptionError>,
    pub(crate) reply: oneshot::Sender<Result<(), RequestError>>,
}

#[derive(Debug)]
struct Subscription {
    key: Arc<str>,
    channel: Arc<str>,
    buffer: u32,
    events: mpsc::Sender<Event>,
    end: oneshot::Sender<SubscriptionError>,
    /// Who waits for it to be there, at first.
    reply: Option<oneshot::Sender<Result<(), RequestError>>>,
    /// The request that made it on this connection.
    request_id: Option<u64>,
    /// Events that found no room since the last one that did.
    dropped: u64,
    is_after_reconnect: bool,
}

/// All that were asked for and have not ended.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    by_slot: BTreeMap<u64, Subscription>,
    /// Slots by the request that made them on this connection.
    by_request: BTreeMap<u64, u64>,
}

/// Names a channel or pattern of a key.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) key: Arc<str>,
    pub(crate) channel: Arc<str>,
    pub(crate) buffer: u32,
}

impl Subscriptions {
    /// Adds one, which is not asked of the server yet.
    pub(crate) fn add(&mut self, new: NewSubscription) -> u64 {
        let subscription = Subscription {
            key: new.key.into(),
            channel: new.channel.into(),
            buffer: new.buffer,
            events: new.events,
            end: new.end,
            reply: Some(new.reply),
            request_id: None,
            dropped: 0,
            is_after_reconnect: false,
        };
        self.by_slot.insert(new.slot, subscription);
        new.slot
    }

    /// All slots, in the order they were made.
    pub(crate) fn slots(&self) -> Vec<u64> {
        self.by_slot.keys().copied().collect()
    }

    /// What is to be asked for one; `None` when it has ended.
    pub(crate) fn place(&self, slot: u64) -> Option<Place> {
        let found = self.by_slot.get(&slot)?;
        Some(Place {
            key: Arc::clone(&found.key),
            channel: Arc::clone(&found.channel),
            buffer: found.buffer,
        })
    }

    /// It is asked of the server by this request.
    pub(crate) fn on_asked(&mut self, slot: u64, request_id: u64) {
        if let Some(found) = self.by_slot.get_mut(&slot) {
            found.request_id = Some(request_id);
            self.by_request.insert(request_id, slot);
        }
    }

    /// The server has made it: another one of the same place has ended with that.
    pub(crate) fn on_made(&mut self, slot: u64) {
        let Some(found) = self.by_slot.get_mut(&slot) else {
            return;
        };
        if let Some(reply) = found.reply.take() {
            drop(reply.send(Ok(())));
        }
        let (key, channel) = (Arc::clone(&found.key), Arc::clone(&found.channel));
        let older: Vec<u64> = self
            .by_slot
            .range(..slot)
            .filter(|(_, it)| it.key == key && it.channel == channel)
            .map(|(slot, _)| *slot)
            .collect();
        for slot in older {
            self.end(slot, SubscriptionError::Replaced);
        }
    }

    /// Ends one, and tells why.
    pub(crate) fn end(&mut self, slot: u64, error: SubscriptionError) {
        let Some(ended) = self.remove(slot) else {
            return;
        };
        drop(ended.end.send(error));
    }

    /// One could not be made.
    pub(crate) fn on_refused(&mut self, slot: u64, error: RequestError) {
        let Some(ended) = self.remove(slot) else {
            return;
        };
        match (ended.reply, error) {
            (Some(reply), error) => drop(reply.send(Err(error))),
            (None, RequestError::Refused(refusal)) => {
                drop(ended.end.send(SubscriptionError::Ended(refusal)));
            }
            (None, error) => {
                let reason = error.to_string().into();
                drop(ended.end.send(SubscriptionError::ConnectionLost { reason }));
            }
        }
    }

    /// Ends one whose reader is gone. The place that the server is to be told of, if it knows it
    /// and no other subscription has it.
    pub(crate) fn leave(&mut self, slot: u64) -> Option<Place> {
        let place = self.place(slot)?;
        let left = self.remove(slot)?;
        let has_other = self
            .by_slot
            .values()
            .any(|it| it.key == place.key && it.channel == place.channel);
        (left.request_id.is_some() && !has_other).then_some(place)
    }

    fn remove(&mut self, slot: u64) -> Option<Subscription> {
        let removed = self.by_slot.remove(&slot)?;
        if let Some(request_id) = removed.request_id {
            self.by_request.remove(&request_id);
        }
        Some(removed)
    }

    /// The slot that this request made.
    pub(crate) fn of_request(&self, request_id: u64) -> Option<u64> {
        self.by_request.get(&request_id).copied()
    }

    /// Hands an event to its reader, or drops it when there is no room.
    pub(crate) fn on_event(&mut self, request_id: u64, payload: &[u8]) {
        // One that has ended here may still be told of.
        let Some(slot) = self.of_request(request_id) else {
            return;
        };
        let Some(mut event) = Event::read(payload) else {
            let shown: String = String::from_utf8_lossy(payload).chars().take(100).collect();
            let reason = shown.into();
            self.end(slot, SubscriptionError::InvalidEvent { reason });
            return;
        };
        let Some(found) = self.by_slot.get_mut(&slot) else {
            return;
        };
        event.dropped = event.dropped.saturating_add(found.dropped);
        event.after_reconnect = found.is_after_reconnect;
        let dropped = event.dropped;
        match found.events.try_send(event) {
            Ok(()) => {
                found.dropped = 0;
                found.is_after_reconnect = false;
            }
            Err(_full) => found.dropped = dropped.saturating_add(1),
        }
    }

    /// The connection is gone; all are to be asked for again.
    pub(crate) fn detach(&mut self) {
        self.by_request.clear();
        for found in self.by_slot.values_mut() {
            found.request_id = None;
            found.is_after_reconnect = found.reply.is_none();
        }
    }

    /// Those that nobody is told of yet fail; all end.
    pub(crate) fn end_all(&mut self, reason: &Arc<str>) {
        for slot in self.slots() {
            self.on_refused(slot, RequestError::lost(false, reason));
        }
    }

    /// Those that nobody is told of yet fail.
    pub(crate) fn refuse_new(&mut self, reason: &Arc<str>) {
        for slot in self.slots() {
            if self.by_slot.get(&slot).is_some_and(|it| it.reply.is_some()) {
                self.on_refused(slot, RequestError::lost(false, reason));
            }
        }
    }
}
