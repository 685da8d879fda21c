//! The longest single step of the engine on queues of a million messages: as long as one lasts,
//! every other queue of the shard waits.
//!
//! ```sh
//! cargo test --release -p tanda-bench --test stalls -- --ignored --nocapture --test-threads=1
//! ```
//!
//! Prints a line of a table for each case: the longest step and the sum of all, in milliseconds of
//! CPU time, and how many they were. What is asserted is what comes out, not how long it took.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a measurement stops at what it does not expect, and prints what it measured"
)]

mod backlogs;
mod growth;
mod lab;
mod scripts;
mod throttled;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
