//! Many connections that say nothing or stop in the middle, and many keys.

use std::{collections::BTreeSet, net::TcpStream, time::Duration};

use serde_json::json;

use crate::{
    peer::{COMMAND, Peer, command, header, request},
    support::{TempDir, TestServer},
};

/// Of two ends each, in one process.
const CONNECTIONS: usize = 400;

#[test]
fn half_frames_and_idle_connections_keep_nobody_out() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[("limits.connections_max", "500")]);
    let mut peer = Peer::of(&server);
    peer.run("counter.add", json!({"key": "c"}));
    let idle: Vec<Peer> = (0..CONNECTIONS / 2).map(|_| Peer::of(&server)).collect();
    let mut halves = Vec::new();
    for n in 0..CONNECTIONS {
        let mut half = Peer::of(&server);
        // Half a header, or a whole one with a part of what it declares.
        let bytes = [&header(COMMAND, 1, 64 << 10), &b"{\"command\":"[..]].concat();
        half.send_bytes(&bytes[..12 + n % 20]);
        halves.push(half);
    }
    // More than there is room for: newcomers take the places of those that did nothing yet.
    let mut other = Peer::of(&server);
    assert_eq!(other.run("counter.add", json!({"key": "c"}))["value"], 2);
    assert_eq!(peer.run("counter.get", json!({"key": "c"}))["value"], 2);
    drop((idle, halves));
    assert!(server.stop());
}

/// The system would let a client that finds no room try again after a second.
#[test]
fn many_connect_at_once_while_a_door_is_busy() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    for door in ["fila", "amqp", "firemq", "amaquet", "http"] {
        let addr = server.address(door);
        server.while_busy(|| {
            let connect = |_| TcpStream::connect_timeout(&addr, Duration::from_secs(10));
            let connected: Result<Vec<_>, _> = (0..CONNECTIONS).map(connect).collect();
            assert_eq!(
                connected.map(|all| all.len()).ok(),
                Some(CONNECTIONS),
                "{door}"
            );
        });
    }
    assert_eq!(
        Peer::of(&server).run("server.ping", json!({})),
        json!({"pong": true})
    );
    assert!(server.stop());
}

#[test]
fn many_keys_are_scanned_while_they_are_written() {
    const KEYS: u64 = 100_000;
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut writer = Peer::of(&server);
    let mut write = |keys: std::ops::Range<u64>| {
        for chunk in keys.collect::<Vec<_>>().chunks(200) {
            let frame = |n: &u64| {
                let add = command("counter.add", json!({"key": format!("k{n:07}")}));
                request(COMMAND, *n, add.to_string().as_bytes())
            };
            writer.send_bytes(&chunk.iter().flat_map(frame).collect::<Vec<u8>>());
            for _ in chunk {
                assert_eq!(writer.receive().result()["value"], 1);
            }
        }
    };
    write(0..KEYS);
    let mut peer = Peer::of(&server);
    let mut arguments = json!({"limit": 10_000});
    let mut found = BTreeSet::new();
    let mut next = KEYS;
    loop {
        let page = peer.run("key.scan", arguments.clone());
        let keys = page["keys"].as_array().unwrap();
        found.extend(keys.iter().map(|it| it.as_str().unwrap().to_owned()));
        if page["cursor"].is_null() {
            break;
        }
        arguments["cursor"] = page["cursor"].clone();
        write(next..next + 1000);
        next += 1000;
    }
    let stayed = (0..KEYS).map(|n| format!("k{n:07}"));
    assert!(stayed.into_iter().all(|key| found.contains(&key)));
}
