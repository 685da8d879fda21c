//! Subscriptions: `subscribe`, `unsubscribe`, `credit` and `get`.

use std::collections::BTreeMap;

use tanda_engine::{
    AdminRequest, DeclareQueue, GetSpec, Held, LeaseMode, PoolChange, Request, SubscribeSpec, Take,
};
use tanda_wire::amqp::Table;
use tanda_wire::firemq::ReplyCode;
use tanda_wire::firemq::consume::{Credit, Get, Subscribe, Unsubscribe};
use tanda_wire::firemq::reply::OkReply;

use super::fault::Fault;
use super::link::Link;
use super::open::{Next, Open};
use super::pending::{Call, Waiting};
use super::topology::{NAME_BYTES_MAX, arguments, name};
use crate::consumer_args;
use crate::login::Permission;
use crate::pending::consumer_token;

/// The limit that all subscriptions with acknowledgements share.
pub(super) const POOL: u32 = 0;

/// A subscription.
#[derive(Debug)]
pub(super) struct Sub {
    /// The client's number.
    pub(super) id: u64,
    pub(super) queue: Box<str>,
    pub(super) no_ack: bool,
    /// The request that is not answered yet.
    pub(super) starting: Option<u64>,
    /// It gets what is under way, then the peer is told that it has ended.
    pub(super) is_ending: bool,
}

/// The subscriptions of a connection.
#[derive(Debug, Default)]
pub(super) struct Subs {
    pub(super) by_token: BTreeMap<u32, Sub>,
    /// Tokens by the client's number.
    by_id: BTreeMap<u64, u32>,
    made: u32,
    ending: usize,
}

impl Subs {
    /// Whether one has been ended and its answer is due.
    pub(super) const fn are_ending(&self) -> bool {
        self.ending > 0
    }

    /// Whether the engine has not answered for one.
    pub(super) fn are_starting(&self) -> bool {
        self.by_token.values().any(|sub| sub.starting.is_some())
    }

    fn find(&mut self, id: u64) -> Option<(u32, &mut Sub)> {
        let token = *self.by_id.get(&id)?;
        Some((token, self.by_token.get_mut(&token)?))
    }

    fn add(&mut self, sub: Sub) -> u32 {
        let Self {
            by_token,
            by_id,
            made,
            ..
        } = self;
        let token = consumer_token(made, |token| by_token.contains_key(&token));
        by_id.insert(sub.id, token);
        by_token.insert(token, sub);
        token
    }

    fn end(&mut self, token: u32) {
        if let Some(sub) = self.by_token.get_mut(&token)
            && !sub.is_ending
        {
            sub.is_ending = true;
            self.ending += 1;
        }
    }

    pub(super) fn remove(&mut self, token: u32) -> Option<Sub> {
        let sub = self.by_token.remove(&token)?;
        self.by_id.remove(&sub.id);
        self.ending -= usize::from(sub.is_ending);
        Some(sub)
    }

    /// Panics when the two ways to a subscription differ.
    pub(super) fn assert_invariants(&self) {
        assert_eq!(self.by_token.len(), self.by_id.len(), "subscriptions");
        let mut ending = 0;
        for (token, sub) in &self.by_token {
            assert_eq!(self.by_id.get(&sub.id), Some(token), "sub {}", sub.id);
            ending += usize::from(sub.is_ending);
        }
        assert_eq!(ending, self.ending, "subscriptions that end");
    }
}

impl Open {
    pub(super) fn on_subscribe(
        &mut self,
        link: &mut Link,
        subscribe: &Subscribe<'_>,
    ) -> Result<Next, Fault> {
        let refused = |code, text: String| Err(Fault::new(code, text));
        let id = subscribe.sub;
        match self.subs.find(id) {
            Some((_, sub)) if sub.is_ending => return Ok(Next::Wait),
            Some(_) => {
                let text = format!("subscription {id} is in use");
                return refused(ReplyCode::NotAllowed, text);
            }
            None => {}
        }
        if subscribe.offset.is_some() {
            let text = "offset is of streams, which are not spoken here".to_owned();
            return refused(ReplyCode::NotImplemented, text);
        }
        let max = link.config.subscriptions_max;
        if self.subs.by_token.len() >= max as usize {
            let text = format!("reached maximum ({max}) of subscriptions per connection");
            return refused(ReplyCode::NotAllowed, text);
        }
        let tag = match subscribe.tag {
            "" => format!("fire-{id}"),
            tag if tag.len() > NAME_BYTES_MAX => {
                let text = format!("a tag has at most {NAME_BYTES_MAX} bytes");
                return refused(ReplyCode::PreconditionFailed, text);
            }
            tag => tag.to_owned(),
        };
        let queue = name(subscribe.queue)?;
        link.demand(Permission::Read, "queue", &queue)?;
        let args = arguments(subscribe.args)?;
        let args = Table::new(&args).unwrap_or_default();
        let of = format!("queue '{queue}' in vhost '{}'", link.vhost_name);
        let priority = consumer_args::priority(args, &of).map_err(Fault::of_argument)?;
        let throttles = consumer_args::throttles(args).map_err(Fault::of_argument)?;
        let no_ack = subscribe.no_ack;
        let spec = SubscribeSpec {
            vhost: link.vhost,
            queue: queue.clone(),
            credit: Some(credit(subscribe.credit)),
            pool: Some(POOL).filter(|_| !no_ack),
            lease: if no_ack {
                LeaseMode::NoAck
            } else {
                LeaseMode::Connection
            },
            ack_timeout_ms: link.config.ack_timeout_ms.filter(|_| !no_ack),
            frame_limit: link.frame_limit(),
            priority,
            exclusive: subscribe.exclusive,
            tag,
            throttles,
        };
        self.flush(link);
        if !no_ack {
            self.open_pool(link);
        }
        let token = self.subs.add(Sub {
            id,
            queue: queue.into(),
            no_ack,
            starting: Some(subscribe.rid),
            is_ending: false,
        });
        let sub = link.sub_id(token);
        link.requests.push(Request::Subscribe { sub, spec });
        Ok(Next::Stay)
    }

    /// What the peer may hold unsettled, whatever credit it grants.
    fn open_pool(&mut self, link: &mut Link) {
        if !core::mem::replace(&mut self.has_pool, true) {
            link.requests.push(Request::Pool {
                conn: link.conn,
                pool: POOL,
                change: PoolChange::Set(i64::from(link.config.unacked_max)),
            });
        }
    }

    pub(super) fn on_unsubscribe(&mut self, link: &mut Link, it: Unsubscribe) -> Next {
        let Unsubscribe { rid, sub } = it;
        let Some((token, sub)) = self.subs.find(sub) else {
            link.outbound.frame(&OkReply {
                rid,
                ..OkReply::default()
            });
            return Next::Stay;
        };
        if sub.is_ending {
            return Next::Wait;
        }
        let queue = sub.queue.to_string();
        self.subs.end(token);
        self.flush(link);
        link.requests.push(Request::Unsubscribe {
            sub: link.sub_id(token),
            held: Held::Keep,
        });
        // The answer to this comes after the deliveries that are under way; what it says does not
        // matter.
        let declare = DeclareQueue {
            vhost: link.vhost,
            name: queue,
            passive: true,
            ..DeclareQueue::default()
        };
        let call = Call::Unsubscribe { token };
        let request = AdminRequest::DeclareQueue(Box::new(declare));
        link.ask(Waiting::Call { rid, call }, request);
        Next::Stay
    }

    pub(super) fn on_credit(&mut self, link: &mut Link, it: Credit) {
        if let Some((token, sub)) = self.subs.find(it.sub)
            && !sub.is_ending
            && it.credit > 0
        {
            link.requests.push(Request::Grant {
                sub: link.sub_id(token),
                credit: credit(it.credit),
            });
        }
    }

    pub(super) fn on_get(&mut self, link: &mut Link, get: &Get<'_>) -> Result<(), Fault> {
        let queue = name(get.queue)?;
        link.demand(Permission::Read, "queue", &queue)?;
        let max = link.config.unacked_max;
        if !get.no_ack && self.unacked.len() >= max as usize {
            let text = format!("the connection holds {max} unacknowledged messages");
            return Err(Fault::precondition(text));
        }
        self.flush(link);
        Self::ask_get(link, get.rid, (get.no_ack, queue));
        Ok(())
    }

    /// Asks for the next message that fits a frame, as far as is known.
    pub(super) fn ask_get(link: &mut Link, rid: u64, (no_ack, queue): (bool, String)) {
        let spec = GetSpec {
            vhost: link.vhost,
            queue: queue.clone(),
            frame_limit: link.frame_limit(),
            take: if no_ack {
                Take::NoAck
            } else {
                Take::Held {
                    ack_timeout_ms: link.config.ack_timeout_ms,
                }
            },
        };
        let token = link.pending.insert(Waiting::Call {
            rid,
            call: Call::Get { no_ack, queue },
        });
        let reply = link.reply_to(token);
        link.requests.push(Request::Get { reply, spec });
    }
}

/// As much credit as the engine counts.
fn credit(credit: u64) -> u32 {
    u32::try_from(credit).unwrap_or(u32::MAX)
}
