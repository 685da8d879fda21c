//! The queues of one virtual host, as whoever manages it sees them: gathered in slices.

use bytes::Bytes;

use crate::engine::{Cx, Engine};
use crate::jobs::{Job, Work};
use crate::queue::Queue;
use crate::queues::QueueIndex;
use crate::{
    AdminReply, QueueConfig, QueueCounts, QueueDetails, QueueKind, ReplyTo, TopologyCode,
    TopologyError, VhostId,
};

/// Queues looked at in one slice: well below a millisecond.
const SLICE_QUEUES: QueueIndex = 1024;

/// A queue in the list of its virtual host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueInfo {
    /// Its name.
    pub name: String,
    /// Who made it.
    pub origin: QueueOrigin,
    /// It survives a restart.
    pub durable: bool,
    /// It is its declaring connection's, and goes with it.
    pub exclusive: bool,
    /// It goes with its last consumer.
    pub auto_delete: bool,
    /// What it was declared with: an AMQP field table without its length.
    pub args: Bytes,
    /// `x-queue-type`.
    pub kind: QueueKind,
    /// Its counters.
    pub counts: QueueCounts,
}

/// Who made a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueOrigin {
    /// AMQP or FireMQ declared it: what it was declared with makes the same queue elsewhere.
    Declared,
    /// Fila or an operator created it.
    Created,
    /// It came with the queue whose dead letters it keeps.
    DeadLetters,
}

/// How far such a list has come.
#[derive(Debug)]
pub(crate) struct VhostWalk {
    vhost: VhostId,
    next: QueueIndex,
    queues: Vec<QueueInfo>,
}

impl Engine {
    pub(crate) fn list_queues_of(&mut self, cx: &mut Cx<'_>, reply: ReplyTo, vhost: VhostId) {
        if self.topology.vhost_name(vhost).is_none() {
            let text = "the virtual host is gone".to_owned();
            let error = TopologyError::new(TopologyCode::NotFound, text);
            return self.answer(cx, reply, AdminReply::QueuesOf(Err(error)));
        }
        let work = Work::ListOf(VhostWalk {
            vhost,
            next: 0,
            queues: Vec::new(),
        });
        let queue = None;
        self.start_job(cx, Job { reply, queue, work });
    }

    /// Lists some queues; the answer, by name, when it has come to the last one.
    pub(crate) fn list_of_slice(&self, walk: &mut VhostWalk) -> Option<AdminReply> {
        let end = self.queues.end();
        let stop = walk.next.saturating_add(SLICE_QUEUES).min(end);
        for index in walk.next..stop {
            let queue = self.queues.get(index);
            if let Some(queue) = queue.filter(|it| it.identity.vhost == walk.vhost) {
                walk.queues.push(info(queue));
            }
        }
        walk.next = stop;
        if stop < end {
            return None;
        }
        let mut queues = core::mem::take(&mut walk.queues);
        queues.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Some(AdminReply::QueuesOf(Ok(queues)))
    }
}

fn info(queue: &Queue) -> QueueInfo {
    let name = queue.identity.name.to_string();
    let counts = queue.counts();
    info_of((name, queue.is_dead_letter()), &queue.config, counts)
}

impl QueueDetails {
    /// As the list of its virtual host has it.
    #[must_use]
    pub fn info(self) -> QueueInfo {
        let is_dead_letter = self.parent.is_some();
        info_of((self.name, is_dead_letter), &self.config, self.counts)
    }
}

fn info_of(
    (name, is_dead_letter): (String, bool),
    config: &QueueConfig,
    counts: QueueCounts,
) -> QueueInfo {
    if let Some(policy) = &config.amqp {
        return QueueInfo {
            name,
            origin: QueueOrigin::Declared,
            durable: policy.durable,
            exclusive: policy.exclusive,
            auto_delete: policy.auto_delete,
            args: policy.args.clone(),
            kind: policy.kind,
            counts,
        };
    }
    let origin = if is_dead_letter {
        QueueOrigin::DeadLetters
    } else {
        QueueOrigin::Created
    };
    QueueInfo {
        name,
        origin,
        durable: true,
        exclusive: false,
        auto_delete: false,
        args: Bytes::new(),
        kind: QueueKind::Classic,
        counts,
    }
}
