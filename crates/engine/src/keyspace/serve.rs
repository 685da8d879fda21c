//! Requests come in, answers go out; each step writes at most one record.

use super::on_request::{Asked, Room};
use super::space::{Keyspace, Outcome, Step};
use super::{KeyAnswer, KeyError, KeyRequest};
use crate::engine::{Cx, Engine};
use crate::record::{Kind, begin};
use crate::{Event, Lsn, Millis, QueueId, ReplyTo, VhostId};

/// Expired keys, ended waits and parts of gone collections that one pass takes.
const RUN_STEPS: usize = 1_024;

/// Begins a record of the keys of a virtual host.
pub(super) fn begin_keys(out: &mut Vec<u8>, now: Millis, vhost: VhostId) {
    begin(out, Kind::Keys, QueueId(0), now);
    out.extend_from_slice(&vhost.0.to_be_bytes());
}

impl Engine {
    /// Carries out a command on keys. Its answer is a `Keys` event, at once or after a wait.
    pub(crate) fn on_keys(&mut self, cx: &mut Cx<'_>, reply: ReplyTo, request: KeyRequest) {
        let KeyRequest {
            vhost,
            answer_bytes_max,
            op,
        } = request;
        if self.topology.vhost_name(vhost).is_none() {
            let event = keys_event(reply, vhost, Err(KeyError::VhostNotFound));
            cx.emit(reply.conn, self.queues.last_lsn, event);
            return;
        }
        let room = Room::new(answer_bytes_max);
        self.keys_step(cx, vhost, |space, step| {
            let spoken_of = space.spoken_of(&op);
            let asked = Asked { reply, room, op };
            let outcome = space.on_asked(step, asked)?;
            Some((reply, outcome, spoken_of))
        });
    }

    /// A command that waits is over: it answers that it was cancelled. False when there is none.
    pub(crate) fn cancel_keys(&mut self, cx: &mut Cx<'_>, reply: ReplyTo) -> bool {
        for (vhost, space) in &mut self.keyspaces.spaces {
            if space.waits.take(reply).is_some() {
                let event = keys_event(reply, *vhost, Err(KeyError::Cancelled));
                cx.emit(reply.conn, Lsn::ZERO, event);
                return true;
            }
        }
        false
    }

    /// An answer never reached its client: the item goes back to its place, the lock to who waits
    /// for it.
    pub(crate) fn on_keys_undelivered(
        &mut self,
        cx: &mut Cx<'_>,
        reply: ReplyTo,
        (vhost, answer): (VhostId, KeyAnswer),
    ) {
        if self.topology.vhost_name(vhost).is_none() {
            return;
        }
        // Nobody of the same connection may get it.
        self.keyspaces.forget_conn(reply.conn);
        self.keys_step(cx, vhost, |space, step| {
            if let KeyAnswer::Taken { item, place } = answer {
                space.put_back(step, item, *place);
            } else if let KeyAnswer::Locked {
                key,
                token,
                waited: true,
                ..
            } = answer
            {
                space.expire(step, &key);
                // An error says that it is not held with this token any more.
                drop(space.lock_release(step, &key, token));
            }
            None
        });
    }

    /// A virtual host is gone: who waits there is told.
    pub(crate) fn drop_keys_of(&mut self, cx: &mut Cx<'_>, vhost: VhostId) {
        let Some(mut space) = self.keyspaces.forget_vhost(vhost) else {
            return;
        };
        let after = cx.journal.end();
        while let Some(wait) = space.waits.take_over(Millis(u64::MAX)) {
            let event = keys_event(wait.reply, vhost, Err(KeyError::VhostNotFound));
            cx.emit(wait.reply.conn, after, event);
        }
    }

    /// Keys expire, waits end.
    pub(crate) fn run_keys(&mut self, cx: &mut Cx<'_>) {
        if !self.keyspaces.has_work(cx.now) {
            return;
        }
        let vhosts: Vec<VhostId> = self.keyspaces.vhosts().collect();
        for vhost in vhosts {
            self.keys_step(cx, vhost, |space, step| {
                space.run(step, RUN_STEPS);
                None
            });
        }
    }

    /// One step of the keys of a virtual host: its record is written, its answers go out.
    fn keys_step(
        &mut self,
        cx: &mut Cx<'_>,
        vhost: VhostId,
        work: impl FnOnce(&mut Keyspace, &mut Step<'_>) -> Option<(ReplyTo, Outcome, Lsn)>,
    ) {
        begin_keys(&mut self.record, cx.now, vhost);
        let space = self.keyspaces.open(vhost);
        let mut step = Step::new(cx.now, &mut self.record);
        step.may_add = !self.storage_full;
        step.keys_max = self.config.limits.keys_max;
        let answer = work(space, &mut step);
        let written = step.has_changes.then(|| {
            cx.journal.append(step.record);
            let end = cx.journal.end();
            space.note_written(&step, end);
            end
        });
        if let Some((reply, outcome, spoken_of)) = answer {
            let after = written.unwrap_or(spoken_of);
            cx.emit(reply.conn, after, keys_event(reply, vhost, outcome));
        }
        for (reply, outcome) in step.answers {
            // Who waits in vain learns nothing of the keys.
            let after = written.filter(|_| outcome.is_ok()).unwrap_or(Lsn::ZERO);
            cx.emit(reply.conn, after, keys_event(reply, vhost, outcome));
        }
    }

    /// Keys of a virtual host, those that are over and not yet removed included.
    #[must_use]
    pub fn key_count(&self, vhost: VhostId) -> u64 {
        self.keyspaces.count(vhost) as u64
    }
}

fn keys_event(reply: ReplyTo, vhost: VhostId, outcome: Outcome) -> Event {
    Event::Keys {
        token: reply.token,
        vhost,
        result: Box::new(outcome),
    }
}
