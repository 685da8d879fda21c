//! What holds for keys of every kind: kinds, times to live, names, the scan, restarts, grants.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    api_keys::{create_key, enter, set_acl},
    peer::{AUTH, Peer, SUBSCRIBE, of_json},
    support::{TempDir, TestServer},
};

/// A command that makes a key of each kind, and one that reads it.
pub(crate) const KINDS: [(&str, &str, &str); 7] = [
    ("value", "value.set", "value.get"),
    ("counter", "counter.set", "counter.get"),
    ("map", "map.set", "map.all"),
    ("list", "list.push", "list.length"),
    ("set", "set.add", "set.members"),
    ("ranking", "ranking.add", "ranking.length"),
    ("lock", "lock.acquire", "lock.release"),
];

/// Arguments with which each of them makes a key.
pub(crate) fn made(key: &str, ttl_ms: Option<u64>) -> Value {
    let mut arguments = json!({"key": key, "value": 1, "field": "f", "values": [1],
        "members": ["m"], "member": "m", "score": 1, "ttl_ms": 3_600_000, "token": 1});
    if let Some(ttl_ms) = ttl_ms {
        arguments["ttl_ms"] = json!(ttl_ms);
    } else if key != "lock" {
        arguments.as_object_mut().unwrap().remove("ttl_ms");
    }
    arguments
}

fn key(key: &str) -> Value {
    json!({"key": key})
}

fn scan(peer: &mut Peer, mut arguments: Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    loop {
        let page = peer.run("key.scan", arguments.clone());
        let keys = page["keys"].as_array().unwrap();
        if let Some(limit) = arguments["limit"].as_u64() {
            assert!(keys.len() as u64 <= limit, "{page}");
        }
        found.extend(keys.iter().map(|it| it.as_str().unwrap().to_owned()));
        if page["cursor"].is_null() {
            return found;
        }
        arguments["cursor"] = page["cursor"].clone();
    }
}

#[test]
fn a_key_is_of_one_kind() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = Peer::of(&server);
    for (kind, make, _) in KINDS {
        assert_eq!(peer.run("key.exists", key(kind))["exists"], false);
        assert_eq!(peer.fail("key.kind", key(kind)), "NOT_FOUND");
        peer.run(make, made(kind, None));
        assert_eq!(peer.run("key.exists", key(kind))["exists"], true);
        assert_eq!(peer.run("key.kind", key(kind))["kind"], kind);
        for (other, make, read) in KINDS {
            if other != kind {
                let arguments = made(kind, Some(1_000));
                assert_eq!(
                    peer.fail(make, arguments.clone()),
                    "WRONG_TYPE",
                    "{make} of {kind}"
                );
                assert_eq!(peer.fail(read, arguments), "WRONG_TYPE", "{read} of {kind}");
            }
        }
        assert_eq!(peer.run("key.delete", key(kind))["deleted"], true);
        assert_eq!(peer.run("key.delete", key(kind))["deleted"], false);
        assert_eq!(peer.run("key.exists", key(kind))["exists"], false);
    }
    // Queues and exchanges have names of their own.
    peer.run("counter.add", key("q"));
    peer.run("queue.create", json!({"queue": "q"}));
    peer.run(
        "pubsub.publish",
        json!({"key": "q", "channel": "c", "payload": 1}),
    );
    assert_eq!(peer.run("key.kind", key("q"))["kind"], "counter");
}

#[test]
fn keys_of_every_kind_expire() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = Peer::of(&server);
    for (kind, make, _) in KINDS {
        peer.run(make, made(kind, Some(1)));
        while peer.run("key.exists", key(kind))["exists"] == true {}
        assert_eq!(peer.fail("key.kind", key(kind)), "NOT_FOUND", "{kind}");
    }
}

#[test]
fn a_time_to_live_is_set_told_and_taken_away() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = Peer::of(&server);
    let expire = |ttl_ms: u64| json!({"key": "c", "ttl_ms": ttl_ms});
    for command in ["key.ttl", "key.persist", "key.expire"] {
        assert_eq!(peer.fail(command, expire(1000)), "NOT_FOUND", "{command}");
    }
    peer.run("counter.add", json!({"key": "c", "ttl_ms": 3_600_000}));
    let left = |peer: &mut Peer| peer.run("key.ttl", key("c"))["ttl_ms"].as_u64();
    let first = left(&mut peer).unwrap();
    assert!(0 < first && first <= 3_600_000);
    // `ttl_ms` only counts where it makes the key.
    peer.run("counter.add", json!({"key": "c", "ttl_ms": 1}));
    assert!(left(&mut peer).unwrap() > 3_000_000);
    let expires_at = peer.run("key.expire", expire(7_200_000))["expires_at"]
        .as_u64()
        .unwrap();
    assert!(expires_at > 1_600_000_000_000, "Unix ms");
    assert!(left(&mut peer).unwrap() > 3_600_000);
    assert_eq!(peer.run("key.persist", key("c"))["persisted"], true);
    assert_eq!(left(&mut peer), None);
    assert_eq!(peer.run("key.persist", key("c"))["persisted"], false);
    assert_eq!(peer.fail("key.expire", expire(0)), "BAD_REQUEST");
    // But a value's is set each time.
    let set = |ttl: Value| json!({"key": "v", "value": 1, "ttl_ms": ttl});
    peer.run("value.set", set(json!(3_600_000)));
    assert!(peer.run("key.ttl", key("v"))["ttl_ms"].is_u64());
    peer.run("value.set", set(Value::Null));
    assert!(peer.run("key.ttl", key("v"))["ttl_ms"].is_null());
}

#[test]
fn keys_are_renamed_but_locks_are_not() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = Peer::of(&server);
    let rename = |from: &str, to: &str| json!({"key": from, "to": to});
    assert_eq!(peer.fail("key.rename", rename("no", "b")), "NOT_FOUND");
    for (kind, make, _) in KINDS {
        peer.run(make, made(kind, None));
        let to = format!("{kind} 2");
        if kind == "lock" {
            assert_eq!(peer.fail("key.rename", rename(kind, &to)), "WRONG_TYPE");
        } else {
            assert_eq!(peer.run("key.rename", rename(kind, &to))["renamed"], true);
            assert_eq!(peer.run("key.kind", key(&to))["kind"], kind);
            assert_eq!(peer.run("key.exists", key(kind))["exists"], false);
        }
    }
    assert_eq!(peer.fail("key.rename", rename("map 2", "list 2")), "EXISTS");
    assert_eq!(peer.run("key.kind", key("list 2"))["kind"], "list");
}

#[test]
fn a_scan_returns_every_key_in_pages() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = Peer::of(&server);
    assert!(scan(&mut peer, json!({})).is_empty());
    let names: BTreeSet<String> = (0..250).map(|n| format!("user:{n}")).collect();
    for name in &names {
        peer.run("counter.add", key(name));
    }
    peer.run("counter.add", key("other"));
    assert_eq!(
        scan(&mut peer, json!({"glob": "user:*", "limit": 7})),
        names
    );
    assert_eq!(scan(&mut peer, json!({"limit": 10_000})).len(), 251);
    assert_eq!(scan(&mut peer, json!({})).len(), 251);
    // A thousand at once when nothing else is said.
    for n in 0..1000 {
        peer.run("counter.add", key(&format!("more:{n}")));
    }
    let first = peer.run("key.scan", json!({}));
    assert_eq!(first["keys"].as_array().unwrap().len(), 1000);
    assert!(first["cursor"].is_string(), "{first}");
    let two = scan(&mut peer, json!({"glob": "user:?"}));
    assert_eq!(two.len(), 10);
    for wrong in [
        json!({"limit": 0}),
        json!({"limit": 10_001}),
        json!({"cursor": "?"}),
    ] {
        assert_eq!(peer.fail("key.scan", wrong), "BAD_REQUEST");
    }
}

#[test]
fn a_key_that_stays_is_found_by_a_scan_while_others_come_and_go() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = Peer::of(&server);
    let stays: BTreeSet<String> = (0..500).map(|n| format!("stays {n}")).collect();
    for name in &stays {
        peer.run("counter.add", key(name));
    }
    let mut arguments = json!({"limit": 10});
    let mut found = BTreeSet::new();
    for round in 0.. {
        let page = peer.run("key.scan", arguments.clone());
        let keys = page["keys"].as_array().unwrap();
        found.extend(keys.iter().map(|it| it.as_str().unwrap().to_owned()));
        if page["cursor"].is_null() {
            break;
        }
        arguments["cursor"] = page["cursor"].clone();
        for n in 0..20 {
            peer.run("counter.add", key(&format!("comes {round} {n}")));
            peer.run("key.delete", key(&format!("comes {} {n}", round / 2)));
        }
    }
    assert!(found.is_superset(&stays));
}

#[test]
fn everything_is_there_after_a_restart() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = Peer::of(&server);
    let read = |peer: &mut Peer| -> Vec<Value> {
        let mut seen = Vec::new();
        for (kind, _, read) in KINDS {
            if kind != "lock" {
                seen.push(peer.run(read, key(kind)));
            }
        }
        seen
    };
    for (kind, make, _) in KINDS {
        peer.run(make, made(kind, Some(3_600_000)));
    }
    let before = read(&mut peer);
    drop(peer);
    assert!(server.stop());
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = Peer::of(&server);
    assert_eq!(read(&mut peer), before);
    for (kind, ..) in KINDS {
        assert!(peer.run("key.ttl", key(kind))["ttl_ms"].as_u64().unwrap() > 3_000_000);
    }
    assert_eq!(before[0]["value"], of_json(&json!(1)));
}

const ROOT: &str = "tanda_the-first-key-of-all-that-is-here-01";

/// A peer that shows a key with these grants, and the key.
fn granted(server: &TestServer, grants: &[(&str, &str)]) -> (Peer, Value) {
    let mut fila = enter(server, ROOT);
    let made = create_key(&mut fila, "worker", 0, false);
    set_acl(&mut fila, &made.id, grants);
    let mut peer = Peer::of(server);
    let key = json!({"api_key": made.secret});
    let who = peer.ask(AUTH, &key);
    let expected = json!({"key_id": made.id, "name": "worker", "superadmin": false});
    assert_eq!(who.result(), &expected);
    (peer, key)
}

#[test]
fn grants_are_by_name() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[("auth.bootstrap_apikey", ROOT)]);
    let mut root = Peer::of(&server);
    root.ask(AUTH, &json!({"api_key": ROOT})).result();
    for name in ["mine", "yours", "ours"] {
        root.run("counter.add", key(name));
    }
    let grants = [("consume", "mine"), ("consume", "o*"), ("produce", "mine")];
    let (mut peer, own) = granted(&server, &grants);
    assert_eq!(peer.run("counter.get", key("mine"))["value"], 1);
    assert_eq!(peer.run("counter.add", key("mine"))["value"], 2);
    assert_eq!(peer.fail("counter.get", key("yours")), "FORBIDDEN");
    assert_eq!(peer.fail("counter.get", key("there is none")), "FORBIDDEN");
    assert_eq!(peer.fail("counter.add", key("ours")), "FORBIDDEN");
    assert_eq!(peer.fail("key.delete", key("mine")), "FORBIDDEN");
    let both = json!({"keys": ["ours", "yours"]});
    assert_eq!(peer.fail("value.get_many", both), "FORBIDDEN");
    assert_eq!(peer.fail("server.info", json!({})), "FORBIDDEN");
    assert_eq!(peer.run("server.ping", json!({})), json!({"pong": true}));
    // Of several keys the last one counts, until another is good.
    peer.ask(AUTH, &json!({"api_key": ROOT})).result();
    assert_eq!(peer.run("counter.get", key("yours"))["value"], 1);
    peer.ask(AUTH, &own).result();
    assert_eq!(
        peer.ask(AUTH, &json!({"api_key": "no such"})).code(),
        "UNAUTHENTICATED"
    );
    assert_eq!(peer.fail("counter.get", key("yours")), "FORBIDDEN");
    // A scan shows what the caller may read.
    let seen = scan(&mut peer, json!({"limit": 1}));
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["mine", "ours"]);
    let queue = json!({"queue": "yours", "messages": [{"payload": 1}]});
    assert_eq!(peer.fail("queue.push", queue), "FORBIDDEN");
    assert_eq!(
        peer.fail("queue.create", json!({"queue": "mine"})),
        "FORBIDDEN"
    );
    let publish = json!({"key": "yours", "channel": "c", "payload": 1});
    assert_eq!(peer.fail("pubsub.publish", publish), "FORBIDDEN");
    let subscribe = json!({"key": "yours", "channel": "c"});
    assert_eq!(peer.ask(SUBSCRIBE, &subscribe).code(), "FORBIDDEN");
}
