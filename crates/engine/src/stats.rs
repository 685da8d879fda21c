//! Counters for operators. What is long is gathered in slices.

use crate::engine::{Cx, Engine};
use crate::jobs::{Job, Work};
use crate::queues::QueueIndex;
use crate::{
    AdminReply, QueueCounts, QueueDetails, QueueNotFound, ReplyTo, ThrottleSummary, VhostId,
};

/// Lanes looked at in one slice: well below a millisecond.
const SLICE_LANES: u32 = 4096;
/// Queues looked at in one slice.
const SLICE_QUEUES: QueueIndex = 1024;

/// How far the statistics of a queue have come.
#[derive(Debug, Default)]
pub(crate) struct KeyWalk {
    next: u32,
    keys: Vec<KeyStats>,
}

/// How far a list of the queues has come.
#[derive(Debug, Default)]
pub(crate) struct QueueWalk {
    next: QueueIndex,
    queues: Vec<QueueSummary>,
}

/// A queue's statistics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// The counters.
    pub counts: QueueCounts,
    /// One entry per fairness key with pending messages, by key. More than a few thousand are
    /// counted in slices, each by key: one that leaves and comes back meanwhile may be listed
    /// twice.
    pub keys: Vec<KeyStats>,
    /// The deficit round robin's quantum.
    pub quantum: u32,
    /// Throttles that apply to it, by name; their subscribers of this queue are counted.
    pub throttles: Vec<ThrottleSummary>,
}

/// One fairness key of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyStats {
    /// The key; empty for the unkeyed group.
    pub key: String,
    /// Pending messages.
    pub pending: u64,
    /// What is left of its turn.
    pub deficit: i64,
    /// Its weight.
    pub weight: u32,
}

/// A queue in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSummary {
    /// Its name.
    pub name: String,
    /// Its counters.
    pub counts: QueueCounts,
}

/// How much there is in a virtual host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VhostCounts {
    /// Keys.
    pub keys: u64,
    /// Queues, dead-letter queues included.
    pub queues: u64,
}

impl Engine {
    pub(crate) fn stats(&mut self, cx: &mut Cx<'_>, to: ReplyTo, (vhost, name): (VhostId, &str)) {
        let Some(index) = self.queues.find_in(vhost, name) else {
            return self.answer(cx, to, AdminReply::Stats(Err(QueueNotFound)));
        };
        let queue = Some(self.queues.at(index).identity.id);
        let work = Work::Stats(KeyWalk::default());
        self.start_job(
            cx,
            Job {
                reply: to,
                queue,
                work,
            },
        );
    }

    pub(crate) fn list(&mut self, cx: &mut Cx<'_>, to: ReplyTo) {
        let job = Job {
            reply: to,
            queue: None,
            work: Work::List(QueueWalk::default()),
        };
        self.start_job(cx, job);
    }

    /// Counts some lanes; the answer when it has come to the last one.
    pub(crate) fn stats_slice(&self, index: QueueIndex, walk: &mut KeyWalk) -> Option<AdminReply> {
        let queue = self.queues.at(index);
        let (lanes, next) = queue.lanes.some(walk.next, SLICE_LANES);
        let mut lanes: Vec<_> = lanes.filter(|lane| lane.pending > 0).collect();
        // Highest priority first within a key.
        lanes.sort_by(|a, b| a.key.cmp(&b.key).then(b.priority.cmp(&a.priority)));
        if walk.next == 0 {
            // Growing it would copy it in one step.
            walk.keys
                .reserve(usize::try_from(queue.lanes.active()).unwrap_or(0));
        }
        walk.keys.extend(lanes.into_iter().map(|lane| KeyStats {
            key: lane.key.to_string(),
            pending: u64::from(lane.pending),
            deficit: lane.deficit,
            weight: lane.weight,
        }));
        if let Some(next) = next {
            walk.next = next;
            return None;
        }
        Some(AdminReply::Stats(Ok(QueueStats {
            counts: queue.counts(),
            keys: core::mem::take(&mut walk.keys),
            quantum: self.config.quantum,
            throttles: self.queue_throttles(index),
        })))
    }

    pub(crate) fn inspect(
        &self,
        (vhost, name): (VhostId, &str),
    ) -> Result<QueueDetails, QueueNotFound> {
        let index = self.queues.find_in(vhost, name).ok_or(QueueNotFound)?;
        let queue = self.queues.at(index);
        let name_of = |index: QueueIndex| self.queues.at(index).identity.name.to_string();
        Ok(QueueDetails {
            id: queue.identity.id.to_string(),
            name: name.to_owned(),
            dead_letter_queue: self.dead_letters_of(index).map(name_of),
            parent: self.source_of(index).map(name_of),
            config: queue.config.clone(),
            counts: queue.counts(),
        })
    }

    /// Lists some queues; the answer when it has come to the last one.
    pub(crate) fn list_slice(&self, walk: &mut QueueWalk) -> Option<AdminReply> {
        if walk.next == 0 {
            walk.queues.reserve(self.queues.len());
        }
        let known = walk.queues.len();
        let end = walk
            .next
            .saturating_add(SLICE_QUEUES)
            .min(self.queues.end());
        for index in walk.next..end {
            let found = self.queues.get(index);
            // Names of other virtual hosts mean nothing where this list is shown.
            let Some(queue) = found.filter(|it| it.identity.vhost == VhostId::DEFAULT) else {
                continue;
            };
            walk.queues.push(QueueSummary {
                name: queue.identity.name.to_string(),
                counts: queue.counts(),
            });
        }
        if let Some(found) = walk.queues.get_mut(known..) {
            found.sort_by(|a, b| a.name.cmp(&b.name));
        }
        walk.next = end;
        (end == self.queues.end()).then(|| AdminReply::Queues(core::mem::take(&mut walk.queues)))
    }
}
