//! A transaction takes effect as a whole or not at all, also after a crash.
//!
//! Source: `broker-model`, "tx: one atomic batch per shard". That all of what it published is there
//! once some of it is, `nothing_lost` checks.

use crate::failure::{Check, ensure};
use crate::history::amqp::{Amqp, Outcome};

pub(crate) const NAME: &str = "AMQP transactions are all or nothing";

/// Everything that was there has come out.
pub(crate) fn when_drained(history: &Amqp) -> Check {
    for (number, tx) in history.txs.iter().enumerate() {
        let is_split = tx.outcome == Outcome::Unknown && tx.is_seen && tx.is_undone;
        ensure(!is_split, NAME, || {
            format!("transaction {number} published something, and acknowledged nothing: {tx:?}")
        })?;
    }
    Ok(())
}
