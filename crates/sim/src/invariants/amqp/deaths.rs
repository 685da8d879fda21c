//! `x-death` tells of every death once, and of none that cannot have been.
//!
//! Source: RabbitMQ, "Dead letter exchanges"; `broker-model`, "`x-death`: newest first, one entry
//! per queue and reason"; FireMQ's headers tell the same.

use std::collections::BTreeSet;

use tanda_engine::Millis;

use crate::failure::{Check, ensure};
use crate::history::amqp::{Amqp, Arrived, Death, Overflow, origin_of};

pub(crate) const NAME: &str = "x-death is exact";

pub(crate) fn on_delivery(history: &Amqp, now: Millis, message: &Arrived) -> Check {
    let origin = origin_of(&message.queue);
    let dead = format!("{origin}.dead");
    let (of_origin, of_dead) = (message.deaths_in(origin), message.deaths_in(&dead));
    let is_dead = message.queue == dead;
    let what = || {
        format!(
            "message {} from {:?} at {now:?}: {:?}",
            message.tag, message.queue, message.deaths
        )
    };
    // It dies in one queue, then in the other, and so on.
    ensure(of_origin == of_dead + u64::from(is_dead), NAME, what)?;
    ensure(of_origin + of_dead == message.deaths(), NAME, what)?;
    let kinds: BTreeSet<_> = message
        .deaths
        .iter()
        .map(|it| (&it.queue, &it.reason))
        .collect();
    ensure(kinds.len() == message.deaths.len(), NAME, what)?;
    for death in &message.deaths {
        may_be(history, message, death)?;
    }
    let copy = history.copies.get(&(message.tag, origin.to_owned()));
    let seen = copy.map_or(0, |copy| copy.deaths);
    ensure(message.deaths() >= seen, NAME, || {
        format!("{}, and there were {seen} before", what())
    })
}

/// Something can have brought this death about.
fn may_be(history: &Amqp, message: &Arrived, death: &Death) -> Check {
    let draw = &history.queue(&death.queue)?.draw;
    let sent = history.published(message.tag)?;
    let origin = origin_of(&message.queue);
    let copy = history.copies.get(&(message.tag, origin.to_owned()));
    let rejects = copy.map_or(0, |copy| copy.rejects);
    let of_message = sent.ttl_ms.filter(|_| death.queue == origin);
    let ttl_ms = draw.ttl_ms.into_iter().chain(of_message).min();
    let drops = matches!(
        draw.overflow(),
        Some(Overflow::DropHead | Overflow::RejectDead)
    );
    let most = match death.reason.as_str() {
        "rejected" => rejects,
        "expired" if ttl_ms.is_some() => u64::MAX,
        "maxlen" if drops => 1,
        "delivery_limit" if draw.delivery_limit.is_some() => 1,
        _ => 0,
    };
    ensure(death.count <= most, NAME, || {
        format!(
            "message {} has {death:?}, and {most} of these at most can have been",
            message.tag
        )
    })?;
    let is_expiry = death.reason == "expired";
    let due = sent.sent_at.after_ms(ttl_ms.unwrap_or(0));
    ensure(!is_expiry || death.time_s >= due.0 / 1_000, NAME, || {
        format!(
            "message {} expired too early, before {due:?}: {death:?}",
            message.tag
        )
    })
}
