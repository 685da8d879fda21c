//! Counters of AMQP's queues are exact, and a queue never holds more than its maximum.
//!
//! Source: `broker-model`, limits; RabbitMQ, "Queue length limit", which counts ready messages.

use std::collections::BTreeMap;

use crate::failure::{Check, ensure};
use crate::history::amqp::{Amqp, Overflow, origin_of};

pub(crate) const NAME: &str = "counters of AMQP queues are exact";

/// What the broker says of each queue, at rest and with nobody there: ready, and in flight.
pub(crate) fn before_drain(history: &Amqp, counted: &BTreeMap<String, (u64, u64)>) -> Check {
    for (queue, (ready, in_flight)) in counted {
        let draw = &history.queue(queue)?.draw;
        ensure(*in_flight == 0, NAME, || {
            format!("{in_flight} messages of {queue:?} are held, and nobody is there")
        })?;
        if let Some((most, Overflow::DropHead)) = draw.max_length {
            ensure(*ready <= most, NAME, || {
                format!("{queue:?} holds {ready} messages, {most} at most")
            })?;
        }
    }
    Ok(())
}

/// What came out is what was counted, where nothing leaves by itself.
pub(crate) fn after_drain(history: &Amqp, counted: &BTreeMap<String, (u64, u64)>) -> Check {
    for (queue, (ready, _)) in counted {
        let drops = history.queue(queue)?.draw.max_bytes;
        if let Some((most, Overflow::DropHead)) = drops {
            let mut bytes = 0;
            for tag in history.drained.get(queue).into_iter().flatten() {
                bytes += history.published(*tag)?.body.len() as u64;
            }
            ensure(bytes <= most, NAME, || {
                format!("{queue:?} had {bytes} bytes, {most} at most")
            })?;
        }
        if history.leaves_by_time(origin_of(queue)) {
            continue;
        }
        let drained = history.drained.get(queue).map_or(0, Vec::len) as u64;
        ensure(drained == *ready, NAME, || {
            format!("{queue:?} had {ready} messages, and {drained} came out")
        })?;
    }
    Ok(())
}
