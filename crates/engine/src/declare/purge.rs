//! A queue's ready messages are deleted, for whoever asks.

use super::say;
use crate::engine::{Cx, Engine};
use crate::jobs::{Job, PurgedFor, Work};
use crate::queue::groups::PurgeCursor;
use crate::queues::QueueIndex;
use crate::{AdminReply, QueueNotFound, ReplyTo, VhostId};

impl Engine {
    /// As Fila and operators do.
    pub(crate) fn purge(&mut self, cx: &mut Cx<'_>, to: ReplyTo, name: &str) {
        match self.queues.find(name) {
            None => self.answer(cx, to, AdminReply::Purged(Err(QueueNotFound))),
            Some(index) => {
                let job = self.purge_job(to, index, PurgedFor::Operator);
                self.jobs.push_back(job);
            }
        }
    }

    /// As AMQP and FireMQ do.
    pub(crate) fn purge_named(&mut self, cx: &mut Cx<'_>, to: ReplyTo, name: (VhostId, &str)) {
        match self.named_queue(to.conn, name) {
            Err(error) => {
                let after = self.queues.last_lsn;
                say(cx, to, after, AdminReply::QueuePurged(Err(error)));
            }
            Ok(index) => {
                let job = self.purge_job(to, index, PurgedFor::Amqp);
                self.start_job(cx, job);
            }
        }
    }

    /// Messages that come after this are not touched.
    fn purge_job(&self, reply: ReplyTo, index: QueueIndex, purged_for: PurgedFor) -> Job {
        let queue = self.queues.at(index);
        let work = Work::Purge {
            limit: queue.next_position,
            done: 0,
            groups: PurgeCursor::default(),
            delayed_after: None,
            purged_for,
        };
        Job {
            reply,
            queue: Some(queue.identity.id),
            work,
        }
    }
}
