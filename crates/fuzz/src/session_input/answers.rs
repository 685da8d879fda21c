//! Events of the engine, drawn from a script.

use bytes::Bytes;
use tanda_engine::{
    DeliveryBatch, DeliveryItem, Event, GetError, MessageId, Millis, PublishError, PublishResult,
    Request, SettleError, Span, SubscribeError, SubscriptionEnd,
};
use tanda_wire::fila::enqueue::encode_content;

use super::admin_replies;
use crate::script::Script;

/// Results of one answer that are not asked for by a request.
const UNASKED_MAX: usize = 40;

/// An answer of the right kind to a request; `None` when it has none.
pub(super) fn answer(script: &mut Script<'_>, request: &Request) -> Option<Event> {
    Some(match request {
        Request::Publish { reply, batch } => Event::Published {
            token: reply.token,
            results: published(script, batch.items.len()),
        },
        Request::Settle { reply, batch } => Event::Settled {
            token: reply.token,
            results: settled(script, batch.items.len()),
        },
        Request::Subscribe { sub, .. } => subscribed(script, sub.token),
        Request::Admin { reply, request } => Event::Admin {
            token: reply.token,
            reply: Box::new(admin_replies::to(script, request)),
        },
        Request::Get { reply, .. } => Event::Got {
            token: reply.token,
            result: Err(GetError::NotFound),
        },
        Request::Transaction {
            reply,
            publish,
            settle,
        } => Event::Committed {
            token: reply.token,
            published: published(script, publish.items.len()),
            settled: settled(script, settle.items.len()),
        },
        Request::Connect { .. }
        | Request::Disconnect { .. }
        | Request::Drained { .. }
        | Request::Grant { .. }
        | Request::Unsubscribe { .. }
        | Request::Pool { .. }
        | Request::Keys { .. }
        | Request::CancelWait { .. }
        | Request::KeysUndelivered { .. }
        | Request::GotUndelivered { .. }
        | Request::Watch { .. }
        | Request::Unwatch { .. }
        | Request::WatchDrained { .. }
        | Request::ScriptDone { .. } => return None,
    })
}

/// An event of any kind for a token.
pub(super) fn any_event(script: &mut Script<'_>, token: u32) -> Event {
    match script.pick(8) {
        0 => Event::Published {
            token,
            results: {
                let count = script.pick(UNASKED_MAX);
                published(script, count)
            },
        },
        1 => Event::Settled {
            token,
            results: {
                let count = script.pick(UNASKED_MAX);
                settled(script, count)
            },
        },
        2 => subscribed(script, token),
        3 => Event::SubscriptionEnded {
            token,
            reason: SubscriptionEnd::QueueDeleted,
        },
        4 | 5 => Event::Admin {
            token,
            reply: Box::new(admin_replies::any(script)),
        },
        6 => Event::StorageFailed { token },
        _ => Event::Delivery {
            token,
            batch: deliveries(script, Millis(0)),
        },
    }
}

fn id(script: &mut Script<'_>) -> MessageId {
    MessageId(u128::from(script.u64()) << 64 | u128::from(script.byte()))
}

fn published(script: &mut Script<'_>, count: usize) -> Vec<PublishResult> {
    let id = id(script);
    let refused = [
        PublishError::QueueNotFound,
        PublishError::ReservedQueueName,
        PublishError::Forbidden,
        PublishError::OrderingKeyMissing,
        PublishError::TooLarge,
        PublishError::QueueFull,
        PublishError::Storage,
        PublishError::ScriptFailed,
        PublishError::ScriptTimedOut,
        PublishError::Overloaded,
    ];
    let shift = script.pick(refused.len() + 2);
    let results = (0..count).map(|n| match (n + shift) % (refused.len() + 2) {
        0 => PublishResult::Stored(id),
        1 => PublishResult::Duplicate(id),
        other => refused
            .get(other - 2)
            .map_or(PublishResult::Stored(id), |error| {
                PublishResult::Refused(*error)
            }),
    });
    results.collect()
}

fn settled(script: &mut Script<'_>, count: usize) -> Vec<Result<Millis, SettleError>> {
    let (at, shift) = (Millis(script.u64()), script.pick(3));
    let results = (0..count).map(|n| match (n + shift) % 3 {
        0 => Ok(at),
        1 => Err(SettleError::MessageNotFound),
        _ => Err(SettleError::Forbidden),
    });
    results.collect()
}

fn subscribed(script: &mut Script<'_>, token: u32) -> Event {
    let error = match script.pick(8) {
        3 => SubscribeError::InvalidThrottle {
            name: "api".to_owned(),
            problem: "its number is 1".to_owned(),
        },
        4 => SubscribeError::ThrottleConflict {
            name: "api".to_owned(),
        },
        0 => SubscribeError::QueueNotFound,
        1 => SubscribeError::TokenInUse,
        2 => SubscribeError::TooMany { max: script.u32() },
        _ => {
            let consumer = script.u64();
            return Event::Subscribed { token, consumer };
        }
    };
    Event::SubscribeFailed { token, error }
}

/// Deliveries of a script's payloads, whole and of the layout that the engine keeps.
pub(super) fn deliveries(script: &mut Script<'_>, now: Millis) -> DeliveryBatch {
    let mut batch = DeliveryBatch {
        consumer: u64::from(script.byte()),
        queue: "q".into(),
        leased_at: now,
        lease_expires_at: now.after_ms(u64::from(script.u16()) * 100),
        keys: b"key".to_vec(),
        ..DeliveryBatch::default()
    };
    let count = script.pick(6);
    let mut chunk = Vec::new();
    for _ in 0..count {
        let payload = vec![script.byte(); usize::from(script.u16()) % 6_000];
        let start = chunk.len();
        let written = encode_content(&mut chunk, [("k", "v")], &payload);
        assert_eq!(written, Ok(()));
        let at = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        batch.items.push(DeliveryItem {
            id: id(script),
            at: DeliveryItem::RESOLVED,
            len: at(chunk.len() - start),
            form: tanda_engine::Form::Fila,
            has_attributes: false,
            is_leased: true,
            chunk: 0,
            start: at(start),
            fairness_key: Span { start: 0, len: 3 },
            weight: script.u32(),
            attempts: 1,
            deliveries: script.u32(),
            redrives: 0,
            permit: 0,
        });
    }
    batch.chunks.push(Bytes::from(chunk));
    batch
}
