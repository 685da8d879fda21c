//! Topics and queues that AMQP and FireMQ share with Amaquet.

use serde_json::{Value, json};
use tanda_wire::{
    amqp::{self, PropertyValues, ShortStr, Table, TableWriter},
    firemq::{self, writer::MapWriter},
};

use crate::{
    neighbours::{Amqp, Fire, Message},
    peer::{Peer, SUBSCRIBE, of_json, of_text},
    support::{TempDir, TestServer},
};

fn start(check: impl FnOnce(&TestServer, &mut Peer)) {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    check(&server, &mut Peer::of(&server));
    assert!(server.stop());
}

/// Content types, bodies, and the payloads that they are.
fn bodies() -> Vec<(&'static str, &'static [u8], Value)> {
    let bytes = |data: &str| json!({"type": "bytes", "data": data});
    vec![
        ("application/json", b"{\"n\":1}", of_json(&json!({"n": 1}))),
        ("application/ld+json", b"[1]", of_json(&json!([1]))),
        ("application/json", b"{", bytes("ew==")),
        ("text/plain", b"caf\xc3\xa9", of_text("caf\u{e9}")),
        ("text/plain", b"\xff", bytes("/w==")),
        ("image/png", b"\x00\xff", bytes("AP8=")),
        ("", b"7", bytes("Nw==")),
    ]
}

fn subscribe(peer: &mut Peer, id: u64, channel: &str) {
    peer.send(SUBSCRIBE, id, &json!({"key": "bus", "channel": channel}));
    peer.answer(id).result();
}

fn said(content_type: &str) -> PropertyValues<'_> {
    PropertyValues {
        content_type: (!content_type.is_empty()).then(|| ShortStr::clip(content_type)),
        ..PropertyValues::default()
    }
}

#[test]
fn what_amqp_and_firemq_publish_to_a_topic_arrives_as_events() {
    start(|server, peer| {
        let mut amqp = Amqp::of(server);
        // Who comes first makes it.
        amqp.declare_exchange("bus", "topic");
        subscribe(peer, 1, "a.*");
        let mut fire = Fire::of(server);
        for (content_type, body, payload) in bodies() {
            amqp.publish(("bus", "elsewhere"), said(content_type), b"to nobody");
            amqp.publish(("bus", "a.amqp"), said(content_type), body);
            let event = peer.event(1);
            assert_eq!(
                (&event["key"], &event["channel"]),
                (&json!("bus"), &json!("a.amqp"))
            );
            assert_eq!(event["payload"], payload, "{content_type}");
            let properties = firemq::Properties {
                content_type,
                ..firemq::Properties::default()
            };
            fire.publish(("bus", "a.fire"), (&properties, b"\x80"), body);
            let event = peer.event(1);
            assert_eq!(event["channel"], "a.fire");
            assert_eq!(event["payload"], payload, "{content_type}");
        }
    });
}

#[test]
fn what_is_published_to_a_topic_reaches_the_queues_bound_to_it() {
    start(|server, peer| {
        // Its own first subscriber makes the exchange, which the others find.
        subscribe(peer, 1, "#");
        let mut amqp = Amqp::of(server);
        amqp.declare_exchange("bus", "topic");
        amqp.bind("amqp's", "bus", "a.#");
        let mut fire = Fire::of(server);
        fire.subscribe("fire's", "bus", "a.*");
        for (payload, content_type, body) in [
            (
                of_json(&json!({"n": 1})),
                "application/json",
                &b"{\"n\":1}"[..],
            ),
            (
                of_text("caf\u{e9}"),
                "text/plain; charset=utf-8",
                b"caf\xc3\xa9",
            ),
            (
                json!({"type": "bytes", "data": "AP8="}),
                "application/octet-stream",
                b"\x00\xff",
            ),
        ] {
            let publish = json!({"key": "bus", "channel": "a.b", "payload": payload});
            // One subscription; the queues are told apart from it.
            assert!(peer.run("pubsub.publish", publish)["receivers"].as_u64() >= Some(1));
            assert_eq!(peer.event(1)["payload"], payload);
            let expected = Message {
                exchange: "bus".to_owned(),
                key: "a.b".to_owned(),
                content_type: content_type.to_owned(),
                body: body.to_vec(),
            };
            assert_eq!(amqp.get("amqp's"), expected);
            assert_eq!(fire.delivery(), expected);
        }
    });
}

#[test]
fn messages_of_amqp_and_firemq_are_popped_with_their_properties_and_headers_as_texts() {
    start(|server, peer| {
        peer.run("queue.create", json!({"queue": "q"}));
        let mut amqp = Amqp::of(server);
        let mut table = Vec::new();
        let mut writer = TableWriter::new(&mut table);
        let short = ShortStr::clip;
        writer.value(short("number"), &amqp::Value::I32(-7));
        writer.value(short("truth"), &amqp::Value::Bool(true));
        writer.array(short("array"), |array| {
            array.value(&amqp::Value::text("x"));
        });
        let values = PropertyValues {
            headers: Some(Table::new(&table).unwrap()),
            correlation_id: Some(short("c-1")),
            priority: Some(3),
            ..said("text/plain")
        };
        amqp.publish(("", "q"), values, b"hello");
        let mut pop = || {
            let popped = peer.run("queue.pop", json!({"queue": "q", "wait_ms": 60_000}));
            popped["messages"][0].clone()
        };
        let popped = pop();
        assert_eq!(popped["payload"], of_text("hello"));
        let expected = json!({"number": "-7", "truth": "true", "array": "[\"x\"]",
            "amqp.content_type": "text/plain", "amqp.correlation_id": "c-1",
            "amqp.priority": "3"});
        assert_eq!(popped["headers"], expected);
        let mut fire = Fire::of(server);
        let mut headers = Vec::new();
        let mut map = MapWriter::begin(&mut headers);
        map.entry("huge", &firemq::Value::Uint(u64::MAX));
        map.entry("bin", &firemq::Value::Bin(b"\x00\xff"));
        map.finish();
        let properties = firemq::Properties {
            content_type: "application/json",
            message_id: "m-1",
            ..firemq::Properties::default()
        };
        fire.publish(("", "q"), (&properties, &headers), b"[1]");
        let popped = pop();
        assert_eq!(popped["payload"], of_json(&json!([1])));
        let expected = json!({"huge": "18446744073709551615", "bin": "AP8=",
            "amqp.message_id": "m-1"});
        assert_eq!(popped["headers"], expected);
    });
}

#[test]
fn what_is_pushed_is_got_by_amqp_and_firemq_with_its_type() {
    start(|server, peer| {
        let mut amqp = Amqp::of(server);
        amqp.declare_exchange("x", "direct");
        amqp.bind("q", "x", "q");
        let mut fire = Fire::of(server);
        let push = |payload: Value| json!({"queue": "q", "messages": [{"payload": payload}]});
        let expected = |content_type: &str, body: &[u8]| Message {
            exchange: String::new(),
            key: "q".to_owned(),
            content_type: content_type.to_owned(),
            body: body.to_vec(),
        };
        peer.run("queue.push", push(json!({"a": 1.50})));
        assert_eq!(amqp.get("q"), expected("application/json", b"{\"a\":1.5}"));
        peer.run("queue.push", push(of_text("t")));
        fire.subscribe("q", "x", "other");
        assert_eq!(fire.delivery(), expected("text/plain; charset=utf-8", b"t"));
    });
}
