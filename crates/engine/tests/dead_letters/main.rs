//! Messages that die in queues with an exchange for dead letters, from outside.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::indexing_slicing,
    reason = "a test stops at what it does not expect"
)]

#[path = "../harness/mod.rs"]
mod harness;

mod hops;
mod limits;
mod random;
mod world;
