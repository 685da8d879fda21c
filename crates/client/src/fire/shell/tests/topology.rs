//! Requests: what is sent, and what their replies mean.

use tanda_wire::firemq::message::ToServer;
use tanda_wire::firemq::reply::OkReply;
use tanda_wire::firemq::{Op, RawMap, ReplyCode, Value};

use super::{Network, connect};
use crate::fire::{
    Binding, ConnectError, Exchange, ExchangeKind, Fields, FireClient, Queue, RequestError,
};

#[tokio::test(start_paused = true)]
#[expect(clippy::too_many_lines, reason = "one history of all declarations")]
async fn declarations_carry_all_that_was_said() {
    let (client, mut peer, _network) = connect().await;
    let asking = tokio::spawn(async move {
        let exchange = Exchange::new("e", ExchangeKind::Headers)
            .durable()
            .auto_delete()
            .internal()
            .arguments(Fields::new().set("alternate-exchange", "a"));
        client.declare_exchange(exchange).await.unwrap();
        let queue = Queue::named("q")
            .durable()
            .exclusive()
            .auto_delete()
            .arguments(Fields::new().set("x-message-ttl", 5_u32));
        let declared = client.declare_queue(queue).await.unwrap();
        assert_eq!(
            (
                declared.name.as_str(),
                declared.messages,
                declared.consumers
            ),
            ("q", 4, 2)
        );
        let binding = Binding::to_exchange("e", "other")
            .key("k")
            .arguments(Fields::new().set("x-match", "any"));
        client.bind(binding.clone()).await.unwrap();
        client.unbind(binding).await.unwrap();
        assert_eq!(client.delete_queue("q").await, Ok(4));
        client.delete_unused_exchange("e").await.unwrap();
    });
    let sent = peer.grant(Op::DeclareExchange).await;
    let ToServer::DeclareExchange(exchange) = sent.header() else {
        panic!("{sent:?}")
    };
    assert_eq!((exchange.name, exchange.kind), ("e", "headers"));
    assert!(exchange.durable && exchange.auto_delete && exchange.internal && !exchange.passive);
    assert_eq!(
        exchange.args.find("alternate-exchange"),
        Some(Value::Str("a"))
    );

    let sent = peer.expect(Op::DeclareQueue).await;
    let ToServer::DeclareQueue(queue) = sent.header() else {
        panic!("{sent:?}")
    };
    assert_eq!((queue.name, queue.args.len()), ("q", 1));
    assert!(queue.durable && queue.exclusive && queue.auto_delete && !queue.passive);
    let ok = OkReply {
        rid: sent.rid(),
        name: "q",
        messages: 4,
        consumers: 2,
        empty: false,
    };
    peer.send(&ok).await;

    let sent = peer.grant(Op::Bind).await;
    let ToServer::Bind(bind) = sent.header() else {
        panic!("{sent:?}")
    };
    assert_eq!(
        (bind.exchange, bind.queue, bind.to_exchange),
        ("e", "", "other")
    );
    assert_eq!(
        (bind.key, bind.args.find("x-match")),
        ("k", Some(Value::Str("any")))
    );
    let sent = peer.grant(Op::Unbind).await;
    let ToServer::Unbind(unbind) = sent.header() else {
        panic!("{sent:?}")
    };
    assert_eq!(
        (unbind.key, unbind.args),
        ("k", RawMap::from_checked(bind.args.as_bytes()))
    );
    let sent = peer.expect(Op::DeleteQueue).await;
    let ok = OkReply {
        rid: sent.rid(),
        messages: 4,
        ..OkReply::default()
    };
    peer.send(&ok).await;
    let sent = peer.grant(Op::DeleteExchange).await;
    assert!(matches!(sent.header(), ToServer::DeleteExchange(it) if it.if_unused));
    asking.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_refusal_has_code_and_text() {
    let (client, mut peer, _network) = connect().await;
    let asking = tokio::spawn(async move { client.check_queue("q").await });
    peer.refuse(Op::DeclareQueue, ReplyCode::NotFound).await;
    let error = asking.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "404 not-found: no");
    assert!(!error.retryable());
}

#[tokio::test(start_paused = true)]
async fn a_reply_of_another_kind_fails_the_request() {
    let (client, mut peer, _network) = connect().await;
    let asking = tokio::spawn(async move { client.get("q").await.map(drop) });
    peer.grant(Op::Get).await;
    let error = asking.await.unwrap().unwrap_err();
    assert!(matches!(error, RequestError::InvalidReply { .. }));
    assert!(error.outcome_unknown());
}

#[tokio::test(start_paused = true)]
async fn urls_that_cannot_be_used_are_told_apart() {
    let error = |url: &'static str| async move {
        let (_network, dial) = Network::new();
        let builder = FireClient::builder(url);
        (
            builder.clone().connect().await.unwrap_err(),
            builder.connect_through(dial).await.err(),
        )
    };
    let (given, through) = error("http://host").await;
    assert!(matches!(given, ConnectError::Url(_)));
    assert!(matches!(through, Some(ConnectError::Url(_))));
    let given = FireClient::connect("wss://host/fire").await.unwrap_err();
    assert_eq!(
        given.to_string(),
        "this client does not speak wss://, use fires:// and its port"
    );
    assert!(!given.retryable());
}

#[tokio::test(start_paused = true)]
async fn a_wrong_password_is_refused_and_not_tried_again() {
    let (network, dial) = Network::new();
    let mut peer = network.fire_peer();
    let refusing = async {
        let mut preamble = [0; 4];
        tokio::io::AsyncReadExt::read_exact(&mut peer.stream, &mut preamble)
            .await
            .unwrap();
        let sent = peer.expect(Op::Hello).await;
        let ToServer::Hello(hello) = sent.header() else {
            panic!("{sent:?}")
        };
        assert_eq!(
            (hello.vhost, hello.auth.user, hello.auth.pass),
            ("dev", "u", "p/w")
        );
        let error = tanda_wire::firemq::reply::ErrorReply {
            rid: 0,
            code: ReplyCode::AccessRefused,
            msg: "wrong user or password",
            fatal: true,
        };
        peer.send(&error).await;
    };
    let builder = FireClient::builder("fire://u:p%2Fw@host/dev");
    assert!(!format!("{builder:?}").contains("p%2Fw"));
    let (connected, ()) = tokio::join!(builder.connect_through(dial), refusing);
    let error = connected.unwrap_err();
    assert!(matches!(&error, ConnectError::Refused(refusal) if refusal.code.to_wire() == 403));
    assert!(!error.retryable());
}
