//! The host of scripts: two threads that run the hooks of all queues.
//!
//! ```text
//!  shard thread ── ScriptJob ──► Board ──► quick thread: bounded turns, queue after queue
//!        ▲                         ├─────► slow thread: the same, and rests three times as long
//!        └──── ScriptDone ─────────┴────── as it worked; queues whose calls take long, and checks
//! ```
//!
//! Owns which queue's calls run next and on which thread, so that a script that is slow, or runs
//! out of time with every message, delays nobody but its own queue and takes a quarter of a core at
//! most. Beside a script that is stuck within one statement, where nothing can stop it, another
//! quick thread goes on with the others. It refuses to know what a result leads to, and how a
//! script is kept in its limits (`tanda-script`). How many jobs may wait is bounded by who makes
//! them: the engine has a few of each queue out at a time.

mod board;
mod pace;
#[cfg(test)]
mod tests;
mod work;
mod worker;

use std::{io, sync::Arc, thread::JoinHandle};

use tanda_engine::{ScriptJob, ScriptOutcome};
use tanda_script::Limits;

use self::board::{Board, Lane};

/// Where finished jobs go. Must not wait.
pub(crate) type Done = Arc<dyn Fn(ScriptJob, ScriptOutcome) + Send + Sync>;

/// The way to the threads. Dropping it ends them; what they have not finished is given up.
#[derive(Debug)]
pub(crate) struct ScriptHost {
    board: Arc<Board>,
}

impl ScriptHost {
    /// Starts both threads.
    ///
    /// # Errors
    /// When the system makes no thread.
    pub(crate) fn start(limits: Limits, done: &Done) -> io::Result<(Self, [JoinHandle<()>; 2])> {
        let board = Arc::new(Board::default());
        let host = Self {
            board: Arc::clone(&board),
        };
        let start = |lane| worker::start(Arc::clone(&board), lane, limits, Arc::clone(done));
        Ok((host, [start(Lane::Quick)?, start(Lane::Slow)?]))
    }

    /// Memory of the states of all scripts.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.board.memory_bytes()
    }

    /// Hands jobs over and empties `jobs`.
    pub(crate) fn submit(&self, jobs: &mut Vec<ScriptJob>) {
        if !jobs.is_empty() {
            self.board.add(jobs.drain(..));
        }
    }
}

impl Drop for ScriptHost {
    fn drop(&mut self) {
        self.board.stop();
    }
}
