//! The messages of one subscription, as a stream.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use tanda_wire::fila::delivery::DeliveryBatch;
use tokio::sync::mpsc;

use crate::delivery::Delivery;
use crate::error::SubscriptionError;
use crate::shell::Handle;
use crate::shell::handle::Command;
use crate::shell::subscriptions::{Flow, Incoming, SlotId};

/// Where deliveries come from: what they need to settle themselves and to give credit back.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) handle: Handle,
    pub(crate) slot: SlotId,
    pub(crate) queue: Arc<str>,
    pub(crate) flow: Arc<Flow>,
}

impl Source {
    pub(crate) const fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(crate) fn queue(&self) -> &str {
        &self.queue
    }

    /// So many messages were settled or dropped.
    pub(crate) fn release(&self, messages: u64) {
        if let Some(window) = &self.flow.window
            && window.release(messages)
        {
            self.handle.send(Command::Credit(self.slot));
        }
    }

    /// The reader has taken `taken` messages in all and waits for more.
    fn wait(&self, taken: u64) {
        if let Some(window) = &self.flow.window
            && window.wait(taken)
        {
            self.handle.send(Command::Credit(self.slot));
        }
    }
}

/// A frame that is being read.
#[derive(Debug)]
struct Reading {
    frame: Bytes,
    offset: usize,
    left: u32,
}

/// The messages of one subscription. It is a [`Stream`], and can be read without one by
/// [`next`](Self::next) and [`next_batch`](Self::next_batch).
///
/// It survives the loss of the connection when the client reconnects. It ends after
/// [`cancel`](Self::cancel), or with an error, which is its last item. Dropping it cancels it; what
/// was delivered but not read comes again when its leases end.
pub struct Subscription {
    source: Arc<Source>,
    incoming: mpsc::UnboundedReceiver<Incoming>,
    reading: Option<Reading>,
    /// Messages in all frames taken from `incoming`.
    taken: u64,
    is_ended: bool,
}

impl Subscription {
    pub(crate) const fn new(
        source: Arc<Source>,
        incoming: mpsc::UnboundedReceiver<Incoming>,
    ) -> Self {
        Self {
            source,
            incoming,
            reading: None,
            taken: 0,
            is_ended: false,
        }
    }

    /// The queue it reads.
    #[must_use]
    pub fn queue(&self) -> &str {
        self.source.queue()
    }

    /// The next message; `None` when the subscription has ended. Nothing is lost when the future
    /// is dropped.
    pub async fn next(&mut self) -> Option<Result<Delivery, SubscriptionError>> {
        poll_fn(|cx| self.poll_delivery(cx)).await
    }

    /// Waits for a message, then takes what has arrived, up to `max` messages, which is at least 1.
    /// Cheaper than one at a time when many arrive. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// When the subscription ended with an error and everything before it was read. An empty list
    /// says that it ended without one.
    pub async fn next_batch(&mut self, max: usize) -> Result<Vec<Delivery>, SubscriptionError> {
        let first = match self.next().await {
            None => return Ok(Vec::new()),
            Some(first) => first?,
        };
        let ready = self
            .reading
            .as_ref()
            .map_or(0, |reading| reading.left as usize);
        let mut batch = Vec::with_capacity(max.min(ready + 1));
        batch.push(first);
        while batch.len() < max {
            match self.take_ready() {
                Some(Ok(delivery)) => batch.push(delivery),
                // The error, or the next frame, is for the next call.
                Some(Err(error)) => return self.end_after(batch, error),
                None => break,
            }
        }
        Ok(batch)
    }

    /// Ends the subscription. What has arrived can still be read; then the stream ends.
    pub fn cancel(&mut self) {
        self.source.handle.send(Command::Cancel(self.source.slot));
    }

    fn poll_delivery(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Delivery, SubscriptionError>>> {
        loop {
            if let Some(delivery) = self.take_read() {
                return Poll::Ready(Some(delivery));
            }
            if self.is_ended {
                return Poll::Ready(None);
            }
            if self.incoming.is_empty() {
                self.source.wait(self.taken);
            }
            match ready!(self.incoming.poll_recv(cx)) {
                Some(incoming) => {
                    if let Err(error) = self.begin(incoming) {
                        return Poll::Ready(Some(Err(error)));
                    }
                }
                None => self.is_ended = true,
            }
        }
    }

    /// The next message that is here already.
    fn take_ready(&mut self) -> Option<Result<Delivery, SubscriptionError>> {
        loop {
            if let Some(delivery) = self.take_read() {
                return Some(delivery);
            }
            if self.is_ended {
                return None;
            }
            let incoming = self.incoming.try_recv().ok()?;
            if let Err(error) = self.begin(incoming) {
                return Some(Err(error));
            }
        }
    }

    /// The next message of the frame that is being read.
    fn take_read(&mut self) -> Option<Result<Delivery, SubscriptionError>> {
        let reading = self.reading.as_mut()?;
        let Some(left) = reading.left.checked_sub(1) else {
            self.reading = None;
            return None;
        };
        reading.left = left;
        match Delivery::decode(&self.source, &reading.frame, reading.offset) {
            Ok((delivery, next)) => {
                reading.offset = next;
                Some(Ok(delivery))
            }
            Err(error) => {
                let reason = Arc::from(error.to_string());
                self.cancel();
                Some(Err(self.end(SubscriptionError::InvalidDelivery { reason })))
            }
        }
    }

    fn begin(&mut self, incoming: Incoming) -> Result<(), SubscriptionError> {
        match incoming {
            Incoming::Frame(frame) => {
                self.source
                    .flow
                    .buffered_bytes
                    .fetch_sub(frame.len(), Ordering::Relaxed);
                // The connection has checked the count already.
                let left =
                    DeliveryBatch::decode_header(&frame).map_or(0, |batch| batch.item_count());
                self.taken += u64::from(left);
                self.reading = Some(Reading {
                    frame,
                    offset: COUNT_BYTES,
                    left,
                });
                Ok(())
            }
            Incoming::End(error) => Err(self.end(error)),
        }
    }

    fn end(&mut self, error: SubscriptionError) -> SubscriptionError {
        self.is_ended = true;
        self.reading = None;
        self.incoming.close();
        error
    }

    /// Keeps an error for the next call, because there are messages to return before it.
    fn end_after(
        &mut self,
        batch: Vec<Delivery>,
        error: SubscriptionError,
    ) -> Result<Vec<Delivery>, SubscriptionError> {
        self.is_ended = false;
        let (sender, incoming) = mpsc::unbounded_channel();
        // The receiver is here, so this cannot fail.
        drop(sender.send(Incoming::End(error)));
        self.incoming = incoming;
        Ok(batch)
    }
}

/// Bytes of the count at the front of the body.
const COUNT_BYTES: usize = 4;

impl Stream for Subscription {
    type Item = Result<Delivery, SubscriptionError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_delivery(cx)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("queue", &self.queue())
            .finish_non_exhaustive()
    }
}
