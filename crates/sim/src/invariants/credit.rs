//! A subscription receives no more messages than it was granted.
//!
//! Source: `fila.md`, "Servers must not deliver on zero credit even if messages are ready";
//! `firemq.md`, "at most as many `deliver` frames as the credit granted so far".

use crate::failure::{Check, ensure};

pub(crate) const NAME: &str = "credit is never exceeded";

/// `granted`: all credit sent so far; `None` = unlimited.
pub(crate) fn on_received(queue: &str, granted: Option<u64>, received: u64) -> Check {
    ensure(granted.is_none_or(|most| received <= most), NAME, || {
        format!("{received} messages of {queue:?} came to a subscription granted {granted:?}")
    })
}
