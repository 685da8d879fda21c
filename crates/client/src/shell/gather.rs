//! Which requests share a frame.
//!
//! Owns: the bound on a shared frame, and putting bodies together.
//! Refuses to know: who waits for what.

use bytes::Bytes;

use super::job::{EnqueueJob, SettleJob};

/// A shared frame is closed when its bodies reach this size. It is small enough that one frame
/// does not hold up the others for long.
const GATHER_BYTES_MAX: usize = 256 * 1024;
/// A shared frame is closed when it has so many items.
const GATHER_ITEMS_MAX: usize = 1_000;

/// Bytes of the count at the front of a body.
const COUNT_BYTES: usize = 4;

/// A request that may share a frame with its like.
pub(super) trait Gather {
    /// Its whole body: `u32` count, then the items.
    fn body(&self) -> &Bytes;
    /// Its items.
    fn count(&self) -> usize;
    /// Whether it may share at all.
    fn gathers(&self) -> bool;
}

impl Gather for EnqueueJob {
    fn body(&self) -> &Bytes {
        &self.body
    }

    fn count(&self) -> usize {
        self.count
    }

    fn gathers(&self) -> bool {
        self.gathers
    }
}

impl Gather for SettleJob {
    fn body(&self) -> &Bytes {
        &self.body
    }

    fn count(&self) -> usize {
        self.count
    }

    fn gathers(&self) -> bool {
        true
    }
}

/// Requests that will share the next frame of their kind.
#[derive(Debug)]
pub(super) struct Gathering<J> {
    jobs: Vec<J>,
    bytes: usize,
    items: usize,
}

impl<J> Default for Gathering<J> {
    fn default() -> Self {
        Self {
            jobs: Vec::new(),
            bytes: 0,
            items: 0,
        }
    }
}

impl<J: Gather> Gathering<J> {
    /// Adds a request, and returns those that must go first because it does not fit with them.
    pub(super) fn push(&mut self, job: J) -> Option<Vec<J>> {
        let bytes = self.bytes + job.body().len();
        let items = self.items + job.count();
        let fits = bytes <= GATHER_BYTES_MAX && items <= GATHER_ITEMS_MAX;
        let shares = job.gathers() && self.jobs.last().is_none_or(Gather::gathers);
        let full = if self.jobs.is_empty() || (fits && shares) {
            None
        } else {
            self.take()
        };
        self.bytes += job.body().len();
        self.items += job.count();
        self.jobs.push(job);
        full
    }

    /// The requests gathered, to go into one frame.
    pub(super) fn take(&mut self) -> Option<Vec<J>> {
        let Self { jobs, .. } = std::mem::take(self);
        (!jobs.is_empty()).then_some(jobs)
    }
}

/// Appends one body that holds the items of all these.
pub(super) fn write_body<J: Gather>(jobs: &[J], out: &mut Vec<u8>) {
    if let [job] = jobs {
        out.extend_from_slice(job.body());
        return;
    }
    let items: usize = jobs.iter().map(Gather::count).sum();
    // A gathering stops at GATHER_ITEMS_MAX, and what it began with has a `u32` count itself.
    let count = u32::try_from(items).unwrap_or(u32::MAX);
    out.extend_from_slice(&count.to_be_bytes());
    for job in jobs {
        out.extend_from_slice(job.body().get(COUNT_BYTES..).unwrap_or_default());
    }
}
