//! Answers about virtual hosts, exchanges, bindings and queues of AMQP and FireMQ.

use bytes::Bytes;
use tanda_engine::{
    AdminReply, BindingInfo, DeclaredQueue, Destination, ExchangeInfo, ExchangeKind, QueueInfo,
    QueueKind, QueueOrigin, TopologyCode, TopologyError, VhostId, VhostInfo,
};

use super::admin_replies::{Make, counts, text};
use crate::script::Script;

/// One of each kind.
pub(super) const ALL: [Make; 14] = [
    |script| AdminReply::Vhost(either(script, VhostId(3))),
    |script| AdminReply::VhostChanged(either(script, ())),
    |script| {
        let vhost = VhostInfo {
            id: VhostId(script.u32()),
            name: text(script),
        };
        AdminReply::Vhosts(vec![vhost; script.pick(4)])
    },
    |script| AdminReply::ExchangeDeclared(either(script, ())),
    |script| AdminReply::ExchangeDeleted(either(script, ())),
    |script| AdminReply::Bound(either(script, ())),
    |script| AdminReply::Unbound(either(script, ())),
    |script| {
        let exchange = ExchangeInfo {
            name: text(script),
            kind: ExchangeKind::Topic,
            durable: true,
            auto_delete: false,
            internal: false,
            args: Bytes::new(),
            bindings: script.u64(),
            watches: script.u64(),
        };
        AdminReply::Exchanges(either(script, vec![exchange]))
    },
    |script| {
        let binding = BindingInfo {
            source: text(script),
            destination: Destination::Exchange(text(script)),
            key: text(script),
            args: Bytes::new(),
        };
        AdminReply::Bindings(either(script, vec![binding]))
    },
    |script| {
        let queue = DeclaredQueue {
            name: text(script),
            messages: script.u64(),
            consumers: script.u32(),
        };
        AdminReply::QueueDeclared(either(script, queue))
    },
    |script| {
        let messages = script.u64();
        AdminReply::QueueRemoved(either(script, messages))
    },
    |script| {
        let messages = script.u64();
        AdminReply::QueuePurged(either(script, messages))
    },
    |script| {
        let queue = QueueInfo {
            name: text(script),
            origin: QueueOrigin::Declared,
            durable: true,
            exclusive: false,
            auto_delete: false,
            args: Bytes::new(),
            kind: QueueKind::Classic,
            counts: counts(script),
        };
        AdminReply::QueuesOf(either(script, vec![queue]))
    },
    |script| AdminReply::VhostDeleted(either(script, VhostId(3))),
];

/// What was asked for, or a refusal.
fn either<T>(script: &mut Script<'_>, value: T) -> Result<T, TopologyError> {
    let code = match script.pick(5) {
        0 => TopologyCode::AccessRefused,
        1 => TopologyCode::NotFound,
        2 => TopologyCode::PreconditionFailed,
        _ => return Ok(value),
    };
    let text = text(script);
    Err(TopologyError { code, text })
}
