//! `queue.*` are the queues of every door.

use serde_json::{Value, json};

use crate::{
    peer::{Peer, fields, of_json, of_text},
    support::{TempDir, TestServer, deliveries},
};

fn push(payloads: &[Value]) -> Value {
    let messages: Vec<Value> = payloads.iter().map(|it| json!({"payload": it})).collect();
    json!({"queue": "q", "messages": messages})
}

fn queue() -> Value {
    json!({"queue": "q"})
}

/// Messages that were popped: their ids and payloads.
fn pop(peer: &mut Peer, arguments: Value) -> Vec<(String, Value)> {
    let popped = peer.run("queue.pop", arguments);
    let messages = popped["messages"].as_array().unwrap();
    let pair = |it: &Value| (it["id"].as_str().unwrap().to_owned(), it["payload"].clone());
    messages.iter().map(pair).collect()
}

fn with_peer(check: impl FnOnce(&mut Peer, &TestServer)) {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    check(&mut Peer::of(&server), &server);
    assert!(server.stop());
}

#[test]
fn queues_are_made_and_deleted() {
    with_peer(|peer, _| {
        let all = json!({"queue": "q", "visibility_timeout_ms": 5000, "max_attempts": 4,
            "backoff": "fixed", "backoff_initial_ms": 10, "backoff_max_ms": 20,
            "ordering_key": ["header:a", "fairness_key"],
            "dedup_key": ["idempotency_key", "payload"], "dedup_window_ms": 60_000,
            "delivery_durability": "committed"});
        assert_eq!(peer.run("queue.create", all)["queue"], "q");
        assert_eq!(peer.fail("queue.create", queue()), "EXISTS");
        assert_eq!(
            peer.fail("queue.create", json!({"queue": "a.dlq"})),
            "BAD_REQUEST"
        );
        for (field, wrong) in [
            ("backoff", json!("sometimes")),
            ("ordering_key", json!(["colour"])),
            ("dedup_key", json!(["header:"])),
            ("delivery_durability", json!("none")),
            ("max_attempts", json!(-1)),
        ] {
            let mut arguments = json!({"queue": "other"});
            arguments[field] = wrong;
            assert_eq!(
                peer.fail("queue.create", arguments),
                "BAD_REQUEST",
                "{field}"
            );
        }
        assert_eq!(peer.run("queue.delete", queue())["deleted"], true);
        assert_eq!(peer.run("queue.delete", queue())["deleted"], false);
        for command in ["queue.pop", "queue.peek", "queue.stats"] {
            assert_eq!(peer.fail(command, queue()), "NOT_FOUND", "{command}");
        }
    });
}

#[test]
fn messages_are_pushed_popped_and_acked() {
    with_peer(|peer, _| {
        peer.run("queue.create", queue());
        assert_eq!(pop(peer, queue()), [], "none is no error");
        let payloads = [
            of_json(&json!({"a": 1})),
            of_text("é"),
            json!({"type": "bytes", "data": "AP8="}),
        ];
        let pushed = peer.run("queue.push", push(&payloads));
        let ids: Vec<&str> = pushed["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| {
                assert_eq!(it["duplicate"], false);
                it["id"].as_str().unwrap()
            })
            .collect();
        assert!(
            ids.iter().all(|id| id.len() == 36),
            "UUIDs as text: {ids:?}"
        );
        let peeked = peer.run("queue.peek", json!({"queue": "q", "max": 2}));
        assert_eq!(peeked["messages"].as_array().unwrap().len(), 2);
        assert_eq!(peeked["messages"][0]["id"], ids[0]);
        let popped = pop(peer, json!({"queue": "q", "max": 1000}));
        let expected: Vec<(String, Value)> = ids
            .iter()
            .map(ToString::to_string)
            .zip(payloads.iter().cloned())
            .collect();
        assert_eq!(popped, expected);
        assert_eq!(peer.run("queue.stats", queue())["in_flight"], 3);
        settled_one_by_one(peer, &ids);
        let again = pop(peer, json!({"queue": "q", "wait_ms": 60_000}));
        assert_eq!(again, [(ids[1].to_owned(), of_text("\u{e9}"))]);
        peer.run("queue.ack", json!({"queue": "q", "ids": [ids[1], ids[2]]}));
        let stats = peer.run("queue.stats", queue());
        for (field, expected) in [
            ("depth", 0),
            ("in_flight", 0),
            ("delayed", 0),
            ("throttled", 0),
        ] {
            assert_eq!(stats[field], expected, "{field}");
        }
        for field in ["unclassified", "consumers", "fairness_keys"] {
            assert!(stats[field].is_u64(), "{field}: {stats}");
        }
        assert!(stats.get("oldest_message_age_ms").is_some(), "{stats}");
    });
}

/// Extends the first of three leased messages, nacks the second and acks the first.
fn settled_one_by_one(peer: &mut Peer, ids: &[&str]) {
    for settle in ["queue.extend", "queue.nack", "queue.ack"] {
        let mut arguments = json!({"queue": "q", "extend_by_ms": 3_600_000,
            "retry_after_ms": 0, "ids": [ids[0], ids[0], "no-uuid"]});
        if settle == "queue.nack" {
            arguments["ids"][0] = json!(ids[1]);
            arguments["ids"][1] = json!(ids[1]);
        }
        let id = arguments["ids"][0].clone();
        let settled = peer.run(settle, arguments);
        let results = settled["results"].as_array().unwrap();
        let of_extend = ["id", "lease_expires_at", "ok"];
        if settle == "queue.extend" {
            // It is still leased.
            assert!(
                results[..2].iter().all(|it| fields(it) == of_extend),
                "{results:?}"
            );
        } else {
            assert_eq!(results[0], json!({"id": id, "ok": true}), "{settle}");
            assert_eq!(fields(&results[1]), ["error", "id"]);
            assert_eq!(results[1]["error"]["code"], "NOT_FOUND", "{results:?}");
        }
        assert_eq!(results[2]["id"], "no-uuid");
        assert_eq!(results[2]["error"]["code"], "BAD_REQUEST", "{results:?}");
        assert_eq!(results.len(), 3);
    }
}

#[test]
fn a_message_says_what_is_known_of_it() {
    with_peer(|peer, _| {
        peer.run(
            "queue.create",
            json!({"queue": "q", "dedup_key": ["idempotency_key"]}),
        );
        let message = json!({"payload": 1, "headers": {"a": "b"}, "fairness_key": "tenant",
            "weight": 2, "idempotency_key": "once"});
        let push = json!({"queue": "q", "messages": [message]});
        let first = peer.run("queue.push", push.clone());
        let again = peer.run("queue.push", push);
        assert_eq!(again["messages"][0]["id"], first["messages"][0]["id"]);
        assert_eq!(again["messages"][0]["duplicate"], true);
        let popped = peer.run(
            "queue.pop",
            json!({"queue": "q", "max": 5, "lease_ms": 60_000}),
        );
        let popped = popped["messages"].as_array().unwrap();
        assert_eq!(popped.len(), 1);
        let message = &popped[0];
        let expected = [
            "attempts",
            "enqueued_at",
            "fairness_key",
            "headers",
            "id",
            "lease_expires_at",
            "payload",
        ];
        assert_eq!(fields(message), expected);
        assert_eq!(message["headers"], json!({"a": "b"}));
        assert_eq!(message["fairness_key"], "tenant");
        assert!(message["attempts"].as_u64().unwrap() <= 1, "{message}");
        let enqueued = message["enqueued_at"].as_u64().unwrap();
        let expires = message["lease_expires_at"].as_u64().unwrap();
        assert!(expires >= enqueued + 60_000, "{message}");
        let ids = json!([message["id"]]);
        let extend = json!({"queue": "q", "ids": ids, "extend_by_ms": 3_600_000});
        let extended = peer.run("queue.extend", extend);
        let until = extended["results"][0]["lease_expires_at"].as_u64().unwrap();
        assert!(until > expires, "{extended}");
    });
}

#[test]
fn failed_messages_come_again_and_then_to_the_dead_letters() {
    with_peer(|peer, _| {
        peer.run(
            "queue.create",
            json!({"queue": "q", "max_attempts": 2, "backoff": "none"}),
        );
        peer.run("queue.push", push(&[json!(1)]));
        for _ in 0..2 {
            let popped = pop(peer, json!({"queue": "q", "wait_ms": 60_000}));
            let nack = json!({"queue": "q", "ids": [popped[0].0], "error": "no luck"});
            assert_eq!(peer.run("queue.nack", nack)["results"][0]["ok"], true);
        }
        assert_eq!(pop(peer, queue()), []);
        let dead = peer.run("queue.peek", json!({"queue": "q.dlq"}));
        assert_eq!(dead["messages"][0]["payload"], of_json(&json!(1)));
        let redriven = peer.run("queue.redrive", json!({"queue": "q.dlq"}));
        assert_eq!(redriven, json!({"redriven": 1, "left": 0}));
        let popped = pop(peer, queue());
        assert_eq!(popped.len(), 1);
        let later = json!({"queue": "q", "ids": [popped[0].0], "retry_after_ms": 3_600_000});
        peer.run("queue.nack", later);
        assert_eq!(peer.run("queue.stats", queue())["delayed"], 1);
        let delayed = json!({"queue": "q", "messages": [{"payload": 2, "delay_ms": 3_600_000}]});
        peer.run("queue.push", delayed);
        assert_eq!(peer.run("queue.stats", queue())["delayed"], 2);
    });
}

#[test]
fn a_pop_waits_and_a_lease_ends() {
    with_peer(|peer, server| {
        peer.run("queue.create", queue());
        let mut waiting = Peer::of(server);
        waiting.begin(
            1,
            "queue.pop",
            json!({"queue": "q", "wait_ms": 200_000, "lease_ms": 1}),
        );
        waiting.run("server.ping", json!({}));
        peer.run("queue.push", push(&[json!(1)]));
        let first = waiting.answer(1).result().clone();
        assert_eq!(first["messages"][0]["payload"], of_json(&json!(1)));
        // Its lease is over; then it comes again.
        let again = pop(peer, json!({"queue": "q", "wait_ms": 200_000}));
        assert_eq!(again[0].0, first["messages"][0]["id"]);
        // A wait without a message ends empty.
        assert_eq!(pop(peer, json!({"queue": "q", "wait_ms": 1})), []);
    });
}

#[test]
fn what_is_pushed_here_is_consumed_by_fila_and_the_other_way_round() {
    with_peer(|peer, server| {
        let mut fila = server.connect();
        fila.create_queue("q");
        let pushed = peer.run("queue.push", push(&[of_text("hello")]));
        fila.consume("q", 9);
        let (id, payload) = deliveries(&fila.answer())[0].clone();
        assert_eq!(payload, b"hello");
        let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let told = pushed["messages"][0]["id"]
            .as_str()
            .unwrap()
            .replace('-', "");
        assert_eq!(told, hex);
        fila.ack("q", id);
        drop(fila);
        let mut fila = server.connect();
        fila.enqueue("q", b"\xff\x00");
        let popped = pop(peer, json!({"queue": "q", "wait_ms": 60_000}));
        assert_eq!(popped[0].1, json!({"type": "bytes", "data": "/wA="}));
    });
}

#[test]
fn each_message_of_a_push_has_its_own_result() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[("limits.max_message", "1KiB")]);
    let mut peer = Peer::of(&server);
    peer.run("queue.create", queue());
    let text = |bytes: usize| of_text(&"x".repeat(bytes));
    let pushed = peer.run("queue.push", push(&[text(900), text(1025), text(0)]));
    let results = pushed["messages"].as_array().unwrap();
    assert_eq!(results.len(), 3);
    for stored in [&results[0], &results[2]] {
        assert_eq!(fields(stored), ["duplicate", "id"]);
    }
    assert_eq!(fields(&results[1]), ["error"]);
    assert_eq!(results[1]["error"]["code"], "PAYLOAD_TOO_LARGE", "{pushed}");
    assert_eq!(peer.run("queue.stats", queue())["depth"], 2);
    // One at once when nothing else is said, and all of what is asked for.
    assert_eq!(pop(&mut peer, queue()).len(), 1);
    peer.run("queue.push", push(&vec![json!(1); 10]));
    let peek = |max: u64| json!({"queue": "q", "max": max});
    let peeked = peer.run("queue.peek", peek(7));
    assert_eq!(peeked["messages"].as_array().unwrap().len(), 7);
    assert_eq!(peeked["messages"][0]["lease_expires_at"], Value::Null);
    assert_eq!(
        peer.run("queue.peek", queue())["messages"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(pop(&mut peer, peek(1000)).len(), 11);
    assert_eq!(peer.run("queue.push", push(&[]))["messages"], json!([]));
    assert!(server.stop());
}

#[test]
fn a_redrive_takes_as_many_as_are_asked_for() {
    with_peer(|peer, _| {
        peer.run("queue.create", json!({"queue": "q", "max_attempts": 1}));
        peer.run("queue.push", push(&vec![json!(1); 5]));
        let popped = pop(peer, json!({"queue": "q", "max": 5}));
        let ids: Vec<&String> = popped.iter().map(|(id, _)| id).collect();
        peer.run("queue.nack", json!({"queue": "q", "ids": ids}));
        let mut redrive =
            |count: u64| peer.run("queue.redrive", json!({"queue": "q.dlq", "count": count}));
        assert_eq!(redrive(2), json!({"redriven": 2, "left": 3}));
        assert_eq!(redrive(0), json!({"redriven": 3, "left": 0}));
        assert_eq!(redrive(1), json!({"redriven": 0, "left": 0}));
        assert_eq!(peer.fail("queue.redrive", queue()), "BAD_REQUEST");
        assert_eq!(peer.run("queue.stats", queue())["depth"], 5);
    });
}

/// Its age is that of the oldest message that could go, whatever would come next.
#[test]
fn the_oldest_message_has_an_age() {
    with_peer(|peer, _| {
        let keyed =
            |key: &str| json!({"queue": "q", "messages": [{"payload": 1, "fairness_key": key}]});
        let age =
            |peer: &mut Peer| peer.run("queue.stats", queue())["oldest_message_age_ms"].clone();
        let next = |peer: &mut Peer| peer.run("queue.peek", queue())["messages"][0].clone();
        let at = |message: &Value| message["enqueued_at"].as_u64().unwrap();
        // Until the message that comes next is younger than the oldest.
        let oldest = loop {
            peer.run("queue.delete", queue());
            peer.run("queue.create", queue());
            assert_eq!(age(peer), Value::Null);
            for key in ["a", "a", "b"] {
                peer.run("queue.push", keyed(key));
            }
            let all = peer.run("queue.peek", json!({"queue": "q", "max": 3}));
            let all = all["messages"].as_array().unwrap();
            let second = all.iter().filter(|it| it["fairness_key"] == "a").nth(1);
            let oldest = at(second.unwrap());
            peer.run("queue.pop", queue());
            assert_eq!(next(peer)["fairness_key"], "b");
            if at(&next(peer)) > oldest {
                break oldest;
            }
        };
        let lock = json!({"key": "clock", "ttl_ms": 1_000_000});
        let now = peer.run("lock.acquire", lock)["expires_at"]
            .as_u64()
            .unwrap()
            - 1_000_000;
        assert!(age(peer).as_u64().unwrap() >= now - oldest);
        // What is leased or waits for its time is not looked at.
        assert_eq!(pop(peer, json!({"queue": "q", "max": 1000})).len(), 2);
        let later = json!({"queue": "q", "messages": [{"payload": 1, "delay_ms": 3_600_000}]});
        peer.run("queue.push", later);
        assert_eq!(age(peer), Value::Null);
    });
}
