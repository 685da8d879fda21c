//! What the engine may say to a session: right answers, wrong ones, and events out of nowhere.

use bytes::Bytes;
use tanda_engine::{
    AdminReply, AdminRequest, DeclaredQueue, DeliveryBatch, DeliveryItem, Event, Form, Got,
    MessageId, PublishError, PublishResult, QueueId, Request, SubscribeError, SubscriptionEnd,
    TopologyCode, TopologyError, VhostId,
};

use crate::script::Script;

fn error(script: &mut Script<'_>) -> TopologyError {
    const CODES: [TopologyCode; 6] = [
        TopologyCode::NotFound,
        TopologyCode::AccessRefused,
        TopologyCode::ResourceLocked,
        TopologyCode::PreconditionFailed,
        TopologyCode::NotAllowed,
        TopologyCode::Internal,
    ];
    let code = CODES.get(script.pick(CODES.len())).copied();
    TopologyError {
        code: code.unwrap_or(TopologyCode::NotFound),
        text: String::from_utf8_lossy(script.short()).into_owned(),
    }
}

fn outcome<T>(script: &mut Script<'_>, value: T) -> Result<T, TopologyError> {
    if script.byte() < 200 {
        Ok(value)
    } else {
        Err(error(script))
    }
}

fn declared(script: &mut Script<'_>, name: &str) -> AdminReply {
    let name = if name.is_empty() { "amq.gen-1" } else { name };
    let queue = DeclaredQueue {
        name: name.to_owned(),
        messages: u64::from(script.byte()),
        consumers: 0,
    };
    AdminReply::QueueDeclared(outcome(script, queue))
}

fn reply(script: &mut Script<'_>, request: &AdminRequest) -> AdminReply {
    if let AdminRequest::OpenVhost { .. } = request {
        AdminReply::Vhost(outcome(script, VhostId(3)))
    } else if let AdminRequest::DeclareQueue(declare) = request {
        declared(script, &declare.name)
    } else if let AdminRequest::Purge { .. } = request {
        AdminReply::QueuePurged(outcome(script, 5))
    } else if let AdminRequest::RemoveQueue { .. } | AdminRequest::RemoveOwnQueues = request {
        AdminReply::QueueRemoved(outcome(script, 5))
    } else {
        AdminReply::Bound(outcome(script, ()))
    }
}

/// So many results, more or less.
fn results(script: &mut Script<'_>, count: usize) -> Vec<PublishResult> {
    let count = match script.byte() {
        0 => count / 2,
        1 => count + 1,
        _ => count,
    };
    let any = |script: &mut Script<'_>| match script.byte() {
        0..=20 => PublishResult::Unroutable,
        21..=40 => PublishResult::Refused(PublishError::QueueFull),
        41..=45 => PublishResult::Refused(PublishError::ExchangeNotFound),
        46..=50 => PublishResult::Duplicate(MessageId(1)),
        _ => PublishResult::Stored(MessageId(1)),
    };
    (0..count).map(|_| any(script)).collect()
}

/// An answer to a request that has one.
pub(crate) fn answer(script: &mut Script<'_>, request: &Request) -> Option<Event> {
    Some(match request {
        Request::Publish { reply, batch } => Event::Published {
            token: reply.token,
            results: results(script, batch.items.len()),
        },
        Request::Settle { reply, .. } => Event::Settled {
            token: reply.token,
            results: Vec::new(),
        },
        Request::Subscribe { sub, .. } => match script.byte() {
            0..=200 => Event::Subscribed {
                token: sub.token,
                consumer: 1,
            },
            _ => Event::SubscribeFailed {
                token: sub.token,
                error: SubscribeError::QueueNotFound,
            },
        },
        Request::Admin { reply: to, request } => Event::Admin {
            token: to.token,
            reply: Box::new(reply(script, request)),
        },
        Request::Get { reply, .. } => {
            let batch = (script.byte() > 50).then(|| deliveries(script, 1));
            Event::Got {
                token: reply.token,
                result: Ok(Got {
                    batch,
                    remaining: 3,
                }),
            }
        }
        Request::Transaction { reply, publish, .. } => Event::Committed {
            token: reply.token,
            published: results(script, publish.items.len()),
            settled: Vec::new(),
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

/// Any event for a token.
pub(crate) fn any(script: &mut Script<'_>, token: u32) -> Event {
    let admin = |reply| Event::Admin {
        token,
        reply: Box::new(reply),
    };
    match script.byte() % 10 {
        0 => Event::Published {
            token,
            results: results(script, 2),
        },
        1 => Event::Subscribed { token, consumer: 1 },
        2 => Event::SubscribeFailed {
            token,
            error: SubscribeError::AccessRefused("no".to_owned()),
        },
        3 => Event::SubscriptionEnded {
            token,
            reason: SubscriptionEnd::QueueDeleted,
        },
        4 => Event::SubscriptionEnded {
            token,
            reason: SubscriptionEnd::AckTimedOut { timeout_ms: 9 },
        },
        5 => Event::Committed {
            token,
            published: results(script, 1),
            settled: Vec::new(),
        },
        6 => Event::Got {
            token,
            result: Ok(Got::default()),
        },
        7 => admin(declared(script, "q")),
        8 => admin(AdminReply::Bound(Err(error(script)))),
        _ => Event::StorageFailed { token },
    }
}

/// Deliveries of contents that are right or not.
pub(crate) fn deliveries(script: &mut Script<'_>, count: usize) -> DeliveryBatch {
    const FORMS: [Form; 3] = [Form::Amqp, Form::Fila, Form::Fire];
    let mut batch = DeliveryBatch {
        consumer: 1,
        queue: "q".into(),
        queue_id: QueueId(7),
        ..DeliveryBatch::default()
    };
    let mut chunk = Vec::new();
    for number in 0..count {
        let start = chunk.len();
        if script.byte() < 128 {
            chunk.extend_from_slice(b"\x02ex\x03key\0\0\0\x02\0\0\0\0\0\x04body");
        } else {
            chunk.extend_from_slice(script.short());
        }
        let form = FORMS.get(script.pick(FORMS.len())).copied();
        batch.items.push(DeliveryItem {
            id: MessageId(number as u128 + 1),
            form: form.unwrap_or_default(),
            is_leased: number % 2 == 0,
            at: DeliveryItem::RESOLVED,
            start: u32::try_from(start).unwrap_or_default(),
            len: u32::try_from(chunk.len() - start).unwrap_or_default(),
            deliveries: 1,
            ..DeliveryItem::default()
        });
    }
    batch.chunks.push(Bytes::from(chunk));
    batch
}
