//! The Amaquet door over real sockets.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "helpers of tests outside of a test function"
)]

#[path = "../support/api_keys.rs"]
mod api_keys;
mod door;
mod families;
mod frames;
mod keys;
mod peer;
mod pubsub;
mod queues;
mod requests;
#[path = "../support/mod.rs"]
mod support;
