//! All files of a log, and what makes sense of them together.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::assess::{self, Seen};
use super::file::{self, Place, Reader};
use super::inventory::{Raw, open_all};
use super::report::{BatchReport, Fault, FileReport, FileState, SegmentReport};
use crate::disk::{Disk, DiskError, read_up_to};
use crate::format::{BATCH_HEADER_BYTES, BatchHeader, Seed, SlotState};
use crate::lsn::{Geometry, Lsn, in_memory};

/// What can be read of a log. See the module head.
pub struct Survey<D: Disk> {
    log_id: u128,
    geometry: Geometry,
    start: u64,
    files: Vec<FileReport>,
    handles: Vec<Option<Arc<D::File>>>,
    /// Files with segments by the first position in them.
    by_base: BTreeMap<u64, usize>,
    faults: Vec<Fault>,
}

impl<D: Disk> Survey<D> {
    /// Reads all files in the directory of `disk`. `log_id` is what the data directory says, if
    /// that can be read; otherwise the files decide.
    ///
    /// # Errors
    /// Only when the directory cannot be listed; everything else is a fault in the result.
    pub fn of(disk: &D, log_id: Option<u128>) -> Result<Self, DiskError> {
        let mut faults = Vec::new();
        let raw = open_all(disk, &mut faults)?;
        let headers = || raw.iter().filter_map(|it| it.header.as_ref());
        let log_id = log_id.or_else(|| most(headers().map(|it| it.log_id)));
        let shift = most(headers().map(|it| it.segment_shift)).filter(|it| SHIFTS.contains(it));
        let mut survey = Self {
            log_id: log_id.unwrap_or(0),
            geometry: Geometry::new(1 << shift.unwrap_or(DEFAULT_SHIFT)),
            start: 0,
            files: Vec::new(),
            handles: Vec::new(),
            by_base: BTreeMap::new(),
            faults,
        };
        let mut seen = Vec::new();
        for raw in raw {
            seen.extend(survey.look_at(raw));
        }
        survey.put_together(seen);
        Ok(survey)
    }

    /// All files, by name.
    #[must_use]
    pub fn files(&self) -> &[FileReport] {
        &self.files
    }

    /// Everything that is wrong with them, by file.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Recovery reads nothing below this position.
    #[must_use]
    pub const fn start(&self) -> Lsn {
        Lsn(self.start)
    }

    /// The identity of the log.
    #[must_use]
    pub const fn log_id(&self) -> u128 {
        self.log_id
    }

    /// Size of a segment's window.
    #[must_use]
    pub const fn segment_bytes(&self) -> u64 {
        self.geometry.segment_bytes()
    }

    /// The file and the offset in it of a position.
    #[must_use]
    pub fn place_of(&self, at: Lsn) -> Option<(&str, u64)> {
        let (base, file) = self.by_base.range(..=at.0).next_back()?;
        let report = self.files.get(*file)?;
        let offset = at.0 - base;
        (offset < report.bytes).then_some((report.name.as_str(), offset))
    }

    /// Gives the records of all whole batches of the log, oldest first; `with_kept`, also those of
    /// segments before the start of the log.
    pub fn replay(&self, with_kept: bool, visit: &mut dyn FnMut(Lsn, &[u8])) {
        for number in self.by_base.values() {
            let Some(report) = self.files.get(*number) else {
                continue;
            };
            let segment = match &report.state {
                FileState::Replayed(segment) => segment,
                FileState::Kept(segment) if with_kept => segment,
                FileState::Kept(_)
                | FileState::Spare
                | FileState::PassedOver(_)
                | FileState::Cold(_)
                | FileState::Unknown => continue,
            };
            let end = segment.end.unwrap_or(u64::MAX);
            for batch in report.batches.iter().filter(|batch| batch.position < end) {
                self.visit_batch(*number, segment, *batch, visit);
            }
        }
    }

    /// Reads bytes at positions. Keeps the last batch in memory, for the next read is often near.
    #[must_use]
    pub const fn reader(&self) -> SurveyReader<'_, D> {
        SurveyReader {
            survey: self,
            position: 0,
            batch: Vec::new(),
        }
    }

    /// The bytes of a batch, up to the end of its records; checked again.
    fn batch(&self, number: usize, segment: &SegmentReport, batch: BatchReport) -> Option<Vec<u8>> {
        let file = self.handles.get(number)?.as_ref()?;
        let mut bytes = vec![0; in_memory(batch.end - batch.position)];
        let offset = batch.position - segment.base;
        let filled = read_up_to(&**file, offset, &mut bytes).ok()?;
        bytes.truncate(filled);
        let seed = Seed::new(self.log_id, segment.epoch);
        let header = BatchHeader::decode(&bytes, seed, segment.epoch, batch.position).ok()?;
        header.body(seed, &bytes).ok()?;
        bytes.truncate(BATCH_HEADER_BYTES + header.body_bytes as usize);
        Some(bytes)
    }

    fn visit_batch(
        &self,
        number: usize,
        segment: &SegmentReport,
        batch: BatchReport,
        visit: &mut dyn FnMut(Lsn, &[u8]),
    ) {
        let seed = Seed::new(self.log_id, segment.epoch);
        let Some(bytes) = self.batch(number, segment, batch) else {
            return;
        };
        let header = BatchHeader::decode(&bytes, seed, segment.epoch, batch.position);
        let records = header.and_then(|header| header.body(seed, &bytes));
        for (at, record) in records.into_iter().flatten() {
            visit(Lsn(at), record);
        }
    }

    /// Reads a file; notes what it is, as far as it can be said of the file alone.
    fn look_at(&mut self, raw: Raw<D::File>) -> Option<Seen> {
        let number = self.files.len();
        let mut report = FileReport {
            name: raw.name.clone(),
            bytes: raw.bytes,
            state: FileState::Unknown,
            batches: Vec::new(),
        };
        self.handles.push(raw.file.clone());
        let is_spare = raw.header.is_some_and(|it| it.state == SlotState::Spare);
        let seen = match &raw.file {
            Some(_) if is_spare => {
                report.state = FileState::Spare;
                None
            }
            Some(file) => self.segment(&raw, &**file, number),
            None => None,
        };
        if let Some(seen) = &seen {
            report.batches.clone_from(&seen.content.batches);
            report.state = match raw.is_cold {
                true => FileState::Cold(seen.report.clone()),
                false => FileState::Replayed(seen.report.clone()),
            };
        }
        self.files.push(report);
        seen
    }

    fn segment(&mut self, raw: &Raw<D::File>, file: &D::File, number: usize) -> Option<Seen> {
        let mut reader = Reader::new(file, raw.bytes);
        let report = match &raw.header {
            Some(header) => {
                if header.log_id != self.log_id {
                    self.faults.push(Fault::of(
                        &raw.name,
                        format!(
                            "it belongs to log {:032x}, not to log {:032x}; move it away",
                            header.log_id, self.log_id
                        ),
                    ));
                    return None;
                }
                self.header_report(header)?
            }
            None => self.batches_report(&mut reader)?,
        };
        let place = Place {
            log_id: self.log_id,
            epoch: report.epoch,
            base: report.base,
        };
        let content = file::read(&mut reader, place);
        self.faults
            .extend(file::refused(&raw.name, &reader.refused));
        Some(Seen {
            number,
            name: raw.name.clone(),
            bytes: raw.bytes,
            allocated: raw.header.map_or(0, |header| header.file_bytes),
            is_cold: raw.is_cold,
            report,
            content,
        })
    }

    fn header_report(&self, header: &crate::format::SegmentHeader) -> Option<SegmentReport> {
        let SlotState::Live {
            index,
            span,
            previous_end,
            start,
        } = header.state
        else {
            return None;
        };
        // An index that cannot be is a header that is wrong.
        index.0.checked_mul(self.segment_bytes())?;
        Some(SegmentReport {
            index: index.0,
            windows: span,
            epoch: header.epoch,
            base: self.geometry.base(index),
            previous_end: Some(previous_end),
            start,
            end: None,
            is_guessed: false,
        })
    }

    fn batches_report(&self, reader: &mut Reader<'_, D::File>) -> Option<SegmentReport> {
        let place = file::guess(reader, self.log_id, self.segment_bytes())?;
        let windows = self.geometry.windows(reader.len_bytes()).max(1);
        Some(SegmentReport {
            index: self.geometry.index_of(place.base).0,
            windows: u32::try_from(windows).ok()?,
            epoch: place.epoch,
            base: place.base,
            previous_end: None,
            start: 0,
            end: None,
            is_guessed: true,
        })
    }

    fn put_together(&mut self, seen: Vec<Seen>) {
        let verdict = assess::assess(self.geometry, seen, &mut self.faults);
        self.start = verdict.start;
        for (number, state) in verdict.states {
            if let Some(segment) = state.segment() {
                self.by_base.insert(segment.base, number);
            }
            if let Some(report) = self.files.get_mut(number) {
                report.state = state;
            }
        }
        self.faults.sort();
    }
}

/// See [`Survey::reader`].
pub struct SurveyReader<'a, D: Disk> {
    survey: &'a Survey<D>,
    position: u64,
    batch: Vec<u8>,
}

impl<D: Disk> SurveyReader<'_, D> {
    /// `len` bytes at a position, if they lie in the records of a batch that is whole.
    pub fn read(&mut self, at: Lsn, len: u32) -> Option<&[u8]> {
        let is_in = at.0 >= self.position && at.0 - self.position < self.batch.len() as u64;
        if !is_in {
            self.load(at)?;
        }
        let skip = usize::try_from(at.0.checked_sub(self.position)?).ok()?;
        let end = skip.checked_add(len as usize)?;
        (skip >= BATCH_HEADER_BYTES)
            .then(|| self.batch.get(skip..end))
            .flatten()
    }

    fn load(&mut self, at: Lsn) -> Option<()> {
        let survey = self.survey;
        let (_, number) = survey.by_base.range(..=at.0).next_back()?;
        let report = survey.files.get(*number)?;
        let after = report
            .batches
            .partition_point(|batch| batch.position <= at.0);
        let batch = report.batches.get(after.checked_sub(1)?)?;
        self.batch = survey.batch(*number, report.state.segment()?, *batch)?;
        self.position = batch.position;
        Some(())
    }
}

/// The value that comes most often.
fn most<T: Ord + Copy>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut counts: BTreeMap<T, u64> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    let best = counts.into_iter().max_by_key(|(_, count)| *count);
    best.map(|(value, _)| value)
}

/// Sizes of segments that a log can have, as powers of two.
const SHIFTS: std::ops::RangeInclusive<u32> = 14..=30;
const DEFAULT_SHIFT: u32 = 26;
