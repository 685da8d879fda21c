//! The HTTP door over real sockets.

mod support;

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use serde_json::Value;
use support::{TempDir, TestServer};

fn code(answer: &(u16, Value)) -> (u16, &str) {
    (
        answer.0,
        answer
            .1
            .pointer("/error/code")
            .and_then(Value::as_str)
            .unwrap_or_default(),
    )
}

#[test]
fn health_and_figures() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let _peer = server.connect();
    let (status, health) = server.get("/api/tanda/health");
    assert_eq!(status, 200);
    assert_eq!(health["status"], "ok");
    assert_eq!(health["ready"], true);
    assert_eq!(health["version"], env!("CARGO_PKG_VERSION"));
    assert!(health["uptime_ms"].is_u64());
    let (status, node) = server.get("/api/tanda/node");
    assert_eq!(status, 200);
    assert_eq!(node["connections"]["fila"], 1);
    assert_eq!(node["limits"]["connections_max"], 10_000);
    assert!(node["resident_bytes"].as_u64().unwrap() > 0);
}

#[test]
fn a_disk_that_runs_short_is_told_in_health_and_beside_a_queue() {
    let dir = TempDir::new();
    // No disk has so much.
    let server = TestServer::start(dir.path(), &[("disk.alarm", "1024TiB")]);
    let mut peer = server.connect();
    peer.create_queue("q");
    let health = loop {
        let (status, health) = server.get("/api/tanda/health");
        assert_eq!(status, 200);
        // It is looked at soon after the start.
        if health["status"] != "ok" {
            break health;
        }
    };
    assert_eq!(health["status"], "alarm");
    assert_eq!(health["ready"], true);
    let (_, queue) = server.get("/api/tanda/queues/q");
    for answer in [health, queue] {
        assert_eq!(answer["alarms"], serde_json::json!(["disk"]));
    }
    let (_, node) = server.get("/api/tanda/node");
    assert_eq!(node["storage_low"], true);
    assert_eq!(node["storage_full"], false);
    // Who is not asked to wait goes on.
    peer.enqueue("q", b"hello");
}

#[test]
fn queues_are_listed_shown_explained_and_purged() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = server.connect();
    // A name that must be escaped in a path.
    peer.create_queue("mail/out 1");
    let id = peer.enqueue("mail/out 1", b"hello");
    let (status, queues) = server.get("/api/tanda/queues");
    assert_eq!(status, 200);
    let names: Vec<&Value> = queues["queues"]
        .as_array()
        .unwrap()
        .iter()
        .map(|q| &q["name"])
        .collect();
    assert!(names.contains(&&Value::from("mail/out 1")), "{queues}");
    let (status, queue) = server.get("/api/tanda/queues/mail%2Fout%201");
    assert_eq!(status, 200);
    assert_eq!(queue["name"], "mail/out 1");
    assert_eq!(queue["counts"]["depth"], 1);
    assert_eq!(queue["config"]["visibility_timeout_ms"], 30_000);
    assert_eq!(queue["dead_letter_queue"], "mail/out 1.dlq");
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let uuid = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ]
    .join("-");
    let path = format!("/api/tanda/queues/mail%2Fout%201/explain?message={uuid}");
    let (status, explained) = server.get(&path);
    assert_eq!(status, 200);
    assert_eq!(explained["message"]["place"], "ready", "{explained}");
    let (status, purged) = server.post("/api/tanda/queues/mail%2Fout%201/purge");
    assert_eq!((status, &purged["purged"]), (200, &Value::from(1)));
    let (_, explained) = server.get(&path);
    assert_eq!(explained["message"]["place"], "unknown", "{explained}");
}

#[test]
fn problems_are_json_with_a_code() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let cases = [
        (
            server.get("/api/tanda/queues/none"),
            (404, "queue_not_found"),
        ),
        (
            server.get("/api/tanda/queues/none/explain"),
            (404, "queue_not_found"),
        ),
        (
            server.post("/api/tanda/queues/none/purge"),
            (404, "queue_not_found"),
        ),
        (
            server.get("/api/tanda/queues/none/explain?message=7"),
            (400, "bad_query"),
        ),
        (
            server.get("/api/tanda/queues/none/explain?other=7"),
            (400, "bad_query"),
        ),
        (server.get("/"), (404, "not_found")),
        (server.get("/api/tanda/nothing"), (404, "not_found")),
        (
            server.get("/api/tanda/queues/none/purge"),
            (405, "method_not_allowed"),
        ),
        (
            server.post("/api/tanda/health"),
            (405, "method_not_allowed"),
        ),
    ];
    for (answer, expected) in &cases {
        assert_eq!(code(answer), *expected, "{}", answer.1);
        let error = &answer.1["error"];
        assert!(
            error["message"].is_string() && error["hint"].is_string(),
            "{error}"
        );
    }
}

#[test]
fn web_pages_cannot_drive_it() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[("http_hosts", "broker.internal")]);
    server.connect().create_queue("q");
    let rebound = server.http("GET /api/tanda/queues HTTP/1.1\r\nHost: evil.example");
    assert_eq!(code(&rebound), (403, "host_not_allowed"));
    let named = server.http("GET /api/tanda/queues HTTP/1.1\r\nHost: broker.internal:80");
    assert_eq!(named.0, 200);
    let post = "POST /api/tanda/queues/q/purge HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0";
    let foreign = server.http(&format!("{post}\r\nOrigin: http://evil.example"));
    assert_eq!(code(&foreign), (403, "cross_site"));
    let own = server.http(&format!("{post}\r\nOrigin: http://localhost"));
    assert_eq!(own.0, 200);
}

#[test]
fn a_stop_does_not_wait_for_an_idle_connection() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut idle = TcpStream::connect(server.address("http")).unwrap();
    idle.write_all(b"GET /api/tanda/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    assert!(idle.read(&mut [0; 1]).unwrap() == 1, "it is being served");
    assert!(server.stop());
    let mut rest = Vec::new();
    idle.read_to_end(&mut rest).unwrap();
}

#[test]
fn half_open_requests_do_not_keep_others_out() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut halves: Vec<TcpStream> = (0..300)
        .map(|_| {
            let mut half = support::dial(server.address("http"));
            half.write_all(b"GET /api/tanda/health HTTP/1.1\r\nHost: loc")
                .unwrap();
            half
        })
        .collect();
    assert_eq!(server.get("/api/tanda/health").0, 200);
    // The oldest made room, and the newest are still there.
    let mut oldest = halves.remove(0);
    assert!(matches!(oldest.read(&mut [0]), Ok(0) | Err(_)));
    let newest = halves.last_mut().unwrap();
    newest
        .write_all(b"alhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    newest.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}
