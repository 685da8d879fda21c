//! Queues live as long as they were declared to: an exclusive one as long as its connection, which
//! alone may use it; one that is deleted with its last consumer until then, and not before its
//! first; one that expires as long as somebody uses it. What they held goes with them, and bindings
//! that lead to them.
//!
//! Source: `broker-model`, life; AMQP 0-9-1, `queue.declare`; RabbitMQ, "Queue and Message TTL";
//! `firemq.md`, topology.

use crate::failure::{Check, ensure};
use crate::history::amqp::{Amqp, AmqpQueue, Arrived, Asked, Copy, Taker, There};

pub(crate) const NAME: &str = "AMQP queues live as long as declared";

pub(crate) const NOT_FOUND: u16 = 404;
pub(crate) const RESOURCE_LOCKED: u16 = 405;

/// What the broker's own names begin with, and their length.
const GIVEN: (&str, usize) = ("amq.gen-", 30);

/// A queue without a name got this one.
pub(crate) fn named(history: &Amqp, name: &str) -> Check {
    let (prefix, len) = GIVEN;
    let is_given = name.starts_with(prefix) && name.len() == len;
    ensure(is_given && !history.queues.contains_key(name), NAME, || {
        format!("a queue without a name got {name:?}")
    })
}

/// Somebody could use it.
pub(crate) fn used(name: &str, queue: &AmqpQueue, asked: Asked) -> Check {
    let life = &queue.life;
    let was_gone = life.gone.is_some_and(|gone| gone < asked.tick);
    ensure(!was_gone, NAME, || {
        format!("{name:?} was gone, and was used at {asked:?}: {queue:?}")
    })?;
    if !queue.draw.exclusive {
        return Ok(());
    }
    let Some(own) = life.owners.get(&asked.conn) else {
        return ensure(false, NAME, || {
            format!("{name:?} was used by another connection at {asked:?}: {queue:?}")
        });
    };
    let others = life.owners.iter().filter(|(conn, _)| **conn != asked.conn);
    let mut others = others.map(|(_, owner)| owner);
    let is_lost = others.any(|other| {
        let is_later = own.asked < other.asked && own.proven.is_some_and(|it| it < other.asked);
        let proven = other.proven.filter(|proven| other.asked < *proven);
        is_later && proven.is_some_and(|proven| proven < asked.tick)
    });
    ensure(!is_lost, NAME, || {
        format!("{name:?} has become another's, and was used at {asked:?}: {queue:?}")
    })
}

/// It was not there, or is another's.
pub(crate) fn refused(
    (name, code): (&str, u16),
    queue: &AmqpQueue,
    asked: Asked,
    has_consumer: bool,
) -> Check {
    let (draw, life) = (&queue.draw, &queue.life);
    let own = life.owners.get(&asked.conn);
    let may_leave = draw.auto_delete || draw.expires_ms.is_some() || life.removed > 0;
    let is_own = own.is_some_and(|own| own.proven.is_some()) && !may_leave;
    let is_right = match code {
        NOT_FOUND => {
            let was_sure = queue.known.there == There::Yes && life.sure_since < asked.tick;
            !was_sure && !has_consumer
        }
        RESOURCE_LOCKED => {
            let has_other = life.owners.keys().any(|it| *it != asked.conn);
            draw.exclusive && (has_other || life.freed > asked.tick)
        }
        _ => false,
    };
    ensure(is_right && !is_own, NAME, || {
        format!("{name:?} was refused with {code} at {asked:?}: {queue:?}")
    })
}

/// The broker has ended a consumer: only a removal can.
pub(crate) fn ended(name: &str, queue: &AmqpQueue, taker: Taker) -> Check {
    let was_removed = queue.known.has_open(false) || queue.life.removed > taker.asked;
    ensure(was_removed, NAME, || {
        format!("{name:?} is gone, although it had {taker:?}: {queue:?}")
    })
}

/// A message came from the queue it had gone with, to a consumer who began later.
pub(crate) fn on_delivery(message: &Arrived, copy: &Copy) -> Check {
    let went = copy.went.filter(|went| *went < message.asked);
    ensure(
        went.is_none() || message.queue.ends_with(".dead"),
        NAME,
        || {
            format!(
                "message {} came from {:?}, and had gone with it: {copy:?}",
                message.tag, message.queue
            )
        },
    )
}

/// Nobody is connected any more, and these queues are there.
pub(crate) fn at_rest(history: &Amqp, found: &[String]) -> Check {
    for (name, queue) in &history.queues {
        let (draw, life) = (&queue.draw, &queue.life);
        // Who began after the newest declaration has ended after it.
        let mut takers = life.takers.values();
        let had_last = takers.any(|it| it.started > Some(life.made));
        let is_left = draw.auto_delete && had_last && !queue.known.has_open(true);
        let there = if draw.exclusive || is_left {
            There::No
        } else {
            queue.known.there
        };
        let is_found = found.contains(name);
        let is_right = match there {
            There::Yes => is_found,
            There::No => !is_found,
            There::Maybe => true,
        };
        ensure(is_right, NAME, || {
            format!("{name:?}: {there:?}, but found: {is_found}; {queue:?}")
        })?;
    }
    let mut strangers = found.iter().filter(|it| !history.queues.contains_key(*it));
    // Its name did not reach who asked for it; it expires.
    let stranger = strangers.find(|it| history.names_lost == 0 || !it.starts_with(GIVEN.0));
    ensure(stranger.is_none(), NAME, || {
        format!("nobody made {stranger:?}")
    })
}

/// Nobody has been connected for longer than any queue may be unused, and these are there.
pub(crate) fn at_the_end(history: &Amqp, found: &[String]) -> Check {
    let mut mortal = found.iter().filter(|name| {
        let queue = history.queues.get(*name);
        queue.is_none_or(|it| {
            let had_consumers = it.draw.auto_delete && !it.life.takers.is_empty();
            it.draw.exclusive || had_consumers || it.draw.expires_ms.is_some()
        })
    });
    let outlived = mortal.next();
    ensure(outlived.is_none(), NAME, || {
        format!("{outlived:?} is there, and nobody uses it")
    })
}
