//! Receiving messages, and settling them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::{mpsc, oneshot};

use crate::core::CreditWindow;
use crate::delivery::Delivery;
use crate::error::RequestError;
use crate::message_id::MessageId;
use crate::settle::{Settled, encode_acks, release_settled};
use crate::shell::Handle;
use crate::shell::job::{Job, Overload, SubscribeJob};
use crate::shell::subscriptions::{Flow, NewSubscription, SlotId};
use crate::subscription::{Source, Subscription};
use crate::throttle::{Throttle, check_all};

/// Unread deliveries of an unlimited subscription, in bytes, when nothing else is said.
const BUFFER_BYTES_MAX_DEFAULT: usize = 256 * 1024 * 1024;
/// Unsettled messages of a subscription when nothing else is said.
const PREFETCH_DEFAULT: u32 = 100;

/// Receives and settles messages. Cheap to clone; clones share the connection.
///
/// ```no_run
/// use tanda_client::Client;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let consumer = Client::connect("127.0.0.1:5555").await?.consumer();
/// let mut orders = consumer.subscribe("orders").prefetch(100).open().await?;
/// while let Some(delivery) = orders.next().await {
///     let delivery = delivery?;
///     match handle(delivery.payload()) {
///         Ok(()) => delivery.ack().await?,
///         Err(error) => delivery.nack(&error).await?,
///     }
/// }
/// # Ok(())
/// # }
/// # fn handle(_: &[u8]) -> Result<(), String> { Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Consumer {
    handle: Handle,
    newest_slot: Arc<AtomicU64>,
}

impl Consumer {
    pub(crate) const fn new(handle: Handle, newest_slot: Arc<AtomicU64>) -> Self {
        Self {
            handle,
            newest_slot,
        }
    }

    /// Begins a subscription to a queue; [`open`](Subscribe::open) makes it. A dead-letter queue is
    /// read like any other.
    pub fn subscribe(&self, queue: impl Into<Arc<str>>) -> Subscribe {
        Subscribe {
            consumer: self.clone(),
            queue: queue.into(),
            prefetch: Some(PREFETCH_DEFAULT),
            messages_max: None,
            buffer_bytes_max: BUFFER_BYTES_MAX_DEFAULT,
            throttles: Vec::new(),
        }
    }

    /// Acknowledges messages in one request, from any queues. One result per message, in order.
    pub async fn ack_batch(&self, deliveries: &[Delivery]) -> Vec<Result<(), RequestError>> {
        let submitted = self.submit_acks(deliveries).await;
        let results = match submitted {
            Ok(settled) => settled.await,
            Err(error) => vec![Err(error); deliveries.len()],
        };
        release_settled(deliveries, &results);
        results
    }

    /// Sends acknowledgements in one request without waiting for the answer. The places of these
    /// messages in the prefetch are given back when the deliveries are dropped.
    ///
    /// # Errors
    /// When the client is closed.
    pub async fn submit_acks(&self, deliveries: &[Delivery]) -> Result<Settled, RequestError> {
        let messages = deliveries
            .iter()
            .map(|delivery| (delivery.queue(), delivery.id()));
        let items = encode_acks(messages)?;
        Settled::submit(&self.handle, items).await
    }

    /// Acknowledges messages by queue and ID, from this or an earlier connection, without waiting
    /// for the answer.
    ///
    /// # Errors
    /// When a queue name does not fit the protocol, or the client is closed.
    pub async fn submit_ack_ids<'a>(
        &self,
        messages: impl IntoIterator<Item = (&'a str, MessageId)>,
    ) -> Result<Settled, RequestError> {
        let items = encode_acks(messages)?;
        Settled::submit(&self.handle, items).await
    }
}

/// A subscription that is about to be made.
#[derive(Debug, Clone)]
#[must_use = "open() makes the subscription"]
pub struct Subscribe {
    consumer: Consumer,
    queue: Arc<str>,
    prefetch: Option<u32>,
    messages_max: Option<u64>,
    buffer_bytes_max: usize,
    throttles: Vec<Throttle>,
}

impl Subscribe {
    /// The most messages that are delivered and not yet settled; 100 by default, 0 counts as 1.
    /// After a reconnect it may be passed by one message.
    pub const fn prefetch(mut self, messages: u32) -> Self {
        self.prefetch = Some(messages);
        self
    }

    /// Asks for at most so many messages in all, so that none is leased that will not be read. The
    /// subscription does not end by itself. After a reconnect it may be passed by one message. No
    /// bound by default, and none on an [`unlimited`](Self::unlimited) subscription.
    pub const fn messages_max(mut self, messages: u64) -> Self {
        self.messages_max = Some(messages);
        self
    }

    /// No bound on unsettled messages: the server sends as fast as it can, also what other
    /// consumers could do at once. For a reader that settles everything at once. What it has not
    /// read is bounded by [`buffer_bytes_max`](Self::buffer_bytes_max).
    pub const fn unlimited(mut self) -> Self {
        self.prefetch = None;
        self
    }

    /// The most bytes an unlimited subscription keeps unread (256 MiB by default). Over it the
    /// subscription ends with [`BufferFull`](crate::SubscriptionError::BufferFull).
    pub const fn buffer_bytes_max(mut self, bytes: usize) -> Self {
        self.buffer_bytes_max = bytes;
        self
    }

    /// Declares a throttle for as long as the subscription stands. It applies to all messages of
    /// the queue, whoever receives them. To change it, subscribe again.
    pub fn throttle(mut self, throttle: Throttle) -> Self {
        self.throttles.push(throttle);
        self
    }

    /// Makes the subscription.
    ///
    /// # Errors
    /// When the server refuses it (`QueueNotFound`, `Forbidden`, `InvalidThrottle`,
    /// `ThrottleConflict`, `NotLeader`), or there is no connection.
    pub async fn open(self) -> Result<Subscription, RequestError> {
        let Self {
            consumer,
            queue,
            prefetch,
            messages_max,
            buffer_bytes_max,
            throttles,
        } = self;
        check_all(&throttles)?;
        let handle = consumer.handle;
        let slot = SlotId(consumer.newest_slot.fetch_add(1, Ordering::Relaxed));
        let flow = Arc::new(Flow {
            window: prefetch.map(|prefetch| match messages_max {
                Some(messages) => CreditWindow::with_total(prefetch, messages),
                None => CreditWindow::new(prefetch),
            }),
            buffered_bytes: AtomicUsize::new(0),
            buffer_bytes_max,
        });
        let (sender, incoming) = mpsc::unbounded_channel();
        let (reply, answer) = oneshot::channel();
        let source = Arc::new(Source {
            handle: handle.clone(),
            slot,
            queue: Arc::clone(&queue),
            flow: Arc::clone(&flow),
        });
        let new = NewSubscription {
            slot,
            queue,
            throttles,
            flow,
            incoming: sender,
        };
        let overload = Overload::new(handle.overload());
        handle.send_job(Job::Subscribe(Box::new(SubscribeJob {
            new,
            reply,
            overload,
        })));
        answer
            .await
            .unwrap_or_else(|_dropped| Err(RequestError::closed(false)))?;
        Ok(Subscription::new(source, incoming))
    }
}
