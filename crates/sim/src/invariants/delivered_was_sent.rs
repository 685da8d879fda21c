//! What is delivered is what was sent, unchanged, and once per send.
//!
//! Source: message life; "a timeout counts as unknown": a send without an answer may or may not
//! have stored its message.

use tanda_wire::fila::delivery::DeliveryMessage;

use crate::failure::{Check, Violation, ensure};
use crate::history::{History, Sent, TAG_HEADER, enqueued_at, main_of};

pub(crate) const NAME: &str = "what is delivered was sent";

/// Finds what was sent, and compares everything that must not change.
pub(crate) fn tag_of(history: &History, message: &DeliveryMessage<'_>) -> Result<usize, Violation> {
    let id = u128::from_be_bytes(message.meta.message_id);
    let tag = message.headers.find(TAG_HEADER);
    let tag = tag.and_then(|tag| tag.parse::<usize>().ok());
    let tag = tag.ok_or_else(|| Violation {
        invariant: NAME,
        what: format!("{id:032x} has no tag: {:02x?}", message.content),
    })?;
    let sent = history.sent(tag)?;
    ensure(message.content == sent.content, NAME, || {
        format!("{id:032x}: the content of message {tag} has changed")
    })?;
    let name = main_of(message.queue).0;
    ensure(name == sent.queue, NAME, || {
        format!(
            "message {tag} was sent to {:?} and came from {:?}",
            sent.queue, message.queue
        )
    })?;
    let key = sent.fairness_key.as_deref().unwrap_or_default();
    let weight = sent.weight.unwrap_or(1).max(1);
    // What a script makes of it is for another promise.
    let is_scripted = history.queue(name)?.draw.script.classifies;
    ensure(is_scripted || message.fairness_key == key, NAME, || {
        format!(
            "message {tag}: fairness key {key:?} became {:?}",
            message.fairness_key
        )
    })?;
    ensure(is_scripted || message.meta.weight == weight, NAME, || {
        format!(
            "message {tag}: weight {weight} became {}",
            message.meta.weight
        )
    })?;
    let at = enqueued_at(id);
    ensure(message.meta.enqueued_at_ms == at.0, NAME, || {
        format!(
            "{id:032x}: enqueued at {}, but its id says {}",
            message.meta.enqueued_at_ms, at.0
        )
    })?;
    Ok(tag)
}

/// A message as it lies in a broker without clients.
pub(crate) struct Stored<'a> {
    pub(crate) id: u128,
    pub(crate) queue: &'a str,
    pub(crate) content: &'a [u8],
    pub(crate) fairness_key: &'a str,
    pub(crate) weight: u32,
}

/// A message of a restored backup is one that clients know, or one of theirs that they have not
/// seen since, unchanged.
pub(crate) fn when_restored(history: &History, stored: &Stored<'_>) -> Check {
    let Stored { id, queue, .. } = stored;
    let name = main_of(queue).0;
    let is_sent = |sent: &Sent| sent.queue == name && sent.content == stored.content;
    let sent = match history.messages.get(id) {
        Some(message) => history.sent.get(message.tag).filter(|sent| is_sent(sent)),
        None => history.sent.iter().find(|sent| is_sent(sent)),
    };
    let sent = sent.ok_or_else(|| Violation {
        invariant: NAME,
        what: format!("{id:032x} of {queue:?} was restored, and was not sent so"),
    })?;
    let key = sent.fairness_key.as_deref().unwrap_or_default();
    let weight = sent.weight.unwrap_or(1).max(1);
    let is_same = stored.fairness_key == key && stored.weight == weight;
    let is_scripted = history.queue(name)?.draw.script.classifies;
    ensure(is_same || is_scripted, NAME, || {
        format!(
            "{id:032x}: fairness key {key:?} with weight {weight} was restored as {:?} with {}",
            stored.fairness_key, stored.weight
        )
    })
}

/// A message has no more ids than sends that may have stored it.
pub(crate) fn once_per_send(history: &History, tag: usize) -> Check {
    let sent = history.sent(tag)?;
    let of_answers = |id: &&u128| history.messages.get(*id).is_some_and(|m| m.is_known_new);
    let unexplained = sent.ids.len() - sent.ids.iter().filter(of_answers).count();
    let unanswered = sent.open + sent.unknown;
    ensure(unexplained <= unanswered as usize, NAME, || {
        format!(
            "message {tag} has {unexplained} ids that no answer called new, and only \
             {unanswered} sends without an answer: {:032x?}",
            sent.ids
        )
    })
}
