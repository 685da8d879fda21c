//! A broker as AMQP and FireMQ see it: queues that are declared, consumers that hold messages until
//! their connection is gone.

use bytes::Bytes;
use tanda_engine::{
    AdminReply, AdminRequest, ConnId, ConnLimits, DeclareQueue, DeclaredQueue, Event, GetError,
    GetSpec, Got, Held, LeaseMode, ReplyTo, Request, Settlement, SubId, SubscribeError,
    SubscribeSpec, TopologyCode, VhostId,
};
use tanda_wire::amqp::Value;

use crate::broker::Broker;
use crate::harness::Harness;

pub(crate) const ACK: Settlement = Settlement::Ack;
pub(crate) const REQUEUE: Settlement = Settlement::Nack { requeue: true };
pub(crate) const REJECT: Settlement = Settlement::Nack { requeue: false };

/// A broker without queues.
pub(crate) fn broker() -> Broker {
    Broker::over(Harness::new())
}

/// Arguments as they are on the wire.
pub(crate) fn args(entries: &[(&str, Value<'_>)]) -> Bytes {
    let mut out = Vec::new();
    for (key, value) in entries {
        out.push(u8::try_from(key.len()).unwrap());
        out.extend_from_slice(key.as_bytes());
        value.write(&mut out);
    }
    out.into()
}

/// A durable queue.
pub(crate) fn durable(name: &str) -> DeclareQueue {
    DeclareQueue {
        name: name.to_owned(),
        durable: true,
        ..DeclareQueue::default()
    }
}

/// A durable queue with arguments.
pub(crate) fn with_args(name: &str, entries: &[(&str, Value<'_>)]) -> DeclareQueue {
    DeclareQueue {
        args: args(entries),
        ..durable(name)
    }
}

/// A queue that is gone after a restart.
pub(crate) fn transient_queue(name: &str) -> DeclareQueue {
    DeclareQueue {
        durable: false,
        ..durable(name)
    }
}

/// A queue of its connection.
pub(crate) fn exclusive(name: &str) -> DeclareQueue {
    DeclareQueue {
        exclusive: true,
        ..transient_queue(name)
    }
}

pub(crate) fn passive(name: &str) -> DeclareQueue {
    DeclareQueue {
        passive: true,
        ..transient_queue(name)
    }
}

/// What a consumer of AMQP asks for.
pub(crate) fn consume(queue: &str, credit: Option<u32>) -> SubscribeSpec {
    SubscribeSpec {
        queue: queue.to_owned(),
        credit,
        lease: LeaseMode::Connection,
        ..SubscribeSpec::default()
    }
}

impl Broker {
    pub(crate) fn client(&mut self) -> ConnId {
        self.connect(ConnLimits {
            outbound_bytes_max: 1 << 30,
            subscriptions_max: 100,
        })
    }

    fn ask_as(&mut self, conn: ConnId, request: AdminRequest) -> AdminReply {
        let token = self.h.token();
        let reply = ReplyTo { conn, token };
        self.handle(Request::Admin { reply, request });
        self.run();
        self.answer(token)
    }

    /// The queue that is there now, or the code and text of the refusal.
    pub(crate) fn declare(
        &mut self,
        conn: ConnId,
        queue: DeclareQueue,
    ) -> Result<DeclaredQueue, (TopologyCode, String)> {
        match self.ask_as(conn, AdminRequest::DeclareQueue(Box::new(queue))) {
            AdminReply::QueueDeclared(result) => result.map_err(|error| (error.code, error.text)),
            other => panic!("{other:?}"),
        }
    }

    /// Like [`Self::declare`]; it must be there then.
    pub(crate) fn declared(&mut self, conn: ConnId, queue: DeclareQueue) {
        self.declare(conn, queue).unwrap();
    }

    /// The text of a refusal that is a failed precondition.
    pub(crate) fn precondition(&mut self, conn: ConnId, queue: DeclareQueue) -> String {
        match self.declare(conn, queue) {
            Err((TopologyCode::PreconditionFailed, text)) => text,
            other => panic!("{other:?}"),
        }
    }

    /// The queue is there.
    pub(crate) fn exists(&mut self, conn: ConnId, name: &str) -> bool {
        match self.declare(conn, passive(name)) {
            Ok(_) => true,
            Err((TopologyCode::NotFound, _)) => false,
            Err(other) => panic!("{other:?}"),
        }
    }

    pub(crate) fn remove(
        &mut self,
        conn: ConnId,
        name: &str,
        (if_unused, if_empty): (bool, bool),
    ) -> Result<u64, (TopologyCode, String)> {
        let request = AdminRequest::RemoveQueue {
            vhost: VhostId::DEFAULT,
            name: name.to_owned(),
            if_unused,
            if_empty,
        };
        match self.ask_as(conn, request) {
            AdminReply::QueueRemoved(result) => result.map_err(|error| (error.code, error.text)),
            other => panic!("{other:?}"),
        }
    }

    /// What closing does to exclusive queues of this connection.
    pub(crate) fn remove_own(&mut self, conn: ConnId) -> Result<u64, (TopologyCode, String)> {
        match self.ask_as(conn, AdminRequest::RemoveOwnQueues) {
            AdminReply::QueueRemoved(result) => result.map_err(|error| (error.code, error.text)),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn purge(
        &mut self,
        conn: ConnId,
        name: &str,
    ) -> Result<u64, (TopologyCode, String)> {
        let request = AdminRequest::Purge {
            vhost: VhostId::DEFAULT,
            name: name.to_owned(),
        };
        match self.ask_as(conn, request) {
            AdminReply::QueuePurged(result) => result.map_err(|error| (error.code, error.text)),
            other => panic!("{other:?}"),
        }
    }

    /// A named subscription; passes.
    pub(crate) fn consumer(&mut self, conn: ConnId, name: &str, spec: SubscribeSpec) -> SubId {
        let sub = self.h.subscribe_with(conn, spec);
        self.name_worker(sub, name);
        self.run();
        sub
    }

    /// Why a subscription is refused.
    pub(crate) fn refused_consumer(&mut self, conn: ConnId, spec: SubscribeSpec) -> SubscribeError {
        let token = self.h.token();
        let sub = SubId { conn, token };
        let out = self.h.handle(Request::Subscribe { sub, spec });
        match &out[0].event {
            Event::SubscribeFailed { error, .. } => error.clone(),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn cancel(&mut self, sub: SubId, held: Held) {
        self.handle(Request::Unsubscribe { sub, held });
        self.run();
    }

    pub(crate) fn leave(&mut self, conn: ConnId) {
        self.handle(Request::Disconnect { conn });
        self.run();
    }

    pub(crate) fn get_with(&mut self, conn: ConnId, spec: GetSpec) -> Result<Got, GetError> {
        let token = self.h.token();
        let reply = ReplyTo { conn, token };
        let mut out = self.h.handle(Request::Get { reply, spec });
        match out.pop().map(|output| output.event) {
            Some(Event::Got { result, .. }) => result,
            other => panic!("{other:?}"),
        }
    }

    /// One message, as `name` or `name (again)`, with how many are left.
    pub(crate) fn get(&mut self, conn: ConnId, queue: &str) -> (String, u64) {
        self.get_as(
            conn,
            GetSpec {
                queue: queue.to_owned(),
                ..GetSpec::default()
            },
        )
    }

    pub(crate) fn get_as(&mut self, conn: ConnId, spec: GetSpec) -> (String, u64) {
        let got = self.get_with(conn, spec).unwrap();
        let Some(batch) = got.batch else {
            return (String::new(), got.remaining);
        };
        assert_eq!(batch.items.len(), 1);
        let item = batch.items[0];
        let again = if item.deliveries > 1 { " (again)" } else { "" };
        (format!("{}{again}", self.name_of(item.id)), got.remaining)
    }

    pub(crate) fn refused_get(&mut self, conn: ConnId, queue: &str) -> GetError {
        let spec = GetSpec {
            queue: queue.to_owned(),
            ..GetSpec::default()
        };
        self.get_with(conn, spec).unwrap_err()
    }

    /// Deliveries since the last look as `consumer: names`, each name with `*` when redelivered;
    /// ends of subscriptions as they are.
    pub(crate) fn told_consumers(&mut self) -> Vec<String> {
        let out = core::mem::take(&mut self.out);
        let mut lines = Vec::new();
        for output in out {
            let conn = output.conn;
            match output.event {
                Event::Delivery { token, batch } => {
                    let names = batch.items.iter().map(|item| {
                        let again = if item.deliveries > 1 { "*" } else { "" };
                        format!("{}{again}", self.name_of(item.id))
                    });
                    let names: Vec<_> = names.collect();
                    let worker = self.worker_name(SubId { conn, token });
                    lines.push(format!("{worker}: {}", names.join(" ")));
                }
                Event::SubscriptionEnded { token, reason } => {
                    let worker = self.worker_name(SubId { conn, token });
                    lines.push(format!("{worker} {reason:?}"));
                }
                other => panic!("{other:?}"),
            }
        }
        lines
    }
}
