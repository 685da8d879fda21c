//! Exchanges, bindings, and messages through them.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::broker::{Broker, run};

#[test]
fn messages_go_where_bindings_say() {
    let broker = Broker::start();
    assert_eq!(
        broker.ok("exchange declare events --type topic"),
        "exchange events is there: topic\n"
    );
    broker.ok("queue create orders");
    assert_eq!(
        broker.ok("exchange bind events orders --routing-key order.#"),
        "bound queue orders to exchange events with key \"order.#\"\n"
    );
    let sent = broker.ok("exchange send events one two --routing-key order.new --header tenant=a");
    assert_eq!(sent, "sent 2 messages\n");
    let lines = run(
        broker.command("exchange send events --routing-key order.old"),
        b"three\n\nfive",
    );
    assert_eq!((lines.code, &*lines.out), (0, "sent 3 messages\n"));
    let printed = broker.ok("consume orders --ack --raw --count 5");
    assert_eq!(printed, "one\ntwo\nthree\n\nfive\n");

    let lost = broker.run("exchange send events x --routing-key other");
    assert_eq!((lost.code, &*lost.out), (1, "sent 0 messages\n"));
    assert!(lost.err.contains("no queue took 1 message"), "{lost:?}");
    let lost = broker.json("exchange send events x --routing-key other --maybe");
    assert_eq!(lost, json!({"sent": 1, "unroutable": 0, "refused": 0}));

    broker.ok("exchange unbind events orders --routing-key order.#");
    assert_eq!(
        broker
            .run("exchange send events x --routing-key order.new")
            .code,
        1
    );
    broker.ok("exchange delete events --if-unused");
    let gone = broker.run("exchange send events x --routing-key order.new");
    assert_eq!(gone.code, 3, "{gone:?}");
    assert!(gone.err.contains("no exchange 'events'"), "{gone:?}");
}

#[test]
fn what_does_not_fit_is_refused_with_the_brokers_words() {
    let broker = Broker::start();
    broker.ok("exchange declare all --type fanout --internal");
    let other = broker.run("exchange declare all --type direct");
    assert_eq!(other.code, 1);
    assert!(other.err.contains("inequivalent arg 'type'"), "{other:?}");
    let unbound = broker.run("exchange bind all nowhere");
    assert_eq!(unbound.code, 3, "{unbound:?}");
    let internal = broker.run("exchange send all x");
    assert_eq!(internal.code, 1);
    assert!(internal.err.contains("internal exchange"), "{internal:?}");
    // Between exchanges, and back over the default one.
    broker.ok("exchange declare first --type headers --alternate all");
    broker.ok("exchange bind first all --to-exchange --argument x-match=any --argument kind=a");
    broker.ok("queue create q");
    broker.ok("exchange bind all q");
    broker.ok("exchange send first by-header --header kind=a");
    broker.ok("exchange send first by-default");
    let mut direct = broker.command("exchange send");
    direct.args(["", "direct", "--routing-key", "q"]);
    assert_eq!(run(direct, b"").code, 0);
    let printed = broker.ok("consume q --ack --raw --count 3");
    assert_eq!(printed, "by-header\nby-default\ndirect\n");

    let mut wrong = broker.command("exchange declare x");
    let door = broker.door("firemq");
    wrong.env("TANDA_FIREMQ", format!("fire://guest:s3cret@{door}"));
    let wrong = run(wrong, b"");
    assert_eq!(wrong.code, 1);
    assert!(
        wrong.err.contains(&door) && !wrong.err.contains("s3cret"),
        "{wrong:?}"
    );
    let web = broker.run("exchange declare x --firemq ws://127.0.0.1:1/fire");
    assert_eq!(web.code, 2, "{web:?}");
}

#[test]
fn listen_prints_what_comes_while_it_runs() {
    let broker = Broker::start();
    broker.ok("exchange declare news --type topic");
    let mut listener = broker
        .command("exchange listen news --routing-key sport.* --count 2 --json")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Nobody takes it before the listener is there.
    while broker
        .run("exchange send news goal --routing-key sport.eu --header n=1")
        .code
        != 0
    {}
    broker.ok("exchange send news again --routing-key sport.us");
    let lines = BufReader::new(listener.stdout.take().unwrap()).lines();
    let found: Vec<Value> = lines
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .collect();
    let expected = [
        json!({"exchange": "news", "key": "sport.eu", "headers": {"n": "1"}, "body": "goal"}),
        json!({"exchange": "news", "key": "sport.us", "headers": {}, "body": "again"}),
    ];
    assert_eq!(found, expected);
    assert_eq!(listener.wait().unwrap().code(), Some(0));
    let missing = broker.run("exchange listen nowhere");
    assert_eq!(missing.code, 3, "{missing:?}");
}
