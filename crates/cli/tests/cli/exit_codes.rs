//! Exit codes, and what is said when something is wrong.

use crate::broker::{Broker, Ran, run, tanda};

fn alone(line: &str) -> Ran {
    let mut command = tanda();
    command.args(line.split_whitespace());
    run(command, b"")
}

#[test]
fn wrong_usage_is_2_and_names_the_value() {
    let cases = [
        ("queue", "Usage"),
        ("queue create", "NAME"),
        (
            "queue create q --visibility-timeout 30",
            "the unit is missing",
        ),
        ("queue create q --ordering sideways", "sideways"),
        ("queue create q --ordering key", "--ordering-key"),
        (
            "queue create q --ordering-key payload",
            "\"payload\" is no part",
        ),
        ("queue update q", "nothing to change"),
        (
            "queue explain q not-a-uuid",
            "0190163d-8694-739b-aea5-966c26f8ad91",
        ),
        ("send q --header nonsense x", "NAME=VALUE"),
        ("send q --weight 0 x", "0"),
        ("send q --idempotency-key i a b", "single message"),
        ("send q --lines x", "--lines"),
        ("consume q --parallel 2", "--exec"),
        ("consume q --ack --exec true", "--exec"),
        ("consume q --count 0", "0"),
        ("consume q --raw --json", "--raw"),
        ("health --http ftp://x:1", "http://HOST:PORT"),
        ("--json serve", "after `serve`"),
        ("frobnicate", "frobnicate"),
    ];
    for (line, said) in cases {
        let ran = alone(line);
        assert_eq!(ran.code, 2, "{line}: {ran:?}");
        assert!(ran.err.contains(said), "{line}: {ran:?}");
        assert_eq!(ran.out, "", "{line}");
    }
}

#[test]
fn a_broker_that_is_not_there_is_1_and_the_address_is_named() {
    for line in [
        "queue list --addr 127.0.0.1:1",
        "--addr 127.0.0.1:1 send q x",
        "consume q --addr 127.0.0.1:1",
        "health --http http://127.0.0.1:1",
        "queue explain q --http 127.0.0.1:1",
    ] {
        let ran = alone(line);
        assert_eq!(ran.code, 1, "{line}: {ran:?}");
        assert!(ran.err.contains("127.0.0.1:1"), "{line}: {ran:?}");
        assert!(
            ran.err.contains("is `tanda serve` running?"),
            "{line}: {ran:?}"
        );
    }
}

#[test]
fn the_wrong_door_is_1() {
    let broker = Broker::start();
    let fila = broker.http.trim_start_matches("http://");
    let ran = alone(&format!("queue list --addr {fila}"));
    assert_eq!(ran.code, 1, "{ran:?}");
    let ran = alone(&format!("health --http {}", broker.addr));
    assert_eq!(ran.code, 1, "{ran:?}");
}

#[test]
fn what_is_not_there_is_3_and_the_name_is_told() {
    let broker = Broker::start();
    for line in [
        "queue update none --max-attempts 3",
        "queue inspect none",
        "queue delete none --yes",
        "queue purge none --yes",
        "queue explain none",
        "send none x",
        "consume none",
        "redrive none",
    ] {
        let ran = broker.run(line);
        assert_eq!(ran.code, 3, "{line}: {ran:?}");
        assert!(ran.err.contains("\"none"), "{line}: {ran:?}");
        assert!(ran.err.contains("tanda queue list"), "{line}: {ran:?}");
    }
}

#[test]
fn what_the_broker_refuses_is_1_and_says_why() {
    let broker = Broker::start();
    broker.ok("queue create q");
    for (line, said) in [
        ("queue create q", "exists already"),
        ("queue create x.dlq", ".dlq"),
        ("send q.dlq x", ".dlq"),
        ("queue delete q.dlq --yes", ".dlq"),
    ] {
        let ran = broker.run(line);
        assert_eq!(ran.code, 1, "{line}: {ran:?}");
        assert!(ran.err.contains(said), "{line}: {ran:?}");
    }
}

#[test]
fn help_tells_the_exit_codes() {
    let ran = alone("help");
    assert_eq!(ran.code, 0);
    assert!(ran.out.contains("3 not found"), "{}", ran.out);
}
