//! A message on its way out.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::core::{Content, Received};
use super::error::RequestError;
use super::shell::handle::Handle;
use super::shell::job::{SettleKind, Settling};
use super::subscription::Source;

/// Who it came for.
enum Origin {
    Subscription(Arc<Source>),
    Get { handle: Handle, no_ack: bool },
}

/// A message that is this client's until it is settled or the connection ends. It has all of
/// [`Content`]: exchange, key, properties, headers, body.
///
/// Dropping a delivery without settling it makes room for another one, but the message stays
/// unsettled on the server until the connection ends, or until a later delivery is settled together
/// with [all before it](Self::ack_all).
pub struct Delivery {
    from: Origin,
    /// The connection it came on.
    generation: u64,
    received: Received,
    is_settled: AtomicBool,
    is_released: AtomicBool,
}

impl Delivery {
    pub(crate) fn of(source: &Arc<Source>, generation: u64, received: Received) -> Self {
        Self::new(
            Origin::Subscription(Arc::clone(source)),
            generation,
            received,
        )
    }

    pub(crate) const fn of_get(
        handle: Handle,
        generation: u64,
        received: Received,
        no_ack: bool,
    ) -> Self {
        Self::new(Origin::Get { handle, no_ack }, generation, received)
    }

    const fn new(from: Origin, generation: u64, received: Received) -> Self {
        Self {
            from,
            generation,
            received,
            is_settled: AtomicBool::new(false),
            is_released: AtomicBool::new(false),
        }
    }

    /// Its tag on the connection it came on.
    #[must_use]
    pub const fn tag(&self) -> u64 {
        self.received.tag
    }

    /// Whether it was delivered before and not acknowledged.
    #[must_use]
    pub const fn redelivered(&self) -> bool {
        self.received.redelivered
    }

    /// Its exchange, key, properties, headers and body.
    #[must_use]
    pub const fn content(&self) -> &Content {
        &self.received.content
    }

    /// The message is done: the broker forgets it.
    ///
    /// # Errors
    /// [`StaleDelivery`](RequestError::StaleDelivery) when its connection was lost,
    /// [`AlreadySettled`](RequestError::AlreadySettled); nothing is sent then.
    pub fn ack(&self) -> Result<(), RequestError> {
        self.settle(SettleKind::Ack, false)
    }

    /// This message and all that came before it on the connection, for any subscription, are done.
    ///
    /// # Errors
    /// As for [`ack`](Self::ack).
    pub fn ack_all(&self) -> Result<(), RequestError> {
        self.settle(SettleKind::Ack, true)
    }

    /// The message goes back to its queue and is delivered again.
    ///
    /// # Errors
    /// As for [`ack`](Self::ack).
    pub fn nack(&self) -> Result<(), RequestError> {
        self.settle(SettleKind::Nack { requeue: true }, false)
    }

    /// This message and all that came before it on the connection, for any subscription, go back.
    ///
    /// # Errors
    /// As for [`ack`](Self::ack).
    pub fn nack_all(&self) -> Result<(), RequestError> {
        self.settle(SettleKind::Nack { requeue: true }, true)
    }

    /// The message is dead-lettered where its queue has a dead-letter exchange, and dropped
    /// otherwise.
    ///
    /// # Errors
    /// As for [`ack`](Self::ack).
    pub fn reject(&self) -> Result<(), RequestError> {
        self.settle(SettleKind::Nack { requeue: false }, false)
    }

    /// Whether the connection it came on is gone, so that it comes again and cannot be settled. One
    /// that needs no settlement is never stale.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        !self.no_ack() && !self.handle().shared().is_current(self.generation)
    }

    fn settle(&self, kind: SettleKind, multiple: bool) -> Result<(), RequestError> {
        if self.no_ack() || self.is_settled.swap(true, Ordering::Relaxed) {
            return Err(RequestError::AlreadySettled);
        }
        let settled = self.handle().settle(Settling {
            generation: self.generation,
            tag: self.received.tag,
            multiple,
            kind,
        });
        // Whatever came of it, the message is not ours any more.
        self.release();
        settled
    }

    fn no_ack(&self) -> bool {
        match &self.from {
            Origin::Subscription(source) => source.no_ack,
            Origin::Get { no_ack, .. } => *no_ack,
        }
    }

    fn handle(&self) -> &Handle {
        match &self.from {
            Origin::Subscription(source) => &source.handle,
            Origin::Get { handle, .. } => handle,
        }
    }

    /// Gives the place in the prefetch back, once.
    fn release(&self) {
        if let Origin::Subscription(source) = &self.from
            && !self.is_released.swap(true, Ordering::Relaxed)
        {
            source.release();
        }
    }
}

impl Deref for Delivery {
    type Target = Content;

    fn deref(&self) -> &Content {
        self.content()
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.release();
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("tag", &self.tag())
            .field("redelivered", &self.redelivered())
            .field("content", self.content())
            .finish_non_exhaustive()
    }
}
