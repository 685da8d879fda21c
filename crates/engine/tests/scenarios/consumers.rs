//! Consumers: credit, turns, and connections that do not read.

use tanda_engine::{
    ConnLimits, DeliveryItem, Event, LeaseMode, Request, SubId, SubscribeError, SubscribeSpec,
};

use crate::broker::{Broker, job, jobs, queue};

fn many(count: usize) -> Vec<crate::harness::Msg> {
    (0..count).map(|n| job(&n.to_string())).collect()
}

#[test]
fn nothing_is_delivered_without_credit() {
    let mut b = Broker::with(queue("jobs"));
    let w = b.worker("w", "jobs", Some(0));
    b.send(&jobs(["a", "b", "c"]));
    assert_eq!(b.got(), Vec::<String>::new());
    b.grant(w, 0);
    assert_eq!(b.got(), Vec::<String>::new());
    b.grant(w, 2);
    assert_eq!(b.got(), ["w: a b"]);
    // An ack gives no credit.
    b.ack("jobs", ["a", "b"]);
    assert_eq!(b.got(), Vec::<String>::new());
    b.grant(w, 1);
    assert_eq!(b.got(), ["w: c"]);
}

#[test]
fn credit_adds_up() {
    let mut b = Broker::with(queue("jobs"));
    let w = b.worker("w", "jobs", Some(2));
    b.grant(w, 3);
    b.grant(w, 4);
    b.send(&many(20));
    assert_eq!(b.order().len(), 9);
    assert_eq!(b.held("jobs"), (11, 9));
}

#[test]
fn credit_saturates() {
    let mut b = Broker::with(queue("jobs"));
    let w = b.worker("w", "jobs", Some(u32::MAX - 1));
    for _ in 0..3 {
        b.grant(w, u32::MAX);
    }
    b.send(&many(50));
    assert_eq!(b.order().len(), 50);
}

#[test]
fn unlimited_stays_unlimited() {
    let mut b = Broker::with(queue("jobs"));
    let w = b.worker("w", "jobs", None);
    b.grant(w, 1);
    b.send(&many(50));
    assert_eq!(b.order().len(), 50);
}

#[test]
fn credit_of_nobody_is_ignored() {
    let mut b = Broker::with(queue("jobs"));
    let w = b.worker("w", "jobs", Some(0));
    b.unsubscribe(w);
    b.send(&jobs(["a"]));
    b.grant(w, 5);
    b.unsubscribe(w);
    b.disconnect(w);
    b.grant(w, 5);
    assert_eq!(b.got(), Vec::<String>::new());
    assert_eq!(b.held("jobs"), (1, 0));
    assert_eq!(b.counts("jobs").active_consumers, 0);
}

#[test]
fn consumers_take_turns() {
    let mut b = Broker::with(queue("jobs"));
    b.worker("u", "jobs", None);
    b.worker("v", "jobs", Some(2));
    b.worker("w", "jobs", Some(0));
    b.send(&jobs(["a", "b", "c", "d", "e", "f"]));
    assert_eq!(b.got(), ["u: a c e f", "v: b d"]);
}

#[test]
fn a_subscription_says_why_it_is_refused() {
    let mut b = Broker::with(queue("jobs"));
    let conn = b.connect(ConnLimits {
        outbound_bytes_max: 1 << 20,
        subscriptions_max: 2,
    });
    let ask = |b: &mut Broker, token, queue: &str| {
        let spec = SubscribeSpec {
            queue: queue.to_owned(),
            credit: None,
            lease: LeaseMode::Timed,
            throttles: Vec::new(),
            ..SubscribeSpec::default()
        };
        let sub = SubId { conn, token };
        b.handle(Request::Subscribe { sub, spec });
        match b.out.remove(0).event {
            Event::Subscribed { .. } => Ok(()),
            Event::SubscribeFailed { error, .. } => Err(error),
            other => panic!("not {other:?}"),
        }
    };
    assert_eq!(ask(&mut b, 1, "none"), Err(SubscribeError::QueueNotFound));
    assert_eq!(ask(&mut b, 1, "jobs"), Ok(()));
    assert_eq!(ask(&mut b, 1, "jobs.dlq"), Err(SubscribeError::TokenInUse));
    assert_eq!(ask(&mut b, 2, "jobs.dlq"), Ok(()));
    assert_eq!(
        ask(&mut b, 3, "jobs"),
        Err(SubscribeError::TooMany { max: 2 })
    );
    b.unsubscribe(SubId { conn, token: 1 });
    assert_eq!(ask(&mut b, 1, "jobs"), Ok(()));
}

/// A connection with room for `messages` of these tests' messages, and its budget bytes each.
fn narrow(b: &mut Broker, messages: u64) -> (tanda_engine::ConnId, u64) {
    // Two header bytes, four of the payload's length, one of payload.
    let each = DeliveryItem::OVERHEAD_BYTES + 7;
    let conn = b.connect(ConnLimits {
        outbound_bytes_max: each * messages,
        subscriptions_max: 8,
    });
    (conn, each)
}

#[test]
fn a_connection_that_does_not_drain_is_passed_over() {
    let mut b = Broker::with(queue("jobs"));
    let (conn, each) = narrow(&mut b, 2);
    let slow = b.worker_on(conn, "slow", "jobs", (None, LeaseMode::Timed));
    b.worker("w", "jobs", None);
    b.send(&jobs(["a", "b", "c", "d", "e", "f"]));
    assert_eq!(b.got(), ["slow: a c", "w: b d e f"]);
    // Half of it has left: room for one again.
    let drained = |bytes| Request::Drained { conn, bytes };
    b.handle(drained(each));
    b.send(&jobs(["g", "h", "i"]));
    assert_eq!(b.got(), ["w: g i", "slow: h"]);
    b.unsubscribe(slow);
}

#[test]
fn a_full_connection_does_not_lose_its_turn_for_ever() {
    let mut b = Broker::with(queue("jobs"));
    let (conn, each) = narrow(&mut b, 1);
    b.worker_on(conn, "slow", "jobs", (None, LeaseMode::Timed));
    b.send(&jobs(["a", "b", "c"]));
    assert_eq!(b.got(), ["slow: a"]);
    for expected in ["slow: b", "slow: c"] {
        b.handle(Request::Drained { conn, bytes: each });
        b.run();
        assert_eq!(b.got(), [expected]);
    }
    // More than there is: a session's mistake gives no credit for later.
    b.handle(Request::Drained {
        conn,
        bytes: 100 * each,
    });
    b.send(&jobs(["d", "e"]));
    assert_eq!(b.got(), ["slow: d"]);
}

#[test]
fn subscriptions_of_one_connection_share_its_room() {
    let mut b = Broker::with(queue("jobs"));
    b.h.create(queue("other"));
    let (conn, each) = narrow(&mut b, 3);
    b.worker_on(conn, "one", "jobs", (None, LeaseMode::Timed));
    b.worker_on(conn, "two", "other", (None, LeaseMode::Timed));
    b.send(&jobs(["a", "b", "c", "d"]));
    let mut x = job("x");
    x.queue = "other".to_owned();
    b.send(&[x]);
    assert_eq!(b.got(), ["one: a b c"]);
    b.handle(Request::Drained {
        conn,
        bytes: 2 * each,
    });
    b.run();
    assert_eq!(b.got(), ["one: d", "two: x"]);
}

#[test]
fn one_large_message_may_exceed_the_room() {
    let mut b = Broker::with(queue("jobs"));
    let (conn, _) = narrow(&mut b, 1);
    b.worker_on(conn, "slow", "jobs", (None, LeaseMode::Timed));
    let large = "x".repeat(10_000);
    b.send(&[job(&large), job("a")]);
    assert_eq!(b.got(), [format!("slow: {large}")]);
}
