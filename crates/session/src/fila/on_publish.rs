//! `Enqueue`: messages on their way in.
//!
//! The frame is decoded in place: the engine gets spans into the bytes that came from the socket.

use tanda_engine::{PublishBatch, PublishError, PublishItem, PublishTarget, Request, Span};
use tanda_wire::cursor::DecodeError;
use tanda_wire::fila::enqueue::{EnqueueBatch, EnqueueMessage};

use super::SessionConfig;
use super::link::{Call, Link};
use super::slots::Kind;

pub(super) fn on_enqueue(link: &mut Link, call: Call) {
    let items = match EnqueueBatch::decode_header(&call.body) {
        Ok(batch) if too_many(link, &call, batch.item_count()) => return,
        Ok(batch) => decode_items(batch, &link.config),
        Err(error) => Err(error),
    };
    let mut items = match items {
        Ok(items) => items,
        Err(error) => return link.bad_body(&call, error),
    };
    link.refuse_publishes(&call, &mut items);
    let Some(token) = link.slot(call.request_id, Kind::Publish) else {
        return;
    };
    let reply = link.reply_to(token);
    let batch = PublishBatch {
        data: call.body,
        items,
        ..PublishBatch::default()
    };
    link.requests.push(Request::Publish { reply, batch });
}

/// Refuses a batch of more items than a connection may make the server allocate.
pub(super) fn too_many(link: &mut Link, call: &Call, count: u32) -> bool {
    let max = link.config.batch_items_max;
    let is_over = count as usize > max;
    if is_over {
        let problem = format!(
            "{} of {count} items: a batch has at most {max}",
            call.opcode
        );
        link.invalid_frame(call.request_id, &problem);
    }
    is_over
}

fn decode_items(
    batch: EnqueueBatch<'_>,
    config: &SessionConfig,
) -> Result<Vec<PublishItem>, DecodeError> {
    // `decode_header` made sure that the body can hold so many.
    let mut items = Vec::with_capacity(batch.item_count() as usize);
    for message in batch {
        items.push(item(&message?, config.max_message_bytes));
    }
    Ok(items)
}

#[inline]
fn item(message: &EnqueueMessage<'_>, max_message_bytes: u32) -> PublishItem {
    let content = span(message.content_start, message.content.len());
    let target = if content.len > max_message_bytes {
        PublishTarget::Refused(PublishError::TooLarge)
    } else {
        PublishTarget::Name(span(message.queue_start, message.queue.len()))
    };
    let key_len = message.fairness_key.map_or(0, str::len);
    PublishItem {
        target,
        content,
        fairness_key: span(message.fairness_key_start, key_len),
        weight: message.weight.unwrap_or(0),
        delay_ms: message.delay_ms.unwrap_or(0),
        idempotency_key: message
            .idempotency_key
            .map(|key| span(message.idempotency_key_start, key.len())),
        ..PublishItem::default()
    }
}

/// A range of a body. `decode_header` refused bodies of 4 GiB or more.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "a part of a body shorter than 4 GiB"
)]
pub(super) const fn span(start: u32, len: usize) -> Span {
    Span {
        start,
        len: len as u32,
    }
}
