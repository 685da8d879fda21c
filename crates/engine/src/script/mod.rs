//! Lua hooks, as far as the engine knows them.
//!
//! Owns *what* is to be run, for whom, and what follows from the results. It refuses to know how a
//! script is run: a host outside (threads of the server, a fake in tests) takes jobs, runs the
//! calls of each in order and gives them back with their results. The engine never waits for it:
//! what depends on a result has a place of its own until then.
//!
//! ```text
//!  Engine ── ScriptJob ──► node (puts in contents that lie in the log) ──► host
//!    ▲                                                                      │
//!    └──────────────── Request::ScriptDone { job, outcome } ◄───────────────┘
//! ```

mod job;

pub use job::{
    CallContent, Classification, Decision, EnqueueCall, FailureCall, FailureReason, QueueScripts,
    ScriptFault, ScriptJob, ScriptOutcome, ScriptTask,
};

use crate::engine::{Cx, Engine};

impl Engine {
    /// Moves the jobs that the host is to run to the end of `out`. Ask after each request and each
    /// pass. Every job must come back in a [`crate::Request::ScriptDone`].
    pub fn take_script_jobs(&mut self, out: &mut Vec<ScriptJob>) {
        out.append(&mut self.script_jobs);
    }

    /// A job came back. One of a queue that is gone meanwhile is dropped.
    pub(crate) fn on_script_done(
        &mut self,
        _cx: &mut Cx<'_>,
        _job: ScriptJob,
        _outcome: ScriptOutcome,
    ) {
    }
}
