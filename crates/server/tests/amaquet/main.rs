//! The Amaquet door over real sockets.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests outside of a test function"
)]

mod abuse;
mod across;
#[path = "../support/api_keys.rs"]
mod api_keys;
#[path = "../support/certificates.rs"]
mod certificates;
mod contract;
mod door;
mod families;
mod frames;
mod keys;
mod neighbours;
mod peer;
mod pubsub;
mod queues;
mod requests;
#[path = "../support/mod.rs"]
mod support;
mod tls;
