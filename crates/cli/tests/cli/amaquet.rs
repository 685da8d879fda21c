//! `tanda amaquet` without a terminal; the shell on one is tested by `tests/clients`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::broker::{Broker, Ran, run, tanda};

fn amaquet(broker: &Broker, words: &[&str]) -> Command {
    let mut command = broker.command("amaquet");
    command
        .args(words)
        .env("TANDA_AMAQUET", broker.door("amaquet"));
    command
}

fn ran(broker: &Broker, words: &[&str]) -> Ran {
    run(amaquet(broker, words), b"")
}

fn answer(broker: &Broker, words: &[&str]) -> Value {
    let ran = ran(broker, words);
    assert_eq!((ran.code, &*ran.err), (0, ""), "{words:?}: {ran:?}");
    serde_json::from_str(&ran.out).unwrap()
}

#[test]
fn one_command_answers_on_a_line() {
    let broker = Broker::start();
    let set = ["value.set", "greeting", "hello you", "ttl_ms=1h"];
    assert_eq!(answer(&broker, &set), json!({"version": 1}));
    let got = answer(&broker, &["value.get", "key=greeting"]);
    let expected = json!({"value": {"type": "text", "data": "hello you"}, "version": 1});
    assert_eq!(got, expected);
    let added = answer(&broker, &["set.add", "colors", "red", "green", "red"]);
    assert_eq!(added, json!({"added": 2}));
    let whole = r#"{"command":"counter.add","key":"n","by":9223372036854775807}"#;
    let text = ran(&broker, &[whole]).out;
    assert_eq!(text, "{\"value\":9223372036854775807}\n");
    let negative = answer(&broker, &["counter.add", "n", "by=-7"]);
    assert_eq!(negative, json!({"value": 9_223_372_036_854_775_800_u64}));
    answer(&broker, &["list.push", "l", "1", "2"]);
    let last = answer(&broker, &["list.range", "l", "-1", "-1"]);
    assert_eq!(last, json!({"values": [{"type": "json", "data": 2}]}));
}

#[test]
fn failures_have_their_exit_codes() {
    let broker = Broker::start();
    answer(&broker, &["counter.add", "n"]);
    for (words, code, said) in [
        (vec!["value.get", "none"], 3, "value.get: NOT_FOUND"),
        (vec!["value.get", "n"], 1, "key.kind tells"),
        (vec!["value.gte", "n"], 2, "did you mean value.get?"),
        (vec!["value.get"], 2, "misses key"),
        (vec!["list.pop", "l", "wait_ms=1d"], 2, "BAD_REQUEST"),
        (vec!["list.pop", "l", "wait_ms=1ms"], 1, "TIMEOUT"),
        (vec!["status"], 2, "on a terminal"),
        (vec!["subscribe", "bus"], 2, "subscribe KEY CHANNEL"),
        (
            vec!["server.ping", "--node-key", "AAAA"],
            2,
            "32 bytes in base64",
        ),
    ] {
        let ran = ran(&broker, &words);
        assert_eq!((ran.code, &*ran.out), (code, ""), "{words:?}: {ran:?}");
        assert!(ran.err.contains(said), "{words:?}: {ran:?}");
    }
    let other_key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let other = ran(&broker, &["server.ping", "--node-key", other_key]);
    assert_eq!(other.code, 1, "{other:?}");
    assert!(other.err.contains("does not prove who it is"), "{other:?}");
}

#[test]
fn doors_that_are_none_are_told() {
    let mut command = tanda();
    command.args(["amaquet", "server.ping", "--amaquet", "127.0.0.1:1"]);
    let nobody = run(command, b"");
    assert_eq!(nobody.code, 1);
    assert!(
        nobody.err.contains("is `tanda serve` running?"),
        "{nobody:?}"
    );
    // Help, and what cannot be sent, need no broker.
    let mut command = tanda();
    command.args(["amaquet", "help", "value.set"]);
    let help = run(command, b"");
    assert_eq!(help.code, 0);
    assert!(help.out.contains("if_version"), "{help:?}");

    let broker = Broker::start();
    let fila = ran(&broker, &["server.ping", "--amaquet", &broker.addr]);
    assert_eq!(fila.code, 1, "{fila:?}");
    assert!(fila.err.contains("Amaquet door"), "{fila:?}");
}

#[test]
fn a_script_runs_up_to_the_first_failure() {
    let broker = Broker::start();
    let script = "\
# counts
counter.add n

counter.add n by=2
value.set doc {\"a\": [1, 2]}
value.get doc
";
    let ran = run(amaquet(&broker, &[]), script.as_bytes());
    assert_eq!(ran.code, 0, "{ran:?}");
    let lines: Vec<&str> = ran.out.lines().collect();
    let got = r#"{"value":{"type":"json","data":{"a": [1, 2]}},"version":1}"#;
    assert_eq!(
        lines,
        [r#"{"value":1}"#, r#"{"value":3}"#, r#"{"version":1}"#, got]
    );

    let failing = "counter.add n\nvalue.get n\ncounter.add n\n";
    let ran = run(amaquet(&broker, &[]), failing.as_bytes());
    assert_eq!((ran.code, &*ran.out), (1, "{\"value\":4}\n"), "{ran:?}");
    assert!(ran.err.contains("line 2 failed"), "{ran:?}");
    assert!(ran.err.contains("WRONG_TYPE"), "{ran:?}");
    assert_eq!(answer(&broker, &["counter.get", "n"]), json!({"value": 4}));
    let after_exit = run(amaquet(&broker, &[]), b"exit\ncounter.add n\n");
    assert_eq!((after_exit.code, &*after_exit.out), (0, ""));
}

#[test]
fn subscribe_prints_what_comes() {
    let broker = Broker::start();
    let mut listener = amaquet(&broker, &["subscribe", "bus", "news.#", "count=2"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Nobody is there before it is.
    let publish = ["pubsub.publish", "bus", "news.a", "goal"];
    while answer(&broker, &publish) == json!({"receivers": 0}) {}
    answer(&broker, &publish);
    let lines = BufReader::new(listener.stdout.take().unwrap()).lines();
    for line in lines.take(2) {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        assert_eq!(event.get("channel"), Some(&json!("news.a")));
        let payload = json!({"type": "text", "data": "goal"});
        assert_eq!(event.get("payload"), Some(&payload));
    }
    assert_eq!(listener.wait().unwrap().code(), Some(0));
}

#[test]
fn a_signal_cancels_what_runs() {
    let broker = Broker::start();
    let mut waiting = amaquet(&broker, &[])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let script = b"counter.add begun\nlist.pop jobs wait_ms=4m\ncounter.add begun\n";
    waiting.stdin.take().unwrap().write_all(script).unwrap();
    let mut first = String::new();
    let mut stdout = BufReader::new(waiting.stdout.take().unwrap());
    stdout.read_line(&mut first).unwrap();
    assert_eq!(first, "{\"value\":1}\n");
    let pid = waiting.id().to_string();
    let sent = Command::new("kill").args(["-s", "INT", &pid]).status();
    assert!(sent.unwrap().success());
    let output = waiting.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("CANCELLED"), "{said}");
    assert_eq!(
        answer(&broker, &["counter.get", "begun"]),
        json!({"value": 1})
    );
    answer(&broker, &["list.push", "jobs", "1"]);
    assert_eq!(
        answer(&broker, &["list.length", "jobs"]),
        json!({"length": 1})
    );
}
