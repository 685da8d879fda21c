//! Receiving messages, and settling them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tanda_wire::fila::EncodeError;
use tanda_wire::fila::settle::{
    AckItem, AckWriter, ExtendItem, ExtendWriter, NackItem, NackWriter,
};
use tokio::sync::{mpsc, oneshot};

use crate::core::CreditWindow;
use crate::delivery::Delivery;
use crate::error::RequestError;
use crate::message::whole_ms;
use crate::message_id::MessageId;
use crate::shell::Handle;
use crate::shell::job::{Job, Overload, Reply, SettleJob, SettleKind, SettleResult, SubscribeJob};
use crate::shell::subscriptions::{Flow, NewSubscription, SlotId};
use crate::subscription::{Source, Subscription};
use crate::throttle::Throttle;

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
        self.settle_acks(items).await
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
        self.settle_acks(items).await
    }

    async fn settle_acks(&self, items: Items) -> Result<Settled, RequestError> {
        let count = items.count;
        if count == 0 {
            return Ok(Settled {
                result: None,
                count,
            });
        }
        let (reply, result) = oneshot::channel();
        settle(&self.handle, SettleKind::Ack, items, Reply::Many(reply)).await?;
        Ok(Settled {
            result: Some(result),
            count,
        })
    }
}

fn encode_acks<'a>(
    messages: impl IntoIterator<Item = (&'a str, MessageId)>,
) -> Result<Items, EncodeError> {
    let messages = messages.into_iter();
    let mut body = Vec::with_capacity(4 + messages.size_hint().0 * ACK_BYTES_LIKELY);
    let mut writer = AckWriter::new(&mut body);
    for (queue, id) in messages {
        writer.push(&AckItem {
            queue,
            message_id: *id.as_bytes(),
            queue_start: 0,
        })?;
    }
    let count = writer.finish() as usize;
    Ok(Items {
        body: Bytes::from(body),
        count,
    })
}

/// Bytes of an acknowledgement with a queue name of 14 bytes.
const ACK_BYTES_LIKELY: usize = 32;

/// Gives back the places in the prefetch of what was settled, at once for each subscription.
fn release_settled(deliveries: &[Delivery], results: &[Result<(), RequestError>]) {
    let settled = deliveries
        .iter()
        .zip(results)
        .filter(|(_, result)| match result {
            Ok(()) => true,
            // A refusal too says that the message is not ours any more.
            Err(error) => matches!(error, RequestError::Rejected(_)),
        });
    let mut run: Option<(&Arc<Source>, u64)> = None;
    for (delivery, _) in settled.filter(|(delivery, _)| delivery.mark_released()) {
        let source = delivery.source();
        run = match run {
            Some((same, count)) if Arc::ptr_eq(same, source) => Some((same, count + 1)),
            Some((other, count)) => {
                other.release(count);
                Some((source, 1))
            }
            None => Some((source, 1)),
        };
    }
    if let Some((source, count)) = run {
        source.release(count);
    }
}

/// A subscription that is about to be made.
#[derive(Debug, Clone)]
#[must_use = "open() makes the subscription"]
pub struct Subscribe {
    consumer: Consumer,
    queue: Arc<str>,
    prefetch: Option<u32>,
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

    /// Declares a throttle for as long as the subscription stands.
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
            buffer_bytes_max,
            throttles,
        } = self;
        let handle = consumer.handle;
        let slot = SlotId(consumer.newest_slot.fetch_add(1, Ordering::Relaxed));
        let flow = Arc::new(Flow {
            window: prefetch.map(CreditWindow::new),
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

/// Resolves when the broker has answered a batch of settlements: one result per message, in order.
#[derive(Debug)]
#[must_use = "without awaiting it, nobody knows whether the messages were settled"]
pub struct Settled {
    /// `None`: there was nothing to send.
    result: Option<oneshot::Receiver<Result<Vec<SettleResult>, RequestError>>>,
    count: usize,
}

impl Future for Settled {
    type Output = Vec<Result<(), RequestError>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(result) = &mut self.result else {
            return Poll::Ready(Vec::new());
        };
        let results = match Pin::new(result).poll(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(results) => {
                results.unwrap_or_else(|_dropped| Err(RequestError::closed(true)))
            }
        };
        Poll::Ready(match results {
            Ok(results) => results
                .into_iter()
                .map(|result| result.map(|_| ()))
                .collect(),
            Err(error) => vec![Err(error); self.count],
        })
    }
}

/// What a delivery is settled with.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Settlement<'a> {
    Ack,
    Nack {
        error: &'a str,
        retry_after: Option<Duration>,
    },
}

impl Settlement<'_> {
    /// Settles one delivery, and waits for the answer.
    pub(crate) async fn send_one(self, delivery: &Delivery) -> Result<(), RequestError> {
        let mut body = Vec::with_capacity(4 + ACK_BYTES_LIKELY);
        let kind = self.encode(delivery, &mut body)?;
        settle_one(delivery.source().handle(), kind, body)
            .await
            .map(|_| ())
    }

    fn encode(self, delivery: &Delivery, body: &mut Vec<u8>) -> Result<SettleKind, EncodeError> {
        let queue = delivery.queue();
        let message_id = *delivery.id().as_bytes();
        match self {
            Self::Ack => {
                let mut writer = AckWriter::new(body);
                writer.push(&AckItem {
                    queue,
                    message_id,
                    queue_start: 0,
                })?;
                writer.finish();
                Ok(SettleKind::Ack)
            }
            Self::Nack { error, retry_after } => {
                let mut writer = NackWriter::new(body);
                writer.push(&NackItem {
                    queue,
                    message_id,
                    error,
                    retry_after_ms: retry_after.map(whole_ms),
                    queue_start: 0,
                    error_start: 0,
                })?;
                writer.finish();
                Ok(SettleKind::Nack)
            }
        }
    }
}

/// An extension of a lease.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extension<'a> {
    queue: &'a str,
    id: MessageId,
    extend_by_ms: u64,
}

impl<'a> Extension<'a> {
    pub(crate) fn of(delivery: &'a Delivery, by: Duration) -> Self {
        Self {
            queue: delivery.queue(),
            id: delivery.id(),
            extend_by_ms: whole_ms(by),
        }
    }

    /// Extends the lease, and returns its new end in Unix milliseconds.
    pub(crate) async fn send(self, handle: &Handle) -> Result<u64, RequestError> {
        let Self {
            queue,
            id,
            extend_by_ms,
        } = self;
        let message_id = *id.as_bytes();
        let mut body = Vec::with_capacity(4 + ACK_BYTES_LIKELY + 8);
        let mut writer = ExtendWriter::new(&mut body);
        writer.push(&ExtendItem {
            queue,
            message_id,
            extend_by_ms,
            queue_start: 0,
        })?;
        writer.finish();
        settle_one(handle, SettleKind::Extend, body).await
    }
}

/// A request body and how many items are in it.
struct Items {
    body: Bytes,
    count: usize,
}

async fn settle_one(handle: &Handle, kind: SettleKind, body: Vec<u8>) -> SettleResult {
    let (reply, result) = oneshot::channel();
    let items = Items {
        body: Bytes::from(body),
        count: 1,
    };
    settle(handle, kind, items, Reply::One(reply)).await?;
    result
        .await
        .unwrap_or_else(|_dropped| Err(RequestError::closed(true)))
}

async fn settle(
    handle: &Handle,
    kind: SettleKind,
    items: Items,
    reply: Reply<u64>,
) -> Result<(), RequestError> {
    let permit = handle.permit(items.body.len()).await?;
    handle.send_job(Job::Settle(SettleJob {
        kind,
        body: items.body,
        count: items.count,
        reply,
        overload: Overload::new(handle.overload()),
        _permit: permit,
    }));
    Ok(())
}
