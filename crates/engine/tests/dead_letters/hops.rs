//! Where dead letters go, and what they say of themselves.

use tanda_engine::{EngineConfig, Limits, PublishError, PublishResult, Settlement};
use tanda_wire::amqp::Value;

use crate::world::{Msg, REJECT, World, dead_to};

#[test]
fn a_retry_loop_counts_its_rounds() {
    let mut w = World::new();
    w.queue("work", &dead_to("wait"));
    let mut wait = dead_to("work");
    wait.push(("x-message-ttl", Value::I32(5_000)));
    w.queue("wait", &wait);
    w.consume("work");
    w.send(&Msg::to("work", "m"));
    for round in 1..=3 {
        w.settle("m", REJECT);
        assert_eq!(w.depths(["work", "wait"]), [0, 1]);
        w.advance(4_999);
        assert_eq!(w.depths(["work", "wait"]), [0, 1]);
        w.advance(1);
        let expected = [
            format!("wait expired*{round} /wait"),
            format!("work rejected*{round} /work"),
        ];
        assert_eq!(w.newest("m").deaths(), expected);
        assert_eq!(w.newest("m").routing_key(), "/work");
        if round == 2 {
            // New ids are newer than all of before.
            w.h.restart(10);
            w.held.clear();
            w.consume("work");
        }
    }
    w.settle("m", Settlement::Ack);
    assert_eq!(w.depths(["work", "wait"]), [0, 0]);
}

#[test]
fn a_loop_in_which_nobody_rejects_ends() {
    let mut w = World::new();
    for (name, to) in [("a", "b"), ("b", "a")] {
        let mut args = dead_to(to);
        args.push(("x-message-ttl", Value::I32(1_000)));
        w.queue(name, &args);
    }
    w.send(&Msg::to("a", "m"));
    w.advance(1_000);
    assert_eq!(w.depths(["a", "b"]), [0, 1]);
    w.advance(1_000);
    assert_eq!(w.depths(["a", "b"]), [0, 0]);
    let counts = w.counts("b");
    assert_eq!((counts.expired, counts.dead_lettered), (1, 1));
}

#[test]
fn an_exchange_gives_them_to_all_it_is_bound_to_with_their_own_keys() {
    let mut w = World::new();
    w.exchange("dlx", "topic");
    w.exchange("orders", "fanout");
    let args = [("x-dead-letter-exchange", Value::text("dlx"))];
    w.queue("in", &args);
    for name in ["one", "two", "other"] {
        w.queue(name, &[]);
    }
    w.bind("orders", "in", "");
    w.bind("dlx", "one", "eu.#");
    w.bind("dlx", "two", "*.copy");
    w.bind("dlx", "other", "us.#");
    w.consume("in");
    let msg = Msg {
        exchange: "orders",
        key: "eu.new",
        name: "m",
        ttl_ms: Some(60_000),
        cc: &["x.copy"],
        ..Msg::default()
    };
    w.send(&msg);
    w.settle("m", REJECT);
    assert_eq!(w.depths(["in", "one", "two", "other"]), [0, 1, 1, 0]);
    for queue in ["one", "two"] {
        w.consume(queue);
        let got = w.settle("m", Settlement::Ack);
        assert_eq!(got.queue, queue);
        assert_eq!(got.routing_key(), "dlx/eu.new");
        assert_eq!(got.deaths(), ["in rejected*1 orders/eu.new+x.copy (60000)"]);
    }
    // Its expiration is gone.
    w.advance(100_000);
    assert_eq!(w.counts("one").expired + w.counts("two").expired, 0);
}

#[test]
fn an_exchange_that_is_not_there_takes_nothing() {
    let mut w = World::new();
    let args = [("x-dead-letter-exchange", Value::text("later"))];
    w.queue("in", &args);
    w.queue("dead", &[]);
    w.consume("in");
    w.send(&Msg::to("in", "a"));
    w.settle("a", REJECT);
    assert_eq!(w.depths(["in", "dead"]), [0, 0]);
    w.exchange("later", "fanout");
    w.bind("later", "dead", "");
    w.send(&Msg::to("in", "b"));
    w.settle("b", REJECT);
    assert_eq!(w.depths(["in", "dead"]), [0, 1]);
}

#[test]
fn without_an_exchange_a_rejected_message_is_gone() {
    let mut w = World::new();
    w.queue("in", &[]);
    w.consume("in");
    w.send(&Msg::to("in", "a"));
    w.settle("a", REJECT);
    w.h.restart(0);
    assert_eq!(w.depths(["in"]), [0]);
}

#[test]
fn the_oldest_are_dead_lettered_when_a_queue_is_full() {
    let mut w = World::new();
    let mut args = dead_to("dead");
    args.push(("x-max-length", Value::I32(2)));
    w.queue("in", &args);
    w.queue("dead", &[]);
    for name in ["a", "b", "c", "d"] {
        w.send(&Msg::to("in", name));
    }
    let all = w.all_names(&["in", "dead"]);
    assert_eq!(all["in"], ["c", "d"]);
    assert_eq!(all["dead"], ["a", "b"]);
    w.consume("dead");
    assert_eq!(w.newest("a").deaths(), ["in maxlen*1 /in"]);
}

#[test]
fn a_refused_message_may_be_dead_lettered() {
    let mut w = World::new();
    let mut args = dead_to("dead");
    args.push(("x-max-length", Value::I32(1)));
    args.push(("x-overflow", Value::text("reject-publish-dlx")));
    w.queue("in", &args);
    w.queue("dead", &[]);
    w.send(&Msg::to("in", "a"));
    let (result, _) = w.publish(&Msg::to("in", "b"));
    assert_eq!(result, PublishResult::Refused(PublishError::QueueFull));
    let all = w.all_names(&["in", "dead"]);
    assert_eq!(
        (all["in"].len(), all["dead"].as_slice()),
        (1, &["b".to_owned()][..])
    );
    w.consume("dead");
    assert_eq!(w.newest("b").deaths(), ["in maxlen*1 /in"]);
}

#[test]
fn a_message_with_no_time_goes_on_at_once() {
    let mut w = World::new();
    let mut args = dead_to("dead");
    args.push(("x-message-ttl", Value::I32(0)));
    w.queue("in", &args);
    w.queue("dead", &[]);
    w.send(&Msg::to("in", "a"));
    assert_eq!(w.depths(["in", "dead"]), [0, 1]);
    w.consume("in");
    w.send(&Msg::to("in", "b"));
    assert_eq!(w.newest("b").queue, "in");
    assert_eq!(w.depths(["in", "dead"]), [0, 1]);
}

#[test]
fn what_is_on_its_way_when_its_queue_is_deleted_arrives() {
    let mut w = World::with(EngineConfig::default());
    let mut args = dead_to("dead");
    args.push(("x-message-ttl", Value::I32(1_000)));
    w.queue("in", &args);
    w.queue("dead", &[]);
    for n in 0..700 {
        w.send(&Msg::to("in", &n.to_string()));
    }
    w.h.now = w.h.now.after_ms(1_000);
    w.pass();
    let counts = w.counts_now("in");
    assert!(counts.departing > 300, "{counts:?}");
    w.delete("in");
    assert_eq!(w.depths(["dead"]), [700]);
}

#[test]
fn many_leave_in_bounded_steps() {
    let mut w = World::with(EngineConfig::default());
    let mut args = dead_to("dead");
    args.push(("x-message-ttl", Value::I32(1_000)));
    w.queue("in", &args);
    w.queue("dead", &[]);
    for n in 0..1_500 {
        w.send(&Msg::to("in", &n.to_string()));
    }
    w.h.now = w.h.now.after_ms(1_000);
    let mut most = 0;
    while w.pass() {
        most = most.max(w.counts_now("in").departing);
    }
    assert!((500..=1024).contains(&most), "{most} at once");
    assert_eq!(w.depths(["in", "dead"]), [0, 1_500]);
}

#[test]
fn a_history_may_make_a_message_larger_than_others_may_be() {
    let mut w = World::with(EngineConfig {
        limits: Limits {
            message_bytes_max: 64,
            ..Limits::default()
        },
        ..EngineConfig::default()
    });
    w.queue("in", &dead_to("dead"));
    w.queue("dead", &[]);
    w.consume("in");
    w.send(&Msg::to("in", "just small enough to be taken as it is"));
    w.settle("just small enough to be taken as it is", REJECT);
    assert_eq!(w.depths(["in", "dead"]), [0, 1]);
}

#[test]
fn priorities_are_kept_also_by_a_queue_without_any() {
    let mut w = World::new();
    w.queue("in", &dead_to("dead"));
    w.queue("dead", &[("x-max-priority", Value::I32(9))]);
    w.consume("in");
    for (name, priority) in [("low", 1), ("high", 7), ("none", 0)] {
        w.send(&Msg {
            priority,
            ..Msg::to("in", name)
        });
    }
    for name in ["low", "none", "high"] {
        w.settle(name, REJECT);
    }
    let all = w.all_names(&["dead"]);
    assert_eq!(all["dead"], ["high", "low", "none"]);
}
