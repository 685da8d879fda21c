//! Moving dead letters back: `Redrive`, `RedriveResult`.

use super::error_code::ErrorCode;
use super::table::named_values;
use super::wire_struct::wire_struct;

named_values! {
    /// Which dead letters meet the parent's `on_enqueue` script again.
    pub enum Reclassify {
        /// All.
        All = 0,
        /// Those it never classified.
        UnclassifiedOnly = 1,
        /// None; unclassified ones stay.
        None = 2,
    }
}

wire_struct! {
    /// Moves messages from a dead-letter queue to its parent.
    pub struct Redrive<'a>: Redrive {
        /// The dead-letter queue.
        dlq_queue: &'a str,
        /// At most so many; 0 = all.
        count: u64,
        /// A [`Reclassify`].
        reclassify: u8,
    }

    /// Answers `Redrive`.
    pub struct RedriveResult: RedriveResult {
        /// `Ok`, or why nothing moved.
        error_code: ErrorCode,
        /// Messages moved.
        redriven: u64,
        /// Messages that stayed because they are unclassified and no script was to run.
        left_unclassified: u64,
        /// Messages that stayed because the script failed on them.
        rejected_by_script: u64,
    }
}
