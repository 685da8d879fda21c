//! Frames that are refused, those that do not come whole, and payloads that cannot be read.

use serde_json::{Value, json};

use crate::{
    peer::{CANCEL, COMMAND, HELLO, Peer, command, fields, header, request},
    support::{TempDir, TestServer},
};

fn ping() -> Vec<u8> {
    request(COMMAND, 1, br#"{"command":"server.ping"}"#)
}

/// What a new connection is told after these bytes before it closes: ids and codes.
fn refused(server: &TestServer, bytes: &[u8]) -> Vec<(u64, u16, String)> {
    let mut peer = Peer::of(server);
    peer.send_bytes(bytes);
    let said = peer.rest();
    let told = said
        .iter()
        .map(|it| (it.id, it.opcode, it.code().to_owned()));
    told.collect()
}

#[test]
fn a_frame_that_cannot_be_trusted_is_answered_and_ends_the_connection() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[("amaquet.limits.max_payload", "1MiB")]);
    let changed = |at: usize, byte: u8| {
        let mut bytes = ping();
        bytes[at] = byte;
        bytes
    };
    let told = |code: &str| vec![(1, COMMAND, code.to_owned())];
    assert_eq!(
        refused(&server, &changed(4, 2)),
        told("UNSUPPORTED_VERSION")
    );
    for kind in [0, 2, 3, 9] {
        assert_eq!(
            refused(&server, &changed(5, kind)),
            told("BAD_FRAME"),
            "{kind}"
        );
    }
    assert_eq!(refused(&server, &changed(11, 1)), told("BAD_FRAME"));
    let large = header(COMMAND, 1, (1 << 20) + 1);
    assert_eq!(refused(&server, &large), told("PAYLOAD_TOO_LARGE"));
    // As much as is allowed.
    let mut payload = br#"{"command":"server.ping"}"#.to_vec();
    payload.resize(1 << 20, b' ');
    let mut peer = Peer::of(&server);
    peer.send_bytes(&request(COMMAND, 1, &payload));
    assert_eq!(peer.answer(1).result(), &json!({"pong": true}));
}

#[test]
fn without_the_magic_nothing_is_answered() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"AMQP\0\0\x09\x01", b"X"] {
        assert_eq!(refused(&server, bytes), [], "{bytes:?}");
    }
    // Also behind a good one.
    let mut peer = Peer::of(&server);
    peer.send_bytes(&[ping(), b"AMQX".to_vec()].concat());
    let said = peer.rest();
    assert!(said.len() <= 1, "{said:?}");
}

#[test]
fn flags_are_ignored_and_sent_as_0() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = Peer::of(&server);
    let mut bytes = ping();
    bytes[6..8].copy_from_slice(&[0xff, 0xff]);
    peer.send_bytes(&bytes);
    assert_eq!(peer.answer(1).result(), &json!({"pong": true}));
}

#[test]
fn an_unknown_opcode_is_told_and_the_connection_stays() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = Peer::of(&server);
    for opcode in [0, 7, 0xffff] {
        assert_eq!(peer.ask(opcode, &json!({})).code(), "UNKNOWN_OPCODE");
    }
    assert_eq!(peer.fail("no.such", json!({})), "UNKNOWN_COMMAND");
    assert_eq!(peer.run("server.ping", json!({})), json!({"pong": true}));
}

#[test]
fn bad_json_is_a_bad_request_and_the_connection_stays() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = Peer::of(&server);
    let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
    let mut nested = br#"{"command":"value.set","key":"k","value":"#.to_vec();
    nested.extend(&deep);
    nested.push(b'}');
    let number = |digits: &str| {
        let text = format!(r#"{{"command":"counter.add","key":"k","by":{digits}}}"#);
        text.into_bytes()
    };
    let bad: Vec<Vec<u8>> = vec![
        vec![],
        b"{".to_vec(),
        b"[]".to_vec(),
        b"7".to_vec(),
        b"\xff".to_vec(),
        br#"{"command":"server.ping"} x"#.to_vec(),
        br#"{"command":"\ud800"}"#.to_vec(),
        deep,
        nested,
        number("9223372036854775808"),
        number("-9223372036854775809"),
        number("1e999999"),
        number("1.5"),
        number(&"9".repeat(100_000)),
    ];
    for (id, payload) in (1..).zip(&bad) {
        peer.send_bytes(&request(COMMAND, id, payload));
        let shown = payload.get(..60).unwrap_or(payload).escape_ascii();
        assert_eq!(peer.answer(id).code(), "BAD_REQUEST", "{shown}");
    }
    assert_eq!(
        peer.run("counter.add", json!({"key": "k", "by": i64::MIN}))["value"],
        i64::MIN
    );
}

#[test]
fn what_is_missing_or_mistyped_is_named_and_what_is_unknown_ignored() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = Peer::of(&server);
    let mut named = |arguments: Value, field: &str| {
        let answer = peer.try_run("counter.add", arguments);
        assert_eq!(answer.code(), "BAD_REQUEST");
        let message = answer.payload["error"]["message"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(message.contains(field), "{message}");
    };
    named(json!({}), "key");
    named(json!({"key": 7}), "key");
    named(json!({"key": ""}), "key");
    named(json!({"key": "k".repeat(5000)}), "key");
    named(json!({"key": "k", "by": "1"}), "by");
    named(json!({"key": "k", "ttl_ms": 0}), "ttl_ms");
    let unknown = json!({"key": "k", "colour": "red"});
    assert_eq!(peer.run("counter.add", unknown)["value"], 1);
    let value = json!({"key": "v", "value": {"type": "text", "data": 7}});
    assert_eq!(peer.fail("value.set", value), "BAD_REQUEST");
    let value = json!({"key": "v", "value": {"type": "bytes", "data": "!"}});
    assert_eq!(peer.fail("value.set", value), "BAD_REQUEST");
}

#[test]
fn a_peer_that_ends_inside_a_payload_is_told_and_inside_a_header_not() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let ping = ping();
    for cut in [24, 25, ping.len() - 1] {
        let mut peer = Peer::of(&server);
        peer.send_bytes(&ping[..cut]);
        peer.half_close();
        let said = peer.rest();
        assert_eq!(said.len(), 1, "cut at {cut}");
        assert_eq!(
            (said[0].id, said[0].code()),
            (1, "BAD_FRAME"),
            "cut at {cut}"
        );
    }
    for cut in [1, 23] {
        let mut peer = Peer::of(&server);
        peer.send_bytes(&ping[..cut]);
        peer.half_close();
        assert_eq!(peer.rest().len(), 0, "cut at {cut}");
    }
}

#[test]
fn answers_that_are_due_come_after_a_half_close() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = Peer::of(&server);
    let add = command("counter.add", json!({"key": "c"})).to_string();
    let all: Vec<u8> = (1..=100)
        .flat_map(|id| request(COMMAND, id, add.as_bytes()))
        .collect();
    peer.send_bytes(&all);
    peer.half_close();
    let said = peer.rest();
    assert_eq!(said.len(), 100);
    assert!(said.iter().any(|it| it.result()["value"] == 100));
}

#[test]
fn a_part_of_a_frame_has_a_deadline() {
    let dir = TempDir::new();
    let options = [("amaquet.limits.partial_frame_timeout", "100ms")];
    let server = TestServer::start(dir.path(), &options);
    let ping = ping();
    let mut idle = Peer::of(&server);
    let mut peer = Peer::of(&server);
    peer.send_bytes(&ping[..30]);
    let said = peer.rest();
    assert_eq!(said.len(), 1);
    assert_eq!((said[0].id, said[0].code()), (1, "BAD_FRAME"));
    let mut peer = Peer::of(&server);
    peer.send_bytes(&ping[..7]);
    assert_eq!(peer.rest().len(), 0, "inside a header it is only closed");
    // A connection that says nothing may stay.
    assert_eq!(idle.run("server.ping", json!({})), json!({"pong": true}));
}

#[test]
fn a_frame_may_come_in_pieces() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = Peer::of(&server);
    for byte in ping() {
        peer.send_bytes(&[byte]);
    }
    assert_eq!(peer.answer(1).result(), &json!({"pong": true}));
}

#[test]
fn a_payload_beyond_the_reservation_ends_the_connection_before_it_is_read() {
    let dir = TempDir::new();
    let options = [
        ("amaquet.limits.max_payload", "1MiB"),
        ("amaquet.limits.payload_reservation", "1MiB"),
    ];
    let server = TestServer::start(dir.path(), &options);
    let mut first = Peer::of(&server);
    // The answer shows that the header behind it was seen.
    first.send_bytes(&[ping(), header(COMMAND, 2, 1 << 20)].concat());
    assert_eq!(first.answer(1).result(), &json!({"pong": true}));
    let mut second = Peer::of(&server);
    second.send_bytes(&header(COMMAND, 1, 1 << 20));
    assert_eq!(second.rest().len(), 0);
    // Small ones have room again when it is done.
    let mut payload = vec![b' '; 1 << 20];
    let text = br#"{"command":"server.ping"}"#;
    payload[..text.len()].copy_from_slice(text);
    first.send_bytes(&payload);
    assert_eq!(first.answer(2).result(), &json!({"pong": true}));
    let mut third = Peer::of(&server);
    assert_eq!(third.ask(HELLO, &json!({})).result()["protocol"], 1);
    assert_eq!(
        third.ask(CANCEL, &json!({"request_id": 5})).result()["cancelled"],
        false
    );
}

/// Whatever is said in them, answers have these fields and no others.
#[test]
fn envelopes_have_these_fields() {
    let dir = TempDir::new();
    let options = [("amaquet.limits.active_per_connection", "1")];
    let server = TestServer::start(dir.path(), &options);
    let mut peer = Peer::of(&server);
    let good = peer.try_run("server.ping", json!({})).payload;
    assert_eq!(good, json!({"ok": true, "result": {"pong": true}}));
    let bad = peer.try_run("key.kind", json!({"key": "no"})).payload;
    assert_eq!(fields(&bad), ["error", "ok"]);
    assert_eq!(fields(&bad["error"]), ["code", "message"]);
    assert_eq!(bad["error"]["message"], "key not found");
    peer.begin(1, "list.pop", json!({"key": "a", "wait_ms": 240_000}));
    let overloaded = peer.try_run("server.ping", json!({})).payload;
    assert_eq!(
        fields(&overloaded["error"]),
        ["code", "message", "retry_after_ms"]
    );
    let cancelled = peer.ask(CANCEL, &json!({"request_id": 1}));
    assert_eq!(
        cancelled.result(),
        &json!({"request_id": 1, "cancelled": true})
    );
    assert_eq!(peer.answer(1).code(), "CANCELLED");
}

#[test]
fn cancel_wants_the_id_of_a_request() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = Peer::of(&server);
    for wrong in [
        json!({}),
        json!({"request_id": "1"}),
        json!({"request_id": -1}),
        json!([]),
    ] {
        assert_eq!(peer.ask(CANCEL, &wrong).code(), "BAD_REQUEST", "{wrong}");
    }
    let most = peer.ask(CANCEL, &json!({"request_id": u64::MAX}));
    assert_eq!(most.result()["cancelled"], false);
}
