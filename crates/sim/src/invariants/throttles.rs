//! No window of a throttle holds more deliveries than its limit, whoever gets them, across queues
//! that share it and across restarts.
//!
//! Source: throttles, "at most N deliveries in any sliding window of W: exact"; "a redelivery
//! counts as a delivery"; "restart forgets nothing it could exceed".
//!
//! Judged by when messages were leased: a delivery is charged when it leaves, which is not before,
//! and it has room reserved from its lease on.

use tanda_wire::fila::delivery::DeliveryMessage;

use crate::failure::{Check, ensure};
use crate::history::{History, main_of};

pub(crate) const NAME: &str = "throttles hold in every window";

pub(crate) fn on_delivery(history: &mut History, message: &DeliveryMessage<'_>) -> Check {
    let (name, is_dead_letter) = main_of(message.queue);
    let Some(throttle) = history.queue(name)?.throttle.clone() else {
        return Ok(());
    };
    // Nobody declares it who drains a queue that would take too long.
    if is_dead_letter || (history.is_draining && !throttle.is_quick()) {
        return Ok(());
    }
    let key = if throttle.by_key {
        message.fairness_key
    } else {
        ""
    };
    let bucket = (throttle.name.clone(), key.to_owned());
    let leased_at = message.meta.leased_at_ms;
    let leases = history.throttled.entry(bucket).or_default();
    // They come in another order than they were leased in.
    let place = leases.partition_point(|at| *at <= leased_at);
    leases.insert(place, leased_at);
    let limit = usize::try_from(throttle.deliveries).unwrap_or(usize::MAX);
    let from = place.saturating_sub(limit);
    let around = leases.get(from..).unwrap_or_default();
    let of_window = around.windows(limit + 1).find(|window| {
        let (first, last) = (window.first(), window.last());
        first
            .zip(last)
            .is_some_and(|(a, b)| b - a < throttle.window_ms)
    });
    ensure(of_window.is_none(), NAME, || {
        format!("{throttle:?}, key {key:?}: leased at {of_window:?}")
    })
}
