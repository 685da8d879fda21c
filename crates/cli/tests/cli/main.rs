//! The `tanda` binary from outside: a broker on free ports, and commands against it.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests stand outside the functions that clippy knows as tests"
)]

mod amaquet;
mod amaquet_client;
mod amqp_peer;
mod backup;
mod broker;
mod consume;
mod exchanges;
mod exit_codes;
mod keys;
mod pages;
mod queues;
mod repair;
mod scripts;
mod secrets;
mod send;
mod tls;
mod users;
mod vhosts;
