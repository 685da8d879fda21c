//! Exchanges, queues and bindings.

use bytes::Bytes;
use tanda_engine::{
    AdminReply, AdminRequest, BindingSpec, DeclareQueue, Destination, Event, ExchangeSpec, Got,
    Request, TopologyCode,
};
use tanda_wire::amqp::{Method, Table, Value, basic, channel, exchange, queue};

use super::{Peer, VHOST, declared, frame, line, short, table, topology_error};

/// The request of a method, and what its answer is.
fn asks<'a>(
    method: impl Into<Method<'a>>,
    reply: AdminReply,
    answer: impl Into<Method<'a>>,
) -> AdminRequest {
    let mut peer = Peer::open();
    peer.say(1, method);
    let (token, request) = peer.asked();
    peer.admin(token, reply);
    assert_eq!(peer.lines(), [line(1, answer)]);
    request
}

#[test]
fn exchanges_are_declared_and_deleted() {
    let arguments = table(&[("x", Value::Bool(true))]);
    let declare = exchange::Declare {
        exchange: short("ex"),
        exchange_type: short("topic"),
        durable: true,
        auto_delete: true,
        internal: true,
        arguments: Table::new(&arguments).unwrap(),
        ..exchange::Declare::default()
    };
    let done = || AdminReply::ExchangeDeclared(Ok(()));
    let request = asks(declare, done(), exchange::DeclareOk {});
    let expected = ExchangeSpec {
        vhost: VHOST,
        name: "ex".to_owned(),
        kind: "topic".to_owned(),
        durable: true,
        auto_delete: true,
        internal: true,
        passive: false,
        args: Bytes::from(arguments.clone()),
    };
    let AdminRequest::DeclareExchange(asked) = request else {
        panic!("{request:?}")
    };
    assert_eq!(*asked, expected);
    let delete = exchange::Delete {
        exchange: short("ex"),
        if_unused: true,
        no_wait: false,
    };
    let request = asks(
        delete,
        AdminReply::ExchangeDeleted(Ok(())),
        exchange::DeleteOk {},
    );
    assert_eq!(
        format!("{request:?}"),
        "DeleteExchange { vhost: VhostId(3), name: \"ex\", if_unused: true }"
    );
}

#[test]
fn exchanges_are_bound_to_exchanges() {
    let arguments = table(&[("x", Value::Bool(true))]);
    let bind = exchange::Bind {
        destination: short("to"),
        source: short("from"),
        routing_key: short("key"),
        no_wait: false,
        arguments: Table::new(&arguments).unwrap(),
    };
    let expected = BindingSpec {
        vhost: VHOST,
        source: "from".to_owned(),
        destination: Destination::Exchange("to".to_owned()),
        key: "key".to_owned(),
        args: Bytes::from(arguments.clone()),
    };
    let request = asks(bind, AdminReply::Bound(Ok(())), exchange::BindOk {});
    let AdminRequest::Bind(asked) = request else {
        panic!("{request:?}")
    };
    assert_eq!(*asked, expected);
    let unbind = exchange::Unbind {
        destination: bind.destination,
        source: bind.source,
        routing_key: bind.routing_key,
        no_wait: false,
        arguments: bind.arguments,
    };
    let request = asks(unbind, AdminReply::Unbound(Ok(())), exchange::UnbindOk {});
    let AdminRequest::Unbind(asked) = request else {
        panic!("{request:?}")
    };
    assert_eq!(*asked, expected);
}

#[test]
fn queues_are_declared() {
    let declare = queue::Declare {
        queue: short("q"),
        durable: true,
        exclusive: true,
        auto_delete: true,
        ..queue::Declare::default()
    };
    let declare_ok = queue::DeclareOk {
        queue: short("q"),
        message_count: 4,
        consumer_count: 2,
    };
    let request = asks(declare, declared("q", 4, 2), declare_ok);
    let expected = DeclareQueue {
        vhost: VHOST,
        name: "q".to_owned(),
        durable: true,
        exclusive: true,
        auto_delete: true,
        passive: false,
        args: Bytes::new(),
    };
    let AdminRequest::DeclareQueue(asked) = request else {
        panic!("{request:?}")
    };
    assert_eq!(*asked, expected);
}

#[test]
fn queues_are_bound_purged_and_deleted() {
    let bind = queue::Bind {
        queue: short("q"),
        exchange: short("ex"),
        routing_key: short("key"),
        ..queue::Bind::default()
    };
    let expected = BindingSpec {
        vhost: VHOST,
        source: "ex".to_owned(),
        destination: Destination::Queue("q".to_owned()),
        key: "key".to_owned(),
        args: Bytes::new(),
    };
    let request = asks(bind, AdminReply::Bound(Ok(())), queue::BindOk {});
    let AdminRequest::Bind(asked) = request else {
        panic!("{request:?}")
    };
    assert_eq!(*asked, expected);
    let unbind = queue::Unbind {
        queue: short("q"),
        exchange: short("ex"),
        routing_key: short("key"),
        ..queue::Unbind::default()
    };
    let request = asks(unbind, AdminReply::Unbound(Ok(())), queue::UnbindOk {});
    let AdminRequest::Unbind(asked) = request else {
        panic!("{request:?}")
    };
    assert_eq!(*asked, expected);
    let purge = queue::Purge {
        queue: short("q"),
        no_wait: false,
    };
    let request = asks(
        purge,
        AdminReply::QueuePurged(Ok(7)),
        queue::PurgeOk { message_count: 7 },
    );
    assert!(matches!(request, AdminRequest::Purge { name, .. } if name == "q"));
    let delete = queue::Delete {
        queue: short("q"),
        if_unused: true,
        if_empty: true,
        no_wait: false,
    };
    let request = asks(
        delete,
        AdminReply::QueueRemoved(Ok(3)),
        queue::DeleteOk { message_count: 3 },
    );
    assert_eq!(
        format!("{request:?}"),
        "RemoveQueue { vhost: VhostId(3), name: \"q\", if_unused: true, if_empty: true }"
    );
}

#[test]
fn every_refusal_has_its_code_and_reach() {
    let cases = [
        (TopologyCode::AccessRefused, 403, "ACCESS_REFUSED", true),
        (TopologyCode::NotFound, 404, "NOT_FOUND", true),
        (TopologyCode::ResourceLocked, 405, "RESOURCE_LOCKED", true),
        (
            TopologyCode::PreconditionFailed,
            406,
            "PRECONDITION_FAILED",
            true,
        ),
        (TopologyCode::NotAllowed, 530, "NOT_ALLOWED", false),
        (TopologyCode::NotImplemented, 540, "NOT_IMPLEMENTED", false),
        (TopologyCode::ResourceError, 506, "RESOURCE_ERROR", false),
        (TopologyCode::Storage, 506, "RESOURCE_ERROR", false),
        (TopologyCode::Internal, 541, "INTERNAL_ERROR", false),
        (TopologyCode::CommandInvalid, 503, "COMMAND_INVALID", false),
    ];
    for (code, number, name, is_channels) in cases {
        let mut peer = Peer::open();
        peer.say(1, exchange::Declare::default());
        let (token, _) = peer.asked();
        peer.admin(
            token,
            AdminReply::ExchangeDeclared(topology_error(code, "why")),
        );
        let text = format!("{name} - why");
        if is_channels {
            peer.expect_channel_close(1, number, &text, (40, 10));
        } else {
            peer.expect_connection_close(number, &text, (40, 10));
        }
    }
}

#[test]
fn pitfall_21_a_passive_declare_asks_only_for_the_name() {
    let declare = queue::Declare {
        queue: short("q"),
        passive: true,
        ..queue::Declare::default()
    };
    let declare_ok = queue::DeclareOk {
        queue: short("q"),
        message_count: 1,
        consumer_count: 0,
    };
    let request = asks(declare, declared("q", 1, 0), declare_ok);
    assert!(matches!(request, AdminRequest::DeclareQueue(ref it) if it.passive));
}

#[test]
fn pitfall_29_line_breaks_are_taken_out_of_names_and_other_bytes_are_no_name() {
    let declare = queue::Declare {
        queue: short("ab\r\ncd"),
        ..queue::Declare::default()
    };
    let declare_ok = queue::DeclareOk {
        queue: short("abcd"),
        ..queue::DeclareOk::default()
    };
    let request = asks(declare, declared("abcd", 0, 0), declare_ok);
    assert!(matches!(request, AdminRequest::DeclareQueue(ref it) if it.name == "abcd"));
    let mut peer = Peer::open();
    let bad = queue::Declare {
        queue: tanda_wire::amqp::ShortStr::new(b"\xFF\xFE").unwrap(),
        ..queue::Declare::default()
    };
    peer.say(1, bad);
    let lines = peer.lines();
    assert!(lines[0].contains("reply_code: 501"), "{lines:?}");
    let long = "x".repeat(255);
    let declare = queue::Declare {
        queue: short(&long),
        ..queue::Declare::default()
    };
    let declare_ok = queue::DeclareOk {
        queue: short(&long),
        ..queue::DeclareOk::default()
    };
    asks(declare, declared(&long, 0, 0), declare_ok);
}

#[test]
fn pitfall_30_an_empty_name_is_the_queue_declared_last() {
    let mut peer = Peer::open();
    let purge = queue::Purge::default();
    peer.say(1, purge);
    let text = "NOT_FOUND - no previously declared queue";
    peer.expect_channel_close(1, 404, text, (50, 30));
    let passive = queue::Declare {
        passive: true,
        ..queue::Declare::default()
    };
    peer.say(1, passive);
    peer.expect_channel_close(1, 404, "NOT_FOUND - no queue '' in vhost '/'", (50, 10));
    peer.say(1, queue::Declare::default());
    let (token, request) = peer.asked();
    assert!(matches!(request, AdminRequest::DeclareQueue(ref it) if it.name.is_empty()));
    peer.admin(token, declared("amq.gen-1", 0, 0));
    peer.bytes();
    let bind = queue::Bind {
        exchange: short("ex"),
        no_wait: true,
        ..queue::Bind::default()
    };
    peer.send(&[frame(1, bind), frame(1, purge)].concat());
    let (token, request) = peer.asked();
    let AdminRequest::Bind(bound) = request else {
        panic!("{request:?}")
    };
    // Without a queue and a key, both are the queue's name.
    assert_eq!(
        bound.destination,
        Destination::Queue("amq.gen-1".to_owned())
    );
    assert_eq!(bound.key, "amq.gen-1");
    peer.admin(token, AdminReply::Bound(Ok(())));
    assert_eq!(peer.bytes(), b"");
    let (_, request) = peer.asked();
    assert!(matches!(request, AdminRequest::Purge { name, .. } if name == "amq.gen-1"));
}

#[test]
fn pitfall_30_every_method_knows_the_queue_declared_last() {
    let mut peer = Peer::open();
    for method in [
        frame(1, basic::Consume::default()),
        frame(1, basic::Get::default()),
        frame(1, queue::Delete::default()),
        frame(1, queue::Unbind::default()),
    ] {
        peer.send(&method);
        let lines = peer.lines();
        assert!(
            lines[0].contains("NOT_FOUND - no previously declared queue"),
            "{lines:?}"
        );
        peer.say(1, channel::CloseOk {});
        peer.open_channel(1);
    }
    peer.say(1, queue::Declare::default());
    let (token, _) = peer.asked();
    peer.admin(token, declared("amq.gen-1", 0, 0));
    peer.bytes();
    peer.say(1, basic::Consume::default());
    let request = peer.request();
    let Request::Subscribe { sub, spec } = request else {
        panic!("{request:?}")
    };
    assert_eq!(spec.queue, "amq.gen-1");
    let token = sub.token;
    peer.event(Event::Subscribed { token, consumer: 1 });
    peer.say(1, basic::Get::default());
    let request = peer.request();
    let Request::Get { reply, spec } = request else {
        panic!("{request:?}")
    };
    assert_eq!(spec.queue, "amq.gen-1");
    let (token, result) = (reply.token, Ok(Got::default()));
    peer.event(Event::Got { token, result });
    peer.say(1, queue::Delete::default());
    let (_, request) = peer.asked();
    assert!(matches!(request, AdminRequest::RemoveQueue { name, .. } if name == "amq.gen-1"));
}

#[test]
fn pitfall_65_no_wait_says_nothing_but_errors() {
    let declare = queue::Declare {
        queue: short("q"),
        no_wait: true,
        ..queue::Declare::default()
    };
    let mut peer = Peer::open();
    peer.say(1, declare);
    let (token, _) = peer.asked();
    peer.admin(token, declared("q", 0, 0));
    assert_eq!(peer.bytes(), b"");
    peer.say(1, declare);
    let (token, _) = peer.asked();
    let error = topology_error(TopologyCode::PreconditionFailed, "inequivalent arg");
    peer.admin(token, AdminReply::QueueDeclared(error));
    let text = "PRECONDITION_FAILED - inequivalent arg";
    peer.expect_channel_close(1, 406, text, (50, 10));
}
