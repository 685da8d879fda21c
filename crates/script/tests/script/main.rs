//! Hooks from outside: what they get and return, what they cannot reach, and what stops them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests are not inside test functions"
)]

mod escapes;
mod returns;
mod states;
mod stopped;
mod support;
