//! Settling leased messages: acknowledging, failing, extending.
//!
//! Owns: the bodies of these requests, their results, and when a settled message gives its place in
//! the prefetch back. Refuses to know: subscriptions.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tanda_wire::fila::EncodeError;
use tanda_wire::fila::settle::{
    AckItem, AckWriter, ExtendItem, ExtendWriter, NackItem, NackWriter,
};
use tokio::sync::oneshot;

use crate::delivery::Delivery;
use crate::error::RequestError;
use crate::message::whole_ms;
use crate::message_id::MessageId;
use crate::shell::Handle;
use crate::shell::job::{Job, Overload, Reply, SettleJob, SettleKind, SettleResult};
use crate::subscription::Source;

/// Resolves when the broker has answered a batch of settlements: one result per message, in order.
#[derive(Debug)]
#[must_use = "without awaiting it, nobody knows whether the messages were settled"]
pub struct Settled {
    /// `None`: there was nothing to send.
    result: Option<oneshot::Receiver<Result<Vec<SettleResult>, RequestError>>>,
    count: usize,
}

impl Settled {
    /// Sends these acknowledgements in one request.
    pub(crate) async fn submit(handle: &Handle, acks: Items) -> Result<Self, RequestError> {
        let count = acks.count;
        if count == 0 {
            return Ok(Self {
                result: None,
                count,
            });
        }
        let (reply, result) = oneshot::channel();
        settle(handle, SettleKind::Ack, acks, Reply::Many(reply)).await?;
        Ok(Self {
            result: Some(result),
            count,
        })
    }
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
pub(crate) struct Items {
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

/// The body of an acknowledgement of these messages.
pub(crate) fn encode_acks<'a>(
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
pub(crate) fn release_settled(deliveries: &[Delivery], results: &[Result<(), RequestError>]) {
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
