//! The segmented log over a disk trait.
