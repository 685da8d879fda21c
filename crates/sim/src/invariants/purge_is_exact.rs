//! A purge takes all that is pending, says how much that was, and takes nothing else.
//!
//! Source: `docs/http-api.md`, purge: "deletes the pending messages of a queue; leased ones stay".

use crate::failure::{Check, ensure};

pub(crate) const NAME: &str = "a purge is exact";

/// A queue at rest held `pending` messages, and the purge said that it deleted `deleted`.
pub(crate) fn at_rest(queue: &str, pending: u64, deleted: u64) -> Check {
    ensure(pending == deleted, NAME, || {
        format!("{queue:?} held {pending} messages, and a purge says that it deleted {deleted}")
    })
}
