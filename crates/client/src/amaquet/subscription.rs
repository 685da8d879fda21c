//! Events of one channel, as a stream.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tanda_wire::amaquet::json::Json;
use tokio::sync::{mpsc, oneshot};

use super::error::SubscriptionError;
use super::payload::Payload;
use super::reply;
use super::shell::handle::{Command, Handle};

/// A message that was published.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The channel it was published to: also where a pattern was subscribed to.
    pub channel: String,
    /// What it holds.
    pub payload: Payload,
    /// When it was published (RFC 3339).
    pub published_at: String,
    /// How many events this subscription has lost since the last one, in the server because the
    /// connection was too slow or here because nobody read them. What was published while there
    /// was no connection is not counted.
    pub dropped: u64,
    /// The first event after the connection was lost and opened again.
    pub after_reconnect: bool,
}

impl Event {
    /// Reads the payload of an event.
    pub(crate) fn read(payload: &[u8]) -> Option<Self> {
        let object = Json::parse(payload).ok()?;
        Some(Self {
            channel: reply::text(object, "channel")?,
            payload: Payload::of(reply::field(object, "payload")?).ok()?,
            published_at: reply::text(object, "published_at")?,
            dropped: reply::field(object, "dropped").map_or(Some(0), Json::as_u64)?,
            after_reconnect: false,
        })
    }
}

/// Where events come from.
#[derive(Debug)]
pub(crate) struct Receiving {
    pub(crate) events: mpsc::Receiver<Event>,
    /// Why no more come, once they have ended.
    pub(crate) end: oneshot::Receiver<SubscriptionError>,
}

/// Events of one channel, or of all channels that fit a pattern. A [`Stream`], and read without one
/// by [`next`](Self::next).
///
/// Publishing never waits for subscribers: events that nobody reads are dropped once the buffer is
/// full, and counted. It survives the loss of the connection when the client reconnects; what was
/// published meanwhile is lost. It ends with an error, which is its last item; dropping it
/// unsubscribes.
pub struct Subscription {
    handle: Handle,
    slot: u64,
    key: String,
    channel: String,
    receiving: Receiving,
    is_ended: bool,
}

impl Subscription {
    pub(crate) fn new(
        handle: Handle,
        slot: u64,
        (key, channel): (String, String),
        receiving: Receiving,
    ) -> Self {
        Self {
            handle,
            slot,
            key,
            channel,
            receiving,
            is_ended: false,
        }
    }

    /// The key: the topic exchange.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The channel or pattern.
    #[must_use]
    pub fn channel(&self) -> &str {
        &self.channel
    }

    /// The next event; `None` when the subscription has ended. Nothing is lost when the future is
    /// dropped.
    pub async fn next(&mut self) -> Option<Result<Event, SubscriptionError>> {
        poll_fn(|cx| self.poll_event(cx)).await
    }

    fn poll_event(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Event, SubscriptionError>>> {
        if self.is_ended {
            return Poll::Ready(None);
        }
        if let Some(event) = ready!(self.receiving.events.poll_recv(cx)) {
            return Poll::Ready(Some(Ok(event)));
        }
        self.is_ended = true;
        Poll::Ready(self.receiving.end.try_recv().ok().map(Err))
    }
}

impl Stream for Subscription {
    type Item = Result<Event, SubscriptionError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_event(cx)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.handle.send(Command::Unsubscribe(self.slot));
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("key", &self.key)
            .field("channel", &self.channel)
            .finish_non_exhaustive()
    }
}
