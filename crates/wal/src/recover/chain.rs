//! Which segments make up the log: each names where the log ends in the one before it.

use super::as_live;
use super::inventory::Found;
use crate::error::{Corruption, OpenError};
use crate::format::SegmentHeader;
use crate::lsn::{Geometry, Lsn};
use crate::segments::Segment;
use crate::slots::Slot;
use crate::tail::Window;

/// A file whose header says that it is a segment.
pub(super) struct Live<F> {
    pub(super) window: Window,
    pub(super) base: u64,
    pub(super) previous_end: u64,
    pub(super) start: u64,
    pub(super) header: SegmentHeader,
    pub(super) slot: Slot<F>,
}

impl<F> Live<F> {
    pub(super) const fn window_end(&self, geometry: Geometry) -> u64 {
        self.base + self.window.span as u64 * geometry.segment_bytes()
    }

    /// The segment, to be kept without reading it.
    pub(super) fn into_unread(self, geometry: Geometry) -> Segment<F> {
        Segment::unread(geometry, self.window, self.header.epoch, self.slot)
    }

    /// A corruption of this file at log position `at`.
    pub(super) fn corrupt(&self, at: u64, detail: String) -> OpenError {
        OpenError::Corrupt(Corruption {
            file: self.slot.name.clone(),
            offset: at - self.base,
            detail,
        })
    }
}

/// The segments that count, and the others.
pub(super) struct Chain<F> {
    /// Oldest first, each with the position where the log ends in it; the newest is not among
    /// them.
    pub(super) links: Vec<(Live<F>, u64)>,
    /// Segments that recovery once passed over, because nothing in them was proven.
    pub(super) passed_over: Vec<Live<F>>,
    /// Segments before the start of the log, by index.
    pub(super) held: Vec<Live<F>>,
}

/// Segments, sorted by index, and spare files.
type SortedFiles<F> = (Vec<Live<F>>, Vec<Slot<F>>);

/// Separates segments, sorted by index, from spare files.
pub(super) fn sort_files<F>(files: Vec<Found<F>>) -> Result<SortedFiles<F>, OpenError> {
    let mut live: Vec<Live<F>> = Vec::new();
    let mut spares = Vec::new();
    for found in files {
        let geometry = Geometry::new(1 << found.header.segment_shift);
        match as_live(found, geometry) {
            Ok(segment) => live.push(segment),
            Err(slot) => spares.push(slot),
        }
    }
    live.sort_by_key(|segment| segment.window.index);
    for (one, other) in live.iter().zip(live.iter().skip(1)) {
        if one.window.index == other.window.index {
            let detail = format!(
                "both this file and {} say they are segment {}",
                one.slot.name, one.window.index
            );
            return Err(other.corrupt(other.base, detail));
        }
    }
    Ok((live, spares))
}

/// Follows the log back from `newest` to `start`.
pub(super) fn walk<F>(
    geometry: Geometry,
    mut older: Vec<Live<F>>,
    newest: &Live<F>,
    start: u64,
) -> Result<Chain<F>, OpenError> {
    let mut links: Vec<(Live<F>, u64)> = Vec::new();
    let mut passed_over = Vec::new();
    let mut before = newest.previous_end;
    let mut named_by = newest.slot.name.clone();
    while before > start {
        let missing = || OpenError::MissingSegment {
            before: Lsn(before),
            named_by: named_by.clone(),
        };
        let segment = older.pop().ok_or_else(missing)?;
        let holds_end = segment.base < before && before <= segment.window_end(geometry);
        if holds_end {
            let end = std::mem::replace(&mut before, segment.previous_end);
            named_by.clone_from(&segment.slot.name);
            links.push((segment, end));
        } else if segment.base >= before {
            passed_over.push(segment);
        } else {
            return Err(missing());
        }
    }
    links.reverse();
    Ok(Chain {
        links,
        passed_over,
        held: older,
    })
}
