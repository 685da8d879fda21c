//! Memory that is free goes back to the system, also while the broker is at rest.
//!
//! The allocator of `tanda` keeps what was freed for a second, in case it is needed again, and
//! gives it back when the next large buffer is freed after that. At rest none is: the 19 MiB that
//! checking a password takes stayed resident, and so did what a busy time had needed.

use std::{hint::black_box, time::Duration};

use tokio::time::{MissedTickBehavior, interval};

/// How often a large buffer is freed. Each takes some microseconds.
const EVERY: Duration = Duration::from_secs(2);

/// Bytes of that buffer: above half a MiB the allocator gives a buffer pages of its own, and takes
/// them back at once when it is freed. Nothing is written to it, so it takes no memory.
const BUFFER_BYTES: usize = 1 << 20;

/// Gives back what is free from time to time, for as long as the process lives.
pub(crate) async fn give_back() {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        drop(black_box(Vec::<u8>::with_capacity(BUFFER_BYTES)));
    }
}
