//! One message without a subscription; limits that consumers share.

use crate::declare::not_implemented;
use crate::engine::{Cx, Engine};
use crate::{ConnId, Event, GetError, GetSpec, PoolChange, ReplyTo};

impl Engine {
    pub(crate) fn on_get(&mut self, cx: &mut Cx<'_>, reply: ReplyTo, spec: &GetSpec) {
        let error = match self.queues.find_in(spec.vhost, &spec.queue) {
            None => GetError::NotFound,
            Some(_) => GetError::Topology(not_implemented("basic.get")),
        };
        let event = Event::Got {
            token: reply.token,
            result: Err(error),
        };
        cx.emit(reply.conn, self.queues.last_lsn, event);
    }

    /// Consumers that ask for a shared limit are refused, so there is none to change.
    #[expect(clippy::unused_self, reason = "not implemented yet")]
    pub(crate) const fn on_pool(&mut self, _conn: ConnId, _pool: u32, _change: PoolChange) {}
}
