//! Copying reclaim: contents that remain in mostly dead segments move to cold segments, so that a
//! few
//! old messages keep no disk.
//!
//! Owns which segments are to be emptied and how far that has come. One step at a time: choose,
//! look
//! for what remains, copy it in pieces at a bounded rate, then wait for a snapshot that knows the
//! new
//! places. It refuses to know the engine and the log; [`crate::Node`] moves things between them.

use std::collections::{BTreeMap, BTreeSet};

use tanda_engine::{Lsn, Millis, Moved, SegmentUse, Survivor, SurvivorCursor};
use tanda_wal::{ColdWriter, Disk, LogReader};

use crate::{NodeConfig, ReclaimThresholds};

/// How often segments are looked at.
const CHOOSE_MS: u64 = 1_000;
/// After copying failed.
const RETRY_MS: u64 = 5_000;
/// Contents copied in one go: what is looked for is kept in memory.
const ROUND_BYTES_MAX: u64 = 32 << 20;
/// Segments emptied in one go.
const ROUND_SEGMENTS_MAX: usize = 256;
/// Contents of one background job.
const PIECE_BYTES: usize = 1 << 20;
const PIECE_MESSAGES: usize = 1024;
/// Contents farther apart than this are in different batches: each costs a read, and a piece has
/// one.
const NEAR_BYTES: u64 = 64 << 10;
/// About what such a read costs, in bytes copied.
const READ_BYTES: u64 = 512 << 10;

/// Survivors are kept in lists of about this many: one list of all would be copied as it grows.
const LIST_MESSAGES: usize = 4096;

/// What reads what is left, on another thread, and what writes it elsewhere.
pub(crate) type Tools<D> = (Box<ColdWriter<D>>, Box<LogReader<D>>);

/// A segment that is not replayed.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) windows: std::ops::Range<u64>,
    pub(crate) file_bytes: u64,
    pub(crate) needed: SegmentUse,
}

/// What is dead and what is alive in segments that are not replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pinned {
    /// Bytes of their files.
    pub file_bytes: u64,
    /// Bytes of contents that messages need.
    pub live_bytes: u64,
}

/// How fast and when contents are copied, and the size of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rates {
    pub(crate) bytes_per_second: u64,
    pub(crate) thresholds: ReclaimThresholds,
    pub(crate) segment_bytes: u64,
}

impl Rates {
    pub(crate) const fn of(config: &NodeConfig) -> Self {
        Self {
            bytes_per_second: config.reclaim_bytes_per_second,
            thresholds: config.reclaim,
            segment_bytes: config.log.segment_bytes,
        }
    }
}

/// See the module.
pub(crate) struct Reclaim<D: Disk> {
    bytes_per_second: u64,
    thresholds: ReclaimThresholds,
    segment_bytes: u64,
    stage: Stage<D>,
    /// Not before this: the rate, or a pause after a failure.
    not_before: Millis,
    writer: Option<Box<ColdWriter<D>>>,
    /// The writer is away, to close its file. There is no other until it has: a round waits.
    is_closing: bool,
    /// Emptied segments, with the number of the newest snapshot begun when the last content moved:
    /// a later one must count before they go.
    blocked: BTreeMap<u64, u64>,
    pub(crate) pinned: Pinned,
    /// Messages and bytes copied since the start.
    pub(crate) copied: SegmentUse,
    failures: u64,
    last_error: Option<String>,
}

enum Stage<D: Disk> {
    Idle,
    /// Looks for what remains in `segments`.
    Search {
        segments: BTreeSet<u64>,
        cursor: SurvivorCursor,
        found: Survivors,
    },
    /// Copies what was found, from the end on.
    Copy {
        segments: BTreeSet<u64>,
        found: Survivors,
        /// What the background job has.
        out: Vec<Survivor>,
        /// `None` while the background job has it.
        reader: Option<Box<LogReader<D>>>,
    },
}

/// What was found, in the order of the walk.
#[derive(Default)]
pub(crate) struct Survivors(Vec<Vec<Survivor>>);

impl Survivors {
    /// Where the next ones are to be added.
    pub(crate) fn list(&mut self) -> &mut Vec<Survivor> {
        match self.0.pop_if(|list| list.len() < LIST_MESSAGES) {
            Some(list) => self.0.push_mut(list),
            None => self.0.push_mut(Vec::new()),
        }
    }

    /// Takes the last of them that make the next piece; none when there are no more.
    pub(crate) fn take_piece(&mut self) -> Vec<Survivor> {
        while self.0.last().is_some_and(Vec::is_empty) {
            self.0.pop();
        }
        let Some(list) = self.0.last_mut() else {
            return Vec::new();
        };
        let from = list.len() - piece_of(list);
        list.split_off(from)
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(Vec::is_empty)
    }
}

/// How many survivors at the end of `found` make the next piece.
fn piece_of(found: &[Survivor]) -> usize {
    let (mut bytes, mut near) = (0, None);
    let last = found.iter().rev().take(PIECE_MESSAGES);
    last.take_while(|survivor| {
        let is_near = near.is_none_or(|at: u64| at.abs_diff(survivor.at.0) < NEAR_BYTES);
        let fits = bytes < PIECE_BYTES && is_near;
        bytes += survivor.len as usize;
        near = Some(survivor.at.0);
        fits
    })
    .count()
}

/// The next thing to do.
pub(crate) enum Next<'a> {
    Nothing,
    Choose,
    Search(&'a BTreeSet<u64>, &'a mut SurvivorCursor, &'a mut Survivors),
    Copy(&'a mut Survivors),
}

impl<D: Disk> Reclaim<D> {
    pub(crate) fn new(now: Millis, rates: Rates) -> Self {
        let Rates {
            bytes_per_second,
            thresholds,
            segment_bytes,
        } = rates;
        Self {
            bytes_per_second,
            thresholds,
            segment_bytes,
            stage: Stage::Idle,
            not_before: now.after_ms(CHOOSE_MS),
            writer: None,
            is_closing: false,
            blocked: BTreeMap::new(),
            pinned: Pinned::default(),
            copied: SegmentUse::default(),
            failures: 0,
            last_error: None,
        }
    }

    pub(crate) fn failures(&self) -> (u64, Option<&str>) {
        (self.failures, self.last_error.as_deref())
    }

    /// Whether a segment must wait for a snapshot, or for the end of the round that empties it.
    pub(crate) fn is_blocked(&self, window: u64) -> bool {
        let is_emptied_now = match &self.stage {
            Stage::Idle => false,
            Stage::Search { segments, .. } | Stage::Copy { segments, .. } => {
                segments.contains(&window)
            }
        };
        is_emptied_now || self.blocked.contains_key(&window)
    }

    /// A snapshot counts.
    pub(crate) fn on_published(&mut self, sequence: u64) {
        self.blocked.retain(|_, begun| *begun >= sequence);
    }

    pub(crate) const fn next_deadline(&self) -> Option<Millis> {
        match &self.stage {
            _ if self.is_closing => None,
            Stage::Idle | Stage::Search { .. } => Some(self.not_before),
            Stage::Copy { out, .. } if out.is_empty() => Some(self.not_before),
            Stage::Copy { .. } => None,
        }
    }

    /// What to do now.
    pub(crate) fn next(&mut self, now: Millis) -> Next<'_> {
        if now < self.not_before || self.is_closing {
            return Next::Nothing;
        }
        match &mut self.stage {
            Stage::Idle => {
                self.not_before = now.after_ms(CHOOSE_MS);
                Next::Choose
            }
            Stage::Search {
                segments,
                cursor,
                found,
            } => Next::Search(segments, cursor, found),
            Stage::Copy { found, out, .. } if out.is_empty() => Next::Copy(found),
            Stage::Copy { .. } => Next::Nothing,
        }
    }

    /// Chooses among the segments that are not replayed the emptiest, if enough is dead.
    pub(crate) fn choose(&mut self, kept: Vec<Kept>) {
        self.pinned = Pinned::default();
        for it in &kept {
            self.pinned.file_bytes += it.file_bytes;
            self.pinned.live_bytes += it.needed.bytes.min(it.file_bytes);
        }
        let dead = self.pinned.file_bytes - self.pinned.live_bytes;
        let is_enough = dead >= self.thresholds.dead_segments_min * self.segment_bytes
            && dead / self.thresholds.dead_percent_min.max(1) >= self.pinned.file_bytes / 100;
        if !is_enough {
            return;
        }
        let mut candidates: Vec<_> = kept
            .into_iter()
            .filter(|it| {
                it.needed.messages > 0
                    && it.needed.bytes <= it.file_bytes / 100 * self.thresholds.live_percent_max
                    && !it.windows.clone().any(|window| self.is_blocked(window))
            })
            .collect();
        candidates.sort_by_key(|it| it.needed.bytes);
        let (mut segments, mut bytes) = (BTreeSet::new(), 0);
        for it in candidates.into_iter().take(ROUND_SEGMENTS_MAX) {
            bytes += it.needed.bytes;
            if bytes > ROUND_BYTES_MAX && !segments.is_empty() {
                break;
            }
            segments.extend(it.windows);
        }
        if !segments.is_empty() {
            self.stage = Stage::Search {
                segments,
                cursor: SurvivorCursor::default(),
                found: Survivors::default(),
            };
        }
    }

    /// Everything was looked at. What was found lies in the order of the log, so that it is read in
    /// order; survivors of one page stand together.
    pub(crate) fn on_searched(&mut self, reader: LogReader<D>) {
        if let Stage::Search {
            segments, found, ..
        } = core::mem::replace(&mut self.stage, Stage::Idle)
        {
            self.stage = Stage::Copy {
                segments,
                found,
                out: Vec::new(),
                reader: Some(Box::new(reader)),
            };
        }
    }

    /// Begins with the next piece. Returns what copies it; `None` when no writer is to be had now.
    pub(crate) fn begin_piece(
        &mut self,
        now: Millis,
        piece: Vec<Survivor>,
        make: impl FnOnce() -> Option<ColdWriter<D>>,
    ) -> Option<Tools<D>> {
        let bytes: u64 = piece.iter().map(|survivor| u64::from(survivor.len)).sum();
        let cost = bytes + READ_BYTES;
        let pace_ms = cost.saturating_mul(1000) / self.bytes_per_second.max(1);
        self.not_before = now.after_ms(pace_ms.max(1));
        let Stage::Copy { out, reader, .. } = &mut self.stage else {
            return None;
        };
        self.writer = self.writer.take().or_else(|| make().map(Box::new));
        let (writer, reader) = (self.writer.take_if(|_| reader.is_some())?, reader.take()?);
        *out = piece;
        Some((writer, reader))
    }

    /// Copies are on disk, at these places: the messages that moved, to be told to the engine.
    pub(crate) fn on_copied(
        &mut self,
        writer: Option<Box<ColdWriter<D>>>,
        reader: Option<Box<LogReader<D>>>,
        places: Vec<tanda_wal::Lsn>,
    ) -> Vec<Moved> {
        self.writer = writer;
        let Stage::Copy {
            out, reader: place, ..
        } = &mut self.stage
        else {
            return Vec::new();
        };
        *place = reader;
        let out = core::mem::take(out);
        for survivor in &out {
            self.copied.messages += 1;
            self.copied.bytes += u64::from(survivor.len);
        }
        out.into_iter()
            .zip(places)
            .map(|(survivor, at)| Moved {
                survivor,
                new_at: Lsn(at.0),
            })
            .collect()
    }

    /// Nothing more is to be copied in this round: its segments wait for a snapshot that is begun
    /// after `begun`. False when there is more.
    pub(crate) fn end_round(&mut self, begun: u64) -> bool {
        match &self.stage {
            Stage::Copy { found, out, .. } if found.is_empty() && out.is_empty() => {}
            Stage::Copy { .. } | Stage::Idle | Stage::Search { .. } => return false,
        }
        if let Stage::Copy { segments, .. } = core::mem::replace(&mut self.stage, Stage::Idle) {
            self.blocked
                .extend(segments.into_iter().map(|segment| (segment, begun)));
        }
        true
    }

    /// The writer, when no round is under way: its file is to be closed, which ends with
    /// [`Self::on_closed`].
    pub(crate) const fn take_writer(&mut self) -> Option<Box<ColdWriter<D>>> {
        let writer = match self.stage {
            Stage::Idle => self.writer.take(),
            Stage::Search { .. } | Stage::Copy { .. } => None,
        };
        self.is_closing |= writer.is_some();
        writer
    }

    /// The writer has closed its file, well or not. Whether it was away for that.
    pub(crate) const fn on_closed(&mut self) -> bool {
        std::mem::replace(&mut self.is_closing, false)
    }

    /// Copying or reading failed: the round is given up, a later one finds what remains. What moved
    /// before stays blocked.
    pub(crate) fn on_failed(
        &mut self,
        now: Millis,
        begun: u64,
        (writer, error): (Option<Box<ColdWriter<D>>>, String),
    ) {
        self.failures += 1;
        self.last_error = Some(error);
        self.not_before = now.after_ms(RETRY_MS);
        self.writer = writer.or_else(|| self.writer.take());
        if let Stage::Copy { segments, .. } = core::mem::replace(&mut self.stage, Stage::Idle) {
            self.blocked
                .extend(segments.into_iter().map(|segment| (segment, begun)));
        }
    }
}
