//! Bugs built into the glue between sessions and node.

use tanda_engine::{Event, MessageId, Millis, PublishResult, Request, Settlement};

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
            Request::Settle { .. }
            | Request::Publish { .. }
            | Request::Connect { .. }
            | Request::Disconnect { .. }
            | Request::Drained { .. }
            | Request::Subscribe { .. }
            | Request::Grant { .. }
            | Request::Unsubscribe { .. }
            | Request::Admin { .. }
            | Request::ScriptDone { .. } => return None,
        };
        self.requests += 1;
        let is_struck = self.requests.is_multiple_of(FORGOTTEN_OF);
        is_struck.then_some((reply.conn.0, event))
    }

    /// Whether an event is to reach its session twice.
    pub(super) const fn repeats(&mut self, canary: Canary, event: &Event) -> bool {
        if !matches!(event, Event::Delivery { .. }) || !matches!(canary, Canary::RepeatedDelivery) {
            return false;
        }
        self.deliveries += 1;
        self.deliveries.is_multiple_of(50)
    }
}
