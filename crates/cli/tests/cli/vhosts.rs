//! Virtual hosts from the command line: what is in them, and what becomes of it.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use serde_json::{Value, json};

use crate::amqp_peer::AmqpPeer;
use crate::broker::{Broker, new_dir, run};

/// A broker with the virtual host `shop`, open to guest.
fn with_shop() -> Broker {
    let broker = Broker::start();
    broker.ok("vhost add shop");
    broker.ok("permission set guest .* .* .* --vhost shop");
    broker
}

fn open(broker: &Broker, vhost: &str) -> AmqpPeer {
    AmqpPeer::open_in(&broker.door("amqp"), ("guest", "guest"), vhost).unwrap()
}

/// Runs a command of FireMQ in `shop`.
fn in_shop(broker: &Broker, line: &str) -> String {
    let mut command = broker.command(line);
    command.env(
        "TANDA_FIREMQ",
        format!("fire://{}/shop", broker.door("firemq")),
    );
    let ran = run(command, b"");
    assert_eq!(ran.code, 0, "{line}: {ran:?}");
    ran.out
}

/// The entries of a list with one value in one field.
fn those<'a>(list: &'a Value, key: &str, value: &str) -> Vec<&'a Value> {
    let all = list.as_array().unwrap().iter();
    all.filter(|it| it[key] == value).collect()
}

#[test]
fn queues_are_listed_by_virtual_host() {
    let broker = with_shop();
    broker.ok("queue create orders");
    let mut shop = open(&broker, "shop");
    shop.declare("jobs").unwrap();
    let queues = broker.json("queue list --vhost shop");
    assert_eq!(
        queues,
        json!([{
            "name": "jobs", "vhost": "shop", "type": "classic", "durable": false,
            "auto_delete": false, "exclusive": false, "arguments": {}, "messages": 0,
            "messages_ready": 0, "messages_unacknowledged": 0, "message_bytes": 0, "consumers": 0,
        }])
    );
    let root = broker.json("queue list --vhost /");
    let names: Vec<_> = root
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(names, ["orders", "orders.dlq"]);
    broker.ok("send orders a b");
    let orders = &broker.json("queue list --vhost /")[0];
    assert_eq!(
        (&orders["messages"], &orders["durable"]),
        (&json!(2), &json!(true))
    );
    let shown = broker.ok("queue list --vhost shop");
    assert!(
        shown.contains("jobs") && shown.contains("transient"),
        "{shown}"
    );
    // Those that Fila shows are in `/`.
    assert_eq!(broker.json("queue list").as_array().unwrap().len(), 2);
}

#[test]
fn exchanges_and_bindings_are_listed_by_virtual_host() {
    let broker = with_shop();
    let mut shop = open(&broker, "shop");
    shop.declare("jobs").unwrap();
    in_shop(
        &broker,
        "exchange declare events --type topic --internal --auto-delete",
    );
    in_shop(
        &broker,
        "exchange bind events jobs --routing-key a.# --argument kind=x",
    );
    in_shop(&broker, "exchange bind amq.fanout events --to-exchange");

    let exchanges = broker.json("exchange list --vhost shop");
    assert_eq!(exchanges.as_array().unwrap().len(), 7);
    assert_eq!(
        those(&exchanges, "name", "events"),
        [&json!({
            "name": "events", "vhost": "shop", "type": "topic", "durable": true,
            "auto_delete": true, "internal": true, "arguments": {}, "watches": 0,
        })]
    );
    assert_eq!(broker.json("exchange list").as_array().unwrap().len(), 13);
    let bindings = broker.json("exchange bindings");
    let to_jobs = json!({
        "source": "events", "vhost": "shop", "destination": "jobs", "destination_type": "queue",
        "routing_key": "a.#", "arguments": {"kind": "x"},
    });
    let to_events = json!({
        "source": "amq.fanout", "vhost": "shop", "destination": "events",
        "destination_type": "exchange", "routing_key": "", "arguments": {},
    });
    assert_eq!(bindings, json!([to_events, to_jobs]));
    assert_eq!(broker.json("exchange bindings --vhost /"), json!([]));
    assert_eq!(
        broker.json("exchange bindings amq.fanout"),
        json!([to_events])
    );

    let shown = broker.ok("exchange bindings events --vhost shop");
    assert!(
        shown.contains("events") && shown.contains("kind=x"),
        "{shown}"
    );
    let shown = broker.ok("exchange list --vhost shop");
    assert!(shown.contains("durable, auto-delete, internal"), "{shown}");
    for line in ["queue list", "exchange list", "exchange bindings"] {
        let ran = broker.run(&format!("{line} --vhost nowhere"));
        assert_eq!(ran.code, 3, "{ran:?}");
        assert!(ran.err.contains("no virtual host named"), "{ran:?}");
    }
}

/// Durable things in two virtual hosts, with arguments of several types.
const TWO_VHOSTS: &str = r#"{
  "vhosts": [{"name": "/"}, {"name": "a/b"}],
  "exchanges": [
    {"name": "in", "vhost": "/", "type": "headers", "durable": true, "auto_delete": false,
     "internal": false, "arguments": {"alternate-exchange": "rest"}},
    {"name": "rest", "vhost": "/", "type": "fanout", "durable": true, "auto_delete": false,
     "internal": true, "arguments": {}},
    {"name": "in", "vhost": "a/b", "type": "topic", "durable": true, "auto_delete": true,
     "internal": false, "arguments": {}}
  ],
  "queues": [
    {"name": "q", "vhost": "/", "durable": true, "auto_delete": false,
     "arguments": {"x-max-priority": 5, "x-single-active-consumer": true}},
    {"name": "q", "vhost": "a/b", "durable": true, "auto_delete": false,
     "arguments": {"x-queue-type": "quorum", "x-dead-letter-exchange": "in"}}
  ],
  "bindings": [
    {"source": "in", "vhost": "/", "destination": "q", "destination_type": "queue",
     "routing_key": "", "arguments": {"x-match": "any", "n": 7}},
    {"source": "in", "vhost": "/", "destination": "rest", "destination_type": "exchange",
     "routing_key": "k", "arguments": {}},
    {"source": "amq.topic", "vhost": "a/b", "destination": "in", "destination_type": "exchange",
     "routing_key": "a.*", "arguments": {}},
    {"source": "in", "vhost": "a/b", "destination": "q", "destination_type": "queue",
     "routing_key": "\u00fc.#", "arguments": {}}
  ]
}"#;

#[test]
fn definitions_of_all_virtual_hosts_come_back_as_they_were() {
    let file = new_dir().with_extension("json");
    let path = file.display().to_string();
    fs::write(&file, TWO_VHOSTS).unwrap();
    let import = format!("definitions import {path}");
    let broker = Broker::start();
    assert_eq!(broker.json(&import)["refused"], json!([]));
    let exported = broker.json("definitions export");
    let expected: Value = serde_json::from_str(TWO_VHOSTS).unwrap();
    for list in ["vhosts", "exchanges", "queues", "bindings"] {
        assert_eq!(exported[list], expected[list], "{list}");
    }

    // What cannot be made from a document is in none: Fila's queues, those that are not durable,
    // and their bindings.
    broker.ok("queue create fila");
    broker.ok("exchange bind amq.fanout fila");
    open(&broker, "/").declare("transient").unwrap();
    broker.ok("exchange bind amq.fanout transient");
    broker.ok("exchange declare passing --transient");
    broker.ok("exchange bind passing q");
    broker.ok("exchange bind in passing --to-exchange");
    assert_eq!(broker.json("definitions export"), exported);

    // Elsewhere the same again, also in a broker that has it already.
    fs::write(&file, exported.to_string()).unwrap();
    let mut other = Broker::start();
    for _ in 0..2 {
        let made = other.json(&import);
        assert_eq!(made["refused"], json!([]));
        assert_eq!(made["imported"]["bindings"], json!(4));
        other.kill_and_restart();
    }
    let again = other.json("definitions export");
    for list in ["vhosts", "permissions", "exchanges", "queues", "bindings"] {
        assert_eq!(again[list], exported[list], "{list}");
    }
    fs::remove_file(file).unwrap();
}

const WELCOME: u8 = 2;
const CLOSE: u8 = 5;

/// A connection of FireMQ to the virtual host `shop`.
fn fire_in_shop(broker: &Broker) -> TcpStream {
    let header = b"\x83\xa3ver\x01\xa5vhost\xa4shop\xa4auth\x83\xa4mech\xa5plain\xa4user\xa5guest\
                   \xa4pass\xa5guest";
    let header_len = u32::try_from(header.len()).unwrap();
    let mut hello = b"FMQ1".to_vec();
    hello.extend((header_len + 5).to_be_bytes());
    hello.push(1);
    hello.extend(header_len.to_be_bytes());
    hello.extend(header);
    let mut fire = TcpStream::connect(broker.door("firemq")).unwrap();
    fire.set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    fire.write_all(&hello).unwrap();
    assert_eq!(next_frame(&mut fire).0, WELCOME);
    fire
}

/// The op and the header of the next frame.
fn next_frame(fire: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut len = [0; 4];
    fire.read_exact(&mut len).unwrap();
    let mut frame = vec![0; u32::from_be_bytes(len) as usize];
    fire.read_exact(&mut frame).unwrap();
    let op = frame.first().copied().unwrap();
    (op, frame.split_off(5))
}

#[test]
fn a_deleted_virtual_host_turns_out_who_is_in_it() {
    let broker = with_shop();
    let mut outside = open(&broker, "/");
    let mut shop = open(&broker, "shop");
    shop.declare("jobs").unwrap();
    let mut fire = fire_in_shop(&broker);

    broker.ok("vhost delete shop --yes");
    shop.expect("CONNECTION_FORCED - vhost \\'shop\\' is deleted");
    let (op, header) = next_frame(&mut fire);
    assert_eq!(op, CLOSE);
    // {"code": 320, ...
    let starts = header.starts_with(b"\x82\xa4code\xcd\x01\x40");
    let told = String::from_utf8_lossy(&header).into_owned();
    assert!(starts && told.contains("vhost 'shop' is deleted"), "{told}");
    outside.declare("still").unwrap();

    // Another of the same name is open to nobody, and keeps who is let in.
    broker.ok("vhost add shop");
    let refused = AmqpPeer::open_in(&broker.door("amqp"), ("guest", "guest"), "shop");
    let refused = refused.err().unwrap();
    assert!(
        refused.contains("NOT_ALLOWED - access to vhost"),
        "{refused}"
    );
    broker.ok("permission set guest .* .* .* --vhost shop");
    let mut again = open(&broker, "shop");
    again.declare("jobs").unwrap();
    assert_eq!(
        broker
            .json("queue list --vhost shop")
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn limits_name_their_option() {
    let options = [
        "--limits-vhosts-max",
        "2",
        "--limits-exchanges-max",
        "11",
        "--limits-bindings-max",
        "1",
    ];
    let broker = Broker::start_with(new_dir(), &options);
    broker.ok("vhost add shop");
    let says = |line: &str, text: &str| {
        let ran = broker.run(line);
        assert!(ran.code == 1 && ran.err.contains(text), "{line}: {ran:?}");
    };
    says(
        "vhost add other",
        "cannot create vhost 'other': vhost limit of 2 (limits.vhosts_max) is reached",
    );
    broker.ok("exchange declare first");
    says(
        "exchange declare second",
        "exchange limit of 11 (limits.exchanges_max) is reached",
    );
    broker.ok("queue create q");
    broker.ok("exchange bind first q");
    says(
        "exchange bind first q --routing-key k",
        "binding limit of 1 (limits.bindings_max) is reached",
    );
}

#[test]
fn commands_on_queues_take_a_virtual_host() {
    let broker = with_shop();
    broker.ok("queue create jobs");
    broker.ok("send jobs a b");
    let mut shop = open(&broker, "shop");
    shop.declare("jobs").unwrap();
    let depth = |line: &str| broker.json(line)["counts"]["depth"].clone();
    for (vhost, messages) in [("/", 2), ("shop", 0)] {
        for command in ["inspect", "explain"] {
            let line = format!("queue {command} jobs --vhost {vhost}");
            assert_eq!(depth(&line), json!(messages), "{line}");
        }
    }
    assert_eq!(depth("queue inspect jobs"), json!(2));
    let purged = broker.json("queue purge jobs --vhost shop --yes");
    assert_eq!(purged["purged"], 0);
    broker.ok("queue delete jobs --vhost shop --yes");
    let ran = broker.run("queue inspect jobs --vhost shop");
    assert_ne!(ran.code, 0, "{ran:?}");
    assert_eq!(depth("queue explain jobs"), json!(2));
}
