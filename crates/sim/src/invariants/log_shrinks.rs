//! A log whose messages are gone, with their deduplication windows, holds a few segments only.
//!
//! Source: `docs/formats/records.md`, "What a log without its beginning means".

use crate::failure::{Check, ensure};

pub(crate) const NAME: &str = "a dead log shrinks";

/// The open segment, the one before it, and one that the move of the last records has begun.
const SEGMENTS_MAX: usize = 3;

pub(crate) fn when_empty(segments: usize) -> Check {
    ensure(segments <= SEGMENTS_MAX, NAME, || {
        format!("{segments} segments hold nothing but settings, {SEGMENTS_MAX} at most")
    })
}
