//! A client that reads slowly, or not at all, costs a bounded part of memory.
//!
//! Source: `docs/configuration.md`, `limits`: deliveries on their way to a connection stay within
//! its budget, a single larger message aside, and answers within theirs.

use crate::failure::{Check, ensure};
use crate::host::Load;

pub(crate) const NAME: &str = "a slow reader costs bounded memory";

/// The bounds of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) outbound_bytes: u64,
    pub(crate) reply_bytes: u64,
    pub(crate) requests: u64,
}

/// An answer without its items, and one of its items, at most.
const ANSWER_BYTES: u64 = 2048;
const ANSWER_ITEM_BYTES: u64 = 32;

/// What the engine has released to a connection, and what waits there for the network.
pub(crate) fn of_connection(bounds: Bounds, load: Load, waiting_bytes: u64) -> Check {
    let deliveries = bounds.outbound_bytes + load.heaviest_bytes + load.got_bytes;
    ensure(load.budget_bytes <= deliveries, NAME, || {
        format!("{load:?} is on its way, {deliveries} bytes at most")
    })?;
    let answer = ANSWER_BYTES + ANSWER_ITEM_BYTES * load.items_max as u64;
    let answers = bounds.reply_bytes + (bounds.requests + 1) * answer;
    // A delivery's frame, and the texts around its messages, weigh no more than they do.
    let most = 2 * load.budget_bytes + answers;
    ensure(waiting_bytes <= most, NAME, || {
        format!("{waiting_bytes} bytes wait for the network, {most} at most: {load:?}, {bounds:?}")
    })
}
