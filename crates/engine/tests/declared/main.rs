//! Declared queues against a naive model: random histories of all that clients can do with them,
//! with restarts, give what the model gives.

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
#[path = "../dead_letters/world.rs"]
mod world;

mod history;
mod model;
mod random;
