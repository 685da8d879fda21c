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

use tanda_engine::{ConnId, Event, Millis, Request};
use tanda_node::Node;
use tanda_wal::Disk;

use super::{
    Question, ShardInbox, ShardTaken, Snapshot,
    inbox::{Wait, Want},
    outboxes::Outboxes,
    sync::Flusher,
};
use crate::clock::Clock;

/// Requests handled in one round at most: about a millisecond of small ones.
const SLICE_REQUESTS: usize = 1024;
/// Bytes of requests handled in one round, after which it ends.
const SLICE_BYTES: usize = 4 << 20;

/// Most bytes that the shard's thread writes itself.
const FLUSH_HERE_BYTES_MAX: usize = 64 << 10;

pub(super) struct Driver<D: Disk> {
    node: Node<D>,
    clock: Clock,
    inbox: Arc<ShardInbox<D>>,
    flusher: Flusher<D>,
    taken: ShardTaken<D>,
    outboxes: Outboxes,
    released: Vec<(ConnId, Event)>,
    /// No requests are taken above this many bytes that wait for the disk.
    backlog_bytes_max: usize,
    flushing: bool,
    /// The node could go on at once.
    busy: bool,
    told: Told,
}

/// What the operator has been told, so that it is said once.
#[derive(Debug, Default)]
struct Told {
    failed: bool,
    storage_full: bool,
    /// Read errors, and when they were last told of.
    read_errors: u64,
    read_errors_at: Option<Instant>,
}

/// Unreadable messages are tried again and again; their errors are told of this often.
const READ_ERRORS_EVERY: Duration = Duration::from_secs(10);

impl<D: Disk> Driver<D> {
    pub(super) fn new(
        node: Node<D>,
        clock: Clock,
        inbox: Arc<ShardInbox<D>>,
        flusher: Flusher<D>,
        backlog_bytes_max: usize,
    ) -> Self {
        Self {
            node,
            clock,
            inbox,
            flusher,
            taken: ShardTaken::default(),
            outboxes: Outboxes::default(),
            released: Vec::new(),
            backlog_bytes_max,
            flushing: false,
            busy: true,
            told: Told::default(),
        }
    }

    /// Runs until it is told to stop and everything taken before is finished and durable.
    pub(super) fn run(mut self) {
        while !self.is_finished() {
            self.collect();
            let now = self.clock.now();
            if let Some(outcome) = self.taken.flushed.take() {
                self.flushing = false;
                self.node.on_flushed(now, outcome);
                self.begin_flush();
                self.release();
                self.tell();
            }
            if !self.is_stalled() {
                let handled = self.handle_slice(now);
                self.busy = self.node.run(now);
                if handled == 1 && self.is_alone() {
                    self.release();
                    self.flush_here();
                } else {
                    self.begin_flush();
                }
                self.release();
            }
            self.answer();
        }
    }

    fn is_finished(&self) -> bool {
        self.taken.stop && self.taken.requests.is_empty() && !self.busy && !self.flushing
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
        self.inbox.take(&mut self.taken, want, wait);
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
        for handled in 0..SLICE_REQUESTS {
            let Some(request) = self.taken.requests.pop_front() else {
                return handled;
            };
            bytes += request.weight_bytes();
            let gone = match &request {
                Request::Disconnect { conn } => Some(*conn),
                Request::Connect { .. }
                | Request::Drained { .. }
                | Request::Publish { .. }
                | Request::Settle { .. }
                | Request::Subscribe { .. }
                | Request::Grant { .. }
                | Request::Unsubscribe { .. }
                | Request::Admin { .. } => None,
            };
            self.node.handle(now, request);
            if let Some(conn) = gone {
                self.outboxes.close(conn);
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
            self.flusher.begin(job);
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
            self.flusher.begin(job);
            return;
        }
        let outcome = job.run();
        self.node.on_flushed(self.clock.now(), outcome);
        self.tell();
    }

    fn release(&mut self) {
        self.node.drain_released(&mut self.released);
        if self.node.read_errors() != self.told.read_errors {
            self.tell_of_read_errors();
        }
        if !self.released.is_empty() {
            self.outboxes.deliver(&mut self.released);
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
            if full {
                tracing::warn!(
                    "no file for more messages can be made: the disk is full, or its directory \
                     cannot be written; new messages are refused, settling goes on"
                );
            } else {
                tracing::info!("the disk has room again: new messages are taken");
            }
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
        for question in self.taken.questions.drain(..) {
            let Question { reply } = question;
            let snapshot = Snapshot {
                node: self.node.stats(),
                failed: self.node.failed().map(str::to_owned),
            };
            // Whoever asked may have gone meanwhile.
            drop(reply.send(snapshot));
        }
    }
}
