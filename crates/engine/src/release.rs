//! What the engine still needs of the log.

use crate::engine::{Cx, Engine};
use crate::{Journal, Lsn, Millis, SegmentUse};

impl Engine {
    /// The segments that messages in queues need, in order, with how much of each.
    pub fn segments(&self) -> impl Iterator<Item = (u64, SegmentUse)> {
        self.segments.iter()
    }

    /// What messages in queues need of one segment; nothing of an unknown one.
    #[must_use]
    pub fn segment_use(&self, segment: u64) -> SegmentUse {
        self.segments.needed_of(segment)
    }

    /// Adds to `out` the segments that were needed and are not any more. Each is told once; ask
    /// [`Engine::segment_use`] before freeing one later, as the newest may be needed again.
    pub fn take_unreferenced(&mut self, out: &mut Vec<u64>) {
        self.segments.take_unreferenced(out);
    }

    /// The position below which no message and no deduplication key is stored; `end` is the log's
    /// end. It never falls. When it has risen, [`Engine::release_log`] has something to release.
    #[must_use]
    pub fn log_floor(&self, end: Lsn) -> Lsn {
        self.segments.floor(end).min(self.pins.floor(end))
    }

    /// Writes what is still needed from the log's oldest segments again, and returns the position
    /// below which nothing is needed once the log is durable up to its present end. `oldest` is
    /// the log's first position. Cheap when nothing can be released.
    ///
    /// A segment is needed while a message stored in it is in a queue or a deduplication key is
    /// remembered from it. Everything else in a released prefix is about messages that left, or is
    /// written again: queues, configuration, counters.
    #[must_use]
    pub fn release_log(&mut self, now: Millis, journal: &mut dyn Journal, oldest: Lsn) -> Lsn {
        let floor = self.log_floor(journal.end());
        self.segments.take_unreferenced(&mut Vec::new());
        self.pins.take_unreferenced(&mut Vec::new());
        if floor <= oldest {
            return oldest;
        }
        let cx = &mut Cx {
            now,
            journal,
            out: &mut Vec::new(),
        };
        self.write_again_below(cx, floor);
        floor
    }
}
