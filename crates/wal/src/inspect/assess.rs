//! What each segment is to the log, and which of what is missing was ever there.

use super::chain::{self, Link, Part};
use super::file::Content;
use super::report::{Fault, FileState, SegmentReport};
use crate::format::BLOCK_BYTES;
use crate::lsn::Geometry;

/// A segment with what was read of it.
pub(super) struct Seen {
    /// Which file it is.
    pub(super) number: usize,
    pub(super) name: String,
    /// Length of the file, and what it was made with (0 when that is lost).
    pub(super) bytes: u64,
    pub(super) allocated: u64,
    pub(super) is_cold: bool,
    pub(super) report: SegmentReport,
    pub(super) content: Content,
}

/// See the module head.
pub(super) struct Verdict {
    pub(super) start: u64,
    /// By number of the file.
    pub(super) states: Vec<(usize, FileState)>,
}

pub(super) fn assess(geometry: Geometry, seen: Vec<Seen>, faults: &mut Vec<Fault>) -> Verdict {
    let (cold, mut own): (Vec<Seen>, Vec<Seen>) = seen.into_iter().partition(|it| it.is_cold);
    let mut states = Vec::new();
    for it in cold {
        it.gaps_until(u64::MAX, faults);
        states.push((it.number, FileState::Cold(it.report)));
    }
    own.sort_by_key(|it| it.report.base);
    own.dedup_by(|other, one| {
        let is_double = other.report.base == one.report.base;
        if is_double {
            let index = one.report.index;
            let detail = format!("both it and {} say they are segment {index}", one.name);
            faults.push(Fault::of(&other.name, detail));
            states.push((other.number, FileState::Unknown));
        }
        is_double
    });
    guess_previous_ends(&mut own);
    let start = start_of(&own);
    let links: Vec<Link> = own.iter().map(|it| it.link(geometry)).collect();
    let names: Vec<String> = own.iter().map(|it| it.name.clone()).collect();
    let parts = chain::walk(&links, &names, start, faults);
    let count = own.len();
    for (place, (mut it, part)) in own.into_iter().zip(parts).enumerate() {
        let is_kept = it.report.base < start;
        let state = match part {
            Part::PassedOver => FileState::PassedOver,
            Part::In(end) => {
                it.report.end = if place + 1 == count {
                    it.tail(faults)
                } else {
                    it.gaps_until(end.unwrap_or(u64::MAX), faults);
                    end
                };
                if is_kept {
                    FileState::Kept
                } else {
                    FileState::Replayed
                }
            }
        };
        states.push((it.number, state(it.report)));
    }
    Verdict { start, states }
}

/// A run that began in a segment whose header is lost says in its first batch where the log ended
/// before.
fn guess_previous_ends(own: &mut [Seen]) {
    let mut epoch_before = 0;
    for it in own {
        let first = it.content.batches.first();
        if it.report.previous_end.is_none()
            && it.report.epoch > epoch_before
            && let Some(first) = first.filter(|first| first.synced < it.report.base)
        {
            it.report.previous_end = Some(first.synced);
        }
        epoch_before = it.report.epoch;
    }
}

/// The highest start that anything claims.
fn start_of(own: &[Seen]) -> u64 {
    let claims = own.iter().map(|it| {
        let batches = it.content.batches.iter().map(|batch| batch.start).max();
        it.report.start.max(batches.unwrap_or(0))
    });
    claims.max().unwrap_or(0)
}

impl Seen {
    fn link(&self, geometry: Geometry) -> Link {
        let bytes = u64::from(self.report.windows).saturating_mul(geometry.segment_bytes());
        Link {
            base: self.report.base,
            window_end: self.report.base.saturating_add(bytes),
            previous_end: self.report.previous_end,
        }
    }

    /// Everything up to `end` was on disk once.
    fn gaps_until(&self, end: u64, faults: &mut Vec<Fault>) {
        let end = end.saturating_sub(self.report.base);
        for gap in self.content.gaps.iter().filter(|gap| gap.from < end) {
            let detail = format!("{}, although the log goes on behind it", gap.detail);
            faults.push(self.fault(gap.from, gap.to.min(end), detail));
        }
        let last = self.content.batches.last();
        let last = last.map_or(BLOCK_BYTES, |batch| batch.end - self.report.base);
        if end < u64::MAX - self.report.base && last < end {
            let detail = format!(
                "no whole batch from here on, although the log was synced to byte {end} of \
                 this file"
            );
            faults.push(self.fault(last, end, detail));
        }
    }

    /// The newest segment: what nothing claims may have been torn. Returns where it ends.
    fn tail(&self, faults: &mut Vec<Fault>) -> Option<u64> {
        let base = self.report.base;
        if self.bytes < self.allocated {
            let detail = format!(
                "the file has {} bytes instead of {}",
                self.bytes, self.allocated
            );
            faults.push(self.fault(self.bytes, self.allocated, detail));
        }
        let synced = self.content.synced.saturating_sub(base);
        let damaged = self.content.gaps.iter().filter(|gap| gap.from < synced);
        let mut is_damaged = false;
        for gap in damaged {
            is_damaged = true;
            let detail = format!(
                "{}, although the log was synced to byte {synced} of this file",
                gap.detail
            );
            faults.push(self.fault(gap.from, gap.to, detail));
        }
        let torn = self.content.gaps.first().map(|gap| base + gap.from);
        let last = self.content.batches.last().map(|batch| batch.end);
        if is_damaged { last } else { torn.or(last) }
    }

    fn fault(&self, from: u64, to: u64, detail: String) -> Fault {
        Fault {
            file: self.name.clone(),
            offset: from,
            bytes: to.saturating_sub(from),
            detail,
        }
    }
}
