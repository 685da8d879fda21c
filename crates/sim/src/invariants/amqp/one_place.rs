//! A message is with one consumer at a time.
//!
//! Source: `broker-model`, in flight: "until settled or the channel or connection closes"; a single
//! active consumer hands over "only when the old holder's messages are settled or requeued".

use tanda_engine::Millis;

use crate::failure::{Check, ensure};
use crate::history::amqp::{Amqp, Arrived, Copy, Holder, origin_of};

pub(crate) const NAME: &str = "one AMQP message, one place";

pub(crate) fn on_delivery(history: &Amqp, now: Millis, message: &Arrived, copy: &Copy) -> Check {
    let facts = history.queue(&message.queue)?;
    let is_sure = |copy: &Copy, holder: &Holder| {
        !holder.is_unsure && !history.may_have_timed_out(now, &copy.place, *holder)
    };
    let holder = copy.holder.filter(|holder| is_sure(copy, holder));
    ensure(holder.is_none() || facts.draw.is_scratch, NAME, || {
        format!(
            "message {} came from {:?} to {:?}, and {holder:?} has it",
            message.tag, message.queue, message.holder
        )
    })?;
    if !facts.draw.single_active {
        return Ok(());
    }
    let conn = message.holder.map(|holder| holder.conn);
    for ((tag, queue), other) in &history.copies {
        let holder = other.holder.filter(|holder| is_sure(other, holder));
        let is_other = holder.is_some_and(|holder| Some(holder.conn) != conn);
        // Dead letters are in another queue, and held by whom they please.
        let may_be_here = queue == origin_of(&message.queue) && !facts_of_dead(history, queue);
        ensure(!(is_other && may_be_here && conn.is_some()), NAME, || {
            format!(
                "{:?} has a single active consumer: message {} came to {conn:?}, and {tag} is \
                 with {holder:?}",
                message.queue, message.tag
            )
        })?;
    }
    Ok(())
}

/// Copies of this queue may be held from its queue of dead letters.
fn facts_of_dead(history: &Amqp, queue: &str) -> bool {
    let queue = history.queues.get(queue);
    queue.is_some_and(|it| it.draw.dead_key.is_some())
}
