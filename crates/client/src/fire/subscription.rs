//! The messages of one subscription, as a stream.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio::sync::{mpsc, oneshot};

use super::delivery::Delivery;
use super::error::SubscriptionError;
use super::shell::handle::{Command, Handle};
use super::shell::job::Job;
use super::shell::subscriptions::Incoming;
use crate::core::CreditWindow;

/// Where deliveries come from: what they need to settle themselves and to give credit back.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) handle: Handle,
    pub(crate) slot: u64,
    /// By its program's name.
    pub(crate) queue: Arc<str>,
    pub(crate) no_ack: bool,
    pub(crate) window: Arc<CreditWindow>,
}

impl Source {
    /// A message was settled or dropped.
    pub(crate) fn release(&self) {
        if self.window.release(1) {
            self.handle.send(Command::Job(Job::Credit(self.slot)));
        }
    }

    /// The reader has taken `taken` messages in all and waits for more.
    fn wait(&self, taken: u64) {
        if self.window.wait(taken) {
            self.handle.send(Command::Job(Job::Credit(self.slot)));
        }
    }
}

/// Messages of one queue, in the order they arrive. A [`Stream`], and read without one by
/// [`next`](Self::next).
///
/// It survives the loss of the connection when the client reconnects. It ends after
/// [`cancel`](Self::cancel), or with an error, which is its last item. Dropping it cancels it; what
/// was delivered but not read goes back to the queue.
pub struct Subscription {
    source: Arc<Source>,
    incoming: mpsc::UnboundedReceiver<Incoming>,
    /// Messages taken from `incoming`.
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
            taken: 0,
            is_ended: false,
        }
    }

    /// The queue it reads, as it was named when it was opened.
    #[must_use]
    pub fn queue(&self) -> &str {
        &self.source.queue
    }

    /// The next message; `None` when the subscription has ended. Nothing is lost when the future
    /// is dropped.
    pub async fn next(&mut self) -> Option<Result<Delivery, SubscriptionError>> {
        poll_fn(|cx| self.poll_delivery(cx)).await
    }

    /// Ends the subscription. What has arrived can still be read; then the stream ends.
    pub fn cancel(&mut self) {
        let slot = self.source.slot;
        self.source.handle.send(Command::Cancel(slot, None));
    }

    /// Ends the subscription and waits until the server sends no more. What has arrived and was not
    /// read goes back to the queue.
    pub async fn unsubscribe(mut self) {
        self.give_back_unread();
        let (sender, ended) = oneshot::channel();
        let slot = self.source.slot;
        self.source.handle.send(Command::Cancel(slot, Some(sender)));
        // The sender is dropped, never used: an error is the sign that it has ended.
        drop(ended.await);
    }

    fn poll_delivery(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Delivery, SubscriptionError>>> {
        loop {
            if self.is_ended {
                return Poll::Ready(None);
            }
            if self.incoming.is_empty() {
                self.source.wait(self.taken);
            }
            match ready!(self.incoming.poll_recv(cx)) {
                Some(Incoming::Message {
                    generation,
                    received,
                }) => {
                    self.taken += 1;
                    let delivery = Delivery::of(&self.source, generation, received);
                    // A stale one comes again; dropping it makes room for that.
                    if !delivery.is_stale() {
                        return Poll::Ready(Some(Ok(delivery)));
                    }
                }
                Some(Incoming::End(error)) => {
                    self.is_ended = true;
                    return Poll::Ready(Some(Err(error)));
                }
                None => self.is_ended = true,
            }
        }
    }

    /// Puts what nobody will read back into the queue.
    fn give_back_unread(&mut self) {
        self.incoming.close();
        while let Ok(incoming) = self.incoming.try_recv() {
            if let Incoming::Message {
                generation,
                received,
            } = incoming
            {
                let delivery = Delivery::of(&self.source, generation, received);
                // One that is stale or needs no settlement goes nowhere.
                drop(delivery.nack());
            }
        }
    }
}

impl Stream for Subscription {
    type Item = Result<Delivery, SubscriptionError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_delivery(cx)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.cancel();
        self.give_back_unread();
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("queue", &self.queue())
            .finish_non_exhaustive()
    }
}
