//! What the engine says, as frames.

use tanda_engine::{Event, GetError, Got, SubscribeError, SubscriptionEnd, TopologyCode};
use tanda_wire::firemq::ReplyCode;
use tanda_wire::firemq::reply::OkReply;

use super::fault::Fault;
use super::link::Link;
use super::open::Open;
use super::pending::{Call, Waiting};
use crate::answers::subscribe_refusal;
use crate::convert::Unfit;

impl Open {
    /// Takes one event. Those of requests and subscriptions that ended meanwhile are ignored.
    ///
    /// # Errors
    /// The connection has to end.
    pub(super) fn on_event(&mut self, link: &mut Link, event: Event) -> Result<(), Fault> {
        match event {
            Event::Delivery { token, batch } => self.on_delivery(link, token, &batch),
            Event::Published { token, results } => self.on_published(link, token, &results),
            Event::Settled { token, .. } => drop(link.pending.remove(token)),
            Event::Subscribed { token, .. } => self.on_subscribed(link, token),
            Event::SubscribeFailed { token, error } => {
                self.on_subscribe_failed(link, token, error);
            }
            Event::SubscriptionEnded { token, reason } => {
                self.on_subscription_ended(link, token, reason);
            }
            Event::Admin { token, reply } => self.on_reply(link, token, *reply),
            Event::Got { token, result } => self.on_got(link, token, result),
            // The answer to what this protocol never asks.
            Event::Committed { .. } => {}
            Event::StorageFailed { token } => return self.on_storage_failed(link, token),
            // Of a door that this is not.
            Event::Keys { .. }
            | Event::Watching { .. }
            | Event::Watched { .. }
            | Event::WatchEnded { .. } => {}
        }
        self.report_freed(link);
        Ok(())
    }

    fn on_subscribed(&mut self, link: &mut Link, token: u32) {
        let sub = self.subs.by_token.get_mut(&token);
        if let Some(rid) = sub.and_then(|sub| sub.starting.take()) {
            link.outbound.frame(&OkReply {
                rid,
                ..OkReply::default()
            });
        }
    }

    fn on_subscribe_failed(&mut self, link: &mut Link, token: u32, error: SubscribeError) {
        if let Some(sub) = self.subs.remove(token)
            && let Some(rid) = sub.starting
        {
            let fault = subscribe_fault(link, &sub.queue, error);
            link.outbound.error(&fault.of(rid));
        }
    }

    fn on_subscription_ended(&mut self, link: &mut Link, token: u32, reason: SubscriptionEnd) {
        let fault = match reason {
            SubscriptionEnd::QueueDeleted => {
                Fault::new(ReplyCode::NotFound, "the queue was deleted")
            }
            SubscriptionEnd::AckTimedOut { timeout_ms } => {
                // They were requeued, and may be somebody else's by now.
                let gone = self.unacked.forget(|message| message.consumer == token);
                self.pool_freed += i64::try_from(gone).unwrap_or(0);
                Fault::precondition(format!(
                    "a delivery was not acknowledged for {timeout_ms} ms; all that the \
                     subscription held were requeued"
                ))
            }
        };
        self.cancel(link, token, fault);
    }

    fn on_got(&mut self, link: &mut Link, token: u32, result: Result<Got, GetError>) {
        let Some(Waiting::Call {
            rid,
            call: Call::Get { no_ack, queue },
        }) = link.pending.remove(token)
        else {
            return;
        };
        let got = match result {
            Ok(got) => got,
            Err(error) => {
                let fault = match error {
                    GetError::NotFound => Fault::no_queue(&queue, &link.vhost_name),
                    GetError::Topology(error) => Fault::of_topology(error),
                };
                return link.outbound.error(&fault.of(rid));
            }
        };
        match got.batch.as_ref().filter(|batch| !batch.items.is_empty()) {
            Some(batch) => {
                if self.say_got(link, (rid, no_ack), batch, got.remaining) == Err(Unfit) {
                    // The next one may fit.
                    Self::ask_get(link, rid, (no_ack, queue));
                }
            }
            None => link.outbound.frame(&OkReply {
                rid,
                empty: true,
                ..OkReply::default()
            }),
        }
    }

    /// The outcome of the token's request is unknown, and the broker will not find out.
    fn on_storage_failed(&mut self, link: &mut Link, token: u32) -> Result<(), Fault> {
        let rid = match (link.pending.remove(token), self.subs.by_token.get(&token)) {
            (Some(Waiting::Call { rid, .. }), _) => rid,
            (Some(_), _) => 0,
            (None, Some(sub)) => sub.starting.unwrap_or(0),
            (None, None) => return Ok(()),
        };
        let text = "the log failed: the outcome is unknown";
        Err(Fault::new(ReplyCode::InternalError, text).of(rid))
    }
}

fn subscribe_fault(link: &Link, queue: &str, error: SubscribeError) -> Fault {
    let mut refusal = subscribe_refusal(error, (queue, &link.vhost_name), "subscriptions");
    // AMQP has a code of its own for an exclusive consumer, this protocol has not.
    if refusal.code == TopologyCode::AccessRefused {
        refusal.code = TopologyCode::ResourceLocked;
    }
    Fault::of_topology(refusal)
}
