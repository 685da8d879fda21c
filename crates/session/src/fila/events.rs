//! What the engine says, as frames.

use tanda_engine::{
    DeliveryBatch, Event, Form, MessageId, PublishError, PublishResult, SettleResult,
    SubscribeError, SubscriptionEnd,
};
use tanda_wire::fila::consume::ConsumeOk;
use tanda_wire::fila::delivery::{DeliveryItem, DeliveryMeta};
use tanda_wire::fila::enqueue::EnqueueResultWriter;
use tanda_wire::fila::frame::HEADER_BYTES;
use tanda_wire::fila::settle::{CodesWriter, ExtendResultWriter};
use tanda_wire::fila::{ErrorCode, Opcode};

use super::errors;
use super::link::Link;
use super::replies;
use super::slots::Kind;
use super::unsent::Lot;
use crate::convert::to_fila;

/// Body bytes of a delivery frame, a larger single message excepted: enough to make the cost of a
/// frame vanish, little enough that an answer queued behind it does not wait long.
const DELIVERY_BYTES_MAX: usize = 1 << 20;

/// A content without headers and payload.
const EMPTY_CONTENT: &[u8] = &[0; 6];

/// Takes one event. Events of requests and subscriptions that ended meanwhile are ignored.
pub(super) fn on_event(link: &mut Link, event: Event) {
    match event {
        Event::Published { token, results } => published(link, token, &results),
        Event::Settled { token, results } => settled(link, token, &results),
        Event::Subscribed { token, consumer } => subscribed(link, token, consumer),
        Event::SubscribeFailed { token, error } => subscribe_failed(link, token, &error),
        Event::Delivery { token, batch } => delivery(link, token, &batch),
        Event::SubscriptionEnded { token, reason } => subscription_ended(link, token, reason),
        Event::Admin { token, reply } => {
            if let Some(entry) = link.slots.remove(token) {
                replies::on_reply(link, &entry, &reply);
            }
        }
        Event::StorageFailed { token } => storage_failed(link, token),
        // Answers to what this protocol never asks.
        Event::Committed { .. }
        | Event::Got { .. }
        | Event::Keys { .. }
        | Event::Watching { .. }
        | Event::Watched { .. }
        | Event::WatchEnded { .. } => {}
    }
}

fn published(link: &mut Link, token: u32, results: &[PublishResult]) {
    let Some(entry) = link.slots.remove(token) else {
        return;
    };
    if results.contains(&PublishResult::Refused(PublishError::Overloaded)) {
        // Then nothing of the batch was taken.
        return link.channel_full(entry.request_id);
    }
    link.outbound
        .frame(Opcode::EnqueueResult, entry.request_id, |out| {
            out.reserve(4 + results.len() * 18 + 2);
            let mut writer = EnqueueResultWriter::new(out);
            for result in results {
                let (code, id, duplicate) = match result {
                    PublishResult::Stored(id) => (ErrorCode::Ok, *id, false),
                    PublishResult::Duplicate(id) => (ErrorCode::Ok, *id, true),
                    // Fila names queues; a message that goes to none of them was refused.
                    PublishResult::Unroutable | PublishResult::Sent { .. } => {
                        (ErrorCode::QueueNotFound, MessageId::NIL, false)
                    }
                    PublishResult::Refused(error) => {
                        (errors::publish(*error), MessageId::NIL, false)
                    }
                };
                writer.push(code, &id.to_bytes(), duplicate)?;
            }
            writer.finish();
            Ok(())
        });
}

fn settled(link: &mut Link, token: u32, results: &[SettleResult]) {
    let Some(entry) = link.slots.remove(token) else {
        return;
    };
    let opcode = match entry.kind {
        Kind::Extend => return extended(link, entry.request_id, results),
        Kind::Nack => Opcode::NackResult,
        Kind::Ack
        | Kind::Publish
        | Kind::Subscribing
        | Kind::Cancelled
        | Kind::Denied(_)
        | Kind::Subscribed
        | Kind::Admin
        | Kind::Routes(_)
        | Kind::MoveLeader
        | Kind::Keys(_) => Opcode::AckResult,
    };
    link.outbound.frame(opcode, entry.request_id, |out| {
        out.reserve(4 + results.len());
        let mut writer = CodesWriter::new(out);
        for result in results {
            writer.push(result.map_or_else(errors::settle, |_| ErrorCode::Ok))?;
        }
        writer.finish();
        Ok(())
    });
}

fn extended(link: &mut Link, request_id: u32, results: &[SettleResult]) {
    link.outbound
        .frame(Opcode::ExtendLeaseResult, request_id, |out| {
            out.reserve(4 + results.len() * 9);
            let mut writer = ExtendResultWriter::new(out);
            for result in results {
                match result {
                    Ok(expires_at) => writer.push(ErrorCode::Ok, expires_at.0)?,
                    Err(error) => writer.push(errors::settle(*error), 0)?,
                }
            }
            writer.finish();
            Ok(())
        });
}

fn subscribed(link: &mut Link, token: u32, consumer: u64) {
    if let Some(entry) = link.slots.entry(token)
        && let Kind::Denied(code) = entry.kind
    {
        let request_id = entry.request_id;
        link.slots.remove(token);
        let text = "this key may not consume from this queue any more";
        return link.outbound.error(request_id, code, text, &[]);
    }
    if let Some(request_id) = link.slots.on_subscribed(token) {
        let consumer_id = format!("c{consumer}");
        link.outbound.body(
            request_id,
            &ConsumeOk {
                consumer_id: &consumer_id,
            },
        );
    }
}

fn subscribe_failed(link: &mut Link, token: u32, error: &SubscribeError) {
    if let Some(entry) = link.slots.remove(token) {
        let (code, text) = errors::subscribe(error);
        link.outbound.error(entry.request_id, code, &text, &[]);
    }
}

fn subscription_ended(link: &mut Link, token: u32, reason: SubscriptionEnd) {
    if let Some(entry) = link.slots.remove(token) {
        let (code, text) = match reason {
            SubscriptionEnd::QueueDeleted => (ErrorCode::QueueNotFound, "the queue was deleted"),
            // Fila's subscriptions ask for no such time.
            SubscriptionEnd::AckTimedOut { .. } => (
                ErrorCode::InternalError,
                "a message was held unsettled for too long",
            ),
        };
        link.outbound.error(entry.request_id, code, text, &[]);
    }
}

/// The outcome of the token's request is unknown, and the broker will not find out.
fn storage_failed(link: &mut Link, token: u32) {
    if let Some(entry) = link.slots.remove(token) {
        let text = "the log failed: the outcome of this request is unknown";
        link.outbound
            .error(entry.request_id, ErrorCode::StorageError, text, &[]);
    }
}

fn delivery(link: &mut Link, token: u32, batch: &DeliveryBatch) {
    let entry = link.slots.entry(token);
    let Some(request_id) = entry
        .filter(|entry| matches!(entry.kind, Kind::Subscribed))
        .map(|entry| entry.request_id)
    else {
        // Its subscription was cancelled meanwhile.
        link.outbound.count_drained(batch.budget_bytes());
        return link.give_back(&Lot::of(batch, &batch.items));
    };
    let may_lose_key = link.authority.caller.key().is_some();
    let body_bytes_max = DELIVERY_BYTES_MAX.min(link.outbound.frame_bytes_max() - HEADER_BYTES);
    let mut rest = batch.items.as_slice();
    let is_foreign = batch.items.iter().any(|item| item.form != Form::Fila);
    let converted = batch.items.iter().filter(|_| is_foreign);
    let converted: Vec<_> = converted.map(|item| to_fila(batch, item)).collect();
    while !rest.is_empty() {
        let done = batch.items.len() - rest.len();
        let items = rest.iter().enumerate().map(|(at, item)| {
            let content = match converted.get(done + at) {
                Some(content) => content,
                None => batch.content(item),
            };
            (wire_item(batch, item, content), item.budget_bytes())
        });
        let taken = link.outbound.deliveries(request_id, items, body_bytes_max);
        if may_lose_key && let Some(items) = rest.get(..taken) {
            link.outbound.note_lot(Lot::of(batch, items));
        }
        rest = rest.get(taken.max(1)..).unwrap_or_default();
    }
}

#[inline]
fn wire_item<'a>(
    batch: &'a DeliveryBatch,
    item: &tanda_engine::DeliveryItem,
    content: &'a [u8],
) -> DeliveryItem<'a> {
    debug_assert!(
        content.len() >= EMPTY_CONTENT.len(),
        "{}: no content",
        item.id
    );
    DeliveryItem {
        meta: DeliveryMeta {
            message_id: item.id.to_bytes(),
            weight: item.weight,
            attempt_count: item.attempts,
            redrive_count: item.redrives,
            enqueued_at_ms: item.id.enqueued_at().0,
            leased_at_ms: batch.leased_at.0,
            lease_expires_at_ms: batch.lease_expires_at.0,
        },
        queue: &batch.queue,
        fairness_key: batch.fairness_key(item),
        content: if content.is_empty() {
            EMPTY_CONTENT
        } else {
            content
        },
    }
}
