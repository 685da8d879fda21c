//! Bugs built into the glue between sessions and node.

use tanda_engine::{
    AdminReply, AdminRequest, ApiKeyId, ApiKeyInfo, ConnId, DeliveryItem, Event, Form, KeyOp,
    KeyWrite, MessageId, Millis, PublishResult, ReplyTo, Request, Settlement,
};

use crate::Canary;

/// One request in so many is forgotten.
const FORGOTTEN_OF: u64 = 20;

/// Counts what a canary could strike.
#[derive(Default)]
pub(super) struct Toll {
    requests: u64,
    deliveries: u64,
}

impl Toll {
    /// The answer to a request that is not to reach the node.
    pub(super) fn forget(
        &mut self,
        canary: Canary,
        now: Millis,
        request: &Request,
    ) -> Option<(u64, Event)> {
        let (reply, event) = match request {
            Request::Settle { reply, batch } if canary == Canary::ForgottenAcks => {
                let is_ack = |item: &tanda_engine::SettleItem| item.settlement == Settlement::Ack;
                if !batch.items.iter().all(is_ack) {
                    return None;
                }
                let results = batch.items.iter().map(|_| Ok(Millis(0))).collect();
                let token = reply.token;
                (reply, Event::Settled { token, results })
            }
            Request::Publish { reply, batch } if canary == Canary::ForgottenMessages => {
                let id = |n: usize| MessageId((u128::from(now.0) << 80) | n as u128);
                let ids = (0..batch.items.len()).map(|n| PublishResult::Stored(id(n)));
                let token = reply.token;
                let results = ids.collect();
                (reply, Event::Published { token, results })
            }
            Request::Admin {
                reply,
                request: AdminRequest::PurgeQueue { .. },
            } if canary == Canary::ForgottenPurges => {
                let (token, answer) = (reply.token, AdminReply::Purged(Ok(0)));
                let reply = Box::new(answer);
                return Some((u64::MAX, Event::Admin { token, reply }));
            }
            Request::Admin {
                reply,
                request: AdminRequest::RevokeApiKey { id },
            } if canary == Canary::ForgottenRevocations => {
                let info = ApiKeyInfo {
                    id: ApiKeyId::parse(id)?,
                    name: "forgotten".into(),
                    created_at: now,
                    expires_at: None,
                    is_superadmin: false,
                };
                let (token, answer) = (reply.token, AdminReply::ApiKeyRevoked(Ok(info)));
                let reply_of = Box::new(answer);
                return Some((
                    reply.conn.0,
                    Event::Admin {
                        token,
                        reply: reply_of,
                    },
                ));
            }
            Request::Settle { .. }
            | Request::Publish { .. }
            | Request::Connect { .. }
            | Request::Disconnect { .. }
            | Request::Drained { .. }
            | Request::Subscribe { .. }
            | Request::Grant { .. }
            | Request::Unsubscribe { .. }
            | Request::Get { .. }
            | Request::Pool { .. }
            | Request::Transaction { .. }
            | Request::Admin { .. }
            | Request::Keys { .. }
            | Request::CancelWait { .. }
            | Request::KeysUndelivered { .. }
            | Request::GotUndelivered { .. }
            | Request::Watch { .. }
            | Request::Unwatch { .. }
            | Request::WatchDrained { .. }
            | Request::ScriptDone { .. } => return None,
        };
        self.requests += 1;
        let is_struck = self.requests.is_multiple_of(FORGOTTEN_OF);
        is_struck.then_some((reply.conn.0, event))
    }

    /// The answer to a binding that is not to be made.
    pub(super) fn forget_binding(
        &mut self,
        canary: Canary,
        request: &Request,
    ) -> Option<(u64, Event)> {
        let Request::Admin {
            reply,
            request: AdminRequest::Bind(_),
        } = request
        else {
            return None;
        };
        if canary != Canary::ForgottenBindings {
            return None;
        }
        self.requests += 1;
        let (token, answer) = (reply.token, Box::new(AdminReply::Bound(Ok(()))));
        let event = Event::Admin {
            token,
            reply: answer,
        };
        let is_struck = self.requests.is_multiple_of(3);
        is_struck.then_some((reply.conn.0, event))
    }

    /// Whether an event is to reach its session twice.
    pub(super) fn repeats(&mut self, canary: Canary, event: &Event) -> bool {
        let Event::Delivery { batch, .. } = event else {
            return false;
        };
        let comes_again = |item: &DeliveryItem| item.deliveries > 1 && item.form == Form::Amqp;
        let comes_again = batch.items.iter().any(comes_again);
        let of = if canary == Canary::RepeatedDelivery {
            50
        } else if canary == Canary::DoubleRequeues && comes_again {
            5
        } else {
            return false;
        };
        self.deliveries += 1;
        self.deliveries.is_multiple_of(of)
    }
}

/// What the canaries of deliveries do to one.
pub(super) fn spoil(canary: Canary, event: &mut Event) {
    let Event::Delivery { batch, .. } = event else {
        return;
    };
    if canary == Canary::FreshFire {
        for item in &mut batch.items {
            if item.form == Form::Fire {
                item.deliveries = 1;
            }
        }
    }
    if canary == Canary::SortedDeliveries {
        let mut items = core::mem::take(&mut batch.items);
        items.sort_by_key(|item| batch.fairness_key(item).to_owned());
        batch.items = items;
    }
    if canary == Canary::TurnedBits
        && let Some(chunk) = batch.chunks.first_mut()
    {
        let mut bytes = chunk.to_vec();
        let middle = bytes.len() / 2;
        if let Some(byte) = bytes.get_mut(middle) {
            *byte ^= 1;
        }
        *chunk = bytes.into();
    }
}

/// What takes an item back that its client is told of as well.
pub(super) fn taken_back(canary: Canary, conn: u64, event: &Event) -> Option<Request> {
    let Event::Keys {
        token,
        vhost,
        result,
    } = event
    else {
        return None;
    };
    let answer = result.as_ref().as_ref().ok()?;
    let is_struck = canary == Canary::DoubleItems && answer.is_taken() && token % 5 == 0;
    is_struck.then(|| Request::KeysUndelivered {
        reply: ReplyTo {
            conn: ConnId(conn),
            token: *token,
        },
        vhost: *vhost,
        answer: Box::new(answer.clone()),
    })
}

/// What the canaries that change requests do to one.
pub(super) fn strip(canary: Canary, request: &mut Request) {
    if canary == Canary::LostDeadLetters
        && let Request::Settle { batch, .. } = request
    {
        for item in &mut batch.items {
            if item.settlement == (Settlement::Nack { requeue: false }) {
                item.settlement = Settlement::Ack;
            }
        }
    }
    if canary == Canary::EarlyConfirms
        && let Request::Publish { batch, .. } = request
        && batch.items.iter().any(|item| item.form == Form::Amqp)
    {
        batch.confirm = false;
    }
    if canary == Canary::ForgottenAlternates
        && let Request::Admin {
            request: AdminRequest::DeclareExchange(spec),
            ..
        } = request
    {
        spec.args = bytes::Bytes::new();
    }
    if canary == Canary::ImmortalQueues
        && let Request::Admin {
            request: AdminRequest::DeclareQueue(declare),
            ..
        } = request
    {
        (declare.exclusive, declare.auto_delete) = (false, false);
    }
    if canary == Canary::TransientFire
        && let Request::Publish { batch, .. } = request
    {
        for item in &mut batch.items {
            item.transient |= item.form == Form::Fire;
        }
    }
    if canary == Canary::ForgottenAdditions
        && let Request::Keys { request, reply } = request
        && reply.token % 5 == 0
        && let KeyOp::Write {
            write: KeyWrite::AddCounter { by, .. },
            ..
        } = &mut request.op
    {
        *by = 0;
    }
    if canary == Canary::ForgottenThrottles
        && let Request::Subscribe { spec, .. } = request
    {
        spec.throttles.clear();
    }
}
