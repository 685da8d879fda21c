//! The node from outside: what leaves it when, what it keeps, what it does when the disk fails.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    clippy::cast_possible_truncation,
    reason = "tests stop at the first surprise"
)]

mod atomic;
mod backup;
mod crashes;
mod delivery_notes;
mod disk_steps;
mod durability;
mod failures;
mod keys;
mod memory;
mod recovery;
mod returns;
mod salvage;
mod scripts;
mod support;
