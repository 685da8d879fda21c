//! A queue takes a deduplication key once while it remembers it, also across crashes.
//!
//! Source: deduplication, "a key is remembered while its message is in the queue or its DLQ, and
//! for `dedup_window` after it leaves; committed in the same write as its message"; "a duplicate
//! gets Ok, the original's ID".

use tanda_engine::Millis;

use crate::failure::{Check, ensure};
use crate::history::{History, enqueued_at};

pub(crate) const NAME: &str = "a deduplication key is taken once";

/// Two messages of one key: the older had left, and its window was over, when the newer came.
pub(crate) fn on_id(history: &History, id: u128) -> Check {
    let tag = history.message(id)?.tag;
    let sent = history.sent(tag)?;
    let queue = history.queue(&sent.queue)?;
    if !sent.is_deduplicated || !queue.is_committed() {
        return Ok(());
    }
    let window_ms = queue.dedup_window_ms_min;
    let mut ids = sent.ids.iter().copied();
    let mut older = ids.next();
    for newer in ids {
        let acked_at = older.and_then(|id| history.message(id).ok()?.ack_sent);
        let purged_at = older.and_then(|id| history.purged_at_min(id));
        let left_at = acked_at.into_iter().chain(purged_at).min();
        let came_at = enqueued_at(newer);
        let is_over = left_at.is_some_and(|at| at.after_ms(window_ms) <= came_at);
        ensure(is_over, NAME, || {
            format!(
                "message {tag} of {:?} was stored as {older:032x?}, gone at {left_at:?} at the \
                 earliest, and again as {newer:032x} at {came_at:?}; the window is {window_ms} ms",
                sent.queue
            )
        })?;
        older = Some(newer);
    }
    Ok(())
}

/// A duplicate's answer names a message that is, or was a window ago, in the queue.
pub(crate) fn on_duplicate(history: &History, tag: usize, id: u128, sent_at: Millis) -> Check {
    let sent = history.sent(tag)?;
    let queue = history.queue(&sent.queue)?;
    ensure(sent.is_deduplicated, NAME, || {
        format!("message {tag} has no deduplication key, but counted as a duplicate of {id:032x}")
    })?;
    let gone_at = history.message(id)?.ack_ok;
    let window_ms = queue.dedup_window_ms_max;
    let is_remembered = gone_at.is_none_or(|at| sent_at <= at.after_ms(window_ms));
    ensure(is_remembered || !queue.is_committed(), NAME, || {
        format!(
            "message {tag}, sent at {sent_at:?}, counted as a duplicate of {id:032x}, whose ack \
             was answered at {gone_at:?}; the window is {window_ms} ms"
        )
    })
}
