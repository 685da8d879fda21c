//! `declare_exchange` to `unbind`, and how they are answered.

use tanda_engine::{
    AdminReply, AdminRequest, BindingSpec, DeclareQueue as Declare, Destination, ExchangeSpec,
    TopologyCode,
};
use tanda_wire::amqp::{ShortStr, TableWriter, Value as Amqp};
use tanda_wire::firemq::topology::{
    Bind, DeclareExchange, DeclareQueue, DeleteExchange, DeleteQueue, PurgeQueue, Unbind,
};
use tanda_wire::firemq::{Header, RawMap, Value};

use super::{Peer, VHOST, assert_asked, declared, map, message, topology_error};

/// A request that is refused by the engine is answered with this.
fn expect_refused<'a>(
    request: &impl Header<'a>,
    reply: fn(tanda_engine::TopologyError) -> AdminReply,
    code: TopologyCode,
    line: &str,
) {
    let mut peer = Peer::open();
    peer.say(request);
    let (token, _) = peer.asked();
    let error = topology_error::<()>(code, "text").unwrap_err();
    peer.admin(token, reply(error));
    assert_eq!(peer.lines(), [line]);
    assert!(!peer.session.is_closing());
}

#[test]
fn declare_exchange_is_answered_with_ok() {
    let mut peer = Peer::open();
    let args = map(&[("alternate-exchange", Value::Str("other"))]);
    let declare = DeclareExchange {
        rid: 1,
        name: "ex\r\n",
        kind: "topic",
        durable: true,
        auto_delete: true,
        internal: true,
        passive: false,
        args: RawMap::decode(&args).unwrap(),
    };
    peer.say(&declare);
    let (token, request) = peer.asked();
    let mut args = Vec::new();
    let other = Amqp::text("other");
    TableWriter::new(&mut args).value(ShortStr::clip("alternate-exchange"), &other);
    let spec = ExchangeSpec {
        vhost: VHOST,
        name: "ex".to_owned(),
        kind: "topic".to_owned(),
        durable: true,
        auto_delete: true,
        internal: true,
        passive: false,
        args: args.into(),
    };
    assert_asked(&request, &AdminRequest::DeclareExchange(Box::new(spec)));
    assert_eq!(peer.bytes(), b"");
    peer.admin(token, AdminReply::ExchangeDeclared(Ok(())));
    assert_eq!(peer.lines(), ["ok rid=1"]);
}

#[test]
fn a_redeclaration_that_differs_is_406() {
    let declare = DeclareExchange {
        rid: 2,
        ..DeclareExchange::default()
    };
    let code = TopologyCode::PreconditionFailed;
    let line = "error rid=2 code=406 msg=text";
    expect_refused(
        &declare,
        |error| AdminReply::ExchangeDeclared(Err(error)),
        code,
        line,
    );
    let declare = DeclareQueue {
        rid: 2,
        ..DeclareQueue::default()
    };
    expect_refused(
        &declare,
        |error| AdminReply::QueueDeclared(Err(error)),
        code,
        line,
    );
}

#[test]
fn every_refusal_of_the_engine_has_its_code_and_is_not_fatal() {
    let purge = PurgeQueue { rid: 3, name: "q" };
    for (code, number) in [
        (TopologyCode::AccessRefused, 403),
        (TopologyCode::NotFound, 404),
        (TopologyCode::ResourceLocked, 405),
        (TopologyCode::PreconditionFailed, 406),
        (TopologyCode::CommandInvalid, 503),
        (TopologyCode::ResourceError, 506),
        (TopologyCode::Storage, 506),
        (TopologyCode::NotAllowed, 530),
        (TopologyCode::NotImplemented, 540),
        (TopologyCode::Internal, 541),
    ] {
        let line = format!("error rid=3 code={number} msg=text");
        let reply = |error| AdminReply::QueuePurged(Err(error));
        expect_refused(&purge, reply, code, &line);
    }
}

#[test]
fn delete_exchange_is_answered_with_ok_and_a_built_in_one_is_530() {
    let mut peer = Peer::open();
    let delete = DeleteExchange {
        rid: 4,
        name: "ex",
        if_unused: true,
    };
    peer.say(&delete);
    let (token, request) = peer.asked();
    let expected = AdminRequest::DeleteExchange {
        vhost: VHOST,
        name: "ex".to_owned(),
        if_unused: true,
    };
    assert_asked(&request, &expected);
    peer.admin(token, AdminReply::ExchangeDeleted(Ok(())));
    assert_eq!(peer.lines(), ["ok rid=4"]);
    let reply = |error| AdminReply::ExchangeDeleted(Err(error));
    let line = "error rid=4 code=530 msg=text";
    expect_refused(&delete, reply, TopologyCode::AccessRefused, line);
    let line = "error rid=4 code=406 msg=text";
    expect_refused(&delete, reply, TopologyCode::PreconditionFailed, line);
}

#[test]
fn deleting_or_unbinding_what_is_not_there_is_ok_and_purging_it_404() {
    let missing = TopologyCode::NotFound;
    let delete = DeleteExchange {
        rid: 5,
        ..DeleteExchange::default()
    };
    let reply = |error| AdminReply::ExchangeDeleted(Err(error));
    expect_refused(&delete, reply, missing, "ok rid=5");
    let delete = DeleteQueue {
        rid: 5,
        ..DeleteQueue::default()
    };
    let reply = |error| AdminReply::QueueRemoved(Err(error));
    expect_refused(&delete, reply, missing, "ok rid=5");
    let unbind = Unbind {
        rid: 5,
        queue: "q",
        ..Unbind::default()
    };
    let reply = |error| AdminReply::Unbound(Err(error));
    expect_refused(&unbind, reply, missing, "ok rid=5");
    let purge = PurgeQueue { rid: 5, name: "q" };
    let reply = |error| AdminReply::QueuePurged(Err(error));
    let line = "error rid=5 code=404 msg=text";
    expect_refused(&purge, reply, missing, line);
}

#[test]
fn declare_queue_is_answered_with_name_messages_and_consumers() {
    let mut peer = Peer::open();
    let args = map(&[
        ("x-message-ttl", Value::Uint(60_000)),
        ("x-overflow", Value::Str("reject-publish")),
        ("x-single-active-consumer", Value::Bool(true)),
    ]);
    let declare = DeclareQueue {
        rid: 6,
        name: "orders",
        durable: true,
        exclusive: true,
        auto_delete: true,
        passive: false,
        args: RawMap::decode(&args).unwrap(),
    };
    peer.say(&declare);
    let (token, request) = peer.asked();
    let mut args = Vec::new();
    let mut writer = TableWriter::new(&mut args);
    writer.value(ShortStr::clip("x-message-ttl"), &Amqp::I64(60_000));
    writer.value(ShortStr::clip("x-overflow"), &Amqp::text("reject-publish"));
    let single = ShortStr::clip("x-single-active-consumer");
    writer.value(single, &Amqp::Bool(true));
    let spec = Declare {
        vhost: VHOST,
        name: "orders".to_owned(),
        durable: true,
        exclusive: true,
        auto_delete: true,
        passive: false,
        args: args.into(),
    };
    assert_asked(&request, &AdminRequest::DeclareQueue(Box::new(spec)));
    peer.admin(token, declared("orders", 5, 2));
    let line = "ok rid=6 name=orders messages=5 consumers=2";
    assert_eq!(peer.lines(), [line]);
}

#[test]
fn an_empty_name_is_one_that_the_server_picks() {
    let mut peer = Peer::open();
    let declare = DeclareQueue {
        rid: 7,
        ..DeclareQueue::default()
    };
    peer.say(&declare);
    let (token, request) = peer.asked();
    let AdminRequest::DeclareQueue(spec) = request else {
        panic!("{request:?}")
    };
    assert_eq!((spec.name.as_str(), spec.args.len()), ("", 0));
    peer.admin(token, declared("amq.gen-1", 0, 0));
    assert_eq!(peer.lines(), ["ok rid=7 name=amq.gen-1"]);
    let passive = DeclareQueue {
        rid: 8,
        passive: true,
        ..DeclareQueue::default()
    };
    peer.say(&passive);
    let line = "error rid=8 code=404 msg=no queue '' in vhost '/'";
    assert_eq!(peer.lines(), [line]);
}

#[test]
fn a_passive_declare_is_passed_on_as_one() {
    let mut peer = Peer::open();
    peer.say(&DeclareQueue {
        rid: 1,
        name: "q",
        passive: true,
        ..DeclareQueue::default()
    });
    let (_, request) = peer.asked();
    assert!(matches!(&request, AdminRequest::DeclareQueue(spec) if spec.passive));
    peer.say(&DeclareExchange {
        rid: 1,
        name: "ex",
        passive: true,
        ..DeclareExchange::default()
    });
    let (_, request) = peer.asked();
    assert!(matches!(&request, AdminRequest::DeclareExchange(spec) if spec.passive));
}

#[test]
fn delete_queue_and_purge_queue_are_answered_with_how_many_messages_went() {
    let mut peer = Peer::open();
    let delete = DeleteQueue {
        rid: 9,
        name: "q",
        if_unused: true,
        if_empty: true,
    };
    peer.say(&delete);
    let (token, request) = peer.asked();
    let expected = AdminRequest::RemoveQueue {
        vhost: VHOST,
        name: "q".to_owned(),
        if_unused: true,
        if_empty: true,
    };
    assert_asked(&request, &expected);
    peer.admin(token, AdminReply::QueueRemoved(Ok(3)));
    assert_eq!(peer.lines(), ["ok rid=9 messages=3"]);
    peer.say(&PurgeQueue { rid: 10, name: "q" });
    let (token, request) = peer.asked();
    let name = "q".to_owned();
    assert_asked(&request, &AdminRequest::Purge { vhost: VHOST, name });
    peer.admin(token, AdminReply::QueuePurged(Ok(300)));
    assert_eq!(peer.lines(), ["ok rid=10 messages=300"]);
}

#[test]
fn bind_and_unbind_take_a_queue_or_an_exchange() {
    let args = map(&[("x-match", Value::Str("any"))]);
    let bind = Bind {
        rid: 11,
        exchange: "ex",
        queue: "q",
        to_exchange: "",
        key: "a.#",
        args: RawMap::decode(&args).unwrap(),
    };
    let mut table = Vec::new();
    TableWriter::new(&mut table).value(ShortStr::clip("x-match"), &Amqp::text("any"));
    let spec = BindingSpec {
        vhost: VHOST,
        source: "ex".to_owned(),
        destination: Destination::Queue("q".to_owned()),
        key: "a.#".to_owned(),
        args: table.into(),
    };
    let mut peer = Peer::open();
    peer.say(&bind);
    let (token, request) = peer.asked();
    assert_asked(&request, &AdminRequest::Bind(Box::new(spec)));
    peer.admin(token, AdminReply::Bound(Ok(())));
    assert_eq!(peer.lines(), ["ok rid=11"]);
    let unbind = Unbind {
        rid: 12,
        exchange: "ex",
        to_exchange: "other",
        ..Unbind::default()
    };
    peer.say(&unbind);
    let (token, request) = peer.asked();
    let spec = BindingSpec {
        vhost: VHOST,
        source: "ex".to_owned(),
        destination: Destination::Exchange("other".to_owned()),
        key: String::new(),
        args: bytes::Bytes::new(),
    };
    assert_asked(&request, &AdminRequest::Unbind(Box::new(spec)));
    peer.admin(token, AdminReply::Unbound(Ok(())));
    assert_eq!(peer.lines(), ["ok rid=12"]);
}

#[test]
fn exactly_one_of_queue_and_to_exchange_is_set() {
    let mut peer = Peer::open();
    for (queue, to_exchange) in [("", ""), ("q", "ex")] {
        peer.say(&Bind {
            rid: 13,
            queue,
            to_exchange,
            ..Bind::default()
        });
        peer.say(&Unbind {
            rid: 13,
            queue,
            to_exchange,
            ..Unbind::default()
        });
        let line = "error rid=13 code=406 msg=exactly one of queue and to_exchange is set";
        assert_eq!(peer.lines(), [line, line]);
    }
    assert_eq!(peer.requests().len(), 0);
}

#[test]
fn a_name_that_amqp_cannot_say_is_406() {
    let mut peer = Peer::open();
    let (fits, long) = ("\u{e9}".repeat(127), "x".repeat(256));
    peer.say(&DeclareQueue {
        rid: 14,
        name: &fits,
        ..DeclareQueue::default()
    });
    peer.asked();
    peer.say(&DeclareQueue {
        rid: 14,
        name: &long,
        ..DeclareQueue::default()
    });
    peer.say(&Bind {
        rid: 15,
        queue: "q",
        key: &long,
        ..Bind::default()
    });
    let lines = [
        "error rid=14 code=406 msg=a name has at most 255 bytes, not 256",
        "error rid=15 code=406 msg=a key has at most 255 bytes, not 256",
    ];
    assert_eq!(peer.lines(), lines);
}

#[test]
fn arguments_that_are_too_large_are_406() {
    let mut peer = Peer::open();
    let text = "x".repeat(140_000);
    let args = map(&[("x-note", Value::Str(&text))]);
    peer.say(&DeclareQueue {
        rid: 16,
        args: RawMap::decode(&args).unwrap(),
        ..DeclareQueue::default()
    });
    let lines = peer.lines();
    assert!(
        lines[0].starts_with("error rid=16 code=406 msg=args: "),
        "{lines:?}"
    );
}

#[test]
fn requests_get_exactly_one_reply_in_whatever_order_the_engine_answers() {
    let mut peer = Peer::open();
    for rid in [1, 2, 3] {
        peer.say(&PurgeQueue { rid, name: "q" });
    }
    let mut tokens = Vec::new();
    for request in peer.requests() {
        let tanda_engine::Request::Admin { reply, .. } = request else {
            panic!("{request:?}")
        };
        tokens.push(reply.token);
    }
    for at in [2, 0, 1, 2] {
        peer.admin(tokens[at], AdminReply::QueuePurged(Ok(1)));
    }
    let lines = [
        "ok rid=3 messages=1",
        "ok rid=1 messages=1",
        "ok rid=2 messages=1",
    ];
    assert_eq!(peer.lines(), lines);
}

#[test]
fn a_request_comes_behind_the_messages_before_it() {
    let mut peer = Peer::open();
    let purge = super::frame(&PurgeQueue { rid: 1, name: "q" });
    peer.send(&[message(1, "q", b"x"), purge, message(2, "q", b"y")].concat());
    let requests = peer.requests();
    use tanda_engine::Request::{Admin, Publish};
    assert!(
        matches!(
            &requests[..],
            [Publish { .. }, Admin { .. }, Publish { .. }]
        ),
        "{requests:?}"
    );
}

#[test]
fn a_rid_that_is_left_out_is_0_and_not_repeated() {
    let mut peer = Peer::open();
    peer.say(&PurgeQueue { rid: 0, name: "q" });
    let (token, _) = peer.asked();
    peer.admin(token, AdminReply::QueuePurged(Ok(0)));
    assert_eq!(peer.lines(), ["ok"]);
}
