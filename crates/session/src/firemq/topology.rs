//! Exchanges, queues and bindings: what the session checks, and what it asks of the engine.

use bytes::Bytes;
use tanda_engine::{AdminRequest, BindingSpec, DeclareQueue, Destination, ExchangeSpec};
use tanda_wire::amqp::Table;
use tanda_wire::firemq::RawMap;
use tanda_wire::firemq::topology::{
    Bind, DeclareExchange, DeclareQueue as Declare, DeleteExchange, DeleteQueue, PurgeQueue, Unbind,
};
use tanda_wire::mapping::write_amqp_table;

use super::fault::Fault;
use super::link::Link;
use super::open::Open;
use super::pending::{Call, Waiting};
use crate::login::Permission;

/// Longest name of an exchange or queue, routing key and consumer tag, in bytes: what AMQP can say.
pub(super) const NAME_BYTES_MAX: usize = 255;

/// Bytes of arguments, as a map and as a table.
const ARGUMENTS_BYTES_MAX: usize = 128 << 10;

impl Open {
    pub(super) fn on_declare_exchange(
        &mut self,
        link: &mut Link,
        declare: &DeclareExchange<'_>,
    ) -> Result<(), Fault> {
        let name = name(declare.name)?;
        let args = arguments(declare.args)?;
        if !declare.passive {
            let table = Table::new(&args).unwrap_or_default();
            let demanded = link.permits().demand_exchange(&name, table);
            demanded.map_err(Fault::refused)?;
        }
        let spec = ExchangeSpec {
            vhost: link.vhost,
            name,
            kind: declare.kind.to_owned(),
            durable: declare.durable,
            auto_delete: declare.auto_delete,
            internal: declare.internal,
            passive: declare.passive,
            args,
        };
        let request = AdminRequest::DeclareExchange(Box::new(spec));
        self.call(link, declare.rid, Call::Make, request);
        Ok(())
    }

    pub(super) fn on_delete_exchange(
        &mut self,
        link: &mut Link,
        delete: &DeleteExchange<'_>,
    ) -> Result<(), Fault> {
        let name = name(delete.name)?;
        link.demand(Permission::Configure, "exchange", &name)?;
        let request = AdminRequest::DeleteExchange {
            vhost: link.vhost,
            name,
            if_unused: delete.if_unused,
        };
        self.call(link, delete.rid, Call::DeleteExchange, request);
        Ok(())
    }

    pub(super) fn on_declare_queue(
        &mut self,
        link: &mut Link,
        declare: &Declare<'_>,
    ) -> Result<(), Fault> {
        let name = name(declare.name)?;
        let args = arguments(declare.args)?;
        if declare.passive && name.is_empty() {
            return Err(Fault::no_queue("", &link.vhost_name));
        }
        if !declare.passive {
            let table = Table::new(&args).unwrap_or_default();
            let demanded = link.permits().demand_queue(&name, table);
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
        let request = AdminRequest::DeclareQueue(Box::new(spec));
        self.call(link, declare.rid, Call::DeclareQueue, request);
        Ok(())
    }

    pub(super) fn on_delete_queue(
        &mut self,
        link: &mut Link,
        delete: &DeleteQueue<'_>,
    ) -> Result<(), Fault> {
        let name = name(delete.name)?;
        link.demand(Permission::Configure, "queue", &name)?;
        let request = AdminRequest::RemoveQueue {
            vhost: link.vhost,
            name,
            if_unused: delete.if_unused,
            if_empty: delete.if_empty,
        };
        self.call(link, delete.rid, Call::DeleteQueue, request);
        Ok(())
    }

    pub(super) fn on_purge_queue(
        &mut self,
        link: &mut Link,
        purge: &PurgeQueue<'_>,
    ) -> Result<(), Fault> {
        let name = name(purge.name)?;
        link.demand(Permission::Read, "queue", &name)?;
        let vhost = link.vhost;
        self.call(
            link,
            purge.rid,
            Call::Purge,
            AdminRequest::Purge { vhost, name },
        );
        Ok(())
    }

    pub(super) fn on_bind(&mut self, link: &mut Link, bind: &Bind<'_>) -> Result<(), Fault> {
        let ends = Ends {
            exchange: bind.exchange,
            queue: bind.queue,
            to_exchange: bind.to_exchange,
            key: bind.key,
        };
        let request = AdminRequest::Bind(ends.check(link, bind.args)?);
        self.call(link, bind.rid, Call::Make, request);
        Ok(())
    }

    pub(super) fn on_unbind(&mut self, link: &mut Link, unbind: &Unbind<'_>) -> Result<(), Fault> {
        let ends = Ends {
            exchange: unbind.exchange,
            queue: unbind.queue,
            to_exchange: unbind.to_exchange,
            key: unbind.key,
        };
        let request = AdminRequest::Unbind(ends.check(link, unbind.args)?);
        self.call(link, unbind.rid, Call::Unbind, request);
        Ok(())
    }

    /// Asks the engine on behalf of a request, behind all that came before.
    fn call(&mut self, link: &mut Link, rid: u64, call: Call, request: AdminRequest) {
        self.flush(link);
        link.ask(Waiting::Call { rid, call }, request);
    }
}

/// A binding as it was asked for.
struct Ends<'a> {
    exchange: &'a str,
    queue: &'a str,
    to_exchange: &'a str,
    key: &'a str,
}

impl Ends<'_> {
    fn check(&self, link: &Link, args: RawMap<'_>) -> Result<Box<BindingSpec>, Fault> {
        let destination = match (self.queue, self.to_exchange) {
            (queue, "") if !queue.is_empty() => Destination::Queue(name(queue)?),
            ("", exchange) if !exchange.is_empty() => Destination::Exchange(name(exchange)?),
            _ => {
                let text = "exactly one of queue and to_exchange is set";
                return Err(Fault::precondition(text));
            }
        };
        if self.key.len() > NAME_BYTES_MAX {
            return Err(too_long("key", self.key));
        }
        let spec = BindingSpec {
            vhost: link.vhost,
            source: name(self.exchange)?,
            destination,
            key: self.key.to_owned(),
            args: arguments(args)?,
        };
        let demanded = link.permits().demand_binding(&spec);
        demanded.map_err(Fault::refused)?;
        Ok(Box::new(spec))
    }
}

/// The name of an exchange or queue: without line breaks, as AMQP clients get it.
pub(super) fn name(value: &str) -> Result<String, Fault> {
    if value.len() > NAME_BYTES_MAX {
        return Err(too_long("name", value));
    }
    Ok(value
        .chars()
        .filter(|it| !matches!(it, '\r' | '\n'))
        .collect())
}

fn too_long(what: &str, value: &str) -> Fault {
    let len = value.len();
    Fault::precondition(format!(
        "a {what} has at most {NAME_BYTES_MAX} bytes, not {len}"
    ))
}

/// Arguments as they are kept: a table of AMQP.
pub(super) fn arguments(args: RawMap<'_>) -> Result<Bytes, Fault> {
    if args.is_empty() {
        return Ok(Bytes::new());
    }
    let mut table = Vec::new();
    write_amqp_table(&mut table, args, ARGUMENTS_BYTES_MAX)
        .map_err(|error| Fault::precondition(format!("args: {error}")))?;
    Ok(table.into())
}
