//! Messages and settlements that take effect together or not at all.

use crate::engine::{Cx, Engine};
use crate::{
    Event, Lsn, PublishBatch, PublishError, PublishResult, ReplyTo, SettleBatch, SettleError,
};

impl Engine {
    /// Not implemented yet: nothing of it is taken.
    #[expect(clippy::unused_self, reason = "not implemented yet")]
    pub(crate) fn on_transaction(
        &mut self,
        cx: &mut Cx<'_>,
        reply: ReplyTo,
        (publish, settle): (&PublishBatch, &SettleBatch),
    ) {
        let refused = PublishResult::Refused(PublishError::Forbidden);
        let event = Event::Committed {
            token: reply.token,
            published: vec![refused; publish.items.len()],
            settled: vec![Err(SettleError::Forbidden); settle.items.len()],
        };
        cx.emit(reply.conn, Lsn::ZERO, event);
    }
}
