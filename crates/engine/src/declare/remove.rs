//! Queues go: removed, or by themselves.

use super::say;
use crate::engine::{Cx, Engine};
use crate::queues::QueueIndex;
use crate::record::{Kind, begin};
use crate::topology::put_exchanges;
use crate::{
    AdminReply, ConnId, Lsn, Millis, QueueId, ReplyTo, TopologyCode, TopologyError, VhostId,
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
    pub(crate) fn on_remove_queue(
        &mut self,
        cx: &mut Cx<'_>,
        to: ReplyTo,
        name: (VhostId, &str),
        only: OnlyIf,
    ) {
        let (after, result) = match self.remove_queue(cx, to.conn, name, only) {
            Ok((after, removed)) => (after, Ok(removed)),
            Err(error) => (self.queues.last_lsn, Err(error)),
        };
        say(cx, to, after, AdminReply::QueueRemoved(result));
    }

    /// A connection is about to be closed, and its exclusive queues go before it hears of that.
    pub(crate) fn on_remove_own_queues(&mut self, cx: &mut Cx<'_>, to: ReplyTo) {
        let (after, messages) = self.delete_owned(cx, to.conn);
        say(cx, to, after, AdminReply::QueueRemoved(Ok(messages)));
    }

    /// Removes a queue; the position its answer waits for, and the messages that went with it.
    fn remove_queue(
        &mut self,
        cx: &mut Cx<'_>,
        conn: ConnId,
        (vhost, name): (VhostId, &str),
        only: OnlyIf,
    ) -> Result<(Lsn, u64), TopologyError> {
        let Some(index) = self.queues.find_in(vhost, name) else {
            return Ok((self.queues.last_lsn, 0));
        };
        self.check_owner(index, conn)?;
        let queue = self.queues.at(index);
        let precondition = TopologyCode::PreconditionFailed;
        if queue.is_dead_letter() {
            let text = self.text_of(index);
            let text = format!("{text} has the dead letters of another one and goes with it");
            return Err(TopologyError::new(precondition, text));
        }
        if only.unused && !queue.consumers.is_empty() {
            let text = format!("{} in use", self.text_of(index));
            return Err(TopologyError::new(precondition, text));
        }
        if only.empty && queue.depth() > 0 {
            let text = format!("{} not empty", self.text_of(index));
            return Err(TopologyError::new(precondition, text));
        }
        let messages = queue.depth();
        Ok((self.delete_queue(cx, index), messages))
    }

    /// Deletes a queue, and its dead-letter queue if it has one, with all their messages, and the
    /// exchanges that go with the last binding to it; returns what an answer about it waits for.
    pub(crate) fn delete_queue(&mut self, cx: &mut Cx<'_>, index: QueueIndex) -> Lsn {
        self.send_all(cx, index);
        let dead_letters = self.dead_letters_of(index);
        let partner = dead_letters.map_or(QueueId(0), |it| self.queues.at(it).identity.id);
        let queue = self.queues.at(index);
        let (id, is_transient) = (queue.identity.id, queue.is_transient());
        let gone = self.topology.cascade_of_queue(id);
        begin(&mut self.record, Kind::QueueDeleted, id, cx.now);
        self.record.extend_from_slice(&partner.0.to_be_bytes());
        if !gone.is_empty() {
            put_exchanges(&mut self.record, &gone);
        }
        let end = self.append(cx);
        self.topology.remove_queue(id);
        self.topology.remove_exchanges(&gone);
        // A queue that does not survive a restart is gone, whatever the log says of it.
        let after = if is_transient { Lsn::ZERO } else { end };
        self.queues.last_lsn = self.queues.last_lsn.max(after);
        for index in [Some(index), dead_letters].into_iter().flatten() {
            self.end_subscriptions(cx, index);
            self.abandon_scripts(cx, index);
            self.disown(index);
            self.bury(index);
        }
        after
    }

    /// An exclusive queue's connection knows nothing of it any more.
    fn disown(&mut self, index: QueueIndex) {
        let queue = self.queues.at_mut(index);
        let id = queue.identity.id;
        if let Some(owner) = queue.owner.take()
            && let Some(conn) = self.consumers.conn_mut(owner)
        {
            conn.owned.retain(|other| *other != id);
        }
    }

    /// A connection is gone: its exclusive queues go with it. Returns what an answer about them
    /// waits for, and the messages that went with them.
    pub(crate) fn delete_owned(&mut self, cx: &mut Cx<'_>, conn: ConnId) -> (Lsn, u64) {
        let owned = self.consumers.conn_mut(conn);
        let owned = owned.map(|it| core::mem::take(&mut it.owned));
        let (mut after, mut messages) = (Lsn::ZERO, 0);
        for id in owned.unwrap_or_default() {
            if let Some(index) = self.queues.index_of(id) {
                messages += self.queues.at(index).depth();
                after = after.max(self.delete_queue(cx, index));
            }
        }
        (after, messages)
    }

    /// A queue's last consumer is gone: true when the queue went with it.
    pub(crate) fn delete_if_left(&mut self, cx: &mut Cx<'_>, index: QueueIndex) -> bool {
        let queue = self.queues.at(index);
        let goes = queue.consumers.is_empty()
            && queue
                .config
                .amqp
                .as_ref()
                .is_some_and(|policy| policy.auto_delete);
        if goes {
            self.delete_queue(cx, index);
        }
        goes
    }

    /// Nobody used a queue for so long that it goes: true when it went.
    pub(crate) fn delete_if_unused(&mut self, cx: &mut Cx<'_>, index: QueueIndex) -> bool {
        let goes = self
            .queues
            .at(index)
            .unused_until()
            .is_some_and(|at| at <= cx.now);
        if goes {
            self.delete_queue(cx, index);
        }
        goes
    }

    /// The end of recovery: queues that do not survive a restart go.
    pub(crate) fn delete_transient(&mut self, cx: &mut Cx<'_>) {
        let queues = self.queues.iter();
        let transient = queues.filter(|(_, queue)| queue.is_transient());
        for index in transient.map(|(index, _)| index).collect::<Vec<_>>() {
            self.delete_queue(cx, index);
        }
    }
}

impl crate::queue::Queue {
    /// Its messages are in memory only, and it is gone after a restart.
    pub(crate) fn is_transient(&self) -> bool {
        self.config
            .amqp
            .as_ref()
            .is_some_and(|policy| policy.is_transient())
    }

    /// When it goes if nobody uses it before.
    pub(crate) fn unused_until(&self) -> Option<Millis> {
        let expires_ms = self.config.amqp.as_ref()?.expires_ms?;
        self.consumers
            .is_empty()
            .then(|| self.used_at.after_ms(expires_ms))
    }
}
