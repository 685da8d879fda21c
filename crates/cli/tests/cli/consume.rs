//! What `consume` prints, runs, and leaves behind.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use crate::broker::{Broker, run};

#[test]
fn a_look_gives_messages_back_and_says_what_it_cost() {
    let broker = Broker::start();
    broker.ok("queue create q");
    broker.ok("send q a b c");
    let ran = broker.run("consume q --count 2");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.out.lines().count(), 2);
    assert!(
        ran.err
            .contains("gave 2 messages back; the look used one attempt of each"),
        "{ran:?}"
    );
    // Nothing more was leased than shown.
    let counts = &broker.json("queue inspect q")["counts"];
    assert_eq!(
        (&counts["depth"], &counts["in_flight"]),
        (&3.into(), &0.into()),
        "{counts}"
    );
    let again = broker.ok("consume q --count 3 --ack");
    assert_eq!(again.matches("(attempt 2)").count(), 2, "{again}");
}

#[test]
fn it_ends_when_nothing_more_comes() {
    let broker = Broker::start();
    broker.ok("queue create q");
    for line in ["consume q", "consume q --ack", "consume q --exec true"] {
        let ran = broker.run(&format!("{line} --wait 10ms"));
        assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{line}: {ran:?}");
    }
    broker.ok("send q a");
    assert_eq!(broker.ok("consume q --count 2 --wait 2s --raw"), "a\n");
}

#[test]
fn a_command_sees_the_message_and_its_exit_code_settles_it() {
    let broker = Broker::start();
    broker.ok("queue create q --max-attempts 1");
    broker.ok("send q --header content-type=text --fairness-key k hello");
    let script = r#"printf '%s|%s|%s|%s|%s|' "$TANDA_QUEUE" "$TANDA_FAIRNESS_KEY" \
        "$TANDA_ATTEMPT" "$TANDA_HEADER_CONTENT_TYPE" "$TANDA_HEADERS"; cat"#;
    let mut command = broker.command("consume q --count 1 --exec");
    command.arg(script);
    let ran = run(command, b"");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.out, r#"q|k|1|text|{"content-type":"text"}|hello"#);
    assert!(ran.err.contains("1 done, 0 failed"), "{ran:?}");

    broker.ok("send q fails");
    let mut command = broker.command("consume q --count 1 --exec");
    command.arg("exit 3");
    let ran = run(command, b"");
    assert!(ran.err.contains("a message failed: exit code 3"), "{ran:?}");
    assert_eq!(broker.json("queue inspect q.dlq")["counts"]["depth"], 1);
}

#[test]
fn exit_code_75_asks_for_a_retry_later() {
    let broker = Broker::start();
    broker.ok("queue create q");
    broker.ok("send q a");
    let mut command = broker.command("consume q --count 1 --retry-delay 1h --exec");
    command.arg("exit 75");
    let ran = run(command, b"");
    assert!(ran.err.contains("1 to be retried later"), "{ran:?}");
    let why = broker.json("queue explain q");
    assert_eq!(why["counts"]["delayed"], 1);
}

#[test]
fn commands_run_beside_each_other() {
    let broker = Broker::start();
    broker.ok("queue create q");
    broker.ok("send q a b");
    // Each waits for the other: one after the other they would never end.
    let dir = std::env::temp_dir().join(format!("tanda-parallel-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let script = r#"me=$(cat); touch "$DIR/$me"
        until [ -e "$DIR/a" ] && [ -e "$DIR/b" ]; do sleep 0.01; done"#;
    let mut command = broker.command("consume q --count 2 --parallel 2 --exec");
    command.arg(script).env("DIR", &dir);
    let ran = run(command, b"");
    std::fs::remove_dir_all(&dir).unwrap();
    assert!(ran.err.contains("2 done"), "{ran:?}");
}

#[test]
fn a_lease_is_extended_while_the_command_runs() {
    let broker = Broker::start();
    broker.ok("queue create q --visibility-timeout 3s");
    broker.ok("send q a");
    let go = go_file("extended");
    let mut command = broker.command("consume q --count 1 --exec");
    let mut child = command
        .arg(UNTIL_GO)
        .env("GO", &go)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "began");
    let lease_end = || broker.json("queue explain q")["next_lease_end_at_ms"].as_u64();
    let first = lease_end();
    while lease_end() <= first {}
    std::fs::write(&go, "").unwrap();
    let output = child.wait_with_output().unwrap();
    std::fs::remove_file(&go).unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("1 done, 0 failed"), "{err}");
}

/// Tells that it began, then waits for a file.
const UNTIL_GO: &str = "echo began; until [ -e \"$GO\" ]; do sleep 0.01; done; echo ended";

#[test]
fn a_signal_lets_what_runs_finish() {
    let broker = Broker::start();
    broker.ok("queue create q");
    broker.ok("send q a b");
    let go = go_file("signal");
    let mut command = broker.command("consume q --exec");
    let mut child = command
        .arg(UNTIL_GO)
        .env("GO", &go)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "began");
    signal(child.id());
    // The stop gives back what has not begun; then the command may end.
    std::fs::write(&go, "").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "ended");
    assert!(lines.next().is_none(), "no other command began");
    let output = child.wait_with_output().unwrap();
    std::fs::remove_file(&go).unwrap();
    assert!(output.status.success(), "{output:?}");
    let counts = &broker.json("queue inspect q")["counts"];
    assert_eq!(
        (&counts["depth"], &counts["in_flight"]),
        (&1.into(), &0.into()),
        "{counts}"
    );
}

#[test]
fn a_second_signal_stops_commands_and_what_they_started() {
    let broker = Broker::start();
    broker.ok("queue create q");
    broker.ok("send q a");
    let mut command = broker.command("consume q --exec");
    let mut child = command
        .arg("sleep 1000 & echo $!; wait")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let started = lines.next().unwrap().unwrap();
    // Two signals that come together may count as one: go on until one was the second.
    while child.try_wait().unwrap().is_none() {
        signal(child.id());
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    // The pipe ends when nobody holds it any more: the sleep held it too.
    assert!(lines.next().is_none(), "process {started} lives");
}

fn go_file(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("tanda-{name}-{}", std::process::id()))
}

fn signal(pid: u32) {
    let sent = Command::new("sh")
        .args(["-c", &format!("kill -TERM {pid}")])
        .status();
    assert!(sent.unwrap().success());
}

#[test]
fn a_closed_pipe_ends_it_without_noise() {
    let broker = Broker::start();
    broker.ok("queue create q");
    broker.ok_with("send q --quiet", &"x\n".repeat(500));
    let mut command = broker.command("consume q --ack");
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    // What was not read was not acknowledged.
    let counts = &broker.json("queue inspect q")["counts"];
    assert_eq!(
        counts["depth"].as_u64().unwrap() + counts["in_flight"].as_u64().unwrap(),
        500
    );
}
