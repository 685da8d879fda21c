//! A queue's ready messages are deleted, for whoever asks.

use super::say;
use crate::engine::{Cx, Engine};
use crate::jobs::{Job, Work};
use crate::paging::{Next, READS_MAX, Took};
use crate::queue::entries::Slot;
use crate::queue::groups::PurgeCursor;
use crate::queue::picks::LaneWalk;
use crate::queues::QueueIndex;
use crate::{AdminReply, Millis, QueueNotFound, ReplyTo, VhostId};

/// What one slice looks at of each kind: lanes, groups, delayed messages.
const LOOKS: u32 = 16 * 1024;

/// A purge under way. Only messages with a position below `limit`, those present at the request,
/// are touched.
#[derive(Debug)]
pub(crate) struct Purge {
    limit: u64,
    done: u64,
    purged_for: PurgedFor,
    round: Round,
}

/// Once over all places of the queue. Between slices messages may go from one place to another, so
/// there are rounds until one of them finds nothing.
#[derive(Debug, Default)]
struct Round {
    slices: u32,
    found: u64,
    groups: PurgeCursor,
    lanes: LaneWalk,
    delayed_after: Option<(Millis, Slot)>,
}

/// Who waits for a purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PurgedFor {
    /// Fila, or an operator.
    Operator,
    /// AMQP or FireMQ.
    Amqp,
}

impl Purge {
    /// The answer, for what has been done by now.
    pub(crate) const fn reply(&self) -> AdminReply {
        match self.purged_for {
            PurgedFor::Operator => AdminReply::Purged(Ok(self.done)),
            PurgedFor::Amqp => AdminReply::QueuePurged(Ok(self.done)),
        }
    }
}

impl Engine {
    /// As Fila and operators do.
    pub(crate) fn purge(&mut self, cx: &mut Cx<'_>, to: ReplyTo, (vhost, name): (VhostId, &str)) {
        match self.queues.find_in(vhost, name) {
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
        let work = Work::Purge(Purge {
            limit: queue.next_position,
            done: 0,
            purged_for,
            round: Round::default(),
        });
        Job {
            reply,
            queue: Some(queue.identity.id),
            work,
        }
    }

    /// Deletes some messages; the answer when none is left.
    pub(crate) fn purge_slice(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        work: &mut Purge,
    ) -> Option<AdminReply> {
        let mut slots = Vec::new();
        work.round.slices += 1;
        let is_over = self.find_purged(cx, index, (&mut work.round, work.limit), &mut slots);
        work.round.found += slots.len() as u64;
        work.done += slots.len() as u64;
        self.remove_all(cx, index, &slots);
        self.touch(index);
        if !is_over {
            return None;
        }
        let round = core::mem::take(&mut work.round);
        // Within one slice nothing changes its place.
        (round.found == 0 || round.slices == 1).then(|| work.reply())
    }

    /// Takes the next messages that are to be deleted out of their places. True at the end of a
    /// round.
    fn find_purged(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        (round, limit): (&mut Round, u64),
        slots: &mut Vec<Slot>,
    ) -> bool {
        (round.groups.looks, round.lanes.looks) = (LOOKS, LOOKS);
        let most = self.config.slice();
        let queue = self.queues.at_mut(index);
        while slots.len() < most
            && let Some(slot) =
                queue
                    .groups
                    .purge_next(&mut queue.entries, &mut round.groups, limit)
        {
            slots.push(slot);
        }
        let (mut next, mut reads) = (Next::Any(&mut round.lanes), READS_MAX);
        while slots.len() < most {
            match self.take_ready(cx, (index, limit), &mut next, &mut reads) {
                Took::Message(slot) => slots.push(slot),
                Took::Nothing => break,
                Took::OutOfReads => return false,
            }
        }
        let mut looks = LOOKS;
        let queue = self.queues.at_mut(index);
        while slots.len() < most
            && let Some(slot) =
                queue.take_delayed_after(&mut round.delayed_after, limit, &mut looks)
        {
            slots.push(slot);
        }
        slots.extend(queue.parked_below(limit, most - slots.len()));
        let may_look = round.groups.looks > 0 && round.lanes.looks > 0 && looks > 0;
        slots.len() < most && may_look
    }
}
