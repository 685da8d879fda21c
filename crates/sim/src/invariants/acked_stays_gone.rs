//! An acked message of a committed queue never comes back, whatever happens to broker and disk.
//!
//! Source: delivery durability, "committed: an ack succeeds once on disk".

use tanda_engine::Millis;
use tanda_wire::fila::delivery::DeliveryMessage;

use crate::failure::{Check, ensure};
use crate::history::History;

pub(crate) const NAME: &str = "acked stays gone";

/// A delivery may still be on its way when the ack is answered, so only a lease of later counts.
pub(crate) fn on_delivery(history: &History, message: &DeliveryMessage<'_>) -> Check {
    if !history.queue(message.queue)?.is_committed() {
        return Ok(());
    }
    let id = u128::from_be_bytes(message.meta.message_id);
    let acked_at = history.message(id)?.ack_ok;
    let leased_at = Millis(message.meta.leased_at_ms);
    ensure(acked_at.is_none_or(|at| leased_at <= at), NAME, || {
        format!(
            "{id:032x} of {:?} was leased at {leased_at:?}, although its ack was answered at \
             {acked_at:?}",
            message.queue
        )
    })
}
