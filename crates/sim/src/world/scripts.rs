//! Scripts: what their host gives back, and new ones for what the old ones could not do.

use tanda_engine::{AdminReply, AdminRequest, QueueChanges};

use crate::clients::SCRIPT;
use crate::failure::{Check, Violation, ensure};
use crate::host::Answer;
use crate::invariants::protocol;
use crate::invariants::scripted::Decided;

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
            let changes = QueueChanges {
                on_enqueue: Some(Some(format!("{SCRIPT} now"))),
                ..QueueChanges::default()
            };
            let changes = Box::new(changes);
            let request = AdminRequest::UpdateQueue { name, changes };
            ensure(self.host.ask_door(request), protocol::NAME, || {
                "the door is busy".to_owned()
            })?;
            self.calm()?;
            let Some(Answer::Said(reply)) = self.host.door_answer() else {
                return Err(unanswered());
            };
            ensure(
                matches!(*reply, AdminReply::Updated(_)),
                protocol::NAME,
                || format!("an update was answered with {reply:?}"),
            )?;
        }
        Ok(())
    }
}

fn unanswered() -> Violation {
    Violation {
        invariant: protocol::NAME,
        what: "an update of a script was not answered".to_owned(),
    }
}
