//! Which queues messages go to.

use tanda_engine::{ExchangeSpec, PublishError, PublishResult};
use tanda_wire::amqp::Value;

use crate::world::{Msg, World, durable, table};

#[test]
fn the_default_exchange_goes_to_the_queue_of_the_keys_name() {
    let mut w = World::new();
    assert_eq!(w.to("", "q2"), [2]);
    assert_eq!(w.to("", "q9"), [0; 0]);
}

#[test]
fn direct_and_fanout() {
    let mut w = World::new();
    w.exchange("d", "direct");
    w.exchange("f", "fanout");
    for (to, key) in [("q1", "a"), ("q2", "a"), ("q3", "b")] {
        w.bind("d", to, key);
        w.bind("f", to, key);
    }
    assert_eq!(w.to("d", "a"), [1, 2]);
    assert_eq!(w.to("d", "b"), [3]);
    assert_eq!(w.to("d", "c"), [0; 0]);
    assert_eq!(w.to("f", "whatever"), [1, 2, 3]);
}

/// Pitfall 34 through a broker; the patterns themselves are tested beside the tree.
#[test]
fn topics() {
    let mut w = World::new();
    w.bind("amq.topic", "q1", "a.*.c.#");
    w.bind("amq.topic", "q2", "#");
    w.bind("amq.topic", "q3", "");
    w.bind("amq.topic", "q4", "*.#");
    assert_eq!(w.to("amq.topic", "a.b.c"), [1, 2, 4]);
    assert_eq!(w.to("amq.topic", ""), [2, 3]);
    assert_eq!(w.to("amq.topic", "."), [2, 4]);
}

/// Pitfall 35.
#[test]
fn headers_match_all_or_any_with_or_without_those_of_the_broker() {
    let mut w = World::new();
    let (one, text) = (("n", Value::I32(1)), ("t", Value::text("x")));
    let with_x = ("x-key", Value::Bool(true));
    let how = |mode| ("x-match", Value::text(mode));
    for (to, args) in [
        ("q1", &[one, text, with_x][..]),
        ("q2", &[how("any"), one, text, with_x]),
        ("q3", &[how("all-with-x"), one, text, with_x]),
        ("q4", &[how("any-with-x"), one, text, with_x]),
    ] {
        assert_eq!(w.try_bind("amq.match", to, "ignored", args), Ok(()));
    }
    let mut to = |headers: &[(&str, Value<'_>)]| {
        w.route(&Msg {
            exchange: "amq.match",
            headers,
            ..Msg::default()
        })
    };
    assert_eq!(to(&[]), [0; 0]);
    assert_eq!(to(&[one]), [2, 4]);
    // Numbers are what they are, whatever their width; text is no number.
    assert_eq!(to(&[("n", Value::I64(1)), text]), [1, 2, 4]);
    assert_eq!(to(&[("n", Value::text("1"))]), [0; 0]);
    assert_eq!(to(&[("t", Value::text("y")), one]), [2, 4]);
    assert_eq!(to(&[with_x]), [4]);
    assert_eq!(to(&[with_x, one, text]), [1, 2, 3, 4]);
}

#[test]
fn headers_without_arguments_or_values() {
    let mut w = World::new();
    let any = ("x-match", Value::text("any"));
    assert_eq!(w.try_bind("amq.headers", "q1", "", &[]), Ok(()));
    assert_eq!(w.try_bind("amq.headers", "q2", "", &[any]), Ok(()));
    let there = [("h", Value::Void)];
    assert_eq!(w.try_bind("amq.headers", "q3", "", &there), Ok(()));
    let mut to = |headers: &[(&str, Value<'_>)]| {
        w.route(&Msg {
            exchange: "amq.headers",
            headers,
            ..Msg::default()
        })
    };
    assert_eq!(to(&[]), [1], "all of none match, none of none does");
    assert_eq!(to(&[("h", Value::I32(7))]), [1, 3]);
    assert_eq!(to(&[("h", Value::Void)]), [1, 3]);
    assert_eq!(to(&[("other", Value::Void)]), [1]);
}

/// Pitfall 33: one copy for each queue, however many ways lead there, and around cycles.
#[test]
fn a_queue_gets_one_copy_and_cycles_end() {
    let mut w = World::new();
    for name in ["a", "b", "c"] {
        w.exchange(name, "fanout");
    }
    for (from, to) in [("a", "b"), ("b", "c"), ("c", "a"), ("a", "c"), ("a", "a")] {
        w.bind(from, to, "");
    }
    w.bind("a", "q1", "");
    w.bind("b", "q1", "");
    w.bind("c", "q2", "x");
    w.bind("c", "q2", "y");
    for start in ["a", "b", "c"] {
        assert_eq!(w.to(start, "k"), [1, 2]);
    }
    let other = [("n", Value::I32(1))];
    assert_eq!(w.try_bind("a", "q1", "", &other), Ok(()));
    assert_eq!(w.to("a", "k"), [1, 2]);
}

/// Pitfall 36.
#[test]
fn missing_and_internal_exchanges_refuse() {
    let mut w = World::new();
    let internal = ExchangeSpec {
        internal: true,
        ..durable("inner", "fanout")
    };
    assert_eq!(w.declare(internal), Ok(()));
    w.exchange("outer", "fanout");
    w.bind("outer", "inner", "");
    w.bind("inner", "q3", "");
    let mut result = |exchange| {
        w.publish(&Msg {
            exchange,
            ..Msg::default()
        })
        .0
    };
    let refused = PublishResult::Refused;
    assert_eq!(result("nope"), refused(PublishError::ExchangeNotFound));
    assert_eq!(result("inner"), refused(PublishError::ExchangeInternal));
    assert_eq!(w.to("outer", "k"), [3]);
}

#[test]
fn what_goes_nowhere_goes_to_the_alternate_exchange() {
    let mut w = World::new();
    let with = |name: &str, kind: &str, alternate: &str| ExchangeSpec {
        args: table(&[("alternate-exchange", Value::text(alternate))]).into(),
        ..durable(name, kind)
    };
    assert_eq!(w.declare(with("x", "direct", "y")), Ok(()));
    // It need not be there.
    assert_eq!(w.to("x", "k"), [0; 0]);
    assert_eq!(w.declare(with("y", "topic", "z")), Ok(()));
    // A cycle.
    assert_eq!(w.declare(with("z", "topic", "x")), Ok(()));
    w.bind("z", "q4", "#.last");
    assert_eq!(w.to("x", "k.last"), [4]);
    assert_eq!(w.to("x", "k"), [0; 0]);
    w.bind("x", "q1", "k");
    assert_eq!(w.to("x", "k"), [1]);
    w.bind("y", "q2", "#");
    assert_eq!(w.to("x", "k"), [1]);
    assert_eq!(w.to("x", "k.last"), [2]);
    // An exchange that a message goes to counts as somewhere, even if it goes nowhere from there.
    w.exchange("empty", "fanout");
    w.bind("x", "empty", "e");
    assert_eq!(w.to("x", "e"), [0; 0]);
}

#[test]
fn more_keys_lead_to_more_queues() {
    let mut w = World::new();
    let extra = &["q3", "q2", "q3"][..];
    let keys = |exchange| Msg {
        exchange,
        key: "q2",
        extra,
        ..Msg::default()
    };
    assert_eq!(w.route(&keys("")), [2, 3]);
    w.bind("amq.direct", "q1", "q3");
    assert_eq!(w.route(&keys("amq.direct")), [1]);
    w.bind("amq.topic", "q4", "*");
    assert_eq!(w.route(&keys("amq.topic")), [4]);
}

#[test]
fn a_body_lies_in_the_log_once_and_the_answer_waits_for_all_queues() {
    let mut w = World::new();
    for to in ["q1", "q2", "q3"] {
        w.bind("amq.fanout", to, "");
    }
    let before = w.h.journal.records.len();
    let (result, after) = w.publish(&Msg {
        exchange: "amq.fanout",
        ..Msg::default()
    });
    assert!(matches!(result, PublishResult::Stored(_)), "{result:?}");
    assert_eq!(after, w.h.journal.end);
    let records = &w.h.journal.records[before..];
    // One record: a start that moves it takes the body along.
    let [(_, record)] = records else {
        panic!("{} records", records.len())
    };
    let bodies = record.windows(4).filter(|it| it == b"body");
    assert_eq!(bodies.count(), 1);
    w.h.restart(0);
    assert_eq!(w.depths(), [1, 1, 1, 0]);
}

/// Pitfall 53: the others get it, and the publisher hears of the one that refuses.
#[test]
fn a_full_queue_refuses_and_the_others_get_it() {
    let mut w = World::new();
    w.h.create(tanda_engine::QueueSpec {
        name: "full".to_owned(),
        max_length: Some(tanda_engine::MaxLength {
            messages: 0,
            overflow: tanda_engine::Overflow::Reject,
        }),
        ..tanda_engine::QueueSpec::default()
    });
    w.bind("amq.fanout", "q1", "");
    let mut spec = crate::world::binding("amq.fanout", "q9", "", &[]);
    spec.destination = tanda_engine::Destination::Queue("full".to_owned());
    assert_eq!(w.ask(tanda_engine::AdminRequest::Bind(spec)), Ok(()));
    let (result, _) = w.publish(&Msg {
        exchange: "amq.fanout",
        ..Msg::default()
    });
    assert_eq!(result, PublishResult::Refused(PublishError::QueueFull));
    assert_eq!(w.depths(), [1, 0, 0, 0]);
}

#[test]
fn headers_of_firemq_match_as_those_of_amqp_do() {
    let mut w = World::new();
    let (one, text) = (("n", Value::I32(1)), ("t", Value::text("x")));
    assert_eq!(w.try_bind("amq.headers", "q1", "", &[one, text]), Ok(()));
    let mut to = |headers: &[u8]| {
        w.route(&Msg {
            exchange: "amq.headers",
            fire: Some(headers),
            ..Msg::default()
        })
    };
    // {"n": 1, "t": "x"}, then "n" in a longer encoding, as text, and no map.
    assert_eq!(to(b"\x82\xa1n\x01\xa1t\xa1x"), [1]);
    assert_eq!(to(b"\x82\xa1n\xcd\0\x01\xa1t\xa1x"), [1]);
    assert_eq!(to(b"\x82\xa1n\xa11\xa1t\xa1x"), [0; 0]);
    assert_eq!(to(b"\xc1"), [0; 0]);
}

#[test]
fn messages_in_memory_only_wait_for_nothing_new_on_disk() {
    let mut w = World::new();
    w.bind("amq.fanout", "q1", "");
    w.bind("amq.fanout", "q2", "");
    let end = w.h.journal.end;
    let msg = Msg {
        exchange: "amq.fanout",
        transient: true,
        ..Msg::default()
    };
    let (result, after) = w.publish(&msg);
    assert!(matches!(result, PublishResult::Stored(_)), "{result:?}");
    assert_eq!(w.h.journal.end, end, "nothing is written");
    assert!(after <= end);
    assert_eq!(w.depths(), [1, 1, 0, 0]);
}
