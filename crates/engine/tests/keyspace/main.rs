//! Keys: each command by itself, waiting, restarts, and random histories beside a naive model.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test stops at what it does not expect"
)]

mod collections;
mod limits;
mod model;
mod random;
mod restarts;
mod scans;
mod values;
mod waits;
mod world;
