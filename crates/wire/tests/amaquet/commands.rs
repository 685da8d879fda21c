//! The table of commands beside that of the specification.

use serde_json::{Value, json};
use tanda_wire::amaquet::command::{COMMANDS, Spec, ValueType, write_commands};
use tanda_wire::amaquet::json::Writer;

/// Command, its arguments (`?` = may be left out), fields of its result, permission and on what.
const TABLE: &[(&str, &str, &str, &str)] = &[
    ("server.ping", "", "pong", "-"),
    (
        "server.info",
        "",
        "version uptime_ms keys connections memory_bytes queues",
        "a",
    ),
    ("server.commands", "", "commands", "-"),
    ("key.exists", "key", "exists", "r key"),
    ("key.kind", "key", "kind", "r key"),
    ("key.delete", "key", "deleted", "a key"),
    ("key.expire", "key ttl_ms", "expires_at", "a key"),
    ("key.ttl", "key", "ttl_ms", "r key"),
    ("key.persist", "key", "persisted", "a key"),
    ("key.rename", "key to", "renamed", "a key to"),
    ("key.scan", "glob? cursor? limit?", "keys cursor", "r"),
    (
        "value.set",
        "key value ttl_ms? if_absent? if_version?",
        "version",
        "w key",
    ),
    ("value.get", "key", "value version", "r key"),
    ("value.get_many", "keys", "values", "r keys"),
    ("value.delete", "key if_version?", "deleted", "w key"),
    (
        "value.swap",
        "key value ttl_ms?",
        "previous version",
        "w key",
    ),
    ("counter.add", "key by? ttl_ms?", "value", "w key"),
    ("counter.get", "key", "value", "r key"),
    ("counter.set", "key value ttl_ms?", "value", "w key"),
    ("map.set", "key field value ttl_ms?", "created", "w key"),
    ("map.get", "key field", "value", "r key"),
    ("map.remove", "key field", "removed", "w key"),
    ("map.all", "key", "fields", "r key"),
    ("map.length", "key", "length", "r key"),
    ("map.add", "key field by? ttl_ms?", "value", "w key"),
    ("list.push", "key values side? ttl_ms?", "length", "w key"),
    ("list.pop", "key side? wait_ms?", "value", "w key"),
    ("list.range", "key start stop", "values", "r key"),
    ("list.length", "key", "length", "r key"),
    ("list.trim", "key start stop", "length", "w key"),
    ("set.add", "key members ttl_ms?", "added", "w key"),
    ("set.remove", "key members", "removed", "w key"),
    ("set.contains", "key member", "contains", "r key"),
    ("set.members", "key", "members", "r key"),
    ("set.length", "key", "length", "r key"),
    (
        "ranking.add",
        "key member score ttl_ms?",
        "created",
        "w key",
    ),
    ("ranking.remove", "key member", "removed", "w key"),
    ("ranking.score", "key member", "score", "r key"),
    ("ranking.rank", "key member reverse?", "rank", "r key"),
    (
        "ranking.range",
        "key start? stop? min? max? reverse? limit?",
        "members",
        "r key",
    ),
    ("ranking.length", "key", "length", "r key"),
    (
        "lock.acquire",
        "key ttl_ms wait_ms?",
        "token expires_at",
        "w key",
    ),
    ("lock.renew", "key token ttl_ms", "expires_at", "w key"),
    ("lock.release", "key token", "released", "w key"),
    (
        "queue.create",
        "queue visibility_timeout_ms? max_attempts? backoff? backoff_initial_ms? backoff_max_ms? \
         ordering_key? dedup_key? dedup_window_ms? delivery_durability?",
        "queue",
        "a queue",
    ),
    ("queue.push", "queue messages", "messages", "w queue"),
    (
        "queue.pop",
        "queue max? wait_ms? lease_ms?",
        "messages",
        "r queue",
    ),
    ("queue.ack", "queue ids", "results", "r queue"),
    (
        "queue.nack",
        "queue ids error? retry_after_ms?",
        "results",
        "r queue",
    ),
    (
        "queue.extend",
        "queue ids extend_by_ms",
        "results",
        "r queue",
    ),
    (
        "queue.stats",
        "queue",
        "depth in_flight delayed throttled unclassified consumers fairness_keys \
         oldest_message_age_ms",
        "a queue",
    ),
    ("queue.peek", "queue max?", "messages", "r queue"),
    ("queue.redrive", "queue count?", "redriven left", "a queue"),
    ("queue.delete", "queue", "deleted", "a queue"),
    (
        "pubsub.publish",
        "key channel payload",
        "receivers",
        "w key",
    ),
    ("pubsub.channels", "key", "channels", "r key"),
];

fn row(spec: &Spec) -> (String, String, String, String) {
    let arguments = spec.arguments.iter().map(|it| {
        let mark = if it.required { "" } else { "?" };
        format!("{}{mark}", it.name)
    });
    let result = spec.result.iter().map(|it| it.name);
    let permission = [&[spec.permission.letter()], spec.on].concat();
    (
        spec.name.to_owned(),
        arguments.collect::<Vec<_>>().join(" "),
        result.collect::<Vec<_>>().join(" "),
        permission.join(" "),
    )
}

#[test]
fn the_table_is_that_of_the_specification() {
    let found: Vec<_> = COMMANDS.iter().map(row).collect();
    let expected = TABLE.iter().map(|(name, arguments, result, permission)| {
        let texts = [name, arguments, result, permission].map(|it| (*it).to_owned());
        let [name, arguments, result, permission] = texts;
        (name, arguments, result, permission)
    });
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(*found, expected);
    }
    assert_eq!(found.len(), TABLE.len());
}

#[test]
fn everything_is_said_of_everything() {
    for spec in COMMANDS {
        assert!(spec.summary.ends_with('.'), "{}", spec.name);
        let arguments = spec.arguments.iter().map(|it| (it.name, it.summary));
        let results = spec.result.iter().map(|it| (it.name, it.summary));
        for (name, summary) in arguments.chain(results) {
            assert!(summary.ends_with('.'), "{} {name}", spec.name);
        }
        for on in spec.on {
            assert!(spec.arguments.iter().any(|it| it.name == *on), "{on}");
        }
    }
}

#[test]
fn server_commands_tells_the_table() {
    let mut out = Vec::new();
    write_commands(&mut Writer::new(&mut out));
    let told: Value = serde_json::from_slice(&out).unwrap();
    let told = told["commands"].as_array().unwrap();
    assert_eq!(told.len(), COMMANDS.len());
    let types: Vec<&str> = ValueType::ALL.iter().map(|it| it.name()).collect();
    for (told, spec) in told.iter().zip(COMMANDS) {
        assert_eq!(told["name"], spec.name);
        assert_eq!(told["permission"], spec.permission.letter());
        let arguments = told["arguments"].as_array().unwrap();
        for (told, argument) in arguments.iter().zip(spec.arguments) {
            assert_eq!(told["name"], argument.name);
            assert_eq!(told["required"], argument.required);
            assert!(types.contains(&told["type"].as_str().unwrap()));
        }
        let result = told["result"].as_object().unwrap();
        assert_eq!(result.len(), spec.result.len());
    }
    let of = |name: &str| told.iter().find(|it| it["name"] == name).unwrap();
    assert_eq!(
        *of("value.delete"),
        json!({
            "name": "value.delete",
            "summary": "Removes a value.",
            "arguments": [
                {"name": "key", "type": "string", "required": true,
                    "summary": "The key. Allowed: 1 to 1024 bytes."},
                {"name": "if_version", "type": "u64", "required": false,
                    "summary": "Only if this is its version; otherwise CONFLICT."},
            ],
            "result": {"deleted": "bool"},
            "permission": "w",
        })
    );
    assert_eq!(of("list.range")["result"], json!({"values": "payload[]"}));
    assert_eq!(of("queue.push")["arguments"][1]["type"], "message[]");
    assert_eq!(of("ranking.add")["arguments"][2]["type"], "number");
    assert_eq!(of("set.add")["arguments"][1]["type"], "string[]");
}
