//! What scripts say is what happens: a message goes by its classification, and a failed one by the
//! decision about it; until then it does not go.
//!
//! Source: Lua hooks, "the hook wins over the producer for every field it returns"; "park:
//! accepted, stored unclassified, not deliverable"; message life, "the queue's `on_failure` script,
//! if it runs: its decision is final".

use tanda_engine::{Decision, FailureCall, FailureReason, Millis};
use tanda_wire::fila::delivery::DeliveryMessage;

use crate::failure::{Check, ensure};
use crate::history::{History, main_of};

pub(crate) const NAME: &str = "scripts are followed";

/// A decision that went to the engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decided {
    redrives: u32,
    attempts: u32,
    /// Not delivered before; `None` = not at all from its queue.
    floor: Option<Millis>,
}

impl Decided {
    pub(crate) fn new(now: Millis, call: &FailureCall, decision: Decision) -> Self {
        Self {
            redrives: call.redrives,
            attempts: call.attempts,
            floor: match (decision, call.reason) {
                (Decision::Retry { delay_ms }, FailureReason::LeaseExpired) => {
                    Some(now.after_ms(delay_ms.unwrap_or(0)))
                }
                // A nack's `retry_after_ms` replaces the delay.
                (Decision::Retry { .. }, FailureReason::Nack) => Some(now),
                (Decision::DeadLetter, _) => None,
            },
        }
    }
}

/// Fairness key and weight that the simulator's script gives a message.
pub(crate) fn classified(tag: usize) -> (String, u32) {
    let number = u32::try_from(tag % 3).unwrap_or(0);
    (format!("script-{number}"), number + 1)
}

pub(crate) fn on_delivery(history: &History, message: &DeliveryMessage<'_>) -> Check {
    let (name, is_dead_letter) = main_of(message.queue);
    let draw = &history.queue(name)?.draw;
    // What was parked too often is a dead letter as its producer sent it, also once redriven.
    if is_dead_letter || message.meta.redrive_count > 0 {
        return Ok(());
    }
    let id = u128::from_be_bytes(message.meta.message_id);
    if draw.script.classifies {
        let (key, weight) = classified(history.message(id)?.tag);
        let is_followed = message.fairness_key == key && message.meta.weight == weight;
        ensure(is_followed, NAME, || {
            format!(
                "{id:032x} was classified as {key:?} with {weight}, and came as {:?} with {}",
                message.fairness_key, message.meta.weight
            )
        })?;
    }
    let Some(decided) = history.decided.get(&id) else {
        return Ok(());
    };
    let is_next = decided.redrives == message.meta.redrive_count
        && message.meta.attempt_count > decided.attempts;
    let leased_at = Millis(message.meta.leased_at_ms);
    let may_go = decided.floor.is_some_and(|floor| leased_at >= floor);
    ensure(!is_next || may_go, NAME, || {
        format!("{id:032x} was leased at {leased_at:?}, and {decided:?}")
    })
}
