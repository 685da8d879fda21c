//! Exchanges, queues and bindings: what the session checks, and what it asks of the engine.

use bytes::Bytes;
use tanda_engine::{AdminRequest, BindingSpec, DeclareQueue, Destination, ExchangeSpec};
use tanda_wire::amqp::{Arguments, ReplyCode, ShortStr, Table, exchange, queue};

use super::checks::REPLY_TO;
use super::fault::Fault;
use super::link::Link;
use super::names;
use super::open::Open;
use super::pending::Call;
use crate::login::Permission;

impl Open {
    pub(super) fn on_declare_exchange(
        &mut self,
        link: &mut Link,
        number: u16,
        declare: &exchange::Declare<'_>,
    ) -> Result<(), Fault> {
        let name = names::name(declare.exchange)?;
        let kind = names::text(declare.exchange_type)?.to_owned();
        let args = names::arguments(declare.arguments)?;
        if !declare.passive {
            let demanded = link.permits().demand_exchange(&name, declare.arguments);
            demanded.map_err(Fault::refused)?;
        }
        let spec = ExchangeSpec {
            vhost: link.vhost,
            name,
            kind,
            durable: declare.durable,
            auto_delete: declare.auto_delete,
            internal: declare.internal,
            passive: declare.passive,
            args,
        };
        let to = (number, exchange::Declare::ID, declare.no_wait);
        let request = AdminRequest::DeclareExchange(Box::new(spec));
        self.call_for(link, to, Call::DeclareExchange, request);
        Ok(())
    }

    pub(super) fn on_delete_exchange(
        &mut self,
        link: &mut Link,
        number: u16,
        delete: &exchange::Delete<'_>,
    ) -> Result<(), Fault> {
        let name = names::name(delete.exchange)?;
        link.demand(Permission::Configure, "exchange", &name)?;
        let request = AdminRequest::DeleteExchange {
            vhost: link.vhost,
            name,
            if_unused: delete.if_unused,
        };
        let to = (number, exchange::Delete::ID, delete.no_wait);
        self.call_for(link, to, Call::DeleteExchange, request);
        Ok(())
    }

    pub(super) fn on_bind_exchange(
        &mut self,
        link: &mut Link,
        number: u16,
        bind: &exchange::Bind<'_>,
    ) -> Result<(), Fault> {
        let ends = Ends {
            source: names::name(bind.source)?,
            destination: Destination::Exchange(names::name(bind.destination)?),
            key: names::text(bind.routing_key)?.to_owned(),
        };
        let request = AdminRequest::Bind(ends.check(link, bind.arguments)?);
        let to = (number, exchange::Bind::ID, bind.no_wait);
        self.call_for(link, to, Call::BindExchange, request);
        Ok(())
    }

    pub(super) fn on_unbind_exchange(
        &mut self,
        link: &mut Link,
        number: u16,
        unbind: &exchange::Unbind<'_>,
    ) -> Result<(), Fault> {
        let ends = Ends {
            source: names::name(unbind.source)?,
            destination: Destination::Exchange(names::name(unbind.destination)?),
            key: names::text(unbind.routing_key)?.to_owned(),
        };
        let request = AdminRequest::Unbind(ends.check(link, unbind.arguments)?);
        let to = (number, exchange::Unbind::ID, unbind.no_wait);
        self.call_for(link, to, Call::UnbindExchange, request);
        Ok(())
    }

    pub(super) fn on_declare_queue(
        &mut self,
        link: &mut Link,
        number: u16,
        declare: &queue::Declare<'_>,
    ) -> Result<(), Fault> {
        let name = names::name(declare.queue)?;
        if name.starts_with(REPLY_TO) {
            return self.find_reply_queue(link, number, declare, name);
        }
        if declare.passive && name.is_empty() {
            return Err(Fault::no_queue("", &link.vhost_name));
        }
        let args = names::arguments(declare.arguments)?;
        if !declare.passive {
            let demanded = link.permits().demand_queue(&name, declare.arguments);
            demanded.map_err(Fault::refused)?;
        }
        let spec = DeclareQueue {
            vhost: link.vhost,
            name,
            durable: declare.durable,
            exclusive: declare.exclusive,
            auto_delete: declare.auto_delete,
            passive: declare.passive,
            args,
        };
        self.has_own_queues |= declare.exclusive && !declare.passive;
        let to = (number, queue::Declare::ID, declare.no_wait);
        let request = AdminRequest::DeclareQueue(Box::new(spec));
        self.call_for(link, to, Call::DeclareQueue, request);
        Ok(())
    }

    /// An address for replies can only be looked for, whatever is asked. The address that stands
    /// for each channel's own always exists.
    fn find_reply_queue(
        &mut self,
        link: &mut Link,
        number: u16,
        declare: &queue::Declare<'_>,
        name: String,
    ) -> Result<(), Fault> {
        if name == REPLY_TO {
            say_reply_queue(link, number, declare.no_wait, &name);
            return Ok(());
        }
        let spec = DeclareQueue {
            vhost: link.vhost,
            name: name.clone(),
            passive: true,
            ..DeclareQueue::default()
        };
        let to = (number, queue::Declare::ID, declare.no_wait);
        let request = AdminRequest::DeclareQueue(Box::new(spec));
        self.call_for(link, to, Call::FindReplyQueue { name }, request);
        Ok(())
    }

    pub(super) fn on_bind_queue(
        &mut self,
        link: &mut Link,
        number: u16,
        bind: &queue::Bind<'_>,
    ) -> Result<(), Fault> {
        let ends = self.queue_ends(number, bind.queue, bind.exchange, bind.routing_key)?;
        let request = AdminRequest::Bind(ends.check(link, bind.arguments)?);
        let to = (number, queue::Bind::ID, bind.no_wait);
        self.call_for(link, to, Call::BindQueue, request);
        Ok(())
    }

    pub(super) fn on_unbind_queue(
        &mut self,
        link: &mut Link,
        number: u16,
        unbind: &queue::Unbind<'_>,
    ) -> Result<(), Fault> {
        let ends = self.queue_ends(number, unbind.queue, unbind.exchange, unbind.routing_key)?;
        let request = AdminRequest::Unbind(ends.check(link, unbind.arguments)?);
        let to = (number, queue::Unbind::ID, false);
        self.call_for(link, to, Call::UnbindQueue, request);
        Ok(())
    }

    pub(super) fn on_purge(
        &mut self,
        link: &mut Link,
        number: u16,
        purge: &queue::Purge<'_>,
    ) -> Result<(), Fault> {
        let name = self.queue_name(number, purge.queue)?;
        link.demand(Permission::Read, "queue", &name)?;
        let vhost = link.vhost;
        let to = (number, queue::Purge::ID, purge.no_wait);
        let request = AdminRequest::Purge { vhost, name };
        self.call_for(link, to, Call::Purge, request);
        Ok(())
    }

    pub(super) fn on_delete_queue(
        &mut self,
        link: &mut Link,
        number: u16,
        delete: &queue::Delete<'_>,
    ) -> Result<(), Fault> {
        let name = self.queue_name(number, delete.queue)?;
        link.demand(Permission::Configure, "queue", &name)?;
        let request = AdminRequest::RemoveQueue {
            vhost: link.vhost,
            name,
            if_unused: delete.if_unused,
            if_empty: delete.if_empty,
        };
        let to = (number, queue::Delete::ID, delete.no_wait);
        self.call_for(link, to, Call::DeleteQueue, request);
        Ok(())
    }

    /// A queue's name; an empty one means the queue declared last on this channel.
    pub(super) fn queue_name(&self, number: u16, queue: ShortStr<'_>) -> Result<String, Fault> {
        let name = names::name(queue)?;
        if !name.is_empty() {
            return Ok(name);
        }
        let channel = self.channels.peek(number);
        let last = channel.and_then(|channel| channel.last_queue.clone());
        last.ok_or_else(|| Fault::new(ReplyCode::NotFound, "no previously declared queue"))
    }

    /// The ends of a queue's binding. Without a queue and a key, the key is the queue's name too.
    fn queue_ends(
        &self,
        number: u16,
        queue: ShortStr<'_>,
        exchange: ShortStr<'_>,
        key: ShortStr<'_>,
    ) -> Result<Ends, Fault> {
        let name = self.queue_name(number, queue)?;
        let key = if queue.is_empty() && key.is_empty() {
            name.clone()
        } else {
            names::text(key)?.to_owned()
        };
        Ok(Ends {
            source: names::name(exchange)?,
            destination: Destination::Queue(name),
            key,
        })
    }
}

/// Says that replies can be sent to this address.
pub(super) fn say_reply_queue(link: &mut Link, number: u16, no_wait: bool, name: &str) {
    if !no_wait {
        let declare_ok = queue::DeclareOk {
            queue: ShortStr::clip(name),
            message_count: 0,
            consumer_count: 1,
        };
        link.outbound.method(number, declare_ok);
    }
}

struct Ends {
    source: String,
    destination: Destination,
    key: String,
}

impl Ends {
    /// A binding takes from its source and gives to its destination.
    fn check(self, link: &Link, arguments: Table<'_>) -> Result<Box<BindingSpec>, Fault> {
        let args: Bytes = names::arguments(arguments)?;
        let spec = BindingSpec {
            vhost: link.vhost,
            source: self.source,
            destination: self.destination,
            key: self.key,
            args,
        };
        let demanded = link.permits().demand_binding(&spec);
        demanded.map_err(Fault::refused)?;
        Ok(Box::new(spec))
    }
}
