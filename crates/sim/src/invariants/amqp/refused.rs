//! A message that was refused is nowhere; a queue with `reject-publish-dlx` has dead-lettered it,
//! once.
//!
//! Source: RabbitMQ, "Queue length limit", overflow behaviour; `amqp-pitfalls`: "reject-publish
//! overflow: basic.nack; if routed to several queues one refusal nacks the message although others
//! got it". So only messages with one place to go are judged.

use crate::failure::{Check, ensure};
use crate::history::amqp::{Amqp, Arrived, Dead, Outcome, Overflow, Published};

pub(crate) const NAME: &str = "a refused AMQP message is nowhere";

pub(crate) fn on_delivery(history: &Amqp, message: &Arrived) -> Check {
    let sent = history.published(message.tag)?;
    let Some(queue) = only_place(sent).filter(|_| sent.outcome == Outcome::Refused) else {
        return Ok(());
    };
    let draw = &history.queue(queue)?.draw;
    let is_dead = draw.overflow() == Some(Overflow::RejectDead) && message.queue != *queue;
    ensure(is_dead, NAME, || {
        format!(
            "message {} was refused, and came from {:?}",
            message.tag, message.queue
        )
    })
}

/// Everything that was there has come out.
pub(crate) fn when_drained(history: &Amqp) -> Check {
    // Without room there is no place for dead letters either.
    if history.may_be_full {
        return Ok(());
    }
    for (tag, sent) in history.sent.iter().enumerate() {
        let Some(queue) = only_place(sent).filter(|_| sent.outcome == Outcome::Refused) else {
            continue;
        };
        let draw = &history.queue(queue)?.draw;
        let id = (tag, queue.clone());
        let is_kept = history.outlives(&id) || sent.epoch == history.epoch;
        let is_dead_lettered =
            draw.overflow() == Some(Overflow::RejectDead) && draw.dead == Some(Dead::Stay);
        let is_dead_lettered = is_dead_lettered && draw.keeps_dead();
        if !is_dead_lettered || !is_kept || !sent.must.contains(queue) {
            continue;
        }
        let copy = history.copies.get(&id);
        let is_gone = copy.is_some_and(|it| it.may_be_gone || it.drained.is_some());
        ensure(is_gone, NAME, || {
            format!("message {tag} was refused, and is not among the dead letters of {queue:?}")
        })?;
    }
    Ok(())
}

fn only_place(sent: &Published) -> Option<&String> {
    sent.may.first().filter(|_| sent.may.len() == 1)
}
