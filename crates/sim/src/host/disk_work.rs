//! What the process does with its disk on other threads, at the disk's pace.

use tanda_engine::Millis;
use tanda_node::{BackgroundJob, BackgroundOutcome, Node};
use tanda_wal::{DiskCall, FlushJob, FlushOutcome};

use super::Host;
use crate::disk::SimDisk;

/// How long the disk takes. Zero is a quick one: then steps alone decide.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// From the beginning of a flush to its end, at least.
    pub(crate) flush_ms: u64,
    /// For each read; whoever reads waits for it.
    pub(crate) read_ms: u64,
    /// From the beginning of a background job to its end, at least.
    pub(crate) background_ms: u64,
}

/// The most that the reads of one step take together.
const READS_MS_MAX: u64 = 1_000;

/// Jobs that are out.
#[derive(Default)]
pub(super) struct DiskWork {
    flush: Option<FlushJob<SimDisk>>,
    flushed: Option<FlushOutcome<SimDisk>>,
    /// The flush is not done before.
    flush_until: Millis,
    background: Option<BackgroundJob<SimDisk>>,
    done: Option<BackgroundOutcome<SimDisk>>,
    /// The background job is not done before.
    background_until: Millis,
    /// Reads so far.
    reads: u64,
}

impl DiskWork {
    pub(super) const fn is_flushing(&self) -> bool {
        self.flush.is_some()
    }
}

impl Host {
    pub(crate) fn take_flush(&mut self, now: Millis) -> bool {
        if self.work.flush.is_some() || self.work.flushed.is_some() {
            return false;
        }
        self.work.flush = self.node.as_mut().and_then(Node::take_flush);
        self.work.flush_until = now.after_ms(self.pace.flush_ms);
        self.work.flush.is_some()
    }

    /// The sync thread does its work.
    pub(crate) fn run_flush(&mut self, now: Millis) -> bool {
        if now < self.work.flush_until {
            return false;
        }
        let Some(job) = self.work.flush.take() else {
            return false;
        };
        self.work.flushed = Some(job.run());
        true
    }

    /// The node hears of it.
    pub(crate) fn finish_flush(&mut self, now: Millis) -> bool {
        let (Some(node), Some(outcome)) = (&mut self.node, self.work.flushed.take()) else {
            return false;
        };
        node.on_flushed(now, outcome);
        true
    }

    pub(crate) fn take_background(&mut self, now: Millis) -> bool {
        if self.work.background.is_some() || self.work.done.is_some() {
            return false;
        }
        self.work.background = self.node.as_mut().and_then(Node::take_background);
        self.work.background_until = now.after_ms(self.pace.background_ms);
        self.work.background.is_some()
    }

    /// The background thread does its work.
    pub(crate) fn run_background(&mut self, now: Millis) -> bool {
        if now < self.work.background_until {
            return false;
        }
        let Some(job) = self.work.background.take() else {
            return false;
        };
        self.work.done = Some(job.run());
        true
    }

    /// The node hears of it.
    pub(crate) fn finish_background(&mut self, now: Millis) -> bool {
        let (Some(node), Some(outcome)) = (&mut self.node, self.work.done.take()) else {
            return false;
        };
        node.on_background(now, outcome);
        true
    }

    /// How long the reads since the last call have taken.
    pub(crate) fn reads_took_ms(&mut self) -> u64 {
        let reads = self.disk.calls(DiskCall::Read);
        let new = reads - self.work.reads.min(reads);
        self.work.reads = reads;
        new.saturating_mul(self.pace.read_ms).min(READS_MS_MAX)
    }

    /// Nobody reads slowly.
    pub(crate) fn widen(&mut self) {
        for conn in self.conns.values_mut() {
            conn.window_bytes = usize::MAX;
        }
    }

    /// The disk is as quick as it can be, and scripts do what they are to do.
    pub(crate) fn hurry(&mut self) {
        self.scripts.be_kind();
        self.pace = Pace::default();
        self.work.flush_until = Millis(0);
        self.work.background_until = Millis(0);
    }
}
