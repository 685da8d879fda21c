//! A queue gets scripts, or others: they are loaded before it does.

use std::sync::Arc;

use super::{Purpose, QueueScripts, ScriptOutcome, ScriptTask};
use crate::engine::{Cx, Engine};
use crate::{
    AdminReply, CheckScriptsError, CreateQueueError, QueueChanges, QueueId, QueueSpec, ReplyTo,
    UpdateQueueError, VhostId,
};

/// What is done once its scripts are checked.
#[derive(Debug)]
pub(super) enum Wanted {
    Create(Box<QueueSpec>),
    Update((VhostId, String), Box<QueueChanges>),
    Nothing,
}

impl Engine {
    /// A new queue, once its scripts are checked; at once when it has none.
    pub(crate) fn on_create_queue(&mut self, cx: &mut Cx<'_>, to: ReplyTo, spec: Box<QueueSpec>) {
        let on_enqueue = spec.on_enqueue.as_deref().map(Arc::from);
        let on_failure = spec.on_failure.as_deref().map(Arc::from);
        if on_enqueue.is_none() && on_failure.is_none() {
            let created = self.create(cx, &spec);
            return self.answer(cx, to, AdminReply::Created(created));
        }
        if let Err(error) = self.check_create(&spec) {
            return self.answer(cx, to, AdminReply::Created(Err(error)));
        }
        let of = (QueueId(0), spec.name.as_str().into());
        self.check_scripts(of, (on_enqueue, on_failure), (to, Wanted::Create(spec)));
    }

    /// Changes of a queue, once new scripts are checked; at once when there are none.
    pub(crate) fn on_update_queue(
        &mut self,
        cx: &mut Cx<'_>,
        to: ReplyTo,
        (vhost, name): (VhostId, String),
        changes: Box<QueueChanges>,
    ) {
        let new = |change: &Option<Option<String>>| {
            let text = change.as_ref().and_then(|script| script.as_deref());
            text.map(Arc::from)
        };
        let (on_enqueue, on_failure) = (new(&changes.on_enqueue), new(&changes.on_failure));
        match self.check_update((vhost, &name), &changes) {
            Err(error) => self.answer(cx, to, AdminReply::Updated(Err(error))),
            Ok(index) if on_enqueue.is_some() || on_failure.is_some() => {
                let queue = self.queues.at(index);
                let of = (queue.identity.id, Arc::clone(&queue.identity.name));
                let wanted = Wanted::Update((vhost, name), changes);
                self.check_scripts(of, (on_enqueue, on_failure), (to, wanted));
            }
            Ok(_) => {
                let updated = self.update(cx, (vhost, &name), &changes);
                self.answer(cx, to, AdminReply::Updated(updated));
            }
        }
    }

    /// Scripts are checked for their own sake.
    pub(crate) fn on_check_scripts(
        &mut self,
        cx: &mut Cx<'_>,
        to: ReplyTo,
        (on_enqueue, on_failure): (Option<String>, Option<String>),
    ) {
        let max = self.config.limits.script_bytes_max;
        let longest = [&on_enqueue, &on_failure].map(|it| it.as_ref().map_or(0, String::len));
        let refused = match longest.into_iter().max() {
            _ if !self.config.has_script_host => Some(CheckScriptsError::Unsupported),
            Some(len) if len > max => Some(CheckScriptsError::Refused {
                problem: format!("a script has at most {max} bytes, this one has {len}"),
            }),
            _ => None,
        };
        if let Some(error) = refused {
            return self.answer(cx, to, AdminReply::ScriptsChecked(Err(error)));
        }
        let [on_enqueue, on_failure] = [on_enqueue, on_failure].map(|it| it.map(Arc::from));
        let of = (QueueId(0), "".into());
        self.check_scripts(of, (on_enqueue, on_failure), (to, Wanted::Nothing));
    }

    fn check_scripts(
        &mut self,
        of: (QueueId, Arc<str>),
        (on_enqueue, on_failure): (Option<Arc<str>>, Option<Arc<str>>),
        (to, wanted): (ReplyTo, Wanted),
    ) {
        let scripts = QueueScripts {
            version: self.scripts.next_version(),
            on_enqueue,
            on_failure,
        };
        let purpose = Purpose::Check(to, wanted);
        self.send_job(of, Arc::new(scripts), ScriptTask::Check, purpose);
    }

    /// The scripts of a new or changed queue were loaded, or cannot be. What has changed meanwhile
    /// is looked at again.
    pub(super) fn on_checked(
        &mut self,
        cx: &mut Cx<'_>,
        to: ReplyTo,
        wanted: Wanted,
        outcome: ScriptOutcome,
    ) {
        let problem = match outcome {
            ScriptOutcome::Checked(Ok(())) => None,
            ScriptOutcome::Checked(Err(problem)) => Some(problem),
            ScriptOutcome::Enqueue(_) | ScriptOutcome::Failure(_) => {
                Some("the host of scripts gave no result".to_owned())
            }
        };
        let reply = match (wanted, problem) {
            (Wanted::Create(_), Some(problem)) => {
                AdminReply::Created(Err(CreateQueueError::ScriptRefused { problem }))
            }
            (Wanted::Create(spec), None) => AdminReply::Created(self.create(cx, &spec)),
            (Wanted::Update(..), Some(problem)) => {
                AdminReply::Updated(Err(UpdateQueueError::ScriptRefused { problem }))
            }
            (Wanted::Nothing, problem) => {
                let refused = |problem| CheckScriptsError::Refused { problem };
                AdminReply::ScriptsChecked(problem.map(refused).map_or(Ok(()), Err))
            }
            (Wanted::Update((vhost, name), changes), None) => {
                AdminReply::Updated(self.update(cx, (vhost, &name), &changes))
            }
        };
        self.answer(cx, to, reply);
    }
}
