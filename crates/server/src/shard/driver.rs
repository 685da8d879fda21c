//! The shard's thread: owns the node, and turns what comes in into what goes out.
//!
//! One round: take what waits; note a finished flush and begin the next, so that the disk is never
//! idle while there is something to write; handle a bounded slice of requests; one pass of the
//! node; begin a flush if none is under way; release what is durable. While a flush runs, requests
//! gather for the next: under load a commit carries many, alone it carries one at once, and then
//! without the way to the sync thread and back.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tanda_engine::{ConnId, Event, Millis, Request, ScriptJob};
use tanda_node::{BackgroundJob, Node};
use tanda_wal::{Disk, FlushJob};
use tokio::sync::watch;

use super::{
    BackupReply, Question, ShardInbox, ShardTaken, Snapshot,
    inbox::{Wait, Want},
    outboxes::Outboxes,
    pieces::Pieces,
    sync::{Finished, Worker},
};
use crate::{alarms::Alarms, clock::Clock, script::ScriptHost, users::Principals};

/// Requests handled in one round at most: about a millisecond of small ones.
const SLICE_REQUESTS: usize = 1024;
/// Bytes of requests handled in one round, after which it ends.
const SLICE_BYTES: usize = 4 << 20;

/// Most bytes that the shard's thread writes itself.
const FLUSH_HERE_BYTES_MAX: usize = 64 << 10;

/// Threads that work for the shard. They end when these are dropped.
pub(super) struct Helpers<D: Disk> {
    /// Syncs the log.
    pub(super) flusher: Worker<FlushJob<D>>,
    /// What can wait.
    pub(super) background: Worker<BackgroundJob<D>>,
    /// Runs scripts.
    pub(super) scripts: ScriptHost,
}

/// What everybody may read at any time.
#[derive(Debug)]
pub(super) struct Boards {
    /// The API keys and users that are on disk.
    pub(super) principals: watch::Sender<Principals>,
    /// What runs short.
    pub(super) alarms: watch::Sender<Alarms>,
}

pub(super) struct Driver<D: Disk> {
    node: Node<D>,
    boards: Boards,
    clock: Clock,
    inbox: Arc<ShardInbox<D>>,
    helpers: Helpers<D>,
    /// Jobs on their way to the host of scripts.
    script_jobs: Vec<ScriptJob>,
    taken: ShardTaken<D>,
    pieces: Pieces,
    outboxes: Outboxes,
    released: Vec<(ConnId, Event)>,
    /// No requests are taken above this many bytes that wait for the disk.
    backlog_bytes_max: usize,
    flushing: bool,
    /// Who waits for the backup under way.
    backup: Option<BackupReply<D>>,
    /// The node could go on at once.
    busy: bool,
    told: Told,
}

/// What the operator has been told, so that it is said once.
#[derive(Debug, Default)]
struct Told {
    failed: bool,
    storage_full: bool,
    memory_full: bool,
    memory_short: bool,
    /// Failed snapshots.
    snapshot_failures: u64,
    /// Read errors, and when they were last told of.
    read_errors: u64,
    read_errors_at: Option<Instant>,
}

/// Unreadable messages are tried again and again; their errors are told of this often.
const READ_ERRORS_EVERY: Duration = Duration::from_secs(10);

impl<D: Disk> Driver<D> {
    pub(super) fn new(
        (node, boards): (Node<D>, Boards),
        clock: Clock,
        inbox: Arc<ShardInbox<D>>,
        helpers: Helpers<D>,
        backlog_bytes_max: usize,
    ) -> Self {
        Self {
            node,
            boards,
            clock,
            inbox,
            helpers,
            script_jobs: Vec::new(),
            taken: ShardTaken::default(),
            pieces: Pieces::default(),
            outboxes: Outboxes::default(),
            released: Vec::new(),
            backlog_bytes_max,
            flushing: false,
            backup: None,
            busy: true,
            told: Told::default(),
        }
    }

    /// Runs until it is told to stop and everything taken before is finished and durable.
    pub(super) fn run(mut self) {
        while !self.is_finished() {
            self.collect();
            let now = self.clock.now();
            self.take_finished(now);
            if !self.is_stalled() {
                let scripts = self.helpers.scripts.memory_bytes();
                self.node.note_script_memory(scripts as u64);
                let handled = self.handle_slice(now);
                self.busy = self.node.run(now) || !self.pieces.is_empty();
                self.node.take_script_jobs(&mut self.script_jobs);
                self.helpers.scripts.submit(&mut self.script_jobs);
                self.tell();
                if handled == 1 && self.is_alone() {
                    self.release();
                    self.flush_here();
                } else {
                    self.begin_flush();
                }
                self.release();
            }
            self.begin_background();
            self.answer();
            self.hand_over_backup();
        }
    }

    fn take_finished(&mut self, now: Millis) {
        for finished in std::mem::take(&mut self.taken.finished) {
            match finished {
                Finished::Flush(outcome) => {
                    self.flushing = false;
                    self.node.on_flushed(now, outcome);
                    self.begin_flush();
                    self.release();
                }
                Finished::Background(outcome) => {
                    self.node.on_background(now, outcome);
                    // What it leaves to write is written now.
                    self.busy = true;
                }
            }
            self.tell();
        }
    }

    fn begin_background(&mut self) {
        if let Some(job) = self.node.take_background() {
            self.helpers.background.begin(job);
        }
    }

    fn is_finished(&self) -> bool {
        let handled = self.taken.requests.is_empty() && self.pieces.is_empty();
        self.taken.stop && handled && !self.busy && !self.flushing
    }

    /// Too much waits for the disk: nothing more is taken before the flush under way is done.
    fn is_stalled(&self) -> bool {
        self.flushing && self.node.backlog_bytes() > self.backlog_bytes_max
    }

    fn collect(&mut self) {
        let stalled = self.is_stalled();
        let finished = self.taken.requests.is_empty();
        let want = if stalled || !finished {
            Want::NoRequests
        } else {
            Want::All
        };
        let wait = if stalled {
            Wait::Until(None)
        } else if self.busy || !finished {
            Wait::No
        } else {
            Wait::Until(self.next_instant())
        };
        self.inbox
            .take_beside(&mut self.taken, &self.pieces, want, wait);
        for (conn, mailbox) in self.taken.opened.drain(..) {
            self.outboxes.open(conn, mailbox);
        }
    }

    fn next_instant(&self) -> Option<Instant> {
        let deadline = self.node.next_deadline()?;
        Some(self.clock.instant_of(deadline))
    }

    /// Returns how many requests it handled.
    fn handle_slice(&mut self, now: Millis) -> usize {
        let mut bytes = 0;
        if let Some(piece) = self.pieces.next(&mut self.taken.requests) {
            self.node.handle(now, piece);
        }
        for handled in 0..SLICE_REQUESTS {
            let Some(request) = self.taken.requests.pop_front() else {
                return handled;
            };
            let Some(request) = self.pieces.pass(request) else {
                continue;
            };
            bytes += request.weight_bytes();
            let gone = request
                .conn()
                .filter(|_| matches!(request, Request::Disconnect { .. }));
            self.node.handle(now, request);
            if let Some(conn) = gone {
                for request in self.outboxes.close(conn) {
                    self.node.handle(now, request);
                }
            }
            if bytes >= SLICE_BYTES {
                return handled + 1;
            }
        }
        SLICE_REQUESTS
    }

    fn begin_flush(&mut self) {
        if self.flushing {
            return;
        }
        if let Some(job) = self.node.take_flush() {
            self.flushing = true;
            self.helpers.flusher.begin(job);
        }
    }

    /// Nobody else is there to be served meanwhile.
    fn is_alone(&self) -> bool {
        !self.flushing && !self.busy && self.inbox.is_empty()
    }

    /// Writes on this thread what one lonely request left to write: with the sync thread it would
    /// wait for two more changes of thread, a third of what the broker adds to a commit.
    fn flush_here(&mut self) {
        let Some(job) = self.node.take_flush() else {
            return;
        };
        if job.bytes() > FLUSH_HERE_BYTES_MAX {
            self.flushing = true;
            self.helpers.flusher.begin(job);
            return;
        }
        let outcome = job.run();
        self.node.on_flushed(self.clock.now(), outcome);
        self.tell();
    }

    fn release(&mut self) {
        self.publish_principals();
        self.node.drain_released(&mut self.released);
        self.pieces.join(&mut self.released);
        if self.node.read_errors() != self.told.read_errors {
            self.tell_of_read_errors();
        }
        if !self.released.is_empty() {
            self.outboxes.deliver(&mut self.released);
        }
    }

    /// Before what was released goes out: who hears that a key was revoked finds it so.
    fn publish_principals(&self) {
        let board = &self.boards.principals;
        let (keys, users) = (self.node.keys(), self.node.users());
        let is_known = {
            let known = board.borrow();
            Arc::ptr_eq(&known.keys, keys) && Arc::ptr_eq(&known.users, users)
        };
        if !is_known {
            board.send_replace(Principals {
                keys: Arc::clone(keys),
                users: Arc::clone(users),
            });
        }
    }

    /// Tells the operator, once, what the disk has come to.
    fn tell(&mut self) {
        if let Some(cause) = self.node.failed().filter(|_| !self.told.failed) {
            self.told.failed = true;
            tracing::error!(
                %cause,
                "the log failed: nothing more is confirmed; what was confirmed is safe; free or \
                 repair the disk, then restart"
            );
        }
        let full = self.node.storage_full();
        if full != self.told.storage_full {
            self.told.storage_full = full;
            self.boards
                .alarms
                .send_modify(|alarms| alarms.disk_full = full);
            if full {
                tracing::warn!(
                    "no file for more messages can be made: the disk is full, or its directory \
                     cannot be written; new messages are refused, settling goes on"
                );
            } else {
                tracing::info!("the disk has room again: new messages are taken");
            }
        }
        self.tell_of_memory();
        self.tell_of_snapshots();
    }

    fn tell_of_memory(&mut self) {
        let short = self.node.memory_short();
        if short != self.told.memory_short {
            self.told.memory_short = short;
            self.boards
                .alarms
                .send_modify(|alarms| alarms.memory = short);
            if short {
                tracing::warn!(
                    "memory.limit is near: publishers of AMQP and FireMQ are asked to wait, \
                     consumers go on"
                );
            } else {
                tracing::info!("memory is well below memory.limit again");
            }
        }
        let full = self.node.memory_full();
        if full == self.told.memory_full {
            return;
        }
        self.told.memory_full = full;
        if full {
            tracing::warn!(
                "memory.limit is reached: new messages are refused, settling goes on; messages \
                 that are delayed, leased, ordered or remembered for deduplication stay in memory"
            );
        } else {
            tracing::info!("memory is below memory.limit again: new messages are taken");
        }
    }

    fn tell_of_snapshots(&mut self) {
        let (failures, cause) = self.node.snapshot_failures();
        if failures != self.told.snapshot_failures {
            self.told.snapshot_failures = failures;
            tracing::error!(
                cause,
                "a snapshot could not be written: the log grows until one can; nothing is lost"
            );
        }
    }

    #[cold]
    fn tell_of_read_errors(&mut self) {
        let recent = |at: Instant| at.elapsed() < READ_ERRORS_EVERY;
        if self.told.read_errors_at.is_some_and(recent) {
            return;
        }
        let errors = self.node.read_errors();
        tracing::error!(
            errors = errors - self.told.read_errors,
            cause = self.node.last_read_error(),
            "messages cannot be read back from the log and are not delivered; check the disk"
        );
        self.told.read_errors = errors;
        self.told.read_errors_at = Some(Instant::now());
    }

    fn answer(&mut self) {
        for question in std::mem::take(&mut self.taken.questions) {
            match question {
                Question::Snapshot(reply) => {
                    let snapshot = Snapshot {
                        node: self.node.stats(),
                        failed: self.node.failed().map(str::to_owned),
                        alarms: *self.boards.alarms.borrow(),
                    };
                    // Whoever asked may have gone meanwhile.
                    drop(reply.send(snapshot));
                }
                Question::Backup(reply) => self.begin_backup(reply),
            }
        }
    }

    fn begin_backup(&mut self, reply: BackupReply<D>) {
        match self.node.begin_backup() {
            Ok(()) => {
                self.backup = Some(reply);
                // The snapshot it needs begins with the next pass.
                self.busy = true;
            }
            Err(refused) => drop(reply.send(Err(refused))),
        }
    }

    fn hand_over_backup(&mut self) {
        if self.backup.is_some()
            && let Some(backup) = self.node.take_backup()
            && let Some(reply) = self.backup.take()
        {
            // When nobody waits any more, dropping it ends the backup.
            drop(reply.send(backup));
        }
    }
}
