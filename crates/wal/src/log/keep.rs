//! Which segments stay: where the log starts, which older segments are kept, cold ones.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::Log;
use crate::cold::{ColdWriter, ColdWritten, cold_name};
use crate::disk::Disk;
use crate::error::OpenError;
use crate::lsn::Lsn;
use crate::segments::Segment;

/// A file that holds needed data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentFile {
    /// Its first window.
    pub index: u64,
    /// How many windows it has; more than one for a large record.
    pub windows: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// A cold segment.
    pub is_cold: bool,
    /// It will be replayed: it lies at or behind [`Log::claimed_start`]. Neither this nor a cold
    /// segment that is still written to goes before that has changed.
    pub is_replayed: bool,
}

impl<D: Disk> Log<D> {
    /// Says which segments still hold something that is needed, after opening and before anything
    /// else: windows that positions lie in ([`Self::segment_of`]). Segments before the start of the
    /// log and cold ones that are not among them go; those that will be replayed stay anyway.
    ///
    /// # Errors
    /// `MissingKept` when one is not there: the log must not be used then, and nothing was freed.
    pub fn keep_segments(&mut self, needed: &BTreeSet<u64>) -> Result<(), OpenError> {
        let missing = |window: &&u64| self.segments.covering(**window).is_none();
        if let Some(index) = needed.iter().find(missing).copied() {
            let bit = self.geometry.cold_bit();
            let is_cold = index & bit != 0;
            return Err(OpenError::MissingKept {
                index,
                file: is_cold.then(|| cold_name(index & !bit)),
            });
        }
        let is_free = |segment: &Segment<_>| needed.range(segment.windows()).next().is_none();
        let start = self.marks.start_claimed;
        self.freed
            .extend(self.segments.remove_before(start, is_free));
        self.freed.extend(self.segments.remove_cold(is_free));
        Ok(())
    }

    /// Says that recovery need not read what lies before `at`, which is below [`Self::proven`].
    ///
    /// The next batch says so on disk (or a marker; see [`Self::on_idle`]); [`Self::claimed_start`]
    /// moves when that is synced. Segments before it stay until [`Self::free_segment`]. If what was
    /// appended before this call is lost in a crash, so is this call.
    pub fn set_start(&mut self, at: Lsn) {
        // Not beyond `at`, even if nothing lies between it and the next segment: a start that is
        // claimed beyond the caller's position means that the caller's is too old.
        let window = self.geometry.base(self.geometry.index_of(at.0));
        let start = self.segments.start_for(at.0).min(window);
        self.tail.claims.start = self.tail.claims.start.max(start);
    }

    /// The first position of the segment that recovery begins with, as far as the disk says so.
    ///
    /// Never beyond what [`Self::set_start`] was given. If it is beyond the position that the log
    /// was opened from, there was a newer one: records between them may be gone.
    #[must_use]
    pub const fn claimed_start(&self) -> Lsn {
        Lsn(self.marks.start_claimed)
    }

    /// Says that nothing in the segment that has this window is needed any more; says whether there
    /// is one. A segment with several windows ([`Self::segment_windows`]) goes as a whole.
    ///
    /// A segment that would still be replayed goes when the log starts behind it, a cold one that
    /// is
    /// still written to when that ends without another copy in it. Files go with the next flush.
    pub fn free_segment(&mut self, window: u64) -> bool {
        let is_known = self.segments.covering(window).is_some();
        if is_known {
            self.frees.windows.insert(window);
            self.frees.is_due = true;
            self.collect_free();
        }
        is_known
    }

    /// All windows of the segment that has this one.
    #[must_use]
    pub fn segment_windows(&self, window: u64) -> Option<Range<u64>> {
        self.segments.covering(window).map(Segment::windows)
    }

    /// The files that hold needed data: the log's own by age, then the cold ones.
    pub fn segment_files(&self) -> impl Iterator<Item = SegmentFile> {
        self.segments.iter().map(|segment| {
            let index = segment.window.index.0;
            let is_cold = Lsn(segment.base).is_cold();
            SegmentFile {
                index,
                windows: u64::from(segment.window.span),
                bytes: segment.slot.bytes,
                is_cold,
                is_replayed: !is_cold && segment.base >= self.marks.start_claimed,
            }
        })
    }

    /// A writer of cold segments; `None` while there is one.
    #[must_use]
    pub fn cold_writer(&mut self) -> Option<ColdWriter<D>> {
        if Arc::strong_count(&self.cold.numbers) > 1 {
            return None;
        }
        self.close_cold(None);
        Some(ColdWriter::new(
            (Arc::clone(&self.disk), Arc::clone(&self.lock)),
            &self.config,
            self.tail.epoch(),
            Arc::clone(&self.cold.numbers),
        ))
    }

    /// Makes what a cold writer has synced readable.
    pub fn add_cold(&mut self, written: ColdWritten<D>) {
        for part in written.parts {
            let index = part.window.index.0;
            // Whoever freed it did not know of what was added now.
            let numbers = part.window.numbers();
            self.frees
                .windows
                .retain(|window| !numbers.contains(window));
            match self.segments.cold_mut(index) {
                Some(segment) => {
                    segment.end = part.end;
                    segment.slot = part.slot;
                }
                None => {
                    let mut segment =
                        Segment::unread(self.geometry, part.window, part.epoch, part.slot);
                    segment.end = part.end;
                    self.segments.insert_cold(segment);
                }
            }
        }
        self.close_cold(written.open);
    }

    fn close_cold(&mut self, open: Option<u64>) {
        if self.cold.open != open {
            self.cold.open = open;
            self.frees.is_due = true;
            self.collect_free();
        }
    }

    /// Takes out the segments that may go now. Those before the start only that a synced batch
    /// claims: until then a crash brings back a log that reads them.
    pub(super) fn collect_free(&mut self) {
        if !std::mem::take(&mut self.frees.is_due) {
            return;
        }
        let frees = &mut self.frees;
        let open = self.cold.open;
        let mut freed = self
            .segments
            .remove_before(self.marks.start_claimed, |segment| {
                frees.windows.range(segment.windows()).next().is_some()
            });
        freed.extend(self.segments.remove_cold(|segment| {
            Some(segment.window.index.0) != open
                && frees.windows.range(segment.windows()).next().is_some()
        }));
        if !freed.is_empty() {
            let segments = &self.segments;
            frees
                .windows
                .retain(|window| segments.covering(*window).is_some());
            self.cache.drop_before(self.segments.oldest().unwrap_or(0));
            self.freed.extend(freed);
        }
    }
}
