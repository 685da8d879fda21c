//! The quick start of the README, command by command.

use std::fmt::Write;

use crate::broker::Broker;

fn lines(prefix: &str, count: u32) -> String {
    (1..=count).fold(String::new(), |mut text, number| {
        writeln!(text, "{prefix} {number}").unwrap();
        text
    })
}

#[test]
fn a_small_tenant_gets_its_turn_beside_a_big_one() {
    let broker = Broker::start();
    broker.ok("queue create invoices");
    broker.ok_with(
        "send invoices --fairness-key big --quiet",
        &lines("big", 1_000),
    );
    broker.ok_with(
        "send invoices --fairness-key small --quiet",
        &lines("small", 3),
    );

    let first = broker.ok("consume invoices --ack --count 6 --raw");
    let small = first.lines().filter(|line| line.starts_with("small"));
    assert_eq!(
        small.collect::<Vec<_>>(),
        ["small 1", "small 2", "small 3"],
        "{first}"
    );
    assert_eq!(first.lines().count(), 6);

    let left = broker.json("queue inspect invoices");
    assert_eq!(left["counts"]["depth"], 997);
    assert_eq!(left["fairness_keys"][0]["key"], "big");
    assert_eq!(left["fairness_keys"][0]["pending"], 997);

    let why = broker.ok("queue explain invoices");
    assert!(why.contains("no consumer is connected"), "{why}");
}

#[test]
fn what_fails_becomes_a_dead_letter_and_comes_back() {
    let broker = Broker::start();
    broker.ok("queue create jobs --max-attempts 2 --backoff none");
    broker.ok("send jobs broken");
    broker.ok("consume jobs --exec false --count 2");
    assert_eq!(broker.json("queue inspect jobs.dlq")["counts"]["depth"], 1);
    assert_eq!(broker.json("redrive jobs")["redriven"], 1);
    assert_eq!(broker.ok("consume jobs --ack --count 1 --raw"), "broken\n");
}
