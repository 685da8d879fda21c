//! Looking at a log without opening it: for reports, checks and rescue.
//!
//! Owns finding out what can still be read of a directory, damaged or not, and what is wrong with
//! the rest. Nothing here writes. Refuses to know what a record means, and whether the broker would
//! take the log: that is [`crate::Log::open`], which [`Overlay`] lets run without touching the
//! disk.
//!
//! - [`Survey::of`] reads all files once and says what each one holds.
//! - [`Survey::replay`] gives the records of all batches that are whole, in order.
//! - [`Survey::reader`] gives bytes at a position, if the batch around them is whole.

mod assess;
mod chain;
mod file;
mod inventory;
mod overlay;
mod report;
mod survey;

pub use overlay::{Overlay, OverlayFile};
pub use report::{BatchReport, Fault, FileReport, FileState, SegmentReport};
pub use survey::{Survey, SurveyReader};
