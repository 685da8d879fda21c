//! Every command of `server.commands`, tried with each argument missing, of another type and at
//! both sides of its bounds, on a key that is not there and on keys of other kinds.

use serde_json::{Value, json};

use crate::{
    keys::{KINDS, made},
    peer::{Peer, fields},
    support::{TempDir, TestServer},
};

/// The id of no message.
const NO_MESSAGE: &str = "00000000-0000-0000-0000-000000000001";

fn with_peer(check: impl FnOnce(&mut Peer, &[Value])) {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = Peer::of(&server);
    let told = peer.run("server.commands", json!({}));
    check(&mut peer, told["commands"].as_array().unwrap());
    assert!(server.stop());
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// A value of each argument with which commands go well on a key that is there.
fn good(argument: &Value, name: &str) -> Value {
    match (text(&argument["name"]), text(&argument["type"])) {
        ("key" | "queue", _) => json!(name),
        ("to", _) => json!("elsewhere"),
        ("keys", _) => json!([name]),
        ("ids", _) => json!([NO_MESSAGE]),
        ("members", _) => json!(["m"]),
        ("messages", _) => json!([{"payload": 1}]),
        ("values", _) => json!([1]),
        ("field" | "member" | "channel", _) => json!("m"),
        ("stop", _) => json!(-1),
        ("start", _) => json!(0),
        ("ttl_ms" | "extend_by_ms", _) => json!(3_600_000),
        (_, "payload" | "i64" | "u64" | "number") => json!(1),
        (argument, _) => panic!("no value is known for {argument}"),
    }
}

/// The arguments that a command must have, and those of which it must have some.
fn arguments(command: &Value, name: &str) -> Value {
    let mut all = json!({});
    for argument in command["arguments"].as_array().unwrap() {
        let is_span = ["start", "stop"].contains(&text(&argument["name"]));
        if argument["required"] == true || is_span {
            all[text(&argument["name"])] = good(argument, name);
        }
    }
    all
}

/// Values that an argument of this type must not have.
fn wrong(argument: &Value) -> Vec<Value> {
    let not_payloads = [
        json!({"type": "text", "data": 7}),
        json!({"type": "bytes", "data": "!"}),
        json!({"type": "bytes", "data": "AA"}),
        json!({"type": "binary", "data": ""}),
        json!({"type": 7, "data": ""}),
    ];
    let not_integers = [json!("1"), json!(true), json!([]), json!({}), json!(1.5)];
    match text(&argument["type"]) {
        "string" => vec![json!(7), json!(true), json!([]), json!({})],
        "bool" => vec![json!(0), json!("true"), json!([]), json!({})],
        "i64" => [&not_integers[..], &[json!(1_u64 << 63), json!(-1e30)]].concat(),
        "u64" => [
            &not_integers[..],
            &[json!(-1), json!(18_446_744_073_709_551_616.0)],
        ]
        .concat(),
        "number" => vec![json!("1"), json!(true), json!([]), json!({})],
        "payload" => not_payloads.to_vec(),
        "payload[]" => {
            let within = not_payloads.into_iter().map(|it| json!([1, it]));
            within.chain([json!("a"), json!(7), json!({})]).collect()
        }
        "string[]" => vec![
            json!("a"),
            json!(7),
            json!({}),
            json!([7]),
            json!(["a", null]),
        ],
        "message[]" => {
            let within = not_payloads.into_iter().map(|it| json!([{"payload": it}]));
            let bad_field = |field: &str, value: Value| {
                let mut message = json!({"payload": 1});
                message[field] = value;
                json!([message])
            };
            let fields = [
                bad_field("headers", json!(7)),
                bad_field("headers", json!({"a": 1})),
                bad_field("headers", json!({("a".repeat(256)): "b"})),
                bad_field("fairness_key", json!(7)),
                bad_field("weight", json!("1")),
                bad_field("weight", json!(0)),
                bad_field("weight", json!(1_u64 << 32)),
                bad_field("delay_ms", json!(-1)),
                bad_field("idempotency_key", json!(7)),
            ];
            let others = [json!("a"), json!(7), json!({}), json!([7]), json!([{}])];
            within.chain(fields).chain(others).collect()
        }
        other => panic!("no wrong value is known for {other}"),
    }
}

/// Asserts that a command with these arguments is refused with the name of the one at fault.
fn refused_for(peer: &mut Peer, command: &Value, arguments: &Value, fault: &str) {
    let name = text(&command["name"]);
    let answer = peer.try_run(name, arguments.clone());
    assert_eq!(answer.code(), "BAD_REQUEST", "{name} {arguments}");
    let message = text(&answer.payload["error"]["message"]);
    assert!(message.contains(fault), "{name} {arguments}: {message}");
}

#[test]
fn every_argument_that_is_missing_or_mistyped_is_named() {
    with_peer(|peer, commands| {
        let mut tried = 0;
        for command in commands {
            for argument in command["arguments"].as_array().unwrap() {
                let name = text(&argument["name"]);
                let whole = arguments(command, "k");
                if argument["required"] == true {
                    let mut without = whole.clone();
                    without.as_object_mut().unwrap().remove(name);
                    refused_for(peer, command, &without, name);
                    let mut null = whole.clone();
                    null[name] = Value::Null;
                    if argument["type"] != "payload" {
                        refused_for(peer, command, &null, name);
                    }
                }
                for wrong in wrong(argument) {
                    let mut mistyped = whole.clone();
                    mistyped[name] = wrong;
                    refused_for(peer, command, &mistyped, name);
                    tried += 1;
                }
            }
        }
        assert!(tried > 400, "{tried}");
        // Nothing of it was done.
        assert_eq!(peer.run("key.scan", json!({}))["keys"], json!([]));
        assert_eq!(peer.run("server.info", json!({}))["queues"], 0);
    });
}

/// Arguments, what they may be and what not; 300,000 ms is the default of `max_wait`.
fn bounds() -> Vec<(&'static str, Vec<Value>, Vec<Value>)> {
    let long = |bytes: usize| json!("x".repeat(bytes));
    let longs = |bytes: usize| json!(["x".repeat(bytes)]);
    let most = u64::MAX;
    vec![
        ("key", vec![long(1), long(1024)], vec![long(0), long(1025)]),
        (
            "keys",
            vec![json!([]), longs(1024)],
            vec![longs(0), longs(1025)],
        ),
        ("to", vec![long(1024)], vec![long(0), long(1025)]),
        ("field", vec![long(0), long(65_535)], vec![long(65_536)]),
        ("member", vec![long(0), long(65_535)], vec![long(65_536)]),
        (
            "members",
            vec![longs(0), longs(65_535)],
            vec![longs(65_536)],
        ),
        ("ttl_ms", vec![json!(1), json!(most)], vec![json!(0)]),
        ("wait_ms", vec![json!(0)], vec![json!(300_001), json!(most)]),
        (
            "limit",
            vec![json!(1), json!(10_000)],
            vec![json!(0), json!(10_001)],
        ),
        (
            "max",
            vec![json!(1), json!(1000)],
            vec![json!(0), json!(1001)],
        ),
        (
            "max_attempts",
            vec![json!(0), json!(u32::MAX)],
            vec![json!(1_u64 << 32)],
        ),
        ("by", vec![json!(i64::MIN), json!(i64::MAX)], vec![]),
        (
            "side",
            vec![json!("front"), json!("back")],
            vec![json!("middle"), json!("")],
        ),
    ]
}

/// The same of the settings of queues.
fn choices() -> Vec<(&'static str, Vec<Value>, Vec<Value>)> {
    vec![
        (
            "backoff",
            vec![json!("none"), json!("fixed"), json!("exponential")],
            vec![json!("linear")],
        ),
        (
            "delivery_durability",
            vec![json!("committed"), json!("fast")],
            vec![json!("slow")],
        ),
        (
            "ordering_key",
            vec![json!(["header:a", "fairness_key", "attribute:b"])],
            vec![
                json!(["header:"]),
                json!(["payload"]),
                json!(["idempotency_key"]),
            ],
        ),
        (
            "dedup_key",
            vec![json!([
                "header:a",
                "fairness_key",
                "attribute:b",
                "idempotency_key",
                "payload",
                "headers"
            ])],
            vec![json!(["attribute:"]), json!(["colour"])],
        ),
    ]
}

#[test]
fn every_bound_holds_on_both_sides() {
    with_peer(|peer, commands| {
        for (argument, allowed, refused) in bounds().into_iter().chain(choices()) {
            let has = |command: &&Value| {
                let mut all = command["arguments"].as_array().unwrap().iter();
                all.any(|it| it["name"] == argument)
            };
            let found: Vec<&Value> = commands.iter().filter(has).collect();
            assert!(!found.is_empty(), "{argument}");
            for command in found {
                let name = text(&command["name"]);
                // Names of exchanges have another limit; a range may have any.
                let is_free = name == "ranking.range" && ["limit", "max"].contains(&argument);
                if name.starts_with("pubsub.") || is_free {
                    continue;
                }
                let mut tried = arguments(command, "k");
                for value in &refused {
                    tried[argument] = value.clone();
                    refused_for(peer, command, &tried, argument);
                }
                for value in &allowed {
                    peer.run("queue.delete", json!({"queue": "k"}));
                    tried[argument] = value.clone();
                    let answer = peer.try_run(name, tried.clone());
                    if answer.payload["ok"] == false {
                        assert_ne!(
                            answer.code(),
                            "BAD_REQUEST",
                            "{name} {argument}: {answer:?}"
                        );
                    }
                }
            }
        }
        // Within a wait that is allowed, what is there comes at once.
        peer.run("list.push", json!({"key": "l", "values": [1]}));
        peer.run("list.pop", json!({"key": "l", "wait_ms": 300_000}));
        for (field, longest) in [("key", 255), ("channel", 255)] {
            let mut publish = json!({"key": "bus", "channel": "c", "payload": 1});
            publish[field] = json!("x".repeat(longest));
            assert_eq!(peer.run("pubsub.publish", publish.clone())["receivers"], 0);
            publish[field] = json!("x".repeat(longest + 1));
            assert_eq!(peer.fail("pubsub.publish", publish), "BAD_REQUEST");
        }
    });
}

/// What each command says of a key or queue that is not there: a code, or (a part of) its result.
fn of_absent(command: &str) -> Value {
    match command {
        "server.ping" => json!({"pong": true}),
        "server.info" | "server.commands" => json!({}),
        "key.exists" => json!({"exists": false}),
        "key.delete" | "value.delete" | "queue.delete" => json!({"deleted": false}),
        "key.scan" => json!({"keys": [], "cursor": null}),
        "value.set" => json!({"version": 1}),
        "value.get_many" => json!({"values": [null]}),
        "value.swap" => json!({"previous": null, "version": 1}),
        "counter.add" | "counter.set" | "map.add" => json!({"value": 1}),
        "map.set" | "ranking.add" => json!({"created": true}),
        "map.remove" | "ranking.remove" => json!({"removed": false}),
        "list.push" => json!({"length": 1}),
        "list.trim" => json!({"length": 0}),
        "set.add" => json!({"added": 1}),
        "set.remove" => json!({"removed": 0}),
        "lock.acquire" => json!({"token": 1}),
        "queue.create" => json!({"queue": "absent"}),
        // Each message has a result of its own.
        "queue.ack" | "queue.nack" | "queue.extend" => json!({"results": "NOT_FOUND"}),
        "pubsub.publish" => json!({"receivers": 0}),
        _ => json!("NOT_FOUND"),
    }
}

#[test]
fn what_is_not_there_is_told_or_made_as_each_command_says() {
    with_peer(|peer, commands| {
        for command in commands {
            let name = text(&command["name"]);
            let target = match name {
                "queue.redrive" => "absent.dlq",
                // Publishing has made the other one.
                "pubsub.channels" => "nowhere",
                _ => "absent",
            };
            let answer = peer.try_run(name, arguments(command, target));
            let expected = of_absent(name);
            if let Some(code) = expected.as_str() {
                assert_eq!(answer.code(), code, "{name}");
            } else {
                for (field, value) in expected.as_object().unwrap() {
                    let found = &answer.result()[field];
                    // What grows from one to the next, over all keys.
                    let grows = ["version", "token"].contains(&&**field);
                    let is_it = found == value
                        || grows && found.as_u64() > Some(0)
                        || field == "results" && &found[0]["error"]["code"] == value;
                    assert!(is_it, "{name}: {answer:?}");
                }
            }
            peer.run("key.delete", json!({"key": "absent"}));
            peer.run("queue.delete", json!({"queue": "absent"}));
        }
    });
}

fn family(command: &Value) -> &str {
    text(&command["name"]).split('.').next().unwrap()
}

/// One key of each kind, named after it, a queue "queue" and a topic "pubsub"; returns the token
/// of the lock.
fn furnish(peer: &mut Peer) -> Value {
    for (kind, make, _) in KINDS {
        peer.run("key.delete", json!({"key": kind}));
        peer.run(make, made(kind, None));
    }
    peer.run("key.delete", json!({"key": "lock"}));
    peer.run("key.delete", json!({"key": "elsewhere"}));
    peer.run("queue.delete", json!({"queue": "queue"}));
    peer.run("queue.create", json!({"queue": "queue"}));
    peer.run(
        "pubsub.publish",
        json!({"key": "pubsub", "channel": "m", "payload": 1}),
    );
    peer.run("lock.acquire", made("lock", Some(3_600_000)))["token"].clone()
}

#[test]
fn results_have_the_declared_fields_and_no_others() {
    with_peer(|peer, commands| {
        for command in commands {
            let name = text(&command["name"]);
            let token = furnish(peer);
            let target = match name {
                "lock.acquire" | "queue.create" => "absent",
                "queue.redrive" => "queue.dlq",
                _ if family(command) == "key" => "value",
                _ => family(command),
            };
            let mut tried = arguments(command, target);
            if family(command) == "map" {
                tried["field"] = json!(if name == "map.add" { "n" } else { "f" });
            }
            if tried.get("token").is_some() {
                tried["token"] = token;
            }
            let result = peer.run(name, tried);
            assert_eq!(fields(&result), fields(&command["result"]), "{name}");
        }
    });
}

#[test]
fn a_key_of_another_kind_is_told_by_every_command_and_stays_as_it_is() {
    with_peer(|peer, commands| {
        furnish(peer);
        let read = |peer: &mut Peer| -> Vec<Value> {
            let kinds = KINDS.iter().filter(|(kind, ..)| *kind != "lock");
            kinds
                .map(|(kind, _, read)| peer.run(read, made(kind, None)))
                .collect()
        };
        let before = read(peer);
        let mut tried = 0;
        for command in commands {
            let family = family(command);
            if !KINDS.iter().any(|(kind, ..)| *kind == family) {
                continue;
            }
            for (kind, ..) in KINDS.iter().filter(|(kind, ..)| *kind != family) {
                let name = text(&command["name"]);
                assert_eq!(
                    peer.fail(name, arguments(command, kind)),
                    "WRONG_TYPE",
                    "{name} {kind}"
                );
                tried += 1;
            }
        }
        assert_eq!((tried, read(peer)), (33 * 6, before));
        for exchange in ["amq.direct", "amq.fanout", "amq.headers"] {
            let publish = json!({"key": exchange, "channel": "c", "payload": 1});
            assert_eq!(peer.fail("pubsub.publish", publish), "WRONG_TYPE");
            assert_eq!(
                peer.fail("pubsub.channels", json!({"key": exchange})),
                "WRONG_TYPE"
            );
        }
    });
}

#[test]
fn every_command_that_makes_a_key_takes_its_time_to_live() {
    with_peer(|peer, commands| {
        let mut tried = 0;
        for command in commands {
            let name = text(&command["name"]);
            let mut all = command["arguments"].as_array().unwrap().iter();
            let is_optional = |it: &&Value| it["name"] == "ttl_ms" && it["required"] == false;
            if !all.any(|it| is_optional(&it)) {
                continue;
            }
            tried += 1;
            let left =
                |peer: &mut Peer| peer.run("key.ttl", json!({"key": "k"}))["ttl_ms"].as_u64();
            let mut with = arguments(command, "k");
            peer.run(name, with.clone());
            assert_eq!(left(peer), None, "{name} without one");
            peer.run("key.delete", json!({"key": "k"}));
            with["ttl_ms"] = json!(3_600_000);
            peer.run(name, with.clone());
            assert!(left(peer).unwrap() > 3_000_000, "{name}");
            // Of a key that is there, only `value.set` changes it.
            with["ttl_ms"] = json!(36_000_000);
            peer.run(name, with.clone());
            assert_eq!(
                left(peer).unwrap() > 30_000_000,
                name == "value.set",
                "{name}"
            );
            with.as_object_mut().unwrap().remove("ttl_ms");
            peer.run(name, with);
            assert_eq!(left(peer).is_none(), name == "value.set", "{name}");
            peer.run("key.delete", json!({"key": "k"}));
        }
        assert_eq!(tried, 9);
    });
}

#[test]
fn unknown_arguments_change_nothing() {
    with_peer(|peer, commands| {
        for command in commands {
            let name = text(&command["name"]);
            let mut with = arguments(command, "absent");
            for (field, value) in [
                ("colour", json!("red")),
                ("ttl", json!([])),
                ("Key", json!(7)),
            ] {
                with[field] = value;
            }
            let answer = peer.try_run(name, with);
            if answer.payload["ok"] == false {
                // That of a queue that is no dead-letter queue, with or without them.
                let expected = match name {
                    "queue.redrive" => ["NOT_FOUND", "BAD_REQUEST"],
                    _ => ["NOT_FOUND", "NOT_FOUND"],
                };
                assert!(expected.contains(&answer.code()), "{name}: {answer:?}");
            }
            peer.run("key.delete", json!({"key": "absent"}));
            peer.run("queue.delete", json!({"queue": "absent"}));
        }
    });
}
