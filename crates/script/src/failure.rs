//! `on_failure`: how a delivery failed, and what becomes of its message.

use crate::{error::Broken, hook::Hook, packed::Packed};

/// A failed delivery that asks for a decision.
#[derive(Clone, Copy, Debug)]
pub struct FailureCall<'a> {
    /// As in [`crate::EnqueueCall::content`].
    pub content: &'a [u8],
    /// The message's id; the script sees it in the usual form of a UUID.
    pub id: u128,
    /// Deliveries so far, at least 1.
    pub attempts: u32,
    /// Times it came back from the dead-letter queue.
    pub redrives: u32,
    /// How it failed.
    pub reason: Reason<'a>,
}

/// How a delivery failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason<'a> {
    /// The consumer said so, with this error.
    Nack(&'a str),
    /// Its lease ran out.
    LeaseExpired,
}

/// What the hook decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Deliver it again.
    Retry {
        /// After so long; without it the queue's backoff says.
        delay_ms: Option<u64>,
    },
    /// Move it to the dead-letter queue.
    DeadLetter,
}

/// Calls the hook for one failed delivery; `None` leaves the decision to the retry policy.
pub(crate) fn call(
    hook: &mut Hook,
    call: &FailureCall<'_>,
    packed: &mut Packed,
) -> Result<Option<Decision>, Broken> {
    let id = uuid(call.id);
    packed.begin(call.content);
    packed.push(id.as_bytes());
    let nacked = match call.reason {
        Reason::Nack(error) => {
            packed.push(error.as_bytes());
            true
        }
        Reason::LeaseExpired => false,
    };
    let handed = hook.begin(packed)?;
    let result = hook.run.call((
        handed.large,
        handed.shape,
        packed.values_at(),
        packed.values().len() - packed.values_at(),
        id.len(),
        call.attempts,
        call.redrives,
        nacked,
    ));
    let (action, delay_ms): (u8, i64) = hook.end(result)?;
    let delay_ms = u64::try_from(delay_ms).ok();
    Ok(match action {
        1 => Some(Decision::Retry { delay_ms }),
        2 => Some(Decision::DeadLetter),
        _ => None,
    })
}

/// The usual form of a UUID.
fn uuid(id: u128) -> String {
    let hex = format!("{id:032x}");
    let mut text = String::with_capacity(36);
    for (at, digit) in hex.chars().enumerate() {
        if matches!(at, 8 | 12 | 16 | 20) {
            text.push('-');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_id_has_the_form_of_a_uuid() {
        let id = 0x0193_7e2a_b1c2_7def_8123_4567_89ab_cdef;
        assert_eq!(super::uuid(id), "01937e2a-b1c2-7def-8123-456789abcdef");
    }
}
