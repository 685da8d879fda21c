//! How much there may be, and a full disk.

use tanda_engine::{AdminRequest, EngineConfig, ExchangeSpec, Limits, TopologyCode};

use crate::world::{World, durable};

#[test]
fn limits_refuse_what_comes_on_top() {
    let limits = Limits {
        exchanges_max: 6,
        bindings_max: 2,
        vhosts_max: 2,
        ..Limits::default()
    };
    let mut w = World::with(EngineConfig {
        limits,
        ..EngineConfig::default()
    });
    w.exchange("x", "fanout");
    let (code, text) = w.declare(durable("y", "fanout")).unwrap_err();
    assert_eq!(code, TopologyCode::PreconditionFailed);
    let expected = "cannot declare exchange 'y' in vhost '/': exchange limit of 6 \
                    (limits.exchanges_max) is reached";
    assert_eq!(text, expected);
    w.bind("x", "q1", "");
    w.bind("x", "q2", "");
    // What is there may be bound again.
    w.bind("x", "q2", "");
    let (code, text) = w.try_bind("x", "q3", "", &[]).unwrap_err();
    assert_eq!(code, TopologyCode::ResourceError);
    let expected = "cannot bind to exchange 'x' in vhost '/': binding limit of 2 \
                    (limits.bindings_max) is reached";
    assert_eq!(text, expected);
    let vhost = |name: &str| AdminRequest::CreateVhost {
        name: name.to_owned(),
    };
    assert_eq!(w.ask(vhost("a")), Ok(()));
    let (code, text) = w.ask(vhost("b")).unwrap_err();
    assert_eq!(code, TopologyCode::ResourceError);
    let expected = "cannot create vhost 'b': vhost limit of 2 (limits.vhosts_max) is reached";
    assert_eq!(text, expected);
    assert_eq!(w.ask(vhost("a")), Ok(()));
}

#[test]
fn names_and_keys_are_as_long_as_amqp_has_them() {
    let mut w = World::new();
    let (long, longer) = ("n".repeat(255), "n".repeat(256));
    w.exchange(&long, "direct");
    w.bind(&long, "q1", &long);
    assert_eq!(w.to(&long, &long), [1]);
    let code = |result: crate::world::Done| result.unwrap_err().0;
    let precondition = TopologyCode::PreconditionFailed;
    assert_eq!(code(w.declare(durable(&longer, "direct"))), precondition);
    assert_eq!(code(w.try_bind(&long, "q1", &longer, &[])), precondition);
    let name = longer;
    assert_eq!(
        code(w.ask(AdminRequest::CreateVhost { name })),
        precondition
    );
}

#[test]
fn a_full_disk_refuses_what_would_be_written() {
    let mut w = World::new();
    w.exchange("x", "direct");
    w.bind("x", "q1", "k");
    w.h.engine.set_storage_full(true);
    let code = |result: crate::world::Done| result.unwrap_err().0;
    assert_eq!(
        code(w.declare(durable("y", "direct"))),
        TopologyCode::Storage
    );
    assert_eq!(code(w.try_bind("x", "q2", "k", &[])), TopologyCode::Storage);
    let transient = ExchangeSpec {
        durable: false,
        ..durable("y", "direct")
    };
    assert_eq!(w.declare(transient), Ok(()));
    assert_eq!(w.try_bind("y", "q2", "k", &[]), Ok(()));
    // Room is made also now.
    assert_eq!(w.unbind("x", "q1", "k", &[]), Ok(()));
    assert_eq!(w.delete("x", false), Ok(()));
    assert_eq!(w.exchanges(), ["y"]);
}
