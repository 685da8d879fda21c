//! Scripts: what their host gives back, and new ones for what the old ones could not do.

use tanda_engine::{AdminReply, AdminRequest, QueueChanges, UpdateQueueError, VhostId};

use crate::clients::SCRIPT;
use crate::failure::{Check, Violation, ensure};
use crate::host::Answer;
use crate::invariants::scripted::Decided;
use crate::invariants::{protocol, recovers};

use super::World;

impl World {
    /// A job goes back to the engine; what it decides counts from now on.
    pub(super) fn finish_script(&mut self) -> usize {
        let count = self.host.finish_script(self.now);
        for (call, decision) in self.host.decisions() {
            let decided = Decided::new(self.now, &call, decision);
            self.trace
                .note(self.now, || format!("  {:032x}: {decided:?}", call.id.0));
            self.history.decided.insert(call.id.0, decided);
        }
        count
    }

    /// Every queue gets another script, so that what the old one failed on is classified.
    pub(super) fn renew_scripts(&mut self) -> Check {
        // An answer of before may still lie at the door.
        drop(self.host.door_answer());
        self.history.on_purge_ended(self.now);
        let queues = self.history.queues.iter();
        let scripted = queues.filter(|(_, facts)| facts.draw.script.classifies);
        let names: Vec<String> = scripted.map(|(name, _)| name.clone()).collect();
        for name in names {
            let until = self.now.after_ms(RENEW_MS_MAX);
            while !self.renew(&name)? {
                ensure(self.now < until, recovers::NAME, || {
                    format!("{name:?} gets no other script, because the disk or memory is full")
                })?;
                self.wait()?;
                self.calm()?;
            }
        }
        Ok(())
    }

    /// False while there is no room.
    fn renew(&mut self, name: &str) -> Result<bool, Violation> {
        let changes = QueueChanges {
            on_enqueue: Some(Some(format!("{SCRIPT} now"))),
            ..QueueChanges::default()
        };
        let request = AdminRequest::UpdateQueue {
            vhost: VhostId::DEFAULT,
            name: name.to_owned(),
            changes: Box::new(changes),
        };
        ensure(self.host.ask_door(request), protocol::NAME, || {
            "the door is busy".to_owned()
        })?;
        self.calm()?;
        let said = match self.host.door_answer() {
            Some(Answer::Said(reply)) => Some(*reply),
            Some(Answer::Unknown) | None => None,
        };
        match said {
            Some(AdminReply::Updated(Ok(()) | Err(UpdateQueueError::NotFound))) => Ok(true),
            Some(AdminReply::Updated(Err(UpdateQueueError::Storage))) => Ok(false),
            other => Err(Violation {
                invariant: protocol::NAME,
                what: format!("an update of a script was answered with {other:?}"),
            }),
        }
    }
}

/// Simulated time until there is room for settings.
const RENEW_MS_MAX: u64 = 60_000;
