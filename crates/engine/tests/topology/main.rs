//! Virtual hosts, exchanges and bindings: what clients of RabbitMQ depend on, one test for each
//! line, and random histories against a model, across restarts and snapshots.

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

mod auto_delete;
mod declarations;
mod declared_queues;
mod limits;
mod model;
mod queues_of_vhosts;
mod random;
mod restarts;
mod routing;
mod vhosts;
mod watches;
mod world;
