//! A peer that is gone without a word is noticed.
//!
//! Source: connection, "the server pings after 15 s of silence and closes when no Pong came within
//! 30 s"; `limits.frame_timeout` for one that takes nothing or stopped in a frame.

use tanda_engine::Millis;

use crate::failure::{Check, ensure};
use crate::host::PATIENCE_MS;

pub(crate) const NAME: &str = "a peer that is gone is noticed";

/// Pings, the wait for their answers, and once more for what a closing session waits for.
const NOTICED_MS: u64 = PATIENCE_MS + 15_000 + 30_000 + 30_000;

/// Nothing came of it since `since`, and its connection is still there.
pub(crate) fn when_there(now: Millis, since: Millis) -> Check {
    ensure(now <= since.after_ms(NOTICED_MS), NAME, || {
        format!("nobody was there since {since:?}, and at {now:?} its connection still is")
    })
}
