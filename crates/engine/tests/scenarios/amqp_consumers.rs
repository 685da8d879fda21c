//! Consumers of AMQP and FireMQ: what they hold, who is served first, and when they end.

use tanda_engine::{
    GetError, GetSpec, Held, LeaseMode, PoolChange, Request, SubscribeError, SubscribeSpec, Take,
};
use tanda_wire::amqp::Value;

use crate::broker::{Broker, NOT_LEASED, OK, job, jobs, queue};
use crate::declared::{ACK, REJECT, REQUEUE, broker, consume, durable, transient_queue, with_args};

const NOTHING: [&str; 0] = [];

fn no_ack(queue: &str) -> SubscribeSpec {
    SubscribeSpec {
        lease: LeaseMode::NoAck,
        ..consume(queue, None)
    }
}

#[test]
fn without_acknowledgement_a_message_is_gone_once_delivered() {
    for declare in [durable("jobs"), transient_queue("jobs")] {
        let mut b = broker();
        let c = b.client();
        b.declared(c, declare);
        b.send(&jobs(["a", "b"]));
        let w = b.consumer(c, "w", no_ack("jobs"));
        assert_eq!(b.told_consumers(), ["w: a b"]);
        assert_eq!(b.held("jobs"), (0, 0));
        assert_eq!(b.settle("jobs", &[("a", ACK)]), [NOT_LEASED]);
        b.send(&jobs(["c"]));
        assert_eq!(b.told_consumers(), ["w: c"]);
        b.leave(w.conn);
        b.restart(0);
        assert_eq!(b.h.engine.segments().count(), 0);
    }
}

#[test]
fn a_requeued_message_goes_to_its_old_place() {
    let mut b = broker();
    let c = b.client();
    b.declared(c, durable("jobs"));
    b.send(&jobs(["a", "b", "c"]));
    let get = |b: &mut Broker| b.get(c, "jobs").0;
    assert_eq!([get(&mut b), get(&mut b), get(&mut b)], ["a", "b", "c"]);
    assert_eq!(b.settle("jobs", &[("c", REQUEUE)]), [OK]);
    assert_eq!(b.settle("jobs", &[("a", REQUEUE)]), [OK]);
    assert_eq!(
        [get(&mut b), get(&mut b), get(&mut b)],
        ["a (again)", "c (again)", ""]
    );
    assert_eq!(
        b.settle("jobs", &[("a", REJECT), ("b", ACK), ("b", ACK)]),
        [OK, OK, NOT_LEASED]
    );
    assert_eq!(b.held("jobs"), (0, 1));
}

#[test]
fn that_it_was_delivered_is_remembered_over_a_restart() {
    let mut b = broker();
    let c = b.client();
    b.declared(c, durable("jobs"));
    b.send(&jobs(["a", "b", "c"]));
    b.consumer(c, "w", consume("jobs", Some(2)));
    assert_eq!(b.told_consumers(), ["w: a b"]);
    b.ack("jobs", ["a"]);
    b.restart(0);
    let c = b.client();
    // At once: what AMQP delivers is not held back for who had it.
    assert_eq!(b.get(c, "jobs"), ("b (again)".to_owned(), 1));
    b.snapshot();
    b.restart(0);
    let c = b.client();
    b.consumer(c, "w", consume("jobs", None));
    assert_eq!(b.told_consumers(), ["w: b* c"]);
}

#[test]
fn a_cancelled_consumer_keeps_what_it_holds() {
    let mut b = broker();
    let (c, d) = (b.client(), b.client());
    b.declared(c, durable("jobs"));
    b.send(&jobs(["a", "b", "c"]));
    let w = b.consumer(c, "w", consume("jobs", Some(2)));
    assert_eq!(b.told_consumers(), ["w: a b"]);
    b.cancel(w, Held::Keep);
    assert_eq!(b.counts("jobs").active_consumers, 0);
    b.consumer(d, "v", consume("jobs", None));
    assert_eq!(b.told_consumers(), ["v: c"]);
    assert_eq!(b.settle("jobs", &[("a", ACK)]), [OK]);
    assert_eq!(b.held("jobs"), (0, 2));
    // Its connection is gone: what is left goes to the next.
    b.leave(c);
    assert_eq!(b.told_consumers(), ["v: b*"]);
    b.ack("jobs", ["b", "c"]);
}

#[test]
fn a_get_is_settled_like_a_delivery_and_returns_with_its_connection() {
    let mut b = broker();
    let (c, d) = (b.client(), b.client());
    assert_eq!(b.refused_get(c, "jobs"), GetError::NotFound);
    b.declared(c, durable("jobs"));
    assert_eq!(b.get(c, "jobs"), (String::new(), 0));
    b.send(&jobs(["a", "b", "c"]));
    assert_eq!(b.get(c, "jobs"), ("a".to_owned(), 2));
    assert_eq!(b.get(d, "jobs"), ("b".to_owned(), 1));
    let gone = GetSpec {
        queue: "jobs".to_owned(),
        take: Take::NoAck,
        ..GetSpec::default()
    };
    assert_eq!(b.get_as(d, gone), ("c".to_owned(), 0));
    assert_eq!(b.held("jobs"), (0, 2));
    assert_eq!(
        b.settle("jobs", &[("a", ACK), ("c", ACK)]),
        [OK, NOT_LEASED]
    );
    b.leave(d);
    assert_eq!(b.get(c, "jobs"), ("b (again)".to_owned(), 0));
}

#[test]
fn a_get_on_a_queue_of_fila_works_as_well() {
    let mut b = Broker::with(queue("jobs"));
    let c = b.client();
    b.send(&jobs(["a", "b"]));
    assert_eq!(b.get(c, "jobs"), ("a".to_owned(), 1));
    b.leave(c);
    b.restart(0);
    let c = b.client();
    assert_eq!(b.get(c, "jobs").0, "a (again)");
}

#[test]
fn higher_priorities_are_served_first_while_they_can_take_a_message() {
    let mut b = broker();
    let c = b.client();
    b.declared(c, durable("jobs"));
    let with = |priority, credit| SubscribeSpec {
        priority,
        ..consume("jobs", Some(credit))
    };
    b.consumer(c, "low", with(-5, 9));
    let high = b.consumer(c, "high", with(10, 2));
    b.consumer(c, "mid", with(0, 1));
    b.send(&jobs(["a", "b", "c", "d"]));
    assert_eq!(b.told_consumers(), ["high: a b", "mid: c", "low: d"]);
    b.grant(high, 1);
    b.send(&jobs(["e", "f"]));
    assert_eq!(b.told_consumers(), ["high: e", "low: f"]);
}

#[test]
fn equals_take_turns() {
    let mut b = broker();
    let (c, d) = (b.client(), b.client());
    b.declared(c, durable("jobs"));
    for (conn, name) in [(c, "v"), (d, "w"), (c, "x")] {
        b.consumer(conn, name, consume("jobs", None));
    }
    b.send(&jobs(["a", "b", "c", "d", "e", "f", "g"]));
    assert_eq!(b.told_consumers(), ["v: a d g", "w: b e", "x: c f"]);
    b.send(&jobs(["h"]));
    assert_eq!(b.told_consumers(), ["w: h"]);
}

#[test]
fn an_exclusive_consumer_is_the_only_one() {
    let mut b = broker();
    let (c, d) = (b.client(), b.client());
    b.declared(c, durable("jobs"));
    let exclusive = || SubscribeSpec {
        exclusive: true,
        ..consume("jobs", None)
    };
    let refused = "queue 'jobs' in vhost '/' in exclusive use".to_owned();
    let refused = SubscribeError::AccessRefused(refused);
    let v = b.consumer(c, "v", consume("jobs", None));
    assert_eq!(b.refused_consumer(c, exclusive()), refused);
    b.cancel(v, Held::Keep);
    let w = b.consumer(c, "w", exclusive());
    assert_eq!(b.refused_consumer(d, consume("jobs", None)), refused);
    assert_eq!(b.refused_consumer(d, exclusive()), refused);
    b.send(&jobs(["a"]));
    assert_eq!(b.told_consumers(), ["w: a"]);
    b.cancel(w, Held::Keep);
    b.consumer(d, "x", exclusive());
    b.leave(d);
    b.consumer(c, "y", consume("jobs", None));
}

fn single() -> (Broker, tanda_engine::ConnId, tanda_engine::ConnId) {
    let mut b = broker();
    let (c, d) = (b.client(), b.client());
    b.declared(
        c,
        with_args("jobs", &[("x-single-active-consumer", Value::Bool(true))]),
    );
    (b, c, d)
}

#[test]
fn a_single_active_consumer_hands_over_when_its_messages_are_settled() {
    let (mut b, c, d) = single();
    let v = b.consumer(c, "v", consume("jobs", Some(2)));
    b.consumer(d, "w", consume("jobs", None));
    b.send(&jobs(["a", "b", "c"]));
    assert_eq!(b.told_consumers(), ["v: a b"]);
    let exclusive = SubscribeSpec {
        exclusive: true,
        ..consume("jobs", None)
    };
    let refused = b.refused_consumer(c, exclusive);
    assert!(
        matches!(refused, SubscribeError::AccessRefused(_)),
        "{refused:?}"
    );
    b.cancel(v, Held::Keep);
    assert_eq!(b.told_consumers(), NOTHING);
    b.ack("jobs", ["a"]);
    assert_eq!(b.told_consumers(), NOTHING);
    assert_eq!(b.settle("jobs", &[("b", REQUEUE)]), [OK]);
    assert_eq!(b.told_consumers(), ["w: b* c"]);
}

#[test]
fn a_lost_single_active_consumer_hands_over_what_it_held_in_order() {
    let (mut b, c, d) = single();
    b.consumer(c, "v", consume("jobs", Some(2)));
    b.consumer(c, "twin", consume("jobs", None));
    b.consumer(d, "w", consume("jobs", None));
    b.send(&jobs(["a", "b", "c"]));
    assert_eq!(b.told_consumers(), ["v: a b"]);
    b.leave(c);
    assert_eq!(b.told_consumers(), ["w: a* b* c"]);
}

#[test]
fn the_next_active_consumer_is_the_first_of_the_highest_priority() {
    let (mut b, c, d) = single();
    let with = |priority| SubscribeSpec {
        priority,
        ..consume("jobs", None)
    };
    let v = b.consumer(c, "v", with(0));
    b.consumer(d, "low", with(0));
    b.consumer(d, "high", with(3));
    b.consumer(d, "later", with(3));
    b.send(&jobs(["a"]));
    assert_eq!(b.told_consumers(), ["v: a"]);
    b.ack("jobs", ["a"]);
    b.cancel(v, Held::Keep);
    b.send(&jobs(["b", "c"]));
    assert_eq!(b.told_consumers(), ["high: b c"]);
}

#[test]
fn a_message_held_for_too_long_ends_its_consumer() {
    let mut b = broker();
    let (c, d) = (b.client(), b.client());
    b.declared(c, durable("jobs"));
    let limited = SubscribeSpec {
        ack_timeout_ms: Some(1_000),
        ..consume("jobs", Some(2))
    };
    b.consumer(c, "w", limited);
    b.send(&jobs(["a"]));
    b.advance(600);
    b.send(&jobs(["b", "c"]));
    assert_eq!(b.told_consumers(), ["w: a", "w: b"]);
    // The older one is settled in time, and does not count any more.
    b.ack("jobs", ["a"]);
    b.advance(999);
    assert_eq!(b.told_consumers(), NOTHING);
    b.advance(1);
    assert_eq!(b.told_consumers(), ["w AckTimedOut { timeout_ms: 1000 }"]);
    assert_eq!(b.counts("jobs").active_consumers, 0);
    b.consumer(d, "v", consume("jobs", None));
    assert_eq!(b.told_consumers(), ["v: b* c"]);
    b.advance(10_000);
    assert_eq!(b.told_consumers(), NOTHING);
}

#[test]
fn the_queue_decides_how_long_a_message_may_be_held() {
    let mut b = broker();
    let c = b.client();
    b.declared(
        c,
        with_args("jobs", &[("x-consumer-timeout", Value::I32(500))]),
    );
    b.send(&jobs(["a", "b"]));
    b.consumer(c, "w", consume("jobs", Some(1)));
    assert_eq!(b.told_consumers(), ["w: a"]);
    assert_eq!(b.get(c, "jobs").0, "b");
    b.advance(500);
    let told = b.told_consumers();
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(b.held("jobs"), (2, 0));
}

#[test]
fn a_pool_limits_consumers_of_a_connection_together() {
    let mut b = broker();
    let c = b.client();
    b.declared(c, durable("jobs"));
    let pooled = || SubscribeSpec {
        pool: Some(7),
        ..consume("jobs", None)
    };
    let change = |b: &mut Broker, change| {
        b.handle(Request::Pool {
            conn: c,
            pool: 7,
            change,
        });
        b.run();
    };
    change(&mut b, PoolChange::Set(3));
    b.consumer(c, "v", pooled());
    b.consumer(c, "w", pooled());
    b.send(&jobs(["a", "b", "c", "d", "e"]));
    assert_eq!(b.told_consumers(), ["v: a c", "w: b"]);
    // Others do not share it.
    b.consumer(c, "x", consume("jobs", Some(1)));
    assert_eq!(b.told_consumers(), ["x: d"]);
    change(&mut b, PoolChange::Set(-1));
    change(&mut b, PoolChange::Add(1));
    assert_eq!(b.told_consumers(), NOTHING);
    change(&mut b, PoolChange::Add(1));
    assert_eq!(b.told_consumers(), ["v: e"]);
    b.send(&[job("f")]);
    assert_eq!(b.told_consumers(), NOTHING);
    change(&mut b, PoolChange::Unlimited);
    b.send(&[job("g")]);
    assert_eq!(b.told_consumers(), ["v: f", "w: g"]);
}

#[test]
fn nacks_on_a_queue_of_fila_are_failed_attempts() {
    let mut b = Broker::with(queue("jobs"));
    let c = b.client();
    b.worker("dead", "jobs.dlq", None);
    b.send(&jobs(["a", "b"]));
    b.consumer(c, "w", consume("jobs", None));
    assert_eq!(b.got(), ["w: a b"]);
    assert_eq!(b.settle("jobs", &[("a", REQUEUE)]), [OK]);
    assert_eq!(b.got(), ["w: a#2"]);
    assert_eq!(b.settle("jobs", &[("b", REJECT)]), [OK]);
    assert_eq!(b.got(), ["dead: b#2"]);
    assert_eq!(b.settle("jobs", &[("a", REQUEUE)]), [OK]);
    assert_eq!(b.settle("jobs", &[("a", REQUEUE)]), [OK]);
    assert_eq!(b.got(), ["w: a#3", "dead: a#4"]);
    // A lost connection is no failed attempt, and nothing ends while it lives.
    b.send(&jobs(["c"]));
    b.advance(1_000_000);
    assert_eq!(b.got()[0], "w: c");
    b.leave(c);
    let d = b.client();
    b.consumer(d, "v", consume("jobs", None));
    assert_eq!(b.got(), ["v: c"]);
}

#[test]
fn what_never_left_is_given_back_with_its_credit() {
    let mut b = broker();
    let c = b.client();
    b.declared(c, durable("jobs"));
    b.send(&jobs(["a", "b", "c"]));
    let w = b.consumer(c, "w", consume("jobs", Some(2)));
    b.undelivered(w);
    b.run();
    assert_eq!(b.told_consumers(), ["w: a b"]);
    assert_eq!(b.held("jobs"), (1, 2));
}

#[test]
fn who_got_a_message_that_never_left_takes_no_other_for_it() {
    let mut b = broker();
    let c = b.client();
    b.declared(c, durable("jobs"));
    b.send(&jobs(["a", "b"]));
    let spec = GetSpec {
        queue: "jobs".to_owned(),
        ..GetSpec::default()
    };
    let got = b.get_with(c, spec).unwrap();
    let batch = got.batch.unwrap();
    let (now, h) = (b.h.now, &mut b.h);
    h.engine.undelivered(now, &mut h.journal, c, &batch);
    h.engine.assert_invariants();
    b.run();
    assert_eq!(b.held("jobs"), (2, 0));
    let other = b.client();
    assert_eq!(b.get(other, "jobs"), ("a".to_owned(), 1));
}
