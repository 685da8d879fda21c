//! The node's part in copying reclaim: [`crate::reclaim`] says what is next.

use tanda_engine::{SegmentUse, Survivor};
use tanda_wal::Disk;

use crate::Node;
use crate::background::{CopyOutcome, CopyWork};
use crate::node::end_of;
use crate::reclaim::{Kept, Next};

/// Messages or lanes looked at in one slice.
const SLICE: u32 = 128;

impl<D: Disk> Node<D> {
    /// The next small step of copying reclaim.
    pub(crate) fn advance_reclaim(&mut self) {
        // A full disk has no room for copies, a snapshot under way comes first.
        if self.storage_full() || self.copy.is_some() {
            return;
        }
        let now = self.now;
        match self.reclaim.next(now) {
            Next::Nothing => {}
            Next::Choose => {
                let kept = self.kept_segments();
                self.reclaim.choose(kept);
            }
            Next::Search(segments, cursor, found) => {
                let mut journal = crate::log_journal::LogJournal {
                    log: &mut self.log,
                    refused: &mut None,
                    pages: &mut self.pages,
                    notes: &mut self.notes,
                };
                let engine = &mut self.engine;
                let list = found.list();
                if engine.survivors_slice(&mut journal, segments, cursor, SLICE, list) {
                    self.reclaim.on_searched(self.log.reader());
                }
            }
            Next::Copy(found) => {
                let piece = found.take_piece();
                self.copy_piece(piece);
            }
        }
    }

    fn kept_segments(&self) -> Vec<Kept> {
        let kept = self.log.segment_files().filter(|file| !file.is_replayed);
        kept.map(|file| {
            let windows = file.index..file.index + file.windows;
            let uses = windows
                .clone()
                .map(|window| self.engine.segment_use(window));
            let needed = uses.fold(SegmentUse::default(), |sum, it| SegmentUse {
                messages: sum.messages + it.messages,
                bytes: sum.bytes + it.bytes,
            });
            Kept {
                windows,
                file_bytes: file.bytes,
                needed,
            }
        })
        .collect()
    }

    /// Leaves the next piece for the background; at the end of a round its segments wait for a
    /// snapshot.
    fn copy_piece(&mut self, piece: Vec<Survivor>) {
        if piece.is_empty() {
            let begun = self.snapshots.sequence();
            if self.reclaim.end_round(begun) {
                self.snapshots.want();
            }
            self.close_copies();
            return;
        }
        let place = |survivor: &Survivor| (tanda_wal::Lsn(survivor.at.0), survivor.len);
        let contents = piece.iter().map(place).collect();
        let log = &mut self.log;
        let tools = self
            .reclaim
            .begin_piece(self.now, piece, || log.cold_writer());
        self.copy = tools.map(|(writer, reader)| CopyWork {
            writer,
            reader: Some(reader),
            contents,
        });
    }

    /// The file of the round that ended is closed.
    fn close_copies(&mut self) {
        self.copy = self.reclaim.take_writer().map(|writer| CopyWork {
            writer,
            reader: None,
            contents: Vec::new(),
        });
    }

    pub(crate) fn on_copied(&mut self, outcome: CopyOutcome<D>) {
        let begun = self.snapshots.sequence();
        let was_closing = self.reclaim.on_closed();
        let (places, written) = match outcome.result {
            Ok(copied) => copied,
            Err(error) => {
                let failure = (outcome.writer, error.to_string());
                self.reclaim.on_failed(self.now, begun, failure);
                self.close_copies();
                return;
            }
        };
        self.log.add_cold(written);
        if was_closing {
            // What it holds may have left meanwhile.
            self.sweep_soon();
            return;
        }
        let moved = self
            .reclaim
            .on_copied(outcome.writer, outcome.reader, places);
        let new = moved
            .iter()
            .map(|it| self.log.segment_of(tanda_wal::Lsn(it.new_at.0)).0);
        // Where everything moved away or left before it arrived, nothing says so later.
        let end = end_of(&self.log);
        for window in new {
            self.emptied.insert(window, end);
        }
        self.sweep_once_durable.get_or_insert(end);
        self.with_engine(|engine, journal, _| engine.relocate(journal, &moved));
    }

    /// When the next step of reclaim is due.
    pub(crate) fn reclaim_deadline(&self) -> Option<tanda_engine::Millis> {
        if self.storage_full() || self.copy.is_some() {
            return None;
        }
        let has_kept = self.log.claimed_start() > tanda_wal::Lsn(0)
            && self.log.segment_files().any(|file| !file.is_replayed);
        has_kept.then(|| self.reclaim.next_deadline()).flatten()
    }

    /// The oldest segment that is kept although a start does not need it.
    pub(crate) fn oldest_kept(&self) -> Option<u64> {
        let mut files = self.log.segment_files();
        let file = files.find(|file| !file.is_replayed && !file.is_cold)?;
        Some(file.index)
    }
}
