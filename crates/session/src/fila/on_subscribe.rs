//! `Consume`, `Credit` and `CancelConsume`.

use tanda_engine::{LeaseMode, Request, SubscribeSpec};
use tanda_wire::fila::ErrorCode;
use tanda_wire::fila::consume::{CancelConsume, Consume, Credit};

use super::link::{Call, Link};
use super::slots::Kind;
use super::throttles;

/// `has_credit`: both sides speak `CREDIT_FLOW_CONTROL`; otherwise credit means nothing.
pub(super) fn on_consume(link: &mut Link, call: &Call, has_credit: bool) {
    let Some(consume) = link.decode::<Consume<'_>>(call) else {
        return;
    };
    let throttles = match throttles::specs(&consume.throttles) {
        Ok(throttles) => throttles,
        Err(throttles::InvalidThrottle { name, problem }) => {
            let problem = format!("throttle {name:?}: {problem}");
            link.outbound
                .error(call.request_id, ErrorCode::InvalidThrottle, &problem, &[]);
            return;
        }
    };
    let spec = SubscribeSpec {
        queue: consume.queue.to_owned(),
        credit: Some(consume.credit).filter(|credit| has_credit && *credit > 0),
        lease: LeaseMode::Timed,
        throttles,
        ..SubscribeSpec::default()
    };
    let Some(token) = link.slot(call.request_id, Kind::Subscribing) else {
        return;
    };
    if link.authority.caller.key().is_some() {
        link.slots.set_queue(token, &spec.queue);
    }
    let sub = link.sub_id(token);
    link.requests.push(Request::Subscribe { sub, spec });
}

/// Credit for an unknown subscription is ignored, as `fila.md` demands.
pub(super) fn on_credit(link: &mut Link, call: &Call) {
    let Some(credit) = link.decode::<Credit>(call) else {
        return;
    };
    let Some(token) = link.slots.subscription(call.request_id) else {
        return;
    };
    if credit.additional_credit > 0 {
        let sub = link.sub_id(token);
        link.requests.push(Request::Grant {
            sub,
            credit: credit.additional_credit,
        });
    }
}

pub(super) fn on_cancel(link: &mut Link, call: &Call) {
    if link.decode::<CancelConsume>(call).is_some() {
        link.cancel(call.request_id);
    }
}
