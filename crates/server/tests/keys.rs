//! Authentication, permissions and keys of a running server.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests outside of a test function"
)]

#[path = "support/api_keys.rs"]
mod api_keys;
mod support;

use std::{
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use api_keys::{REVOKE_KEY, ask, create_key, enter, handshake, revoke, set_acl};
use support::{
    CONSUME, DELIVERY, ENQUEUE, ERROR, Frame, HANDSHAKE, PING, PONG, Peer, TempDir, TestServer,
    config, deliveries, enqueue, start_error, string,
};

const LIST_KEYS: u8 = 0xE9;
const OK: u8 = 0;
const UNAUTHORIZED: u8 = 0x0A;
const FORBIDDEN: u8 = 0x0B;
const KEY_NOT_FOUND: u8 = 0x0F;

const BOOTSTRAP: &str = "the-first-key-of-this-test-0123456789";

fn start(dir: &Path) -> TestServer {
    TestServer::start(dir, &[("auth.bootstrap_apikey", BOOTSTRAP)])
}

/// A connection with a key; what its handshake was answered.
fn knock(server: &TestServer, key: Option<&str>) -> (Peer, Frame) {
    let mut peer = server.dial();
    peer.send(HANDSHAKE, 0, &handshake(key));
    let answer = peer.receive();
    (peer, answer)
}

/// The key lets nobody in.
fn is_shut_out(server: &TestServer, key: Option<&str>) {
    let (mut peer, answer) = knock(server, key);
    let head = (answer.opcode, answer.id, answer.body[0]);
    assert_eq!(head, (ERROR, 0, UNAUTHORIZED), "{answer:?}");
    assert!(peer.try_receive().is_none(), "and is closed");
}

/// Codes of an `Enqueue` of one message to each of these queues.
fn enqueue_codes(peer: &mut Peer, queues: &[&str]) -> Vec<u8> {
    let mut body = u32::try_from(queues.len()).unwrap().to_be_bytes().to_vec();
    for queue in queues {
        body.extend(&enqueue(queue, &[b"m"])[4..]);
    }
    let answer = ask(peer, ENQUEUE, &body);
    let items = answer.body[4..].chunks(18).take(queues.len());
    items.map(|item| item[0]).collect()
}

#[test]
fn only_keys_that_are_good_get_in() {
    let dir = TempDir::new();
    let server = start(dir.path());
    for key in [None, Some(""), Some("wrong"), Some(&BOOTSTRAP[1..])] {
        is_shut_out(&server, key);
    }
    let mut root = enter(&server, BOOTSTRAP);
    root.create_queue("q");
    let past = create_key(&mut root, "past", 1, true);
    is_shut_out(&server, Some(&past.secret));
    let worker = create_key(&mut root, "worker", 0, false);
    let mut peer = enter(&server, &worker.secret);
    // A key may nothing until it is given something.
    assert_eq!(enqueue_codes(&mut peer, &["q"]), [FORBIDDEN]);
    assert_eq!(ask(&mut peer, LIST_KEYS, &[]).body, [FORBIDDEN, 0, 0, 0, 0]);
    assert_eq!(ask(&mut root, LIST_KEYS, &[]).body[..5], [OK, 0, 0, 0, 3]);
    assert_eq!(
        ask(&mut root, REVOKE_KEY, &string("k99")).body,
        [KEY_NOT_FOUND]
    );
}

#[test]
fn a_mixed_batch_is_refused_item_by_item() {
    let dir = TempDir::new();
    let server = start(dir.path());
    let mut root = enter(&server, BOOTSTRAP);
    for queue in ["orders.eu", "orders.us", "bills"] {
        root.create_queue(queue);
    }
    let key = create_key(&mut root, "shop", 0, false);
    set_acl(
        &mut root,
        &key.id,
        &[("produce", "orders.*"), ("consume", "orders.eu")],
    );
    let mut peer = enter(&server, &key.secret);
    let queues = ["orders.eu", "bills", "orders.us", "none", "orders.none"];
    let codes = enqueue_codes(&mut peer, &queues);
    assert_eq!(codes, [OK, FORBIDDEN, OK, FORBIDDEN, 1]);
    // The rest went on.
    peer.consume("orders.eu", 9);
    let delivery = peer.answer();
    let (message, _) = deliveries(&delivery)[0].clone();
    let mut body = 2_u32.to_be_bytes().to_vec();
    for queue in ["bills", "orders.eu"] {
        body.extend(string(queue));
        body.extend(message);
    }
    assert_eq!(ask(&mut peer, 0x17, &body).body[4..], [FORBIDDEN, OK]);
    let mut body = string("orders.us");
    body.extend([0; 6]);
    peer.send(CONSUME, 10, &body);
    let answer = peer.answer();
    assert_eq!((answer.opcode, answer.body[0]), (ERROR, FORBIDDEN));
}

#[test]
fn a_revocation_stops_a_consumer_in_the_middle_of_its_deliveries() {
    let dir = TempDir::new();
    let server = start(dir.path());
    let mut root = enter(&server, BOOTSTRAP);
    root.create_queue("q");
    let key = create_key(&mut root, "worker", 0, false);
    set_acl(&mut root, &key.id, &[("consume", "q")]);
    let mut peer = enter(&server, &key.secret);
    let mut idle = enter(&server, &key.secret);
    peer.consume("q", 9);
    for _ in 0..50 {
        root.enqueue("q", b"before");
    }
    // The deliveries have begun, and most are not read yet.
    assert_eq!(peer.answer().opcode, DELIVERY);
    revoke(&mut root, &key.id);
    // From here on nothing may be delivered under the key.
    for _ in 0..50 {
        root.enqueue("q", b"after");
    }
    let mut ended = false;
    while let Some(frame) = peer.try_receive() {
        if frame.opcode == DELIVERY {
            assert!(!ended, "a delivery after the end of its subscription");
            let payloads = deliveries(&frame);
            assert!(payloads.iter().all(|(_, payload)| payload == b"before"));
        } else if frame.opcode == ERROR && frame.id == 9 {
            assert_eq!(frame.body[0], UNAUTHORIZED);
            ended = true;
        }
    }
    assert!(
        ended,
        "its subscription was not ended, and it closed by itself"
    );
    // The next request of another connection with that key.
    idle.send(PING, 5, &[]);
    let answer = idle.receive();
    let head = (answer.opcode, answer.id, answer.body[0]);
    assert!(head == (ERROR, 5, UNAUTHORIZED) || head == (ERROR, 0, UNAUTHORIZED));
    assert!(idle.try_receive().is_none());
    is_shut_out(&server, Some(&key.secret));
    // Everybody else goes on.
    root.send(PING, 6, &[]);
    assert_eq!(root.receive().opcode, PONG);
}

#[test]
fn the_next_request_after_a_revocation_is_unauthorized() {
    let dir = TempDir::new();
    let server = start(dir.path());
    let mut root = enter(&server, BOOTSTRAP);
    let key = create_key(&mut root, "second", 0, true);
    let mut peer = enter(&server, &key.secret);
    revoke(&mut root, &key.id);
    peer.send(LIST_KEYS, 5, &[]);
    let answer = peer.receive();
    assert_eq!(
        (answer.opcode, answer.id, answer.body[0]),
        (ERROR, 5, UNAUTHORIZED)
    );
    assert!(peer.try_receive().is_none());
}

#[test]
fn a_key_expires_on_a_live_connection() {
    let dir = TempDir::new();
    let server = start(dir.path());
    let mut root = enter(&server, BOOTSTRAP);
    root.create_queue("q");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let soon = u64::try_from(now.as_millis()).unwrap() + 1_500;
    let key = create_key(&mut root, "short", soon, false);
    set_acl(&mut root, &key.id, &[("consume", "q")]);
    let mut peer = enter(&server, &key.secret);
    peer.consume("q", 9);
    let answer = peer.answer();
    assert_eq!(
        (answer.opcode, answer.id, answer.body[0]),
        (ERROR, 9, UNAUTHORIZED)
    );
    peer.wait_closed();
    is_shut_out(&server, Some(&key.secret));
}

#[test]
fn permissions_that_are_taken_away_end_a_live_subscription() {
    let dir = TempDir::new();
    let server = start(dir.path());
    let mut root = enter(&server, BOOTSTRAP);
    root.create_queue("q");
    let key = create_key(&mut root, "worker", 0, false);
    set_acl(&mut root, &key.id, &[("consume", "*"), ("produce", "*")]);
    let mut peer = enter(&server, &key.secret);
    peer.consume("q", 9);
    set_acl(&mut root, &key.id, &[("produce", "q")]);
    let answer = peer.answer();
    assert_eq!(
        (answer.opcode, answer.id, answer.body[0]),
        (ERROR, 9, FORBIDDEN)
    );
    assert_eq!(enqueue_codes(&mut peer, &["q"]), [OK]);
}

#[test]
fn keys_survive_a_restart_and_the_door_stays_shut_without_the_option() {
    let dir = TempDir::new();
    let server = start(dir.path());
    let mut root = enter(&server, BOOTSTRAP);
    root.create_queue("q");
    let kept = create_key(&mut root, "kept", 0, false);
    let gone = create_key(&mut root, "gone", 0, true);
    set_acl(&mut root, &kept.id, &[("produce", "q")]);
    revoke(&mut root, &gone.id);
    revoke(&mut root, "k1");
    drop(root);
    assert!(server.stop());

    let server = TestServer::start(dir.path(), &[]);
    is_shut_out(&server, None);
    is_shut_out(&server, Some(BOOTSTRAP));
    is_shut_out(&server, Some(&gone.secret));
    let mut peer = enter(&server, &kept.secret);
    assert_eq!(enqueue_codes(&mut peer, &["q", "r"]), [OK, FORBIDDEN]);
    drop(peer);
    assert!(server.stop());

    // A revoked bootstrap key stays revoked, another one is a new key.
    let server = start(dir.path());
    is_shut_out(&server, Some(BOOTSTRAP));
    assert!(server.stop());
    let other = "another-first-key-of-this-test-0123456789";
    let server = TestServer::start(dir.path(), &[("auth.bootstrap_apikey", other)]);
    let mut root = enter(&server, other);
    let next = create_key(&mut root, "next", 0, false);
    assert_eq!(next.id, "k5", "ids are not used again");
    drop(root);
    assert!(server.stop());
    let server = TestServer::start(dir.path(), &[("auth.enabled", "false")]);
    server.connect().enqueue("q", b"anybody may");
}

#[test]
fn the_bootstrap_key_may_stand_in_a_file() {
    let dir = TempDir::new();
    let file = dir.path().join("bootstrap.key");
    let path = file.display().to_string();
    let data = dir.path().join("data");
    let options = [("auth.bootstrap_apikey_file", &*path)];
    let error = start_error(config(&data, &options));
    assert!(error.contains("bootstrap.key"), "{error}");
    let short = "short-secret";
    std::fs::write(&file, short).unwrap();
    let error = start_error(config(&data, &options));
    assert!(error.contains("32") && !error.contains(short), "{error}");
    std::fs::write(&file, format!("{BOOTSTRAP}\n")).unwrap();
    let server = TestServer::start(&data, &options);
    enter(&server, BOOTSTRAP);
    is_shut_out(&server, None);
}

fn http(server: &TestServer, request: &str, authorization: &str) -> (u16, serde_json::Value) {
    let header = if authorization.is_empty() {
        String::new()
    } else {
        format!("\r\nAuthorization: {authorization}")
    };
    server.http(&format!(
        "{request} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0{header}"
    ))
}

#[test]
fn the_http_door_asks_for_the_same_keys() {
    let dir = TempDir::new();
    let server = start(dir.path());
    let mut root = enter(&server, BOOTSTRAP);
    for queue in ["a", "b"] {
        root.create_queue(queue);
    }
    let key = create_key(&mut root, "web", 0, false);
    set_acl(&mut root, &key.id, &[("admin", "a"), ("produce", "b*")]);
    let bearer = |secret: &str| format!("Bearer {secret}");
    let (root_key, web) = (bearer(BOOTSTRAP), bearer(&key.secret));
    let status = |request: &str, authorization: &str| {
        let (status, body) = http(&server, request, authorization);
        let code = body["error"]["code"].as_str().unwrap_or("").to_owned();
        (status, code)
    };
    let ok = || (200, String::new());
    let unauthorized = || (401, "unauthorized".to_owned());
    let forbidden = || (403, "forbidden".to_owned());

    assert_eq!(status("GET /api/tanda/health", ""), ok());
    for authorization in ["", "Bearer wrong", "Basic d3Jvbmc6d3Jvbmc=", "Digest x"] {
        for path in [
            "GET /api/tanda/node",
            "GET /api/tanda/backup",
            "GET /nowhere",
        ] {
            assert_eq!(status(path, authorization), unauthorized(), "{path}");
        }
    }
    for path in [
        "node",
        "queues/b",
        "queues/b/explain",
        "queues/none",
        "backup",
    ] {
        assert_eq!(status(&format!("GET /api/tanda/{path}"), &web), forbidden());
    }
    assert_eq!(status("POST /api/tanda/queues/b/purge", &web), forbidden());
    for path in ["queues/a", "queues/a/explain"] {
        assert_eq!(status(&format!("GET /api/tanda/{path}"), &web), ok());
    }
    assert_eq!(status("POST /api/tanda/queues/a/purge", &web), ok());
    let names = |authorization: &str| {
        let (_, body) = http(&server, "GET /api/tanda/queues", authorization);
        let queues = body["queues"].as_array().unwrap().clone();
        let name = |queue: serde_json::Value| queue["name"].as_str().unwrap().to_owned();
        queues.into_iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(names(&web), ["a", "b", "b.dlq"]);
    assert_eq!(names(&root_key), ["a", "a.dlq", "b", "b.dlq"]);
    assert_eq!(status("GET /api/tanda/node", &root_key), ok());
    // admin:SECRET, as a browser sends it.
    let basic = "Basic YWRtaW46dGhlLWZpcnN0LWtleS1vZi10aGlzLXRlc3QtMDEyMzQ1Njc4OQ==";
    assert_eq!(status("GET /api/tanda/node", basic), ok());
    assert_eq!(status("GET /nowhere", basic).0, 404);

    set_acl(&mut root, &key.id, &[("admin", "*")]);
    assert_eq!(status("GET /api/tanda/node", &web), ok());
    assert_eq!(status("GET /api/tanda/backup", &web), forbidden());
    revoke(&mut root, &key.id);
    assert_eq!(status("GET /api/tanda/node", &web), unauthorized());
}

#[test]
fn without_authentication_everybody_makes_keys() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut anyone = server.connect();
    let key = create_key(&mut anyone, "early", 0, true);
    drop(anyone);
    assert!(server.stop());
    let server = TestServer::start(dir.path(), &[("auth.enabled", "true")]);
    is_shut_out(&server, None);
    enter(&server, &key.secret);
}
