//! Many commands at once on one connection: answers out of order, waits, cancellation, limits.

use serde_json::{Value, json};

use crate::{
    peer::{CANCEL, COMMAND, HELLO, Peer, RESPONSE, command, of_json, request},
    support::{TempDir, TestServer},
};

/// Longer than any test.
const LONG_MS: u64 = 240_000;

fn pop(key: &str, wait_ms: u64) -> Value {
    json!({"key": key, "wait_ms": wait_ms})
}

fn push(key: &str, values: Value) -> Value {
    json!({"key": key, "values": values})
}

#[test]
fn answers_come_as_they_are_ready() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = Peer::of(&server);
    peer.begin(1, "list.pop", pop("a", LONG_MS));
    peer.begin(2, "lock.acquire", json!({"key": "k", "ttl_ms": LONG_MS}));
    peer.begin(u64::MAX, "server.ping", json!({}));
    assert_eq!(peer.answer(u64::MAX).result(), &json!({"pong": true}));
    assert!(peer.answer(2).result()["token"].is_u64());
    peer.begin(3, "list.push", push("a", json!([7])));
    assert_eq!(peer.answer(1).result()["value"], of_json(&json!(7)));
    // The length counts what a waiting pop takes.
    assert_eq!(peer.answer(3).opcode, COMMAND);
    // An id is free again once it is answered.
    peer.begin(1, "server.ping", json!({}));
    assert_eq!(peer.answer(1).kind, RESPONSE);
}

#[test]
fn an_id_that_is_active_is_refused() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = Peer::of(&server);
    peer.begin(1, "list.pop", pop("a", LONG_MS));
    peer.begin(1, "server.ping", json!({}));
    assert_eq!(peer.answer(1).code(), "DUPLICATE_REQUEST");
    peer.send(HELLO, 1, &json!({}));
    assert_eq!(peer.answer(1).code(), "DUPLICATE_REQUEST");
    // The command itself goes on.
    peer.run("list.push", push("a", json!([7])));
    assert_eq!(peer.answer(1).result()["value"], of_json(&json!(7)));
}

#[test]
fn a_command_that_waits_is_cancelled() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = Peer::of(&server);
    let cancel = |peer: &mut Peer, id: u64| {
        let answer = peer.ask(CANCEL, &json!({"request_id": id}));
        assert_eq!(answer.result()["request_id"], id);
        answer.result()["cancelled"].as_bool().unwrap()
    };
    peer.run("queue.create", json!({"queue": "q"}));
    peer.run("lock.acquire", json!({"key": "k", "ttl_ms": LONG_MS}));
    let waits = [
        ("list.pop", pop("a", LONG_MS)),
        (
            "lock.acquire",
            json!({"key": "k", "ttl_ms": 1000, "wait_ms": LONG_MS}),
        ),
        ("queue.pop", json!({"queue": "q", "wait_ms": LONG_MS})),
    ];
    for (name, arguments) in waits {
        peer.begin(7, name, arguments);
        assert!(cancel(&mut peer, 7), "{name}");
        assert_eq!(peer.answer(7).code(), "CANCELLED", "{name}");
        assert!(!cancel(&mut peer, 7), "{name} is over");
    }
    // What comes after that is not lost to it.
    peer.run("list.push", push("a", json!([1])));
    assert_eq!(
        peer.run("list.pop", pop("a", 0))["value"],
        of_json(&json!(1))
    );
    let item = json!({"queue": "q", "messages": [{"payload": 1}]});
    peer.run("queue.push", item);
    let popped = peer.run("queue.pop", json!({"queue": "q"}));
    assert_eq!(popped["messages"][0]["payload"], of_json(&json!(1)));
    assert!(!cancel(&mut peer, 99), "nobody asked under this id");
    // Its own id.
    peer.send(CANCEL, 5, &json!({"request_id": 5}));
    assert_eq!(peer.answer(5).result()["cancelled"], false);
    assert_eq!(peer.ask(CANCEL, &json!({})).code(), "BAD_REQUEST");
}

#[test]
fn waits_end_in_time_and_are_served_first_come_first_served() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[("amaquet.limits.max_wait", "1m")]);
    let mut peer = Peer::of(&server);
    assert_eq!(peer.fail("list.pop", pop("a", 1)), "TIMEOUT");
    assert_eq!(peer.fail("list.pop", pop("a", 60_001)), "BAD_REQUEST");
    peer.run("lock.acquire", json!({"key": "k", "ttl_ms": 60_000}));
    let again = json!({"key": "k", "ttl_ms": 60_000, "wait_ms": 1});
    assert_eq!(peer.fail("lock.acquire", again), "TIMEOUT");

    let mut peers: Vec<Peer> = (0..5).map(|_| Peer::of(&server)).collect();
    for (n, waiting) in peers.iter_mut().enumerate() {
        waiting.begin(1, "list.pop", pop("a", 60_000));
        // Answered behind it, so it waits when the next one comes.
        waiting.run("counter.add", json!({"key": "c"}));
        assert_eq!(peer.run("counter.get", json!({"key": "c"}))["value"], n + 1);
    }
    peer.run("list.push", push("a", json!([0, 1, 2, 3, 4])));
    for (n, waiting) in peers.iter_mut().enumerate() {
        assert_eq!(waiting.answer(1).result()["value"], of_json(&json!(n)));
    }
}

#[test]
fn what_was_waited_for_by_one_that_is_gone_goes_to_others() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = Peer::of(&server);
    let mut gone = Peer::of(&server);
    gone.begin(1, "list.pop", pop("a", LONG_MS));
    gone.run("server.ping", json!({}));
    let mut waiting = Peer::of(&server);
    waiting.begin(1, "list.pop", pop("a", LONG_MS));
    waiting.run("server.ping", json!({}));
    drop(gone);
    while peer.run("server.info", json!({}))["connections"] != 2 {}
    for n in 0..10 {
        peer.run("list.push", push("a", json!([n])));
        waiting.answer(1);
        waiting.begin(1, "list.pop", pop("a", LONG_MS));
        waiting.run("server.ping", json!({}));
    }
    waiting.send(CANCEL, 2, &json!({"request_id": 1}));
    assert_eq!(waiting.answer(1).code(), "CANCELLED");
    assert_eq!(peer.fail("list.length", json!({"key": "a"})), "NOT_FOUND");
}

#[test]
fn beyond_the_active_commands_of_a_connection_it_is_overloaded() {
    let dir = TempDir::new();
    let options = [("amaquet.limits.active_per_connection", "4")];
    let server = TestServer::start(dir.path(), &options);
    let mut peer = Peer::of(&server);
    for id in 1..=4 {
        peer.begin(id, "list.pop", pop("a", LONG_MS));
    }
    overloaded(&mut peer);
    // The other opcodes work.
    assert_eq!(peer.ask(HELLO, &json!({})).result()["protocol"], 1);
    assert_eq!(
        peer.ask(CANCEL, &json!({"request_id": 2})).result()["cancelled"],
        true
    );
    assert_eq!(peer.answer(2).code(), "CANCELLED");
    assert_eq!(peer.run("server.ping", json!({})), json!({"pong": true}));
    // Others have their own.
    assert_eq!(
        Peer::of(&server).run("server.ping", json!({})),
        json!({"pong": true})
    );
}

#[test]
fn beyond_the_active_commands_of_all_everybody_is_overloaded() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[("amaquet.limits.active_total", "4")]);
    let mut peer = Peer::of(&server);
    for id in 1..=4 {
        peer.begin(id, "list.pop", pop("a", LONG_MS));
    }
    peer.ask(HELLO, &json!({}));
    let mut other = Peer::of(&server);
    overloaded(&mut other);
    drop(peer);
    // Soon its commands are over.
    while other.try_run("server.ping", json!({})).payload["ok"] == false {}
}

fn overloaded(peer: &mut Peer) {
    let answer = peer.try_run("server.ping", json!({}));
    assert_eq!(answer.code(), "OVERLOADED");
    let retry = &answer.payload["error"]["retry_after_ms"];
    assert!(retry.as_u64().unwrap() > 0, "{answer:?}");
}

#[test]
fn everything_sent_at_once_is_answered_once() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = Peer::of(&server);
    // No more under way than are allowed.
    for round in 0..20_u64 {
        let ids = round * 250..(round + 1) * 250;
        let add = command("counter.add", json!({"key": "c"})).to_string();
        let all: Vec<u8> = ids
            .clone()
            .flat_map(|id| request(COMMAND, id, add.as_bytes()))
            .collect();
        peer.send_bytes(&all);
        let mut seen: Vec<u64> = ids.clone().map(|_| peer.receive().id).collect();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(ids));
    }
    assert_eq!(peer.run("counter.get", json!({"key": "c"}))["value"], 5000);
}
