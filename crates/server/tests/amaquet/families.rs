//! Every command on keys: its arguments, its result, what it is on another kind, and its absence.

use serde_json::{Value, json};

use crate::{
    peer::{Peer, of_json, of_text},
    support::{TempDir, TestServer},
};

fn with_peer(check: impl FnOnce(&mut Peer)) {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    check(&mut Peer::of(&server));
    assert!(server.stop());
}

#[test]
fn values_are_set_read_swapped_and_deleted() {
    with_peer(|peer| {
        let payloads = [
            of_json(&json!({"deep": [1, 2.5, null, "é"]})),
            of_text("a text"),
            json!({"type": "bytes", "data": "AAEC/w=="}),
        ];
        let mut last = 0;
        for payload in &payloads {
            let set = peer.run("value.set", json!({"key": "v", "value": payload}));
            let version = set["version"].as_u64().unwrap();
            assert!(version > last, "versions grow");
            last = version;
            let expected = json!({"value": payload, "version": version});
            assert_eq!(peer.run("value.get", json!({"key": "v"})), expected);
        }
        // Any other JSON in a payload's place means json.
        for plain in [
            json!(7),
            json!("text"),
            json!(null),
            json!([1]),
            json!({"a": 1}),
        ] {
            peer.run("value.set", json!({"key": "p", "value": plain}));
            let got = peer.run("value.get", json!({"key": "p"}));
            assert_eq!(got["value"], of_json(&plain));
        }
        let swapped = peer.run("value.swap", json!({"key": "v", "value": 1}));
        assert_eq!(swapped["previous"], payloads[2]);
        assert!(swapped["version"].as_u64().unwrap() > last);
        let fresh = peer.run("value.swap", json!({"key": "new", "value": 1}));
        assert_eq!(fresh["previous"], Value::Null);
        let keys = json!({"keys": ["v", "gone", "new"]});
        let many = peer.run("value.get_many", keys);
        let many = many["values"].as_array().unwrap();
        assert_eq!(many.len(), 3);
        assert_eq!(
            (&many[0]["value"], &many[1]),
            (&of_json(&json!(1)), &Value::Null)
        );
        assert!(many[2]["version"].is_u64());
        assert_eq!(
            peer.run("value.delete", json!({"key": "v"}))["deleted"],
            true
        );
        assert_eq!(
            peer.run("value.delete", json!({"key": "v"}))["deleted"],
            false
        );
        assert_eq!(peer.fail("value.get", json!({"key": "v"})), "NOT_FOUND");
    });
}

#[test]
fn values_change_under_conditions() {
    with_peer(|peer| {
        let set = |extra: Value| {
            let mut arguments = json!({"key": "v", "value": 1});
            arguments
                .as_object_mut()
                .unwrap()
                .extend(extra.as_object().unwrap().clone());
            arguments
        };
        let one = |version: u64| json!({"if_version": version});
        // 0 = must be absent.
        assert_eq!(peer.fail("value.set", set(one(3))), "CONFLICT");
        let version = peer.run("value.set", set(one(0)))["version"]
            .as_u64()
            .unwrap();
        assert_eq!(peer.fail("value.set", set(one(0))), "CONFLICT");
        assert_eq!(peer.fail("value.set", set(one(version + 1))), "CONFLICT");
        let if_absent = json!({"if_absent": true});
        assert_eq!(peer.fail("value.set", set(if_absent.clone())), "EXISTS");
        let next = peer.run("value.set", set(one(version)))["version"]
            .as_u64()
            .unwrap();
        assert!(next > version);
        let stale = json!({"key": "v", "if_version": version});
        assert_eq!(peer.fail("value.delete", stale), "CONFLICT");
        let right = json!({"key": "v", "if_version": next});
        assert_eq!(peer.run("value.delete", right)["deleted"], true);
        peer.run("value.set", set(if_absent));
    });
}

#[test]
fn counters_count_and_do_not_overflow() {
    with_peer(|peer| {
        let add = |by: i64| json!({"key": "c", "by": by});
        assert_eq!(peer.fail("counter.get", json!({"key": "c"})), "NOT_FOUND");
        assert_eq!(peer.run("counter.add", json!({"key": "c"}))["value"], 1);
        assert_eq!(peer.run("counter.add", add(-5))["value"], -4);
        let most = json!({"key": "c", "value": i64::MAX});
        assert_eq!(peer.run("counter.set", most)["value"], i64::MAX);
        assert_eq!(peer.fail("counter.add", add(1)), "CONFLICT");
        assert_eq!(
            peer.run("counter.get", json!({"key": "c"}))["value"],
            i64::MAX
        );
        let least = json!({"key": "c", "value": i64::MIN});
        assert_eq!(peer.run("counter.set", least)["value"], i64::MIN);
        assert_eq!(peer.fail("counter.add", add(-1)), "CONFLICT");
    });
}

#[test]
fn maps_hold_fields() {
    with_peer(|peer| {
        let set = |field: &str, value: Value| json!({"key": "m", "field": field, "value": value});
        let field = |field: &str| json!({"key": "m", "field": field});
        assert_eq!(peer.run("map.set", set("a", json!(1)))["created"], true);
        assert_eq!(
            peer.run("map.set", set("a", of_text("x")))["created"],
            false
        );
        assert_eq!(peer.run("map.get", field("a"))["value"], of_text("x"));
        assert_eq!(peer.fail("map.get", field("b")), "NOT_FOUND");
        assert_eq!(
            peer.fail("map.get", json!({"key": "no", "field": "a"})),
            "NOT_FOUND"
        );
        let add = |name: &str, by: i64| json!({"key": "m", "field": name, "by": by});
        assert_eq!(peer.run("map.add", add("n", 5))["value"], 5);
        assert_eq!(peer.run("map.add", field("n"))["value"], 6);
        assert_eq!(peer.fail("map.add", add("n", i64::MAX)), "CONFLICT");
        assert_eq!(peer.fail("map.add", add("a", 1)), "WRONG_TYPE");
        assert_eq!(peer.run("map.length", json!({"key": "m"}))["length"], 2);
        let all = json!({"fields": {"a": of_text("x"), "n": of_json(&json!(6))}});
        assert_eq!(peer.run("map.all", json!({"key": "m"})), all);
        assert_eq!(peer.run("map.remove", field("a"))["removed"], true);
        assert_eq!(peer.run("map.remove", field("n"))["removed"], true);
        // Empty collections vanish.
        assert_eq!(peer.run("key.exists", json!({"key": "m"}))["exists"], false);
        assert_eq!(peer.fail("map.all", json!({"key": "m"})), "NOT_FOUND");
        assert_eq!(peer.fail("map.length", json!({"key": "m"})), "NOT_FOUND");
    });
}

#[test]
fn lists_are_pushed_popped_and_cut_at_both_ends() {
    with_peer(|peer| {
        let push = |values: Value, side: &str| json!({"key": "l", "values": values, "side": side});
        let list = || json!({"key": "l"});
        let range = |start: i64, stop: i64| json!({"key": "l", "start": start, "stop": stop});
        let back = json!({"key": "l", "values": ["c", "d"]});
        assert_eq!(peer.run("list.push", back)["length"], 2);
        assert_eq!(
            peer.run("list.push", push(json!(["b", "a"]), "front"))["length"],
            4
        );
        assert_eq!(peer.run("list.push", push(json!([1]), "back"))["length"], 5);
        let texts = |found: &Value| -> Vec<Value> {
            let values = found["values"].as_array().unwrap();
            values.iter().map(|it| it["data"].clone()).collect()
        };
        let got = peer.run("list.range", range(0, -1));
        assert_eq!(
            texts(&got),
            [json!("a"), json!("b"), json!("c"), json!("d"), json!(1)]
        );
        assert_eq!(
            texts(&peer.run("list.range", range(-2, 100))),
            [json!("d"), json!(1)]
        );
        assert_eq!(texts(&peer.run("list.range", range(1, 1))), [json!("b")]);
        assert!(texts(&peer.run("list.range", range(3, 2))).is_empty());
        let popped = peer.run("list.pop", json!({"key": "l", "side": "back"}));
        assert_eq!(popped["value"], of_json(&json!(1)));
        assert_eq!(peer.run("list.pop", list())["value"], of_json(&json!("a")));
        assert_eq!(peer.run("list.length", list())["length"], 3);
        assert_eq!(peer.run("list.trim", range(1, -1))["length"], 2);
        assert_eq!(
            texts(&peer.run("list.range", range(0, -1))),
            [json!("c"), json!("d")]
        );
        assert_eq!(peer.run("list.trim", range(5, 6))["length"], 0);
        assert_eq!(peer.fail("list.pop", list()), "NOT_FOUND");
        assert_eq!(peer.fail("list.length", list()), "NOT_FOUND");
        assert_eq!(
            peer.fail("list.push", push(json!([1]), "middle")),
            "BAD_REQUEST"
        );
    });
}

#[test]
fn sets_hold_members_once() {
    with_peer(|peer| {
        let of = |members: Value| json!({"key": "s", "members": members});
        let set = || json!({"key": "s"});
        assert_eq!(peer.run("set.add", of(json!(["b", "a", "b"])))["added"], 2);
        assert_eq!(peer.run("set.add", of(json!(["c", "a"])))["added"], 1);
        assert_eq!(
            peer.run("set.members", set())["members"],
            json!(["a", "b", "c"])
        );
        assert_eq!(peer.run("set.length", set())["length"], 3);
        let contains = |member: &str| json!({"key": "s", "member": member});
        assert_eq!(peer.run("set.contains", contains("a"))["contains"], true);
        assert_eq!(peer.run("set.contains", contains("x"))["contains"], false);
        assert_eq!(peer.run("set.remove", of(json!(["a", "x"])))["removed"], 1);
        assert_eq!(peer.run("set.remove", of(json!(["b", "c"])))["removed"], 2);
        for read in ["set.members", "set.length"] {
            assert_eq!(peer.fail(read, set()), "NOT_FOUND");
        }
    });
}

#[test]
fn rankings_are_ordered_by_score_then_member() {
    with_peer(|peer| {
        let add =
            |member: &str, score: Value| json!({"key": "r", "member": member, "score": score});
        let of = |member: &str| json!({"key": "r", "member": member});
        assert_eq!(peer.run("ranking.add", add("b", json!(2)))["created"], true);
        assert_eq!(peer.run("ranking.add", add("a", json!(2)))["created"], true);
        assert_eq!(
            peer.run("ranking.add", add("c", json!(-1.5)))["created"],
            true
        );
        assert_eq!(peer.run("ranking.add", add("d", json!(9)))["created"], true);
        assert_eq!(
            peer.run("ranking.add", add("d", json!(3)))["created"],
            false
        );
        assert_eq!(peer.run("ranking.score", of("c"))["score"], -1.5);
        for (rank, member) in ["c", "a", "b", "d"].iter().enumerate() {
            assert_eq!(peer.run("ranking.rank", of(member))["rank"], rank);
            let reverse = json!({"key": "r", "member": member, "reverse": true});
            assert_eq!(peer.run("ranking.rank", reverse)["rank"], 3 - rank);
        }
        let mut names = |arguments: Value| -> String {
            let found = peer.run("ranking.range", arguments);
            let members = found["members"].as_array().unwrap().clone();
            assert!(members.iter().all(|it| it["score"].is_number()), "{found}");
            members
                .iter()
                .map(|it| it["member"].as_str().unwrap())
                .collect()
        };
        assert_eq!(names(json!({"key": "r", "start": 0, "stop": -1})), "cabd");
        assert_eq!(
            names(json!({"key": "r", "start": 0, "stop": 1, "reverse": true})),
            "db"
        );
        assert_eq!(
            names(json!({"key": "r", "start": 0, "stop": -1, "limit": 3})),
            "cab"
        );
        assert_eq!(names(json!({"key": "r", "min": 2, "max": 3})), "abd");
        assert_eq!(
            names(json!({"key": "r", "min": -1.5, "max": 2, "reverse": true})),
            "bac"
        );
        assert_eq!(
            names(json!({"key": "r", "min": 2, "max": 3, "limit": 1})),
            "a"
        );
        for wrong in [
            json!({"key": "r"}),
            json!({"key": "r", "start": 0, "min": 1, "max": 2}),
        ] {
            assert_eq!(peer.fail("ranking.range", wrong), "BAD_REQUEST");
        }
        assert_eq!(peer.run("ranking.length", json!({"key": "r"}))["length"], 4);
        assert_eq!(peer.run("ranking.remove", of("c"))["removed"], true);
        assert_eq!(peer.run("ranking.remove", of("c"))["removed"], false);
        for read in ["ranking.score", "ranking.rank"] {
            assert_eq!(peer.fail(read, of("c")), "NOT_FOUND");
        }
    });
}

#[test]
fn locks_have_tokens_that_only_grow() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = Peer::of(&server);
    let take = || json!({"key": "k", "ttl_ms": 3_600_000});
    let with = |token: u64| json!({"key": "k", "token": token, "ttl_ms": 3_600_000});
    let got = peer.run("lock.acquire", take());
    let first = got["token"].as_u64().unwrap();
    assert!(
        got["expires_at"].as_u64().unwrap() > 1_600_000_000_000,
        "Unix ms"
    );
    assert_eq!(peer.fail("lock.acquire", take()), "CONFLICT");
    assert!(peer.run("lock.renew", with(first))["expires_at"].is_u64());
    assert_eq!(peer.fail("lock.renew", with(first + 1)), "CONFLICT");
    assert_eq!(peer.fail("lock.release", with(first + 1)), "CONFLICT");
    assert_eq!(peer.run("lock.release", with(first))["released"], true);
    assert_eq!(peer.fail("lock.release", with(first)), "NOT_FOUND");
    assert_eq!(peer.fail("lock.renew", with(first)), "NOT_FOUND");
    let second = peer.run("lock.acquire", take())["token"].as_u64().unwrap();
    assert!(second > first);
    assert_eq!(peer.fail("lock.release", with(first)), "CONFLICT");
    peer.run("lock.release", with(second));
    drop(peer);
    assert!(server.stop());

    let server = TestServer::start(dir.path(), &[]);
    let mut peer = Peer::of(&server);
    let third = peer.run("lock.acquire", take())["token"].as_u64().unwrap();
    assert!(third > second, "also across restarts");
    // A disconnect does not release.
    drop(peer);
    assert_eq!(Peer::of(&server).fail("lock.acquire", take()), "CONFLICT");
}

#[test]
fn a_lock_ends_by_itself() {
    with_peer(|peer| {
        let first = peer.run("lock.acquire", json!({"key": "k", "ttl_ms": 1}));
        let again = json!({"key": "k", "ttl_ms": 1000, "wait_ms": 60_000});
        let second = peer.run("lock.acquire", again);
        assert!(second["token"].as_u64() > first["token"].as_u64());
        let stale = json!({"key": "k", "token": first["token"], "ttl_ms": 1000});
        assert_eq!(peer.fail("lock.renew", stale), "CONFLICT");
    });
}
