//! A queue's time for all its messages, and how often one may come back.

use tanda_engine::{Held, Request, Settlement};
use tanda_wire::amqp::Value;

use crate::world::{Msg, REQUEUE, World, dead_to};

#[test]
fn the_shorter_of_both_times_counts() {
    let mut w = World::new();
    w.queue("q", &[("x-message-ttl", Value::I32(5_000))]);
    for (name, ttl_ms) in [("a", None), ("b", Some(1_000)), ("c", Some(9_000))] {
        w.send(&Msg {
            ttl_ms,
            ..Msg::to("q", name)
        });
    }
    w.advance(999);
    assert_eq!(w.counts("q").expired, 0);
    w.advance(1);
    assert_eq!(w.counts("q").expired, 1);
    w.advance(3_999);
    assert_eq!(w.counts("q").expired, 1);
    w.advance(1);
    assert_eq!(w.counts("q").expired, 3);
}

#[test]
fn a_queues_time_costs_no_index_and_reaches_into_pages() {
    let mut w = World::new();
    w.queue("q", &[("x-message-ttl", Value::I32(5_000))]);
    let names: Vec<_> = (0..50).map(|n| format!("m{n}")).collect();
    for (n, name) in names.iter().enumerate() {
        w.send(&Msg::to("q", name));
        if n % 10 == 9 {
            w.advance(100);
        }
    }
    let pages = |w: &World| w.h.journal.pages.iter().flatten().count();
    assert!(pages(&w) > 10, "{} pages", pages(&w));
    w.advance(4_600);
    let counts = w.counts("q");
    assert_eq!((counts.depth, counts.expired), (30, 20));
    assert!(pages(&w) > 5, "{} pages", pages(&w));
    w.h.take_snapshot();
    w.h.restart(0);
    assert_eq!(w.depths(["q"]), [30]);
    w.advance(100);
    assert_eq!(w.depths(["q"]), [20]);
    w.consume("q");
    let left: Vec<_> = w.held.iter().map(|it| it.name.clone()).collect();
    assert_eq!(left, names[30..]);
    // What is held stays.
    w.advance(10_000);
    assert_eq!(w.counts("q").in_flight, 20);
    // What comes back too late leaves.
    w.settle("m30", REQUEUE);
    w.settle("m31", Settlement::Ack);
    assert_eq!(w.counts("q").in_flight, 18);
    assert_eq!(w.depths(["q"]), [0]);
    assert_eq!(w.counts("q").expired, 11);
}

#[test]
fn what_comes_back_after_its_time_pushes_nobody_out() {
    for own_time in [true, false] {
        let mut w = World::new();
        let mut args = dead_to("dead");
        args.push(("x-max-length", Value::I32(2)));
        if !own_time {
            args.push(("x-message-ttl", Value::I32(1_000)));
        }
        w.queue("q", &args);
        w.queue("dead", &[]);
        let early = if own_time { ["b", "x"] } else { ["x", "b"] };
        for name in early {
            w.advance(500);
            let ttl_ms = (own_time && name == "x").then_some(100);
            w.send(&Msg {
                ttl_ms,
                ..Msg::to("q", name)
            });
        }
        let sub = w.consume("q");
        let held = Held::Keep;
        w.h.handle(Request::Unsubscribe { sub, held });
        w.run();
        w.settle("b", REQUEUE);
        w.send(&Msg::to("q", "c"));
        w.advance(600);
        w.settle("x", REQUEUE);
        assert_eq!(w.counts("q").expired, 1, "{own_time}");
        let all = w.all_names(&["q", "dead"]);
        assert_eq!(all["q"], ["b", "c"], "{own_time}");
        assert_eq!(all["dead"], ["x"], "{own_time}");
    }
}

#[test]
fn a_page_that_cannot_be_read_holds_nobody_else_up() {
    let mut w = World::new();
    w.queue("q", &[("x-message-ttl", Value::I32(5_000))]);
    for n in 0..20 {
        w.send(&Msg::to("q", &n.to_string()));
    }
    w.h.journal.pages_unreadable = true;
    w.advance(6_000);
    let left = w.counts("q").depth;
    assert!(left > 0 && left < 20, "{left} left");
    w.h.journal.pages_unreadable = false;
    w.advance(3_000);
    assert_eq!(w.depths(["q"]), [0]);
}

#[test]
fn a_message_that_came_back_too_often_dies() {
    for dead_letters in [false, true] {
        let mut w = World::new();
        let mut args = if dead_letters {
            dead_to("dead")
        } else {
            Vec::new()
        };
        args.push(("x-delivery-limit", Value::I32(2)));
        w.queue("q", &args);
        w.queue("dead", &[]);
        w.consume("q");
        w.send(&Msg::to("q", "m"));
        for _ in 0..2 {
            w.settle("m", REQUEUE);
            assert_eq!(w.counts("q").in_flight, 1);
        }
        w.settle("m", REQUEUE);
        assert_eq!(w.counts("q").in_flight, 0);
        assert_eq!(w.depths(["q", "dead"]), [0, u64::from(dead_letters)]);
        if dead_letters {
            w.consume("dead");
            assert_eq!(w.newest("m").deaths(), ["q delivery_limit*1 /q"]);
        }
    }
}

#[test]
fn losing_its_connection_counts_too() {
    let mut w = World::new();
    let mut args = dead_to("dead");
    args.push(("x-delivery-limit", Value::I32(1)));
    w.queue("q", &args);
    w.queue("dead", &[]);
    w.send(&Msg::to("q", "m"));
    for expected in [[1, 0], [0, 1]] {
        let sub = w.consume("q");
        assert_eq!(w.counts("q").in_flight, 1);
        w.disconnect(sub);
        assert_eq!(w.depths(["q", "dead"]), expected);
    }
}

#[test]
fn a_queue_that_expires_leaves_no_dead_letters() {
    let mut w = World::new();
    let mut args = dead_to("dead");
    args.push(("x-expires", Value::I32(1_000)));
    w.queue("q", &args);
    w.queue("dead", &[]);
    w.send(&Msg::to("q", "m"));
    w.advance(1_000);
    assert_eq!(w.depths(["dead"]), [0]);
    // Its name is free.
    w.queue("q", &[]);
    assert_eq!(w.depths(["q"]), [0]);
}

#[test]
fn a_batch_says_whether_its_queue_counts_returns() {
    let cases = [
        (&[][..], false),
        (&[("x-queue-type", Value::text("quorum"))], true),
        (&[("x-delivery-limit", Value::I32(3))], false),
    ];
    for (args, counts) in cases {
        let mut w = World::new();
        w.queue("q", args);
        w.consume("q");
        w.send(&Msg::to("q", "m"));
        assert_eq!(w.newest("m").counts_returns, counts, "{args:?}");
    }
}
