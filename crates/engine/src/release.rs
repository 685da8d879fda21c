//! What the engine still needs of the log.

use crate::SegmentUse;
use crate::engine::Engine;

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
}
