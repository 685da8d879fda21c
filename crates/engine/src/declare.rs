//! Queues are declared, removed and purged as AMQP and FireMQ do.

use crate::engine::{Cx, Engine};
use crate::{
    AdminReply, ConnId, DeclareQueue, DeclaredQueue, ReplyTo, TopologyCode, TopologyError, VhostId,
};

/// When a queue is to be removed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnlyIf {
    /// Only when nobody consumes from it.
    pub(crate) unused: bool,
    /// Only when it has no ready messages.
    pub(crate) empty: bool,
}

impl Engine {
    #[expect(clippy::unused_self, reason = "not implemented yet")]
    pub(crate) fn declare_queue(
        &mut self,
        _cx: &mut Cx<'_>,
        _conn: ConnId,
        _declare: &DeclareQueue,
    ) -> Result<DeclaredQueue, TopologyError> {
        Err(not_implemented("queue.declare"))
    }

    #[expect(clippy::unused_self, reason = "not implemented yet")]
    pub(crate) fn remove_queue(
        &mut self,
        _cx: &mut Cx<'_>,
        _conn: ConnId,
        _name: (VhostId, &str),
        only: OnlyIf,
    ) -> Result<u64, TopologyError> {
        let _ = (only.unused, only.empty);
        Err(not_implemented("queue.delete"))
    }

    pub(crate) fn purge_named(&mut self, cx: &mut Cx<'_>, to: ReplyTo, _name: (VhostId, &str)) {
        let error = not_implemented("queue.purge");
        self.answer(cx, to, AdminReply::QueuePurged(Err(error)));
    }
}

pub(crate) fn not_implemented(what: &str) -> TopologyError {
    let text = format!("{what} is not implemented yet");
    TopologyError::new(TopologyCode::NotImplemented, text)
}
