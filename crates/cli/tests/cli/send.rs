//! What `send` takes and prints.

use std::{fs, io::Read, process::Stdio};

use serde_json::Value;

use crate::broker::{Broker, run};

#[test]
fn everything_about_a_message_arrives() {
    let broker = Broker::start();
    broker.ok("queue create q");
    let sent = broker.ok(
        "send q --header lang=en --header a=b=c --fairness-key k --weight 3 \
         --idempotency-key i hello --json",
    );
    let sent: Value = serde_json::from_str(&sent).unwrap();
    assert_eq!(sent["duplicate"], false);
    let again = broker.ok("send q --idempotency-key i hello");
    assert_eq!(
        again,
        format!("{} duplicate\n", sent["id"].as_str().unwrap())
    );

    let got = broker.ok("consume q --ack --count 1 --json");
    let got: Value = serde_json::from_str(&got).unwrap();
    assert_eq!(got["id"], sent["id"]);
    assert_eq!(got["payload"], "hello");
    assert_eq!(
        got["headers"],
        serde_json::json!({"lang": "en", "a": "b=c"})
    );
    assert_eq!(got["fairness_key"], "k");
    assert_eq!(got["weight"], 3);
    assert_eq!(got["attempt"], 1);
}

#[test]
fn lines_and_files_are_messages() {
    let broker = Broker::start();
    broker.ok("queue create q");
    let ids = broker.ok_with("send q --lines", "one\n\nthree");
    assert_eq!(ids.lines().count(), 3);
    let path = std::env::temp_dir().join(format!("tanda-send-{}", std::process::id()));
    fs::write(&path, b"a\nfile\xff").unwrap();
    let mut command = broker.command("send q --quiet x --file");
    command.arg(&path);
    let ran = run(command, b"not read");
    fs::remove_file(&path).unwrap();
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{ran:?}");

    let got = broker.ok("consume q --ack --count 5 --json");
    let payloads: Vec<Value> = got
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["payload"].clone())
        .collect();
    assert_eq!(
        payloads,
        [
            "one".into(),
            "".into(),
            "three".into(),
            "x".into(),
            Value::Null
        ]
    );
    let last: Value = serde_json::from_str(got.lines().last().unwrap()).unwrap();
    assert_eq!(last["payload_bytes"][6], 255);
}

#[test]
fn refused_messages_are_told_and_the_others_stored() {
    let broker = Broker::start();
    broker.ok("queue create q --ordering-key header:account");
    let ran = broker.run("send q a b");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.err
            .contains("cannot send 2 messages to \"q\" (0 messages stored)"),
        "{ran:?}"
    );
    assert!(ran.err.contains("lacks a part of the key"), "{ran:?}");
}

#[test]
fn a_reader_that_went_away_does_not_stop_the_sending() {
    let broker = Broker::start();
    broker.ok("queue create q");
    let input = "x\n".repeat(20_000);
    let mut command = broker.command("send q");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, input.as_bytes()).unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
    let mut err = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    assert_eq!(err, "");
    assert_eq!(broker.json("queue inspect q")["counts"]["depth"], 20_000);
}
