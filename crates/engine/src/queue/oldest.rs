//! The oldest ready message of a queue, for what drops or redrives the oldest first, or asks how
//! old it is.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Queue;
use super::entries::{Entries, Slot};
use super::lanes::{Lane, Lanes};
use super::picks::Taken;

/// Lanes by the position of their first message.
///
/// A lane is noted when a message becomes its first one; when its first one leaves, the note is
/// left too low and corrected when it comes up. So every lane on a ring, or blocked, has a note at
/// or below its first message.
#[derive(Debug, Default)]
pub(crate) struct Oldest {
    notes: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Queue {
    /// The lane of the oldest ready message, and the message unless it is in a page. Lanes are
    /// noted from the first question on, until the queue's configuration changes.
    pub(crate) fn oldest_ready(&mut self) -> Option<(u32, Option<Slot>)> {
        if self.lanes.oldest.is_none() {
            self.lanes.note_all(&self.entries);
        }
        self.lanes.peek_oldest(&self.entries)
    }
}

impl Lanes {
    /// Notes a lane, which is on a ring, with its first message.
    pub(super) fn note_first(&mut self, entries: &Entries, lane: u32) {
        let first = self.first(entries, lane);
        let lanes = self.lanes.len();
        let (Some(oldest), Some((position, _))) = (self.oldest.as_mut(), first) else {
            return;
        };
        oldest.notes.push(Reverse((position, lane)));
        if oldest.notes.len() > 2 * lanes + 1024 {
            self.note_all(entries);
        }
    }

    /// Notes all lanes that are on a ring, and none twice.
    pub(super) fn note_all(&mut self, entries: &Entries) {
        let turns = (0..)
            .zip(self.lanes.iter())
            .filter(|(_, it)| it.has_first());
        let notes = turns.filter_map(|(lane, _)| {
            let (position, _) = self.first(entries, lane)?;
            Some(Reverse((position, lane)))
        });
        let notes = notes.collect();
        self.oldest = Some(Oldest { notes });
    }

    /// Takes the oldest ready message if its position is below `limit`. A lane whose page cannot
    /// be read is passed over.
    pub(crate) fn take_oldest(&mut self, entries: &Entries, limit: u64) -> Taken {
        while let Some(oldest) = self.oldest.as_mut() {
            let Some(Reverse((noted, lane))) = oldest.notes.pop() else {
                break;
            };
            if !self.lane(lane).is_some_and(|it| it.has_first()) {
                continue;
            }
            let Some((position, slot)) = self.first(entries, lane) else {
                continue;
            };
            let take = position == noted && position < limit && slot.is_some();
            let taken = if take {
                self.take_first(entries, lane)
            } else if position != noted {
                Taken::Nothing
            } else if position < limit {
                Taken::InPage(lane)
            } else {
                self.note_first(entries, lane);
                return Taken::Nothing;
            };
            if self.lane(lane).is_some_and(|it| it.has_first()) {
                self.note_first(entries, lane);
            }
            if taken != Taken::Nothing {
                return taken;
            }
        }
        Taken::Nothing
    }

    /// The lane of the oldest ready message, and the message unless it is in a page. A lane whose
    /// page cannot be read is passed over.
    pub(super) fn peek_oldest(&mut self, entries: &Entries) -> Option<(u32, Option<Slot>)> {
        loop {
            let Reverse((noted, lane)) = self.oldest.as_ref()?.notes.peek().copied()?;
            let waits = |it: &Lane| it.has_first() && !it.is_stalled();
            let first = self.lane(lane).filter(|it| waits(it));
            let first = first.and_then(|_| self.first(entries, lane));
            if let Some((position, slot)) = first
                && position == noted
            {
                return Some((lane, slot));
            }
            if let Some(oldest) = self.oldest.as_mut() {
                oldest.notes.pop();
            }
            if first.is_some() {
                self.note_first(entries, lane);
            }
        }
    }

    /// Panics when a lane on a ring has no note.
    pub(super) fn assert_notes(&self, entries: &Entries) {
        let Some(oldest) = &self.oldest else { return };
        let notes: std::collections::BTreeSet<_> = oldest.notes.iter().map(|it| it.0).collect();
        let waits = |it: &Lane| it.has_first() && !it.is_stalled();
        for (lane, _) in (0..).zip(self.lanes.iter()).filter(|(_, it)| waits(it)) {
            let first = self.first(entries, lane).map_or(0, |first| first.0);
            let mut below = notes.range(..=(first, lane));
            assert!(
                below.any(|(_, other)| *other == lane),
                "lane {lane} is not noted at or below {first}"
            );
        }
    }
}
