//! A message is in exactly one place, also after a restart.
//!
//! Source: message life: a message waits, is delayed, is leased or is a dead letter; an accepted
//! enqueue is on disk before its result is sent, and an ack of a committed queue before its answer.

use tanda_engine::MessagePlace;

use crate::failure::{Check, ensure};
use crate::history::History;
use crate::world::Places;

pub(crate) const NAME: &str = "one message, one place";

/// The message must be there: it was confirmed, and nobody acked or purged it.
pub(crate) fn must_be_there(history: &History, id: u128) -> bool {
    let Ok(message) = history.message(id) else {
        return false;
    };
    let sent = history.sent(message.tag);
    let queue = sent.and_then(|sent| history.queue(&sent.queue));
    history.must_be_there(id) && queue.is_ok_and(|it| !it.is_scratch)
}

/// What the broker says of its places after it was opened on what a crash has left.
pub(crate) fn when_opened(history: &History, places: &Places) -> Check {
    for (id, [of_main, of_dead_letters]) in places {
        let message = history.message(*id)?;
        let queue = history.queue(&history.sent(message.tag)?.queue)?;
        let is_dead_letter = matches!(of_main, MessagePlace::DeadLettered { .. });
        let is_in_main = *of_main != MessagePlace::Unknown && !is_dead_letter;
        let is_in_dead_letters = *of_dead_letters != MessagePlace::Unknown;
        ensure(
            is_dead_letter == is_in_dead_letters || is_in_main,
            NAME,
            || format!("{id:032x}: {of_main:?}, but there it is {of_dead_letters:?}"),
        )?;
        ensure(!(is_in_main && is_in_dead_letters), NAME, || {
            format!("{id:032x} is in two places: {of_main:?} and {of_dead_letters:?}")
        })?;
        let is_there = is_in_main || is_in_dead_letters;
        ensure(is_there || !must_be_there(history, *id), NAME, || {
            format!(
                "{id:032x} (message {}) is in no place after a crash",
                message.tag
            )
        })?;
        let must_be_gone = message.ack_ok.is_some() && queue.is_committed();
        ensure(!(is_there && must_be_gone), NAME, || {
            format!("{id:032x} was acked and is still there: {of_main:?}, {of_dead_letters:?}")
        })?;
    }
    Ok(())
}
