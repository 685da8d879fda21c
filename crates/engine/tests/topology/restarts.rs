//! What is left after a restart, and snapshots taken while things change.

use tanda_engine::{AdminRequest, ExchangeSpec};
use tanda_wire::amqp::Value;

use crate::world::{World, durable, table};

#[test]
fn durable_exchanges_and_bindings_between_durable_things_stay() {
    let mut w = World::new();
    let spec = ExchangeSpec {
        internal: true,
        args: table(&[("alternate-exchange", Value::text("amq.fanout"))]).into(),
        ..durable("d", "topic")
    };
    assert_eq!(w.declare(spec.clone()), Ok(()));
    let transient = ExchangeSpec {
        durable: false,
        ..durable("t", "topic")
    };
    assert_eq!(w.declare(transient), Ok(()));
    for (from, to) in [
        ("d", "q1"),
        ("d", "t"),
        ("t", "d"),
        ("t", "q2"),
        ("amq.topic", "d"),
    ] {
        w.bind(from, to, "k.#");
    }
    let args = [("b", Value::I32(1)), ("a", Value::Void)];
    assert_eq!(w.try_bind("d", "q1", "k.#", &args), Ok(()));
    let left = ["amq.topic -k.#-> d", "d -k.#-> q1", "d -k.#-> q1 with args"];
    for restart in [true, false] {
        if restart {
            w.h.restart(0);
        } else {
            w.h.take_snapshot();
            w.h.restart(0);
        }
        assert_eq!(w.exchanges(), ["d"]);
        assert_eq!(w.bindings(), left);
        // It is as it was declared.
        assert_eq!(w.declare(spec.clone()), Ok(()));
        assert_eq!(w.to("amq.topic", "k.x"), [1]);
    }
}

#[test]
fn an_answer_waits_for_what_was_written() {
    let mut w = World::new();
    let ask = |w: &mut World, request| {
        let reply = tanda_engine::ReplyTo {
            conn: crate::harness::CONN,
            token: 77,
        };
        let out = w.h.handle(tanda_engine::Request::Admin { reply, request });
        assert_eq!(out[0].after, w.h.journal.end);
        w.h.journal.records.len()
    };
    let declare = || AdminRequest::DeclareExchange(Box::new(durable("x", "direct")));
    let before = w.h.journal.records.len();
    assert_eq!(ask(&mut w, declare()), before + 1);
    assert_eq!(ask(&mut w, declare()), before + 1, "nothing changed");
    let bind = || AdminRequest::Bind(crate::world::binding("x", "q1", "k", &[]));
    assert_eq!(ask(&mut w, bind()), before + 2);
    assert_eq!(ask(&mut w, bind()), before + 2);
    let unbind = || AdminRequest::Unbind(crate::world::binding("x", "q1", "k", &[]));
    assert_eq!(ask(&mut w, unbind()), before + 3);
    assert_eq!(ask(&mut w, unbind()), before + 3);
}

/// The snapshot is taken in slices: it may know more than its position, and the records after that
/// are applied to it again.
#[test]
fn a_snapshot_taken_while_bindings_change_comes_to_the_same() {
    for slice in 1..40 {
        let mut w = World::new();
        let auto = ExchangeSpec {
            auto_delete: true,
            ..durable("auto", "fanout")
        };
        assert_eq!(w.declare(auto), Ok(()));
        w.exchange("x", "topic");
        w.exchange("old", "direct");
        w.bind("auto", "q1", "b");
        w.bind("x", "q1", "1");
        w.bind("x", "q2", "2");
        let from = w.h.engine.begin_capture(w.h.now, &w.h.journal);
        let mut records = Vec::new();
        let mut done = w.h.engine.capture_slice(slice, &mut records);
        let mut slices = |w: &mut World| {
            done = done || w.h.engine.capture_slice(1, &mut records);
        };
        // Bound again after it was gone, while another one holds the exchange.
        w.bind("auto", "q2", "e");
        slices(&mut w);
        assert_eq!(w.unbind("auto", "q2", "e", &[]), Ok(()));
        slices(&mut w);
        w.bind("auto", "q2", "e");
        assert_eq!(w.unbind("auto", "q1", "b", &[]), Ok(()));
        slices(&mut w);
        assert_eq!(w.unbind("x", "q1", "1", &[]), Ok(()));
        assert_eq!(w.delete("old", false), Ok(()));
        slices(&mut w);
        // Of the same name as one that is gone.
        w.exchange("old", "fanout");
        w.bind("old", "q3", "");
        slices(&mut w);
        w.delete_queue("q4");
        while !w.h.engine.capture_slice(1, &mut records) {}
        let expected = (w.exchanges(), w.bindings());
        w.h.restart_from_snapshot(from, &records, 0);
        assert_eq!((w.exchanges(), w.bindings()), expected, "slices of {slice}");
        assert_eq!(w.to("old", "any"), [3]);
        assert_eq!(w.to("auto", "any"), [2]);
    }
}
