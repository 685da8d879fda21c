//! `Ack`, `Nack` and `ExtendLease`.

use tanda_engine::{MessageId, Request, SettleBatch, SettleItem, SettleQueue, Settlement};
use tanda_wire::fila::batch::Batch;
use tanda_wire::fila::field::Field;
use tanda_wire::fila::settle::{AckItem, ExtendItem, NackItem};

use super::link::{Call, Link};
use super::on_publish::{span, too_many};
use super::slots::Kind;

pub(super) fn on_ack(link: &mut Link, call: Call) {
    let items = decode_items(link, &call, |item: &AckItem<'_>| SettleItem {
        queue: SettleQueue::Name(span(item.queue_start, item.queue.len())),
        id: MessageId::from_bytes(item.message_id),
        settlement: Settlement::Ack,
    });
    settle(link, call, items, Kind::Ack);
}

pub(super) fn on_nack(link: &mut Link, call: Call) {
    let items = decode_items(link, &call, |item: &NackItem<'_>| SettleItem {
        queue: SettleQueue::Name(span(item.queue_start, item.queue.len())),
        id: MessageId::from_bytes(item.message_id),
        settlement: Settlement::Fail {
            error: span(item.error_start, item.error.len()),
            retry_after_ms: item.retry_after_ms,
        },
    });
    settle(link, call, items, Kind::Nack);
}

pub(super) fn on_extend(link: &mut Link, call: Call) {
    let items = decode_items(link, &call, |item: &ExtendItem<'_>| SettleItem {
        queue: SettleQueue::Name(span(item.queue_start, item.queue.len())),
        id: MessageId::from_bytes(item.message_id),
        settlement: Settlement::Extend {
            by_ms: item.extend_by_ms,
        },
    });
    settle(link, call, items, Kind::Extend);
}

/// The items of a batch; `None` when it was refused as a whole, and answered.
fn decode_items<'a, T: Field<'a>>(
    link: &mut Link,
    call: &'a Call,
    convert: impl Fn(&T) -> SettleItem,
) -> Option<Vec<SettleItem>> {
    let batch = match Batch::<'a, T>::decode_header(&call.body) {
        Ok(batch) if too_many(link, call, batch.item_count()) => return None,
        Ok(batch) => batch,
        Err(error) => {
            link.bad_body(call, error);
            return None;
        }
    };
    // `decode_header` made sure that the body can hold so many.
    let mut items = Vec::with_capacity(batch.item_count() as usize);
    for item in batch {
        match item {
            Ok(item) => items.push(convert(&item)),
            Err(error) => {
                link.bad_body(call, error);
                return None;
            }
        }
    }
    Some(items)
}

fn settle(link: &mut Link, call: Call, items: Option<Vec<SettleItem>>, kind: Kind) {
    let Some(mut items) = items else { return };
    link.refuse_settlements(&call, &mut items);
    let Some(token) = link.slot(call.request_id, kind) else {
        return;
    };
    let reply = link.reply_to(token);
    let batch = SettleBatch {
        data: call.body,
        items,
        ..SettleBatch::default()
    };
    link.requests.push(Request::Settle { reply, batch });
}
