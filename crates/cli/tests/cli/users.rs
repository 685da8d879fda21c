//! Users and permissions: given on the command line, heeded by the AMQP door.

use std::{fs, path::Path};

use serde_json::json;

use crate::amqp_peer::AmqpPeer;
use crate::broker::{Broker, new_dir};

fn open(broker: &Broker, user: &str, password: &str) -> Result<AmqpPeer, String> {
    AmqpPeer::open(&broker.door("amqp"), user, password)
}

fn refusal(broker: &Broker, user: &str, password: &str) -> String {
    let refused = open(broker, user, password).err();
    let text = refused.unwrap_or_else(|| panic!("{user} was let in"));
    assert!(
        text.contains("403") && text.contains("ACCESS_REFUSED"),
        "{text}"
    );
    text
}

#[test]
fn permissions_count_at_once_and_deleted_users_are_turned_out() {
    let broker = Broker::start();
    broker.ok_with("user add anna --tag monitoring", "pw-of-anna\n");
    let text = open(&broker, "anna", "pw-of-anna").err().unwrap();
    assert!(
        text.replace('\\', "")
            .contains("access to vhost '/' refused for user 'anna'"),
        "{text}"
    );

    broker.ok("permission set anna ^anna- ^$ .*");
    let mut anna = open(&broker, "anna", "pw-of-anna").unwrap();
    anna.declare("anna-jobs").unwrap();
    let refused = anna.declare("jobs").unwrap_err();
    let text = "configure access to queue 'jobs' in vhost '/' refused for user 'anna'";
    assert!(refused.replace('\\', "").contains(text), "{refused}");

    // The connection is the same.
    broker.ok("permission set anna .* ^$ .*");
    anna.declare("jobs").unwrap();
    broker.ok("permission clear anna");
    anna.declare("more").unwrap_err();

    broker.ok("user delete anna --yes");
    anna.expect("CONNECTION_FORCED - user \\'anna\\' was deleted");
    let gone = refusal(&broker, "anna", "pw-of-anna");
    // Whether there is such a user is not said.
    assert_eq!(gone, refusal(&broker, "berta", "x"));
    assert_eq!(broker.run("user delete anna --yes").code, 3);
}

#[test]
fn users_survive_a_kill_and_guest_does_not_come_back() {
    let mut broker = Broker::start();
    open(&broker, "guest", "guest").unwrap();
    broker.ok_with("user add anna --tag administrator", "first-pw\n");
    broker.ok("permission set anna .* .* .*");
    broker.ok("topic-permission set anna amq.topic ^a .*");
    let mut anna = open(&broker, "anna", "first-pw").unwrap();
    broker.ok_with("user set-password anna", "second-pw\n");
    anna.expect("CONNECTION_FORCED - the password of user \\'anna\\' was changed");
    broker.ok("vhost add shop");
    broker.ok("user delete guest --yes");
    refusal(&broker, "guest", "guest");
    for _ in 0..2 {
        broker.kill_and_restart();
        refusal(&broker, "guest", "guest");
        refusal(&broker, "anna", "first-pw");
        open(&broker, "anna", "second-pw").unwrap();
    }
    broker.ok_with("user authenticate anna", "second-pw");
    let wrong = broker.run("user authenticate anna --password first-pw");
    assert_eq!(wrong.code, 1, "{wrong:?}");
    assert_eq!(
        broker.json("user list"),
        json!([{"name": "anna", "tags": ["administrator"], "has_password": true}])
    );
    assert_eq!(
        broker.json("permission list"),
        json!([{"user": "anna", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}])
    );
    let topics = broker.json("topic-permission list --user anna");
    let topic = json!({
        "user": "anna", "vhost": "/", "exchange": "amq.topic", "write": "^a", "read": ".*"
    });
    assert_eq!(topics, json!([topic]));
    assert_eq!(
        broker.json("vhost list"),
        json!([{"name": "/"}, {"name": "shop"}])
    );
    broker.ok("vhost delete shop --yes");
    broker.ok("topic-permission clear anna");
    assert_eq!(broker.json("topic-permission list"), json!([]));
    for secret in ["first-pw", "second-pw"] {
        assert!(!holds(broker.data_dir(), secret.as_bytes()), "{secret}");
    }
}

/// Whether any file below a folder has these bytes.
fn holds(folder: &Path, bytes: &[u8]) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return holds(&path, bytes);
        }
        // The broker goes on meanwhile, and files go with what it needs no more.
        let content = fs::read(&path).unwrap_or_default();
        content.windows(bytes.len()).any(|window| window == bytes)
    })
}

#[test]
fn where_keys_are_asked_for_users_and_keys_log_in_and_guest_does_not() {
    let root = "0123456789-0123456789-0123456789";
    let options = ["--auth-bootstrap-apikey", root];
    let broker = Broker::start_with(new_dir(), &options);
    refusal(&broker, "guest", "guest");
    let as_root = |line: &str| broker.ok(&format!("{line} --api-key {root}"));
    let refused = broker.run("user list");
    assert!(refused.err.contains("API key"), "{refused:?}");
    as_root("user add anna --password pw-of-anna");
    as_root("permission set anna .* .* .*");
    open(&broker, "anna", "pw-of-anna").unwrap();

    // A key is a password of any user.
    open(&broker, "whoever", root)
        .unwrap()
        .declare("jobs")
        .unwrap();
    let key = as_root("key create worker --grant admin:mine.* --grant produce:jobs");
    let mut worker = open(&broker, "worker", key.trim()).unwrap();
    worker.declare("mine.1").unwrap();
    let refused = worker.declare("jobs2").unwrap_err();
    assert!(refused.contains("refused for user"), "{refused}");
    let keys = as_root("key list --json");
    let keys: serde_json::Value = serde_json::from_str(&keys).unwrap();
    let worker_key = keys.as_array().unwrap().last().unwrap();
    let id = worker_key.get("key_id").unwrap().as_str().unwrap();
    as_root(&format!("key revoke {id}"));
    worker.expect("CONNECTION_FORCED - the API key");
    refusal(&broker, "worker", key.trim());
}

#[test]
fn what_cannot_be_is_refused_with_what_to_do() {
    let broker = Broker::start();
    broker.ok_with("user add anna", "pw\n");
    let twice = run_with(&broker, "user add anna", "pw2\n");
    assert!(twice.err.contains("set-password"), "{twice:?}");
    for (line, says) in [
        ("permission set anna ( .* .*", "unclosed group"),
        ("permission set anna (?!x) .* .*", "look-around"),
        ("permission set berta .* .* .*", "no user named"),
        (
            "permission set anna .* .* .* --vhost shop",
            "no virtual host",
        ),
        ("user delete anna", "--yes"),
        ("user set-tags berta", "no user named"),
        ("vhost delete / --yes", "always there"),
    ] {
        let ran = broker.run(line);
        assert!(ran.code != 0 && ran.err.contains(says), "{line}: {ran:?}");
    }
    let empty = run_with(&broker, "user add berta", "\n");
    assert!(empty.err.contains("password is empty"), "{empty:?}");
}

/// The hash is of `test12`, as RabbitMQ makes it.
const CONFIGURED: &str = r#"
[[users]]
name = "anna"
password_hash = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"
tags = ["monitoring"]

[[users.permissions]]
configure = "^anna-"
write = ".*"
read = ".*"

[[users.permissions]]
vhost = "shop"
configure = ""
write = ""
read = ".*"

[[users]]
name = "bert"
password_file = "BERTS"
"#;

#[test]
fn users_of_the_configuration_are_made_once() {
    let folder = new_dir();
    fs::create_dir_all(&folder).unwrap();
    let (file, secret) = (folder.join("tanda.toml"), folder.join("bert.password"));
    fs::write(&secret, "pw-of-bert\n").unwrap();
    let text = CONFIGURED.replace("BERTS", &secret.display().to_string());
    fs::write(&file, text).unwrap();
    let file = file.display().to_string();
    let options = ["--config", &file];
    let mut broker = Broker::start_with(folder.join("data"), &options);
    let mut anna = open(&broker, "anna", "test12").unwrap();
    anna.declare("anna-1").unwrap();
    anna.declare("other").unwrap_err();
    AmqpPeer::open_in(&broker.door("amqp"), ("anna", "test12"), "shop").unwrap();
    broker.ok_with("user authenticate bert", "pw-of-bert");

    // What was changed since stays; what is not there any more is made again.
    broker.ok_with("user set-password anna", "another");
    broker.ok("user set-tags anna");
    broker.ok("permission set anna .* .* .*");
    broker.ok("user delete bert --yes");
    fs::write(&secret, "pw-of-bert-2").unwrap();
    broker = broker.stop_and_start(&options);
    open(&broker, "anna", "another")
        .unwrap()
        .declare("other")
        .unwrap();
    broker.ok_with("user authenticate bert", "pw-of-bert-2");
    let users = broker.json("user list");
    assert_eq!(
        users[0],
        json!({"name": "anna", "tags": [], "has_password": true})
    );
    // The file is read only for who is not there.
    fs::remove_file(&secret).unwrap();
    broker = broker.stop_and_start(&options);
    for secret in ["test12", "pw-of-bert", "another"] {
        assert!(!holds(broker.data_dir(), secret.as_bytes()), "{secret}");
    }
    broker.ok("user delete bert --yes");
    let refused = broker.refuses_to_start(&options);
    assert!(
        refused.contains("cannot make [[users]]: user \"bert\": password_file"),
        "{refused}"
    );
    fs::remove_dir_all(folder).unwrap();
}

fn run_with(broker: &Broker, line: &str, input: &str) -> crate::broker::Ran {
    crate::broker::run(broker.command(line), input.as_bytes())
}

/// What RabbitMQ 4.1 exports, shortened; the password is `test12`.
const EXPORTED: &str = r#"{
  "rabbit_version": "4.1.0",
  "product_name": "RabbitMQ",
  "users": [
    {"name": "anna", "password_hash": "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR",
     "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": ["monitoring"], "limits": {}}
  ],
  "vhosts": [{"name": "/", "metadata": {"tags": []}}, {"name": "shop", "limits": []}],
  "permissions": [
    {"user": "anna", "vhost": "/", "configure": "^$", "write": ".*", "read": ".*"},
    {"user": "anna", "vhost": "shop", "configure": ".*", "write": ".*", "read": ".*"}
  ],
  "topic_permissions": [
    {"user": "anna", "vhost": "/", "exchange": "events", "write": "^a", "read": ".*"}
  ],
  "parameters": [],
  "global_parameters": [{"name": "internal_cluster_id", "value": "x"}],
  "policies": [{"vhost": "/", "name": "ha", "pattern": ".*", "definition": {"max-length": 9}}],
  "queues": [
    {"name": "jobs", "vhost": "/", "durable": true, "auto_delete": false,
     "arguments": {"x-queue-type": "classic", "x-message-ttl": 60000}}
  ],
  "exchanges": [
    {"name": "events", "vhost": "/", "type": "topic", "durable": true, "auto_delete": false,
     "internal": false, "arguments": {}}
  ],
  "bindings": [
    {"source": "events", "vhost": "/", "destination": "jobs", "destination_type": "queue",
     "routing_key": "a.#", "arguments": {}}
  ]
}"#;

#[test]
fn definitions_of_rabbitmq_are_loaded_again_and_again() {
    let file = new_dir().with_extension("json");
    fs::write(&file, EXPORTED).unwrap();
    let import = format!("definitions import {}", file.display());
    let mut broker = Broker::start();
    let once = broker.run(&import);
    assert_eq!(once.code, 0, "{once:?}");
    assert!(
        once.err.contains("policies \"ha\" is not supported"),
        "{once:?}"
    );
    let exported = broker.json("definitions export");
    let arguments = exported.pointer("/queues/0/arguments").unwrap();
    assert_eq!(
        *arguments,
        json!({"x-queue-type": "classic", "x-message-ttl": 60_000})
    );
    assert_eq!(
        exported.pointer("/bindings/0/routing_key"),
        Some(&json!("a.#"))
    );

    let mut anna = open(&broker, "anna", "test12").unwrap();
    anna.declare("more").unwrap_err();
    // The hash is another one by now, of the same password: nobody has to log in again.
    let algorithm = || {
        let users = broker.json("definitions export");
        let users = users.get("users").unwrap().as_array().unwrap().clone();
        let anna = users.iter().find(|user| user["name"] == "anna").unwrap();
        anna["hashing_algorithm"].clone()
    };
    while algorithm() != "argon2id" {}
    let again = broker.json(&import);
    assert_eq!(again["refused"], json!([]));
    assert_eq!(again["imported"]["users"], json!(1));
    assert_eq!(algorithm(), "argon2id");
    anna.declare("more").unwrap_err();

    // What was exported can be loaded elsewhere, at the start.
    let other = new_dir().with_extension("json");
    fs::write(&other, exported.to_string()).unwrap();
    let path = other.display().to_string();
    let second = Broker::start_with(new_dir(), &["--load-definitions", &path]);
    open(&second, "anna", "test12").unwrap();
    assert_eq!(
        second.json("vhost list"),
        json!([{"name": "/"}, {"name": "shop"}])
    );

    fs::write(&file, EXPORTED.replace("60000", "5")).unwrap();
    let other_ttl = broker.run(&import);
    assert_eq!(other_ttl.code, 1, "{other_ttl:?}");
    assert!(other_ttl.err.contains("queues \"jobs\""), "{other_ttl:?}");
    broker.kill_and_restart();
    open(&broker, "anna", "test12").unwrap();
    for file in [file, other] {
        fs::remove_file(file).unwrap();
    }
}
