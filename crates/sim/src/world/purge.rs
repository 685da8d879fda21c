//! An operator who purges queues through the HTTP door.

use tanda_engine::{AdminReply, AdminRequest, VhostId};

use crate::failure::{Check, Violation};
use crate::host::Answer;
use crate::invariants::statistics::Counted;
use crate::invariants::{protocol, purge_is_exact};

use super::World;

/// Of the steps at the door, one in so many begins a purge.
const PURGE_OF: u64 = 12;

impl World {
    /// Reads the answer at the door, or asks for something. Zero when there was nothing to do.
    pub(super) fn at_door(&mut self) -> Result<usize, Violation> {
        if let Some(answer) = self.host.door_answer() {
            self.history.on_purge_ended(self.now);
            let deleted = deleted(&answer)?;
            self.trace
                .event(self.now, "purged", deleted.unwrap_or(u64::MAX), &[]);
            return Ok(1);
        }
        if !self.purges || !self.process.one_in(PURGE_OF) {
            return Ok(0);
        }
        let names: Vec<String> = self.history.queues.keys().cloned().collect();
        let Some(name) = self.process.pick(&names).cloned() else {
            return Ok(0);
        };
        let name = if self.process.one_in(3) {
            format!("{name}.dlq")
        } else {
            name
        };
        if !self.purge(&name) {
            return Ok(0);
        }
        self.trace.event(self.now, "purge", 0, name.as_bytes());
        Ok(1)
    }

    fn purge(&mut self, name: &str) -> bool {
        let request = AdminRequest::PurgeQueue {
            vhost: VhostId::DEFAULT,
            name: name.to_owned(),
        };
        let is_asked = self.host.ask_door(request);
        if is_asked {
            self.history.on_purge_sent(self.now, name);
        }
        is_asked
    }

    /// Purges one of the queues, while nothing is leased and nothing comes: what it held is gone
    /// then, and no more.
    pub(super) fn purge_at_rest(&mut self, counted: &mut [(String, Counted)]) -> Check {
        let index = self.process.index(counted.len());
        let Some((name, counted)) = counted.get_mut(index) else {
            return Ok(());
        };
        let name = name.clone();
        let pending = self.counters(&name)?.depth;
        // An answer of before may still lie there.
        drop(self.host.door_answer());
        self.history.on_purge_ended(self.now);
        if !self.purge(&name) {
            return Ok(());
        }
        self.calm()?;
        self.history.on_purge_ended(self.now);
        let answer = self.host.door_answer().ok_or_else(|| Violation {
            invariant: protocol::NAME,
            what: format!("the purge of {name:?} was not answered"),
        })?;
        // A queue that comes and goes may be gone.
        let deleted = deleted(&answer)?.unwrap_or(0);
        counted.depth -= deleted.min(counted.depth);
        purge_is_exact::at_rest(&name, pending, deleted)
    }
}

/// How many messages; `None` when nobody knows, or the queue is not there.
fn deleted(answer: &Answer) -> Result<Option<u64>, Violation> {
    let Answer::Said(reply) = answer else {
        return Ok(None);
    };
    if let AdminReply::Purged(purged) = reply.as_ref() {
        return Ok(purged.ok());
    }
    Err(Violation {
        invariant: protocol::NAME,
        what: format!("a purge was answered with {reply:?}"),
    })
}
