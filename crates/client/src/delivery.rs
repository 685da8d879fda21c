//! A message on its way out.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tanda_wire::cursor::{DecodeError, Reader};
use tanda_wire::fila::Headers;
use tanda_wire::fila::delivery::{DeliveryMessage, DeliveryMeta};
use tanda_wire::fila::field::Field;

use crate::error::RequestError;
use crate::message_id::MessageId;
use crate::settle::{Extension, Settlement};
use crate::subscription::Source;

/// A leased message. It is this consumer's until its lease ends
/// ([`lease_expires_at_ms`](Self::lease_expires_at_ms)): settle it before, or extend the lease.
///
/// Its texts and payload are slices of what was read from the connection, without a copy. Keeping a
/// delivery, or a payload taken from it, keeps up to 128 KiB of its neighbours in memory: copy what
/// is to be kept for long.
///
/// Dropping a delivery without settling it gives its place in the prefetch back; the broker
/// delivers the message again when the lease ends.
pub struct Delivery {
    meta: DeliveryMeta,
    source: Arc<Source>,
    /// Headers map and payload as on the wire, and the fairness key.
    body: Bytes,
    headers_bytes: u32,
    payload_end: u32,
    /// `None`: the queue of the subscription.
    queue: Option<Arc<str>>,
    is_released: AtomicBool,
}

impl Delivery {
    /// Takes the message at `offset` of a `Delivery` body; also returns the offset of the next.
    pub(crate) fn decode(
        source: &Arc<Source>,
        frame: &Bytes,
        offset: usize,
    ) -> Result<(Self, usize), DecodeError> {
        let rest = frame.get(offset..).unwrap_or_default();
        let mut reader = Reader::new(rest);
        let message = DeliveryMessage::read(&mut reader)?;
        // The layout ends the content with the payload and puts the fairness key after it.
        let content_start = message.payload_start as usize - 4 - message.headers.as_bytes().len();
        let body_end = content_start + message.content.len() + 2 + message.fairness_key.len();
        let queue = (message.queue != source.queue()).then(|| Arc::from(message.queue));
        let delivery = Self {
            meta: message.meta,
            source: Arc::clone(source),
            body: frame.slice(offset + content_start..offset + body_end),
            headers_bytes: bounded(message.headers.as_bytes().len()),
            payload_end: bounded(message.content.len()),
            queue,
            is_released: AtomicBool::new(false),
        };
        Ok((delivery, offset + reader.offset()))
    }

    /// The message's ID.
    #[must_use]
    pub const fn id(&self) -> MessageId {
        MessageId::from_bytes(self.meta.message_id)
    }

    /// The queue it came from.
    #[must_use]
    pub fn queue(&self) -> &str {
        self.queue.as_deref().unwrap_or_else(|| self.source.queue())
    }

    /// Its headers, in the order they were sent.
    #[must_use]
    pub fn headers(&self) -> Headers<'_> {
        let bytes = self
            .body
            .get(..self.headers_bytes as usize)
            .unwrap_or_default();
        Headers::decode(bytes).unwrap_or_default()
    }

    /// The value of a header, if it is there.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().find(name)
    }

    /// Its content.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        self.body
            .get(self.payload_start()..self.payload_end as usize)
            .unwrap_or_default()
    }

    /// Its content, to be kept, without a copy.
    #[must_use]
    pub fn payload_bytes(&self) -> Bytes {
        self.body
            .slice(self.payload_start()..self.payload_end as usize)
    }

    /// Its fairness key; empty when it has none.
    #[must_use]
    pub fn fairness_key(&self) -> &str {
        let bytes = self
            .body
            .get(self.payload_end as usize + 2..)
            .unwrap_or_default();
        // It was checked when the delivery was made.
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    /// Its fairness weight.
    #[must_use]
    pub const fn weight(&self) -> u32 {
        self.meta.weight
    }

    /// Which delivery of the message this is: 1 for the first, and for the first after a redrive.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.meta.attempt_count
    }

    /// How often it came back from the dead-letter queue.
    #[must_use]
    pub const fn redrives(&self) -> u32 {
        self.meta.redrive_count
    }

    /// When it was enqueued, in Unix milliseconds.
    #[must_use]
    pub const fn enqueued_at_ms(&self) -> u64 {
        self.meta.enqueued_at_ms
    }

    /// When it was leased, in Unix milliseconds.
    #[must_use]
    pub const fn leased_at_ms(&self) -> u64 {
        self.meta.leased_at_ms
    }

    /// When the lease ends, in Unix milliseconds; it may end later, never earlier.
    #[must_use]
    pub const fn lease_expires_at_ms(&self) -> u64 {
        self.meta.lease_expires_at_ms
    }

    /// The message is done: the broker forgets it.
    ///
    /// # Errors
    /// `MessageNotFound` when the lease had ended; the message may be with another consumer.
    pub async fn ack(&self) -> Result<(), RequestError> {
        self.settle(Settlement::Ack).await
    }

    /// The message failed. The queue's `on_failure` script or its retry policy decides what comes
    /// next; the script sees `error`, which holds at most 65,535 bytes.
    ///
    /// # Errors
    /// As for [`ack`](Self::ack).
    pub async fn nack(&self, error: &str) -> Result<(), RequestError> {
        self.settle(Settlement::Nack {
            error,
            retry_after: None,
        })
        .await
    }

    /// The message failed and, if it is retried, is not to come before this delay. The queue's
    /// `on_failure` script still decides whether; the delay replaces its and the policy's.
    ///
    /// # Errors
    /// As for [`ack`](Self::ack).
    pub async fn retry_after(&self, delay: Duration, error: &str) -> Result<(), RequestError> {
        self.settle(Settlement::Nack {
            error,
            retry_after: Some(delay),
        })
        .await
    }

    /// Lets the lease end this long after the broker receives the request, and returns that time in
    /// Unix milliseconds. It may also shorten the lease.
    ///
    /// # Errors
    /// `MessageNotFound` when the lease had ended: stop working on the message, another consumer
    /// may have it.
    pub async fn extend_lease(&self, by: Duration) -> Result<u64, RequestError> {
        Extension::of(self, by).send(self.source.handle()).await
    }

    /// Gives the place in the prefetch back, once.
    pub(crate) fn release(&self) {
        if self.mark_released() {
            self.source.release(1);
        }
    }

    /// Whether its place in the prefetch is given back by this call; the caller then tells
    /// [`source`](Self::source).
    pub(crate) fn mark_released(&self) -> bool {
        !self.is_released.swap(true, Ordering::Relaxed)
    }

    pub(crate) const fn source(&self) -> &Arc<Source> {
        &self.source
    }

    async fn settle(&self, settlement: Settlement<'_>) -> Result<(), RequestError> {
        let result = settlement.send_one(self).await;
        // A refusal too says that the message is not ours any more.
        if matches!(result, Ok(()) | Err(RequestError::Rejected(_))) {
            self.release();
        }
        result
    }

    const fn payload_start(&self) -> usize {
        self.headers_bytes as usize + 4
    }
}

/// Offsets within a message fit: a frame body of 4 GiB or more is refused before.
fn bounded(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.release();
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("id", &self.id())
            .field("queue", &self.queue())
            .field("payload_bytes", &self.payload().len())
            .field("attempt", &self.attempt())
            .finish_non_exhaustive()
    }
}
