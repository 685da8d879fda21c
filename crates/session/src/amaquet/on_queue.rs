//! `queue.*`: what the engine is asked.

use std::borrow::Cow;

use bytes::Bytes;
use tanda_engine::{
    AdminRequest, FrameLimit, GetSpec, MessageId, Permission, PublishBatch, PublishError,
    PublishItem, PublishTarget, Reclassify, Request, SettleBatch, SettleItem, SettleQueue,
    Settlement, Span, Take,
};
use tanda_wire::amaquet::command::{Command, PushedMessage, QueueNack, QueuePop, QueuePush};
use tanda_wire::amaquet::envelope::Failure;

use super::command::{Begun, Call, wait_of};
use super::fields::refused_within;
use super::link::Link;
use super::message::{Address, NAME_BYTES_MAX, append, write_message};
use super::outbound::Asked;
use super::queue_replies::{Named, no_queue};
use super::queue_settings;

impl Link {
    /// Begins a command on queues.
    ///
    /// # Errors
    /// What is wrong with it.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "no other command is about queues"
    )]
    pub(super) fn on_queue(&mut self, begun: Begun, command: &Command<'_>) -> Result<(), Failure> {
        match command {
            Command::QueueCreate(it) => {
                let spec = queue_settings::spec(self.vhost()?, it)?;
                let request = AdminRequest::CreateQueue(Box::new(spec));
                self.ask(begun, Call::Create(text(&it.queue)), request)
            }
            Command::QueuePush(it) => self.on_push(begun, it),
            Command::QueuePop(it) => self.on_pop(begun, it),
            Command::QueuePeek(it) => {
                let max = u32::try_from(it.max.0).unwrap_or(u32::MAX);
                self.get(
                    begun,
                    Call::Peek(text(&it.queue)),
                    (&it.queue, Take::Look { max }),
                )
            }
            Command::QueueAck(it) => {
                self.settle(begun, (&it.queue, &it.ids), Settlement::Ack, Vec::new())
            }
            Command::QueueNack(it) => self.on_nack(begun, it),
            Command::QueueExtend(it) => {
                let by_ms = it.extend_by_ms;
                let extend = Settlement::Extend { by_ms };
                self.settle(begun, (&it.queue, &it.ids), extend, Vec::new())
            }
            Command::QueueStats(it) => {
                let (vhost, name) = (self.vhost()?, it.queue.clone().into_owned());
                let request = AdminRequest::InspectQueue { vhost, name };
                self.ask(begun, Call::Stats(text(&it.queue)), request)
            }
            Command::QueueRedrive(it) => {
                let request = AdminRequest::Redrive {
                    vhost: self.vhost()?,
                    name: it.queue.clone().into_owned(),
                    count: it.count,
                    reclassify: Reclassify::All,
                };
                self.ask(begun, Call::Redrive(text(&it.queue)), request)
            }
            Command::QueueDelete(it) => {
                let (vhost, name) = (self.vhost()?, it.queue.clone().into_owned());
                let request = AdminRequest::DeleteQueue { vhost, name };
                self.ask(begun, Call::Delete(text(&it.queue)), request)
            }
            _ => Ok(()),
        }
    }

    fn on_push(&mut self, begun: Begun, push: &QueuePush<'_>) -> Result<(), Failure> {
        if push.queue.len() > NAME_BYTES_MAX {
            return Err(no_queue(&push.queue));
        }
        if push.messages.is_empty() {
            let asked = Asked::command(begun.request_id);
            self.outbound.result(asked, |out| {
                out.object(|out| out.key("messages").array(|_| {}));
            });
            return Ok(());
        }
        let mut data = Vec::new();
        let queue = append(&mut data, &push.queue);
        let mut items = Vec::with_capacity(push.messages.len());
        for (at, message) in push.messages.iter().enumerate() {
            let address = Address {
                exchange: "",
                key: &push.queue,
            };
            let written = write_message(&mut data, address, &message.payload, &message.headers);
            let item = written.map_err(|error| refused_within("messages", at, error))?;
            items.push(self.pushed(&mut data, message, (item, queue)));
        }
        let batch = PublishBatch {
            vhost: self.vhost()?,
            data: Bytes::from(data),
            items,
            ..PublishBatch::default()
        };
        let reply = self.begin(begun, Call::Push(text(&push.queue)), None)?;
        self.requests.push(Request::Publish { reply, batch });
        Ok(())
    }

    /// What else a message says of itself.
    fn pushed(
        &self,
        data: &mut Vec<u8>,
        message: &PushedMessage<'_>,
        (item, queue): (PublishItem, Span),
    ) -> PublishItem {
        let is_too_large = message.payload.len() as u64 > self.config.limits.max_message_bytes;
        let target = match is_too_large {
            true => PublishTarget::Refused(PublishError::TooLarge),
            false => PublishTarget::Name(queue),
        };
        let fairness_key = message.fairness_key.as_deref().unwrap_or_default();
        let weight = message.weight.map_or(0, |weight| weight.0);
        PublishItem {
            target,
            fairness_key: append(data, fairness_key),
            weight: u32::try_from(weight).unwrap_or(u32::MAX),
            delay_ms: message.delay_ms,
            idempotency_key: message
                .idempotency_key
                .as_deref()
                .map(|key| append(data, key)),
            ..item
        }
    }

    fn on_pop(&mut self, begun: Begun, pop: &QueuePop<'_>) -> Result<(), Failure> {
        let take = Take::Leased {
            max: u32::try_from(pop.max.0).unwrap_or(u32::MAX),
            lease_ms: pop.lease_ms,
            wait_ms: pop.wait_ms.0,
        };
        let spec = GetSpec {
            vhost: self.vhost()?,
            queue: pop.queue.clone().into_owned(),
            frame_limit: FrameLimit::None,
            take,
        };
        let wait = wait_of(&pop.queue, Permission::Consume, pop.wait_ms.0);
        let reply = self.begin(begun, Call::Pop(text(&pop.queue)), wait)?;
        self.requests.push(Request::Get { reply, spec });
        Ok(())
    }

    fn get(
        &mut self,
        begun: Begun,
        call: Call,
        (queue, take): (&str, Take),
    ) -> Result<(), Failure> {
        let spec = GetSpec {
            vhost: self.vhost()?,
            queue: queue.to_owned(),
            frame_limit: FrameLimit::None,
            take,
        };
        let reply = self.begin(begun, call, None)?;
        self.requests.push(Request::Get { reply, spec });
        Ok(())
    }

    fn on_nack(&mut self, begun: Begun, nack: &QueueNack<'_>) -> Result<(), Failure> {
        let mut data = Vec::new();
        let error = append(&mut data, nack.error.as_deref().unwrap_or_default());
        let fail = Settlement::Fail {
            error,
            retry_after_ms: nack.retry_after_ms,
        };
        self.settle(begun, (&nack.queue, &nack.ids), fail, data)
    }

    /// Settles messages; what cannot be an id is none of them. A span of the settlement lies in
    /// `data`.
    fn settle(
        &mut self,
        begun: Begun,
        (queue, ids): (&str, &[Cow<'_, str>]),
        settlement: Settlement,
        mut data: Vec<u8>,
    ) -> Result<(), Failure> {
        let queue = SettleQueue::Name(append(&mut data, queue));
        let (mut items, mut named) = (Vec::new(), Vec::with_capacity(ids.len()));
        for text in ids {
            let id = MessageId::parse(text);
            let text = (&**text).into();
            let is_id = id.is_some();
            named.push(Named { text, is_id });
            items.extend(id.map(|id| SettleItem {
                queue,
                id,
                settlement,
            }));
        }
        let batch = SettleBatch {
            vhost: self.vhost()?,
            data: Bytes::from(data),
            items,
        };
        let extends = matches!(settlement, Settlement::Extend { .. });
        let reply = self.begin(begun, Call::Settle { named, extends }, None)?;
        self.requests.push(Request::Settle { reply, batch });
        Ok(())
    }
}

fn text(text: &str) -> Box<str> {
    text.into()
}
