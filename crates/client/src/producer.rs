//! Sending messages.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use tanda_wire::fila::EncodeError;
use tanda_wire::fila::enqueue::{EnqueueItem, EnqueueWriter};
use tokio::sync::oneshot;

use crate::error::RequestError;
use crate::message::Message;
use crate::message_id::MessageId;
use crate::policy::OverloadRetry;
use crate::shell::Handle;
use crate::shell::job::{EnqueueJob, Job, Overload, Reply, SendResult};

/// The broker's confirmation: the message is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// The message's ID; the original's when this one was a duplicate.
    pub id: MessageId,
    /// A message with the same deduplication key was there, and nothing was enqueued.
    pub duplicate: bool,
}

/// Sends messages. Cheap to clone; clones share the connection.
///
/// Messages sent at the same time by several tasks share frames, which costs no waiting: a frame
/// holds what is there when the connection is ready to write. Two sends of which one begins after
/// the other ended, or two `submit`s in a row by one task, keep their order, unless the server was
/// overloaded in between (see [`OverloadRetry`]) or the connection was lost.
///
/// ```no_run
/// use tanda_client::{Client, Message};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let producer = Client::connect("127.0.0.1:5555").await?.producer();
/// let receipt = producer.send(Message::to("orders").payload("hello")).await?;
/// println!("stored as {}", receipt.id);
///
/// // Many under way at once, from one task.
/// let mut confirms = Vec::new();
/// for number in 0..1_000 {
///     let message = Message::to("orders").payload(format!("order {number}"));
///     confirms.push(producer.submit(message).await?);
/// }
/// for confirm in confirms {
///     confirm.await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Producer {
    handle: Handle,
    overload: OverloadRetry,
    resends_after_loss: bool,
    gathers: bool,
}

impl Producer {
    pub(crate) fn new(handle: Handle) -> Self {
        let overload = handle.overload();
        Self {
            handle,
            overload,
            resends_after_loss: false,
            gathers: true,
        }
    }

    /// What this producer does when the server is overloaded; the client's policy by default.
    #[must_use]
    pub const fn overload_retry(mut self, policy: OverloadRetry) -> Self {
        self.overload = policy;
        self
    }

    /// When the connection is lost before the answer comes, sends again what carries an
    /// idempotency key: the queue recognizes what it already has. Off by default. A batch is sent
    /// again only when all of its messages carry a key.
    #[must_use]
    pub const fn resend_after_loss(mut self, resend: bool) -> Self {
        self.resends_after_loss = resend;
        self
    }

    /// Whether single messages may share a frame (they do by default). Off, each is a request of
    /// its own.
    #[must_use]
    pub const fn gather(mut self, gather: bool) -> Self {
        self.gathers = gather;
        self
    }

    /// Sends one message and waits until it is stored.
    ///
    /// # Errors
    /// When it was refused, or its outcome is not known; see [`RequestError`].
    pub async fn send(&self, message: Message) -> Result<Receipt, RequestError> {
        self.submit(message).await?.await
    }

    /// Sends one message without waiting for its confirmation. This waits only while too much is
    /// under way already. The message is sent even when the [`Confirm`] is dropped.
    ///
    /// # Errors
    /// When the message does not fit the protocol, or the client is closed.
    pub async fn submit(&self, message: Message) -> Result<Confirm, RequestError> {
        let encoded = encode(std::slice::from_ref(&message));
        if let Some((_, error)) = encoded.refused.first() {
            return Err(RequestError::Unencodable(*error));
        }
        let (reply, results) = oneshot::channel();
        let is_repeatable = message.idempotency_key.is_some();
        self.enqueue(encoded, Reply::One(reply), is_repeatable)
            .await?;
        Ok(Confirm { result: results })
    }

    /// Sends messages in one request, for any queues, and waits until they are stored. One result
    /// per message, in order: some may be refused while others are stored.
    pub async fn send_batch(&self, messages: Vec<Message>) -> Vec<Result<Receipt, RequestError>> {
        let count = messages.len();
        match self.submit_batch(messages).await {
            Ok(confirm) => confirm.await,
            Err(error) => vec![Err(error); count],
        }
    }

    /// Sends messages in one request without waiting for their confirmation, like
    /// [`submit`](Self::submit).
    ///
    /// # Errors
    /// When the client is closed. A message that does not fit the protocol fails alone, in its
    /// place among the results.
    pub async fn submit_batch(&self, messages: Vec<Message>) -> Result<BatchConfirm, RequestError> {
        let count = messages.len();
        let encoded = encode(&messages);
        let refused = encoded.refused.clone();
        if refused.len() == count {
            return Ok(BatchConfirm {
                result: None,
                refused,
                count,
            });
        }
        let is_repeatable = messages
            .iter()
            .all(|message| message.idempotency_key.is_some());
        drop(messages);
        let (reply, results) = oneshot::channel();
        self.enqueue(encoded, Reply::Many(reply), is_repeatable)
            .await?;
        Ok(BatchConfirm {
            result: Some(results),
            refused,
            count,
        })
    }

    async fn enqueue(
        &self,
        encoded: Encoded,
        reply: Reply<Receipt>,
        is_repeatable: bool,
    ) -> Result<(), RequestError> {
        let permit = self.handle.permit(encoded.body.len()).await?;
        let gathers = self.gathers && matches!(reply, Reply::One(_));
        self.handle.send_job(Job::Enqueue(EnqueueJob {
            body: encoded.body,
            count: encoded.count,
            reply,
            overload: Overload::new(self.overload),
            is_repeatable: self.resends_after_loss && is_repeatable,
            gathers,
            _permit: permit,
        }));
        Ok(())
    }
}

/// Messages as a request body, without those that do not fit the protocol.
struct Encoded {
    body: Bytes,
    count: usize,
    /// Places and errors of those left out.
    refused: Vec<(usize, EncodeError)>,
}

fn encode(messages: &[Message]) -> Encoded {
    let size = messages.iter().map(size_hint).sum::<usize>();
    let mut body = Vec::with_capacity(COUNT_BYTES + size);
    let mut writer = EnqueueWriter::new(&mut body);
    let mut refused = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let item = EnqueueItem {
            queue: &message.queue,
            payload: &message.payload,
            fairness_key: message.fairness_key.as_deref(),
            weight: message.weight,
            delay_ms: message.delay_ms,
            idempotency_key: message.idempotency_key.as_deref(),
        };
        let headers = message.headers.iter().map(|(name, value)| (name, value));
        if let Err(error) = writer.push(&item, headers) {
            refused.push((at, error));
        }
    }
    writer.finish();
    Encoded {
        body: Bytes::from(body),
        count: messages.len() - refused.len(),
        refused,
    }
}

/// Bytes of the count at the front of the body.
const COUNT_BYTES: usize = 4;
/// Bytes of a message besides its texts and payload, at most.
const ITEM_BYTES_MAX: usize = 2 + 2 + 4 + (1 + 2) + (1 + 4) + (1 + 8) + (1 + 2);

fn size_hint(message: &Message) -> usize {
    let header_bytes = message
        .headers
        .iter()
        .map(|(name, value)| 4 + name.len() + value.len());
    ITEM_BYTES_MAX
        + message.queue.len()
        + message.payload.len()
        + header_bytes.sum::<usize>()
        + message.fairness_key.as_ref().map_or(0, |key| key.len())
        + message.idempotency_key.as_ref().map_or(0, |key| key.len())
}

/// Resolves when the broker has confirmed or refused a message.
#[derive(Debug)]
#[must_use = "without awaiting it, nobody knows whether the message was stored"]
pub struct Confirm {
    result: oneshot::Receiver<SendResult>,
}

impl Future for Confirm {
    type Output = Result<Receipt, RequestError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = Pin::new(&mut self.result).poll(cx);
        result.map(|result| result.unwrap_or_else(|_dropped| Err(RequestError::closed(true))))
    }
}

/// Resolves when the broker has confirmed or refused each message of a batch: one result per
/// message, in order.
#[derive(Debug)]
#[must_use = "without awaiting it, nobody knows whether the messages were stored"]
pub struct BatchConfirm {
    /// `None`: nothing was sent.
    result: Option<oneshot::Receiver<Result<Vec<SendResult>, RequestError>>>,
    refused: Vec<(usize, EncodeError)>,
    count: usize,
}

impl Future for BatchConfirm {
    type Output = Vec<Result<Receipt, RequestError>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let results = match &mut this.result {
            None => Ok(Vec::new()),
            Some(result) => match Pin::new(result).poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(results)) => results,
                Poll::Ready(Err(_dropped)) => Err(RequestError::closed(true)),
            },
        };
        let sent = this.count - this.refused.len();
        let mut results = results.unwrap_or_else(|error| vec![Err(error); sent]);
        for (at, error) in this.refused.drain(..) {
            results.insert(at.min(results.len()), Err(RequestError::Unencodable(error)));
        }
        Poll::Ready(results)
    }
}
