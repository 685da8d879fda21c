//! SUBSCRIBE, UNSUBSCRIBE, and what is published here and by other doors.

use serde_json::{Value, json};

use crate::{
    peer::{CANCEL, Peer, SUBSCRIBE, UNSUBSCRIBE, fields, of_json},
    support::{TempDir, TestServer},
};

fn on(channel: &str) -> Value {
    json!({"key": "bus", "channel": channel})
}

fn subscribe(peer: &mut Peer, id: u64, channel: &str) {
    peer.send(SUBSCRIBE, id, &on(channel));
    assert_eq!(peer.answer(id).result(), &on(channel));
}

fn publish(peer: &mut Peer, channel: &str, payload: Value) -> u64 {
    let arguments = json!({"key": "bus", "channel": channel, "payload": payload});
    peer.run("pubsub.publish", arguments)["receivers"]
        .as_u64()
        .unwrap()
}

fn unsubscribe(peer: &mut Peer, channel: &str) -> bool {
    let answer = peer.ask(UNSUBSCRIBE, &on(channel));
    answer.result()["unsubscribed"].as_bool().unwrap()
}

fn start(check: impl FnOnce(&TestServer)) {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    check(&server);
    assert!(server.stop());
}

#[test]
fn what_is_published_comes_as_an_event_of_the_subscription_s_id() {
    start(|server| {
        let mut peer = Peer::of(server);
        let mut other = Peer::of(server);
        assert_eq!(publish(&mut other, "updates", json!(0)), 0);
        subscribe(&mut peer, 11, "updates");
        assert_eq!(publish(&mut other, "updates", json!({"n": 1})), 1);
        assert_eq!(publish(&mut other, "elsewhere", json!(2)), 0);
        let event = peer.event(11);
        assert_eq!(event["key"], "bus");
        assert_eq!(event["channel"], "updates");
        assert_eq!(event["payload"], of_json(&json!({"n": 1})));
        assert_eq!(event["dropped"], 0);
        let expected = ["channel", "dropped", "key", "payload", "published_at"];
        assert_eq!(fields(&event), expected);
        let at = event["published_at"].as_str().unwrap();
        let shape: String = at
            .chars()
            .map(|c| if c.is_ascii_digit() { '0' } else { c })
            .collect();
        assert!(
            shape.starts_with("0000-00-00T00:00:00") && shape.ends_with('Z'),
            "{at}"
        );
        // Its own are not left out.
        assert_eq!(publish(&mut peer, "updates", json!(3)), 1);
        assert_eq!(peer.event(11)["payload"], of_json(&json!(3)));
        assert!(unsubscribe(&mut peer, "updates"));
        assert!(!unsubscribe(&mut peer, "updates"));
        assert_eq!(publish(&mut other, "updates", json!(4)), 0);
    });
}

#[test]
fn a_channel_may_be_a_pattern() {
    start(|server| {
        let mut peer = Peer::of(server);
        subscribe(&mut peer, 1, "a.*");
        subscribe(&mut peer, 2, "a.#");
        subscribe(&mut peer, 3, "#");
        let told = peer.run("pubsub.channels", json!({"key": "bus"}));
        assert_eq!(told["channels"], json!(["#", "a.#", "a.*"]));
        // One event for each subscription that matches.
        assert_eq!(publish(&mut peer, "a.b", json!(1)), 3);
        for id in 1..=3 {
            assert_eq!(peer.event(id)["channel"], "a.b");
        }
        assert_eq!(publish(&mut peer, "a.b.c", json!(2)), 2);
        assert_eq!(publish(&mut peer, "x", json!(3)), 1);
        assert_eq!(peer.event(3)["channel"], "a.b.c");
        assert_eq!(peer.event(3)["channel"], "x");
    });
}

#[test]
fn a_subscription_s_id_is_active_and_the_same_channel_replaces_it() {
    start(|server| {
        let mut peer = Peer::of(server);
        subscribe(&mut peer, 1, "a");
        peer.begin(1, "server.ping", json!({}));
        assert_eq!(peer.answer(1).code(), "DUPLICATE_REQUEST");
        peer.send(SUBSCRIBE, 1, &on("b"));
        assert_eq!(peer.answer(1).code(), "DUPLICATE_REQUEST");
        // The same key and channel: under the same id, then under another.
        subscribe(&mut peer, 1, "a");
        subscribe(&mut peer, 2, "a");
        assert_eq!(publish(&mut peer, "a", json!(1)), 1);
        assert_eq!(peer.event(2)["payload"], of_json(&json!(1)));
        // The old id is free.
        peer.begin(1, "server.ping", json!({}));
        assert_eq!(peer.answer(1).result()["pong"], true);
        assert!(unsubscribe(&mut peer, "a"));
        peer.begin(2, "server.ping", json!({}));
        assert_eq!(peer.answer(2).result()["pong"], true);
    });
}

#[test]
fn a_cancel_finds_no_subscription() {
    start(|server| {
        let mut peer = Peer::of(server);
        subscribe(&mut peer, 1, "a");
        let answer = peer.ask(CANCEL, &json!({"request_id": 1}));
        assert_eq!(answer.result()["cancelled"], false);
        assert_eq!(publish(&mut peer, "a", json!(1)), 1);
        assert_eq!(peer.event(1)["payload"], of_json(&json!(1)));
    });
}

#[test]
fn subscriptions_end_with_their_connection() {
    start(|server| {
        let mut gone = Peer::of(server);
        subscribe(&mut gone, 1, "a");
        drop(gone);
        let mut peer = Peer::of(server);
        while publish(&mut peer, "a", json!(1)) > 0 {}
        let told = peer.run("pubsub.channels", json!({"key": "bus"}));
        assert_eq!(told["channels"], json!([]));
    });
}

#[test]
fn wrong_subscriptions_are_refused() {
    start(|server| {
        let mut peer = Peer::of(server);
        for (field, wrong) in [
            ("buffer", json!(0)),
            ("buffer", json!(65_537)),
            ("key", json!(7)),
            ("channel", Value::Null),
        ] {
            let mut arguments = on("a");
            arguments[field] = wrong;
            assert_eq!(
                peer.ask(SUBSCRIBE, &arguments).code(),
                "BAD_REQUEST",
                "{arguments}"
            );
        }
        for buffer in [1, 65_536] {
            let mut arguments = on("a");
            arguments["buffer"] = json!(buffer);
            assert_eq!(peer.ask(SUBSCRIBE, &arguments).result(), &on("a"));
        }
        for (field, wrong) in [
            ("buffer", json!("1")),
            ("buffer", json!(1.5)),
            ("key", json!("x".repeat(256))),
            ("channel", json!("x".repeat(256))),
        ] {
            let mut arguments = on("a");
            arguments[field] = wrong;
            assert_eq!(
                peer.ask(SUBSCRIBE, &arguments).code(),
                "BAD_REQUEST",
                "{arguments}"
            );
        }
        for missing in ["key", "channel"] {
            let mut arguments = on("a");
            arguments.as_object_mut().unwrap().remove(missing);
            for opcode in [SUBSCRIBE, UNSUBSCRIBE] {
                assert_eq!(
                    peer.ask(opcode, &arguments).code(),
                    "BAD_REQUEST",
                    "{missing}"
                );
            }
        }
        // A predeclared exchange that is no topic.
        let direct = json!({"key": "amq.direct", "channel": "a"});
        assert_eq!(peer.ask(SUBSCRIBE, &direct).code(), "WRONG_TYPE");
        let publish = json!({"key": "amq.fanout", "channel": "a", "payload": 1});
        assert_eq!(peer.fail("pubsub.publish", publish), "WRONG_TYPE");
        assert_eq!(
            peer.fail("pubsub.channels", json!({"key": "no"})),
            "NOT_FOUND"
        );
    });
}

#[test]
fn a_slow_subscriber_loses_events_is_told_how_many_and_slows_nobody() {
    start(|server| {
        let mut slow = Peer::of(server);
        let mut arguments = on("a");
        arguments["buffer"] = json!(2);
        slow.send(SUBSCRIBE, 1, &arguments);
        slow.answer(1).result();
        let mut peer = Peer::of(server);
        let large = "x".repeat(512 << 10);
        // More than a socket takes, while nothing is read.
        let taken: u64 = (0..100)
            .map(|_| publish(&mut peer, "a", json!({"type": "text", "data": large})))
            .sum();
        assert!(taken < 100, "some were dropped");
        // What was taken comes; what was not is counted in what comes after it.
        let mut came = 0;
        let mut dropped = 0;
        while came < taken {
            let event = slow.event(1);
            came += 1;
            dropped += event["dropped"].as_u64().unwrap();
        }
        while publish(&mut peer, "a", json!("last")) == 0 {}
        let last = slow.event(1);
        assert!(
            dropped + last["dropped"].as_u64().unwrap() >= 100 - taken,
            "{taken}"
        );
    });
}
