//! Making a subscription.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;

use super::error::RequestError;
use super::fields::Fields;
use super::shell::handle::Handle;
use super::shell::job::Call;
use super::shell::subscriptions::NewSubscription;
use super::subscription::{Source, Subscription};
use crate::core::CreditWindow;

/// Messages delivered and neither settled nor dropped, when nothing else is said.
const PREFETCH_DEFAULT: u32 = 100;

/// A subscription that is about to be made.
#[derive(Debug, Clone)]
#[must_use = "open() makes the subscription"]
pub struct Subscribe {
    handle: Handle,
    newest_slot: Arc<AtomicU64>,
    queue: Arc<str>,
    prefetch: u32,
    messages_max: Option<u64>,
    no_ack: bool,
    is_exclusive: bool,
    tag: String,
    arguments: Fields,
}

impl Subscribe {
    pub(super) const fn new(handle: Handle, newest_slot: Arc<AtomicU64>, queue: Arc<str>) -> Self {
        Self {
            handle,
            newest_slot,
            queue,
            prefetch: PREFETCH_DEFAULT,
            messages_max: None,
            no_ack: false,
            is_exclusive: false,
            tag: String::new(),
            arguments: Fields::new(),
        }
    }

    /// The most messages that are delivered and neither settled nor dropped; 100 by default, 0
    /// counts as 1. The server is given credit for more when half of them are done. After a
    /// reconnect it may be passed by one message.
    pub const fn prefetch(mut self, messages: u32) -> Self {
        self.prefetch = messages;
        self
    }

    /// Asks for at most so many messages in all, so that none is delivered that will not be read.
    /// The subscription does not end by itself. After a reconnect it may be passed by one message.
    pub const fn messages_max(mut self, messages: u64) -> Self {
        self.messages_max = Some(messages);
        self
    }

    /// Messages count as acknowledged once they are sent, and are not to be settled. Those on their
    /// way when the connection is lost are lost.
    pub const fn no_ack(mut self) -> Self {
        self.no_ack = true;
        self
    }

    /// Fails when the queue has other consumers, and keeps them out.
    pub const fn exclusive(mut self) -> Self {
        self.is_exclusive = true;
        self
    }

    /// The consumer's tag, shown by the server to people.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tag = tag.into();
        self
    }

    /// More settings, such as `x-priority`.
    pub fn arguments(mut self, arguments: Fields) -> Self {
        self.arguments = arguments;
        self
    }

    /// Makes the subscription.
    ///
    /// # Errors
    /// 404 when there is no such queue, 405 when the queue or its consumer is exclusive, 403
    /// without the permission for it.
    pub async fn open(self) -> Result<Subscription, RequestError> {
        let slot = self.newest_slot.fetch_add(1, Ordering::Relaxed) + 1;
        let window = Arc::new(match self.messages_max {
            Some(messages) => CreditWindow::with_total(self.prefetch, messages),
            None => CreditWindow::new(self.prefetch),
        });
        let (sender, incoming) = mpsc::unbounded_channel();
        let source = Arc::new(Source {
            handle: self.handle.clone(),
            slot,
            queue: Arc::clone(&self.queue),
            no_ack: self.no_ack,
            window: Arc::clone(&window),
        });
        let new = NewSubscription {
            slot,
            queue: self.queue,
            no_ack: self.no_ack,
            is_exclusive: self.is_exclusive,
            tag: self.tag,
            arguments: self.arguments.encode(),
            window,
            incoming: sender,
        };
        self.handle.call(Call::Subscribe(new)).await?;
        Ok(Subscription::new(source, incoming))
    }
}
