//! What the engine promises, one file per subject: requests go in, whole lists of outputs come
//! out and are compared. The engine's invariants are checked after every step.

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

mod amqp_consumers;
mod amqp_queues;
mod broker;
mod came_back;
mod consumers;
mod dead_letters;
mod declared;
mod deduplication;
mod delays;
mod durability;
mod expiry;
mod fairness;
mod keys;
mod late_settlements;
mod leases;
mod log_release;
mod oldest;
mod ordering;
mod paging;
mod pops;
mod retry;
mod room_for_doors;
mod script_enqueue;
mod script_failures;
mod script_parking;
mod script_redrive;
mod scripted;
mod several_queues;
mod slices;
mod statistics;
mod storage_full;
mod throttle_keys;
mod throttle_restarts;
mod throttle_stats;
mod throttles;
mod transactions;
mod undelivered;
mod unfit;
mod users;
