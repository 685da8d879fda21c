//! API keys and grants, and what commands say without the right one.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::Stdio,
};

use serde_json::json;

use crate::broker::{Broker, Ran, new_dir, run};

/// A broker that asks for keys, and a file with one that may do everything.
struct Guarded {
    broker: Broker,
    root: PathBuf,
}

const SECRET: &str = "0123456789-0123456789-0123456789";

impl Guarded {
    fn start() -> Self {
        let root = new_dir().with_extension("key");
        fs::write(&root, format!("{SECRET}\n")).unwrap();
        let path = root.display().to_string();
        let broker = Broker::start_with(new_dir(), &["--auth-bootstrap-apikey-file", &path]);
        Self { broker, root }
    }

    /// Runs a command with a key in the environment.
    fn run(&self, key: &str, line: &str) -> Ran {
        let mut command = self.broker.command(line);
        command.env("TANDA_API_KEY", key);
        run(command, b"")
    }

    /// Runs a command that must succeed, as a superadmin; returns what it printed.
    fn ok(&self, line: &str) -> String {
        let line = format!("{line} --api-key-file {}", self.root.display());
        self.broker.ok(&line)
    }

    /// Makes a key, and returns its ID and secret.
    fn key(&self, line: &str) -> (String, String) {
        let made = self.ok(&format!("key create {line} --json"));
        let made: serde_json::Value = serde_json::from_str(&made).unwrap();
        let text = |field: &str| made.get(field).unwrap().as_str().unwrap().to_owned();
        (text("key_id"), text("key"))
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.root));
    }
}

#[test]
fn the_secret_alone_goes_to_standard_output() {
    let guarded = Guarded::start();
    let line = "key create worker --grant consume:orders* --grant produce:orders";
    let ran = guarded.run(SECRET, &format!("{line} --expires-in 90d"));
    assert_eq!(ran.code, 0, "{ran:?}");
    let secret = ran.out.strip_suffix('\n').unwrap();
    assert!(
        !secret.is_empty() && !secret.contains(char::is_whitespace),
        "{ran:?}"
    );
    assert!(
        ran.err.contains("may consume:orders*, produce:orders"),
        "{ran:?}"
    );
    assert!(!ran.err.contains(secret), "the secret is printed once");

    guarded.ok("queue create orders");
    let sent = guarded.run(secret, "send orders x");
    assert_eq!(sent.code, 0, "{sent:?}");
    let listed = guarded.ok("key list");
    assert!(
        listed.contains("worker") && !listed.contains(secret),
        "{listed}"
    );
}

#[test]
fn without_the_right_key_commands_say_what_to_do() {
    let guarded = Guarded::start();
    guarded.ok("queue create orders");
    let broker = &guarded.broker;
    for line in ["queue list", "queue explain orders", "send orders x"] {
        let ran = broker.run(line);
        assert_eq!(ran.code, 1, "{line}: {ran:?}");
        assert!(ran.err.contains("--api-key-file"), "{line}: {ran:?}");
        let ran = guarded.run("another-key", line);
        assert_eq!(ran.code, 1, "{line}: {ran:?}");
        assert!(!ran.err.contains("another-key"), "{line}: {ran:?}");
    }
    let (_, secret) = guarded.key("worker --grant consume:orders");
    for line in [
        "send orders x",
        "queue delete orders --yes",
        "key list",
        "config list",
    ] {
        let ran = guarded.run(&secret, line);
        assert_eq!(ran.code, 1, "{line}: {ran:?}");
        assert!(ran.err.contains("does not allow"), "{line}: {ran:?}");
    }
    let ran = guarded.run(&secret, "queue explain orders");
    assert_eq!(ran.code, 1, "{ran:?}");
    let unknown = guarded.run(SECRET, "key revoke k999");
    assert_eq!(unknown.code, 3, "{unknown:?}");
    assert!(unknown.err.contains("tanda key list"), "{unknown:?}");
}

#[test]
fn grants_are_shown_and_replaced() {
    let guarded = Guarded::start();
    guarded.ok("queue create orders");
    let (id, secret) = guarded.key("worker");
    assert_eq!(guarded.run(&secret, "send orders x").code, 1);
    guarded.ok(&format!("acl set {id} produce:o*"));
    assert_eq!(guarded.run(&secret, "send orders x").code, 0);
    let acl = guarded.ok(&format!("acl get {id} --json"));
    let acl: serde_json::Value = serde_json::from_str(&acl).unwrap();
    assert_eq!(acl["grants"], json!([{"kind": "produce", "pattern": "o*"}]));
    assert_eq!(
        guarded.ok(&format!("acl get {id}")),
        "MAY      ON QUEUES\nproduce  o*\n"
    );
    guarded.ok(&format!("acl set {id} --none"));
    assert_eq!(guarded.run(&secret, "send orders x").code, 1);
    let set = guarded.run(SECRET, &format!("acl set {id}"));
    assert_eq!(set.code, 2, "all grants are taken only when asked: {set:?}");
}

#[test]
fn a_revoked_key_ends_a_worker() {
    let guarded = Guarded::start();
    guarded.ok("queue create orders");
    let (id, secret) = guarded.key("worker --grant consume:orders");
    let mut command = guarded.broker.command("consume orders --ack --raw");
    let mut child = command
        .env("TANDA_API_KEY", &secret)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    guarded.ok("send orders x --quiet");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "x");
    guarded.ok(&format!("key revoke {id}"));
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("Unauthorized"), "{err}");
    assert!(!err.contains(&secret), "{err}");
}
