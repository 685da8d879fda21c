//! What is declared, deleted, bound and unbound, and the texts of refusals.

use tanda_engine::{ExchangeSpec, TopologyCode};
use tanda_wire::amqp::Value;

use crate::world::{World, durable, table};

fn refused<T>(code: TopologyCode, text: &str) -> Result<T, (TopologyCode, String)> {
    Err((code, text.to_owned()))
}

/// Pitfall 21: a passive declaration looks at the name only.
#[test]
fn a_passive_declaration_ignores_everything_but_the_name() {
    let mut w = World::new();
    w.exchange("x", "topic");
    let passive = ExchangeSpec {
        passive: true,
        internal: true,
        ..durable("x", "nonsense")
    };
    assert_eq!(w.declare(passive.clone()), Ok(()));
    let name = "amq.topic".to_owned();
    let there = ExchangeSpec {
        name,
        ..passive.clone()
    };
    assert_eq!(w.declare(there), Ok(()));
    let missing = ExchangeSpec {
        name: "y".to_owned(),
        ..passive
    };
    assert_eq!(
        w.declare(missing),
        refused(TopologyCode::NotFound, "no exchange 'y' in vhost '/'")
    );
}

/// Pitfall 22.
#[test]
fn a_declaration_that_differs_is_refused_in_rabbitmqs_words() {
    let mut w = World::new();
    let alternate = |value| table(&[("alternate-exchange", value), ("x-unknown", Value::I32(1))]);
    let spec = ExchangeSpec {
        args: alternate(Value::text("a")).into(),
        ..durable("x", "direct")
    };
    assert_eq!(w.declare(spec.clone()), Ok(()));
    assert_eq!(w.declare(spec.clone()), Ok(()));
    let differs = |what: &str| {
        let text = format!("inequivalent arg {what}");
        Err((TopologyCode::PreconditionFailed, text))
    };
    let kind = ExchangeSpec {
        kind: "fanout".to_owned(),
        ..spec.clone()
    };
    assert_eq!(
        w.declare(kind),
        differs("'type' for exchange 'x' in vhost '/': received 'fanout' but current is 'direct'")
    );
    let transient = ExchangeSpec {
        durable: false,
        ..spec.clone()
    };
    assert_eq!(
        w.declare(transient),
        differs("'durable' for exchange 'x' in vhost '/': received 'false' but current is 'true'")
    );
    let auto_delete = ExchangeSpec {
        auto_delete: true,
        ..spec.clone()
    };
    assert_eq!(
        w.declare(auto_delete),
        differs(
            "'auto_delete' for exchange 'x' in vhost '/': received 'true' but current is 'false'"
        )
    );
    let internal = ExchangeSpec {
        internal: true,
        ..spec
    };
    assert_eq!(
        w.declare(internal),
        differs("'internal' for exchange 'x' in vhost '/': received 'true' but current is 'false'")
    );
}

/// Pitfalls 22 and 23.
#[test]
fn arguments_that_differ_are_refused_and_unknown_ones_are_not_compared() {
    let mut w = World::new();
    let alternate = |value| table(&[("alternate-exchange", value), ("x-unknown", Value::I32(1))]);
    let spec = ExchangeSpec {
        args: alternate(Value::text("a")).into(),
        ..durable("x", "direct")
    };
    assert_eq!(w.declare(spec.clone()), Ok(()));
    let differs = |what: &str| {
        let text = format!("inequivalent arg {what}");
        Err((TopologyCode::PreconditionFailed, text))
    };
    let other = ExchangeSpec {
        args: alternate(Value::text("b")).into(),
        ..spec.clone()
    };
    assert_eq!(
        w.declare(other),
        differs(
            "'alternate-exchange' for exchange 'x' in vhost '/': received 'b' but current is 'a'"
        )
    );
    let none = ExchangeSpec {
        args: table(&[]).into(),
        ..spec.clone()
    };
    assert_eq!(
        w.declare(none),
        differs(
            "'alternate-exchange' for exchange 'x' in vhost '/': received none but current is the \
             value 'a' of type 'longstr'"
        )
    );
    // Pitfall 23: of what is not known nothing is compared.
    let unknown = ExchangeSpec {
        args: table(&[("alternate-exchange", Value::text("a"))]).into(),
        ..spec
    };
    assert_eq!(w.declare(unknown), Ok(()));
}

/// Pitfalls 25 and 28.
#[test]
fn reserved_names_and_unknown_types_are_refused() {
    let mut w = World::new();
    let default = "operation not permitted on the default exchange";
    let access = TopologyCode::AccessRefused;
    assert_eq!(w.declare(durable("", "direct")), refused(access, default));
    assert_eq!(w.delete("", false), refused(access, default));
    assert_eq!(w.try_bind("", "q1", "k", &[]), refused(access, default));
    assert_eq!(w.unbind("", "q1", "k", &[]), refused(access, default));
    w.exchange("x", "direct");
    assert_eq!(w.try_bind("x", "", "k", &[]), refused(access, default));
    assert_eq!(
        w.declare(durable("amq.mine", "direct")),
        refused(
            access,
            "exchange name 'amq.mine' contains reserved prefix 'amq.*'"
        )
    );
    // What is there may be declared as it is.
    assert_eq!(w.declare(durable("amq.fanout", "fanout")), Ok(()));
    assert_eq!(
        w.delete("amq.fanout", false),
        refused(
            access,
            "deletion of system exchange 'amq.fanout' in vhost '/' not allowed"
        )
    );
    assert_eq!(
        w.declare(durable("y", "zzz")),
        refused(
            TopologyCode::PreconditionFailed,
            "unknown exchange type 'zzz'"
        )
    );
    let spec = ExchangeSpec {
        args: table(&[("alternate-exchange", Value::I32(1))]).into(),
        ..durable("y", "direct")
    };
    assert_eq!(
        w.declare(spec),
        refused(
            TopologyCode::PreconditionFailed,
            "invalid type 'signedint' for arg 'alternate-exchange' in exchange 'y' in vhost '/'"
        )
    );
    assert_eq!(w.exchanges(), ["x"], "what is refused leaves nothing");
}

/// Pitfall 26.
#[test]
fn what_is_not_there_is_deleted_and_unbound_but_not_bound() {
    let mut w = World::new();
    assert_eq!(w.delete("x", false), Ok(()));
    assert_eq!(w.unbind("x", "q1", "k", &[]), Ok(()));
    let missing = TopologyCode::NotFound;
    assert_eq!(
        w.try_bind("x", "q9", "k", &[]),
        refused(missing, "no exchange 'x' in vhost '/'")
    );
    w.exchange("x", "direct");
    assert_eq!(
        w.try_bind("x", "q9", "k", &[]),
        refused(missing, "no queue 'q9' in vhost '/'")
    );
    assert_eq!(
        w.try_bind("x", "y", "k", &[]),
        refused(missing, "no exchange 'y' in vhost '/'")
    );
    assert_eq!(w.unbind("x", "q9", "k", &[]), Ok(()));
    assert_eq!(w.unbind("x", "q1", "k", &[]), Ok(()));
    assert_eq!(w.bindings(), [""; 0]);
}

/// Pitfall 27.
#[test]
fn an_exchange_in_use_is_not_deleted_if_it_must_be_unused() {
    let mut w = World::new();
    w.exchange("x", "direct");
    w.bind("x", "q1", "k");
    assert_eq!(
        w.delete("x", true),
        refused(
            TopologyCode::PreconditionFailed,
            "exchange 'x' in vhost '/' in use"
        )
    );
    assert_eq!(w.unbind("x", "q1", "k", &[]), Ok(()));
    assert_eq!(w.delete("x", true), Ok(()));
    assert_eq!(w.exchanges(), [""; 0]);
}

/// Pitfall 33: bindings that differ in their arguments only are two, whatever their order.
#[test]
fn bindings_are_distinct_by_their_arguments() {
    let mut w = World::new();
    w.exchange("x", "direct");
    let (a, b) = (("a", Value::I32(1)), ("b", Value::text("2")));
    for args in [&[][..], &[a, b], &[b, a], &[a]] {
        assert_eq!(w.try_bind("x", "q1", "k", args), Ok(()));
    }
    assert_eq!(w.bindings().len(), 3);
    assert_eq!(w.to("x", "k"), [1]);
    assert_eq!(w.unbind("x", "q1", "k", &[]), Ok(()));
    assert_eq!(w.unbind("x", "q1", "k", &[b]), Ok(()));
    assert_eq!(w.bindings().len(), 2);
    assert_eq!(w.to("x", "k"), [1]);
    assert_eq!(w.unbind("x", "q1", "k", &[b, a]), Ok(()));
    assert_eq!(w.unbind("x", "q1", "k", &[a]), Ok(()));
    assert_eq!(w.to("x", "k"), [0; 0]);
}

/// Pitfall 35: how a binding of a headers exchange must say to match.
#[test]
fn an_invalid_way_to_match_headers_is_refused() {
    let mut w = World::new();
    let precondition = TopologyCode::PreconditionFailed;
    assert_eq!(
        w.try_bind("amq.headers", "q1", "", &[("x-match", Value::text("some"))]),
        refused(
            precondition,
            "Invalid x-match field value <<\"some\">>; expected all, any, all-with-x, or any-with-x"
        )
    );
    assert_eq!(
        w.try_bind("amq.headers", "q1", "", &[("x-match", Value::I32(1))]),
        refused(
            precondition,
            "Invalid x-match field type signedint (value 1); expected longstr"
        )
    );
    assert_eq!(w.bindings(), [""; 0]);
    // Other kinds of exchanges do not care.
    let any = [("x-match", Value::I32(1))];
    assert_eq!(w.try_bind("amq.direct", "q1", "k", &any), Ok(()));
}

#[test]
fn a_dead_letter_queue_of_fila_cannot_be_bound_or_published_to() {
    let mut w = World::new();
    assert_eq!(
        w.try_bind("amq.direct", "q1.dlq", "k", &[]),
        refused(
            TopologyCode::AccessRefused,
            "queue 'q1.dlq' in vhost '/' takes the dead letters of one queue only"
        )
    );
    let msg = crate::world::Msg {
        key: "q1.dlq",
        ..Default::default()
    };
    let refused = tanda_engine::PublishError::ReservedQueueName;
    assert_eq!(
        w.publish(&msg).0,
        tanda_engine::PublishResult::Refused(refused)
    );
}

#[test]
fn arguments_that_are_no_table_are_refused() {
    let mut w = World::new();
    let spec = ExchangeSpec {
        args: bytes::Bytes::from_static(b"\x03abcU"),
        ..durable("x", "direct")
    };
    let (code, text) = w.declare(spec).unwrap_err();
    assert_eq!(code, TopologyCode::PreconditionFailed);
    assert!(text.starts_with("invalid arguments: "), "{text}");
    let mut spec = crate::world::binding("amq.direct", "q1", "k", &[]);
    spec.args = vec![0; 70_000].into();
    let (code, text) = w.ask(tanda_engine::AdminRequest::Bind(spec)).unwrap_err();
    assert_eq!(code, TopologyCode::PreconditionFailed);
    assert_eq!(text, "arguments of 70000 bytes, more than 65536");
}
