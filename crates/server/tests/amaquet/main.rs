//! The Amaquet door over real sockets.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests outside of a test function"
)]

mod door;
mod frames;
mod peer;
#[path = "../support/mod.rs"]
mod support;
