//! Whatever way messages come back to a queue that is full by then: it holds no more than it may,
//! and the oldest have given way.

use tanda_engine::{ConnId, GetSpec, Held, LeaseMode, SubId, SubscribeSpec};
use tanda_wire::amqp::Value;

use crate::broker::{Broker, NACK, jobs};
use crate::declared::{REQUEUE, broker, consume, with_args};

/// Somebody takes `a` and `b`; `c` and `d` then fill the queue.
fn full(taking: impl FnOnce(&mut Broker, ConnId) -> SubId) -> (Broker, SubId) {
    let mut b = broker();
    let c = b.client();
    b.declared(c, with_args("jobs", &[("x-max-length", Value::I32(2))]));
    b.send(&jobs(["a", "b"]));
    let sub = taking(&mut b, c);
    assert_eq!(b.held("jobs"), (0, 2));
    b.publish(&jobs(["c", "d"]));
    assert_eq!(b.held("jobs"), (2, 2));
    (b, sub)
}

fn consumer(b: &mut Broker, conn: ConnId) -> SubId {
    b.consumer(conn, "w", consume("jobs", Some(2)))
}

/// Of the four the newest two are left.
fn check(mut b: Broker) {
    assert_eq!(b.held("jobs"), (2, 0));
    let c = b.client();
    assert_eq!(b.get(c, "jobs"), ("c".to_owned(), 1));
    assert_eq!(b.get(c, "jobs"), ("d".to_owned(), 0));
}

#[test]
fn requeued_by_its_consumer() {
    let (mut b, _) = full(consumer);
    b.settle("jobs", &[("a", REQUEUE), ("b", REQUEUE)]);
    check(b);
}

#[test]
fn its_consumer_is_gone() {
    let (mut b, sub) = full(consumer);
    b.disconnect(sub);
    check(b);
}

#[test]
fn it_was_held_for_too_long() {
    let (mut b, _) = full(|b, conn| {
        let limited = SubscribeSpec {
            ack_timeout_ms: Some(1_000),
            ..consume("jobs", Some(2))
        };
        b.consumer(conn, "w", limited)
    });
    b.advance(1_000);
    check(b);
}

#[test]
fn it_never_left() {
    let (mut b, sub) = full(consumer);
    // It takes nothing more.
    b.cancel(sub, Held::Keep);
    b.undelivered(sub);
    b.run();
    check(b);
}

#[test]
fn it_never_left_for_who_asked_once() {
    let mut got = Vec::new();
    let (mut b, sub) = full(|b, conn| {
        for _ in 0..2 {
            let spec = GetSpec {
                queue: "jobs".to_owned(),
                ..GetSpec::default()
            };
            got.extend(b.get_with(conn, spec).unwrap().batch);
        }
        SubId { conn, token: 0 }
    });
    for batch in got {
        let (now, h) = (b.h.now, &mut b.h);
        h.engine.undelivered(now, &mut h.journal, sub.conn, &batch);
    }
    b.run();
    check(b);
}

fn fila_worker(b: &mut Broker, _: ConnId) -> SubId {
    b.worker_as("w", "jobs", Some(2), LeaseMode::Timed)
}

#[test]
fn its_lease_has_ended() {
    let (mut b, _) = full(fila_worker);
    b.advance(60_000);
    check(b);
}

#[test]
fn its_worker_has_failed() {
    let (mut b, _) = full(fila_worker);
    b.settle("jobs", &[("a", NACK), ("b", NACK)]);
    b.advance(60_000);
    check(b);
}
