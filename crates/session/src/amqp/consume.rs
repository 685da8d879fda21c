//! Consumers: `basic.qos`, `consume`, `cancel` and `get`.

use std::collections::{BTreeMap, BTreeSet};

use tanda_engine::{
    AdminRequest, DeclareQueue, GetSpec, Held, LeaseMode, PoolChange, Request, SubscribeSpec, Take,
    ThrottleSpec,
};
use tanda_wire::amqp::{Arguments, ReplyCode, basic};

use super::checks::REPLY_TO;
use super::fault::Fault;
use super::link::Link;
use super::names;
use super::open::Open;
use super::pending::{Call, Waiting};
use crate::consumer_args;
use crate::login::Permission;
use crate::pending::consumer_token;
use crate::unacked::HeldMessage;

/// Where a consumer is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The engine has not answered; the peer wants an answer, or not.
    Starting {
        /// It wants none.
        no_wait: bool,
    },
    /// It gets messages.
    Live,
    /// It gets what is under way, then the peer is told that it has ended.
    Ending,
    /// Its channel ended before the engine answered.
    Dropped,
}

/// A consumer.
#[derive(Debug)]
pub(super) struct Consumer {
    pub(super) channel: u16,
    pub(super) tag: Box<str>,
    pub(super) queue: Box<str>,
    pub(super) no_ack: bool,
    /// Settlements have to be reported as credit.
    pub(super) is_limited: bool,
    pub(super) stage: Stage,
}

/// The consumers of a connection.
#[derive(Debug, Default)]
pub(super) struct Consumers {
    pub(super) by_token: BTreeMap<u32, Consumer>,
    made: u32,
}

impl Consumers {
    /// A token that no consumer had for long.
    fn token(&mut self) -> u32 {
        let Self { by_token, made } = self;
        consumer_token(made, |token| by_token.contains_key(&token))
    }
}

/// A consumer's terms as they were asked for.
struct Wanted {
    channel: u16,
    queue: String,
    tag: Box<str>,
    no_ack: bool,
    exclusive: bool,
    no_wait: bool,
    priority: i32,
    throttles: Vec<ThrottleSpec>,
}

impl Open {
    pub(super) fn on_qos(
        &mut self,
        link: &mut Link,
        number: u16,
        qos: &basic::Qos,
    ) -> Result<(), Fault> {
        if qos.prefetch_size != 0 {
            let text = format!("prefetch_size!=0 ({})", qos.prefetch_size);
            return Err(Fault::new(ReplyCode::NotImplemented, text));
        }
        self.flush(link);
        let Some(channel) = self.channels.find(number) else {
            return Ok(());
        };
        // Without `global` it is of each consumer from now on, and the shared limit goes.
        let shared = Some(qos.prefetch_count).filter(|count| qos.global && *count > 0);
        if !qos.global {
            channel.prefetch = qos.prefetch_count;
        }
        let change = match shared {
            Some(limit) => {
                let held = channel.unacked.iter();
                let limited = |it: &HeldMessage| {
                    it.consumer != HeldMessage::GET && it.consumer != HeldMessage::LOST
                };
                let held = held.filter(limited).count();
                let held = i64::try_from(held).unwrap_or(i64::MAX);
                Some(PoolChange::Set(i64::from(limit).saturating_sub(held)))
            }
            None => channel.shared_prefetch.map(|_| PoolChange::Unlimited),
        };
        channel.shared_prefetch = shared;
        if let Some(change) = change {
            link.requests.push(Request::Pool {
                conn: link.conn,
                pool: u32::from(number),
                change,
            });
        }
        link.outbound.method(number, basic::QosOk {});
        Ok(())
    }

    pub(super) fn on_consume(
        &mut self,
        link: &mut Link,
        number: u16,
        consume: &basic::Consume<'_>,
    ) -> Result<(), Fault> {
        let tag = names::text(consume.consumer_tag)?;
        let queue = self.queue_name(number, consume.queue)?;
        let max = link.config.consumers_max;
        let count = self.consumers.by_token.len();
        let Some(channel) = self.channels.find(number) else {
            return Ok(());
        };
        if channel.consumers.contains_key(tag) {
            let text = format!("attempt to reuse consumer tag '{tag}'");
            return Err(Fault::new(ReplyCode::NotAllowed, text));
        }
        if count >= max as usize {
            let text = format!("reached maximum ({max}) of consumers per connection");
            return Err(Fault::new(ReplyCode::NotAllowed, text));
        }
        if queue == REPLY_TO {
            let has_one = channel.reply_queue.is_some();
            return self.on_consume_replies(link, number, consume, has_one);
        }
        link.demand(Permission::Read, "queue", &queue)?;
        let arguments = consume.arguments;
        arguments
            .validate()
            .map_err(|error| Fault::of_layout("arguments", error))?;
        let of = format!("queue '{queue}' in vhost '{}'", link.vhost_name);
        let priority = consumer_args::priority(arguments, &of).map_err(Fault::of_argument)?;
        let throttles = consumer_args::throttles(arguments).map_err(Fault::of_argument)?;
        let tag = self.consumer_tag(link, tag);
        let wanted = Wanted {
            channel: number,
            queue,
            tag,
            no_ack: consume.no_ack,
            exclusive: consume.exclusive,
            no_wait: consume.no_wait,
            priority,
            throttles,
        };
        self.subscribe(link, wanted);
        Ok(())
    }

    fn consumer_tag(&mut self, link: &mut Link, tag: &str) -> Box<str> {
        if tag.is_empty() {
            link.unique_name("amq.ctag-").into()
        } else {
            tag.into()
        }
    }

    fn subscribe(&mut self, link: &mut Link, wanted: Wanted) {
        self.flush(link);
        let token = self.consumers.token();
        let Some(channel) = self.channels.find(wanted.channel) else {
            return;
        };
        let prefetch = match channel.prefetch {
            0 => link.config.unacked_max,
            count => u32::from(count),
        };
        let spec = SubscribeSpec {
            vhost: link.vhost,
            queue: wanted.queue.clone(),
            credit: Some(prefetch).filter(|_| !wanted.no_ack),
            pool: Some(u32::from(wanted.channel)).filter(|_| !wanted.no_ack),
            lease: if wanted.no_ack {
                LeaseMode::NoAck
            } else {
                LeaseMode::Connection
            },
            ack_timeout_ms: link.config.ack_timeout_ms.filter(|_| !wanted.no_ack),
            frame_limit: link.frame_limit(),
            priority: wanted.priority,
            exclusive: wanted.exclusive,
            tag: wanted.tag.to_string(),
            throttles: wanted.throttles,
        };
        channel.consumers.insert(wanted.tag.clone(), token);
        channel.is_busy = true;
        let consumer = Consumer {
            channel: wanted.channel,
            tag: wanted.tag,
            queue: wanted.queue.into(),
            no_ack: wanted.no_ack,
            is_limited: !wanted.no_ack,
            stage: Stage::Starting {
                no_wait: wanted.no_wait,
            },
        };
        self.consumers.by_token.insert(token, consumer);
        let sub = link.sub_id(token);
        link.requests.push(Request::Subscribe { sub, spec });
    }

    /// Replies arrive in a queue of the channel's own, whose name is their address.
    fn on_consume_replies(
        &mut self,
        link: &mut Link,
        number: u16,
        consume: &basic::Consume<'_>,
        has_one: bool,
    ) -> Result<(), Fault> {
        if !consume.no_ack {
            return Err(Fault::precondition("reply consumer cannot acknowledge"));
        }
        if has_one {
            return Err(Fault::precondition("reply consumer already set"));
        }
        let tag = self.consumer_tag(link, names::text(consume.consumer_tag)?);
        let name = link.unique_name(&format!("{REPLY_TO}."));
        if let Some(channel) = self.channels.find(number) {
            channel.reply_queue = Some(name.clone());
        }
        let declare = DeclareQueue {
            vhost: link.vhost,
            name,
            exclusive: true,
            auto_delete: true,
            ..DeclareQueue::default()
        };
        let request = AdminRequest::DeclareQueue(Box::new(declare));
        let to = (number, basic::Consume::ID, consume.no_wait);
        self.call_for(link, to, Call::MakeReplyQueue { tag }, request);
        Ok(())
    }

    /// The queue for replies is there.
    pub(super) fn consume_replies(
        &mut self,
        link: &mut Link,
        (channel, no_wait): (u16, bool),
        (queue, tag): (String, Box<str>),
    ) {
        let wanted = Wanted {
            channel,
            queue,
            tag,
            no_ack: true,
            exclusive: true,
            no_wait,
            priority: 0,
            throttles: Vec::new(),
        };
        self.subscribe(link, wanted);
    }

    /// Nobody waits for replies any more.
    pub(super) fn remove_reply_queue(&mut self, link: &mut Link, name: String) {
        link.tell(AdminRequest::RemoveQueue {
            vhost: link.vhost,
            name,
            if_unused: false,
            if_empty: false,
        });
    }

    pub(super) fn on_cancel(
        &mut self,
        link: &mut Link,
        number: u16,
        cancel: &basic::Cancel<'_>,
    ) -> Result<(), Fault> {
        let tag = names::text(cancel.consumer_tag)?;
        self.flush(link);
        let Some(channel) = self.channels.find(number) else {
            return Ok(());
        };
        let token = channel.consumers.get(tag).copied();
        let consumer = token.and_then(|token| self.consumers.by_token.get_mut(&token));
        let (Some(token), Some(consumer)) = (token, consumer) else {
            if !cancel.no_wait {
                let consumer_tag = cancel.consumer_tag;
                link.outbound
                    .method(number, basic::CancelOk { consumer_tag });
            }
            return Ok(());
        };
        consumer.stage = Stage::Ending;
        let queue = consumer.queue.to_string();
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
        let request = AdminRequest::DeclareQueue(Box::new(declare));
        let tag = tag.into();
        let to = (number, basic::Cancel::ID, cancel.no_wait);
        self.call_for(link, to, Call::Cancel { token, tag }, request);
        Ok(())
    }

    /// All that was delivered to a cancelled consumer has come.
    pub(super) fn on_cancelled(&mut self, link: &mut Link, number: u16, token: u32) {
        let consumer = self.consumers.by_token.remove(&token);
        let Some(channel) = self.channels.find(number) else {
            return;
        };
        let Some(consumer) = consumer else {
            return;
        };
        channel.consumers.remove(&consumer.tag);
        if channel.reply_queue.as_deref() == Some(&*consumer.queue) {
            channel.reply_queue = None;
            self.remove_reply_queue(link, consumer.queue.into());
        }
    }

    /// All consumers of a channel end, and what they hold goes back.
    pub(super) fn end_consumers(&mut self, link: &mut Link, number: u16) {
        let Some(channel) = self.channels.find(number) else {
            return;
        };
        let mut ended = BTreeSet::new();
        for token in core::mem::take(&mut channel.consumers).into_values() {
            let Some(consumer) = self.consumers.by_token.get_mut(&token) else {
                continue;
            };
            match consumer.stage {
                Stage::Starting { .. } => consumer.stage = Stage::Dropped,
                Stage::Live | Stage::Ending | Stage::Dropped => {
                    // Those that are ending were unsubscribed before; what they hold stays in
                    // `unacked`.
                    let consumer = self.consumers.by_token.remove(&token);
                    if consumer.is_none_or(|consumer| consumer.stage == Stage::Ending) {
                        continue;
                    }
                }
            }
            ended.insert(token);
            link.requests.push(Request::Unsubscribe {
                sub: link.sub_id(token),
                held: Held::Requeue,
            });
        }
        if !ended.is_empty() {
            // The engine takes back what these hold.
            channel
                .unacked
                .forget(|message| ended.contains(&message.consumer));
        }
    }

    pub(super) fn on_get(
        &mut self,
        link: &mut Link,
        number: u16,
        get: &basic::Get<'_>,
    ) -> Result<(), Fault> {
        let queue = self.queue_name(number, get.queue)?;
        link.demand(Permission::Read, "queue", &queue)?;
        let held = self.channels.peek(number).map_or(0, |it| it.unacked.len());
        let max = link.config.unacked_max;
        if !get.no_ack && held >= max as usize {
            let text = format!("the channel holds {max} unacknowledged messages");
            return Err(Fault::precondition(text));
        }
        self.flush(link);
        self.ask_get(link, number, (get.no_ack, queue));
        Ok(())
    }

    /// Asks for the next message that fits a frame, as far as is known.
    pub(super) fn ask_get(
        &mut self,
        link: &mut Link,
        number: u16,
        (no_ack, queue): (bool, String),
    ) {
        self.occupy(number);
        let token = link.pending.insert(Waiting::Call {
            channel: number,
            method: basic::Get::ID,
            no_wait: false,
            call: Call::Get {
                no_ack,
                queue: queue.clone(),
            },
        });
        let spec = GetSpec {
            vhost: link.vhost,
            queue,
            frame_limit: link.frame_limit(),
            take: if no_ack {
                Take::NoAck
            } else {
                Take::Held {
                    ack_timeout_ms: link.config.ack_timeout_ms,
                }
            },
        };
        let reply = link.reply_to(token);
        link.requests.push(Request::Get { reply, spec });
    }
}
