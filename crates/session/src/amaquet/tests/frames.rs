//! Frames, their faults and their time; HELLO, CANCEL and the limits.

use tanda_engine::{AdminReply, Redriven, Request};
use tanda_wire::amaquet::Opcode;
use tanda_wire::base64;

use super::*;

const PONG: &str = r#"COMMAND 7 {"ok":true,"result":{"pong":true}}"#;
const PING: &str = r#"{"command":"server.ping"}"#;

/// A header with one byte changed.
fn changed(at: usize, byte: u8) -> Vec<u8> {
    let mut bytes = frame(Opcode::Command, 7, PING.as_bytes());
    bytes[at] = byte;
    bytes
}

fn refused(bytes: &[u8]) -> Vec<String> {
    let mut peer = Peer::open();
    peer.send(bytes);
    assert!(peer.session.is_closing());
    assert!(peer.input.is_empty());
    peer.read()
}

fn error(opcode: &str, id: u64, code: &str, message: &str) -> String {
    format!(r#"{opcode} {id} {{"ok":false,"error":{{"code":"{code}","message":"{message}"}}}}"#)
}

#[test]
fn a_frame_is_taken_in_whatever_pieces_it_comes() {
    let mut peer = Peer::open();
    for byte in frame(Opcode::Command, 7, PING.as_bytes()) {
        assert_eq!(peer.read(), [""; 0]);
        peer.send(&[byte]);
    }
    assert_eq!(peer.read(), [PONG]);
    let two = frame(Opcode::Command, 7, PING.as_bytes()).repeat(2);
    peer.send(&two);
    assert_eq!(peer.read(), [PONG, PONG]);
}

#[test]
fn flags_are_ignored() {
    let mut peer = Peer::open();
    peer.send(&changed(6, 0xff));
    assert_eq!(peer.read(), [PONG]);
}

#[test]
fn a_frame_that_cannot_be_trusted_is_answered_and_ends_the_connection() {
    let version = error(
        "COMMAND",
        7,
        "UNSUPPORTED_VERSION",
        "version 2; this server speaks 1",
    );
    assert_eq!(refused(&changed(4, 2)), [version]);
    let kind = error("COMMAND", 7, "BAD_FRAME", "kind 2, not request (1)");
    assert_eq!(refused(&changed(5, 2)), [kind]);
    let text = "the reserved field is 0x0100, not zero";
    assert_eq!(
        refused(&changed(10, 1)),
        [error("COMMAND", 7, "BAD_FRAME", text)]
    );
    let text = "a payload of 4278190105 bytes is over the limit of 16777216";
    let large = error("COMMAND", 7, "PAYLOAD_TOO_LARGE", text);
    assert_eq!(refused(&changed(20, 0xff)), [large]);
    assert_eq!(refused(b"AMQP"), [""; 0]);
}

#[test]
fn what_stands_before_a_bad_frame_is_answered() {
    let mut peer = Peer::open();
    let good = frame(Opcode::Command, 7, PING.as_bytes());
    peer.send(&[good, changed(5, 9)].concat());
    let kind = error("COMMAND", 7, "BAD_FRAME", "kind 9, not request (1)");
    assert_eq!(peer.read(), [PONG.to_owned(), kind]);
    assert!(peer.session.is_closing());
}

#[test]
fn an_unknown_opcode_is_answered_and_the_connection_stays() {
    let mut peer = Peer::open();
    peer.say(Opcode::Unknown(77), 8, "x");
    peer.ask(7, PING);
    let text = "there is no opcode 77; they are 1 to 6";
    let unknown = error("unknown", 8, "UNKNOWN_OPCODE", text);
    assert_eq!(peer.read(), [unknown, PONG.to_owned()]);
}

#[test]
fn bad_json_is_answered_and_the_connection_stays() {
    let mut peer = Peer::open();
    peer.ask(8, "{");
    peer.ask(9, "[]");
    peer.ask(10, r#"{"command":"no.such"}"#);
    peer.ask(7, PING);
    let text = "the payload is no JSON: the JSON ends too early, at byte 1";
    let json = error("COMMAND", 8, "BAD_REQUEST", text);
    let array = error(
        "COMMAND",
        9,
        "BAD_REQUEST",
        "the payload is an array, not an object",
    );
    let text = r#"there is no command \"no.such\"; server.commands lists them all"#;
    let unknown = error("COMMAND", 10, "UNKNOWN_COMMAND", text);
    assert_eq!(peer.read(), [json, array, unknown, PONG.to_owned()]);
}

#[test]
fn hello_tells_of_the_server_and_signs_a_nonce() {
    let public = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
    let told = |id: u64, signature: &str| {
        format!(
            "HELLO {id} {{\"ok\":true,\"result\":{{\"server\":\"tanda\",\"version\":\"0.1.0\",\
             \"protocol\":1,\"node_id\":\"n1\",\"auth_required\":false,\"max_payload\":16777216,\
             \"features\":[\"server\",\"key\",\"value\",\"counter\",\"map\",\"list\",\"set\",\
             \"ranking\",\"lock\",\"queue\",\"pubsub\"],\"public_key\":\"{public}\",\
             \"signature\":{signature}}}}}"
        )
    };
    let mut peer = Peer::open();
    peer.say(Opcode::Hello, 2, "");
    peer.say(Opcode::Hello, 3, "{}");
    peer.say(Opcode::Hello, 4, r#"{"nonce":"AAECAwQFBgcICQoLDA0ODw=="}"#);
    let nonce: Vec<u8> = (0..16).collect();
    let signature = Node.sign(&[b"amaquet-hello-v1", &nonce[..]].concat());
    let mut text = Vec::new();
    base64::encode(&mut text, &signature);
    let signature = format!("\"{}\"", String::from_utf8(text).unwrap());
    let all = [told(2, "null"), told(3, "null"), told(4, &signature)];
    assert_eq!(peer.read(), all);
}

#[test]
fn a_nonce_must_be_base64_of_16_to_64_bytes() {
    let mut peer = Peer::open();
    peer.say(Opcode::Hello, 2, r#"{"nonce":"AAEC"}"#);
    peer.say(Opcode::Hello, 3, r#"{"nonce":7}"#);
    peer.say(Opcode::Hello, 4, r#"{"nonce":"A"}"#);
    let few = "nonce is 3 bytes; it must be base64 of 16 to 64 bytes";
    let number = "nonce is a number, 7; it must be a string";
    let bad = "nonce is (1 characters of base64 are no multiple of 4 (padding is wanted)); \
               it must be base64 of 16 to 64 bytes";
    let expected = [(2, few), (3, number), (4, bad)];
    let expected = expected.map(|(id, text)| error("HELLO", id, "BAD_REQUEST", text));
    assert_eq!(peer.read(), expected);
}

#[test]
fn auth_without_authentication_is_anybody() {
    let mut peer = Peer::open();
    peer.say(Opcode::Auth, 2, r#"{"api_key":"x"}"#);
    peer.say(Opcode::Auth, 3, "{}");
    let anybody =
        r#"AUTH 2 {"ok":true,"result":{"key_id":null,"name":"anonymous","superadmin":true}}"#;
    let missing = error(
        "AUTH",
        3,
        "BAD_REQUEST",
        "api_key is missing; it must be a string",
    );
    assert_eq!(peer.read(), [anybody.to_owned(), missing]);
}

#[test]
fn nothing_but_hello_and_auth_before_a_key() {
    let mut peer = Peer::with(AmaquetConfig {
        authentication: Authentication::On,
        ..config()
    });
    peer.ask(2, "{");
    peer.say(Opcode::Unknown(9), 3, "");
    peer.say(Opcode::Auth, 4, r#"{"api_key":"nobody's"}"#);
    let text = "nobody has logged in on this connection: send AUTH with an API key";
    let all = peer.read();
    assert_eq!(all[0], error("COMMAND", 2, "UNAUTHENTICATED", text));
    assert_eq!(all[1], error("unknown", 3, "UNAUTHENTICATED", text));
    assert!(all[2].starts_with(r#"AUTH 4 {"ok":false,"error":{"code":"UNAUTHENTICATED""#));
    assert_eq!(all.len(), 3);
    // The engine does not know of the connection.
    assert_eq!(peer.requests(), [""; 0]);
}

#[test]
fn a_payload_that_does_not_come_is_told_of() {
    let mut peer = Peer::open();
    let bytes = frame(Opcode::Command, 7, PING.as_bytes());
    peer.send(&bytes[..bytes.len() - 1]);
    assert_eq!(peer.session.next_deadline(), Some(START.after_ms(10_000)));
    peer.wait(9_999);
    assert!(!peer.session.is_closing());
    peer.wait(1);
    assert!(peer.session.is_closing());
    let text = "the frame was cut off: 24 of 25 bytes of its payload came";
    assert_eq!(peer.read(), [error("COMMAND", 7, "BAD_FRAME", text)]);
}

#[test]
fn a_header_that_does_not_come_ends_the_connection() {
    let mut peer = Peer::open();
    peer.send(b"AMQT\x01");
    peer.wait(10_000);
    assert!(peer.session.is_closing());
    assert_eq!(peer.read(), [""; 0]);
}

#[test]
fn a_frame_may_take_longer_while_much_of_it_comes() {
    let mut peer = Peer::open();
    let bytes = frame(Opcode::Command, 7, &vec![b' '; 1 << 20]);
    peer.send(&bytes[..128 << 10]);
    assert_eq!(peer.session.next_deadline(), Some(START.after_ms(12_000)));
    peer.wait(11_000);
    peer.send(&bytes[128 << 10..]);
    assert_eq!(peer.session.next_deadline(), None);
}

#[test]
fn a_half_close_inside_a_frame_is_told_of() {
    let mut peer = Peer::open();
    let bytes = frame(Opcode::Hello, 7, b"{}");
    peer.send(&bytes[..25]);
    peer.session.on_end(START);
    let text = "the frame was cut off: 1 of 2 bytes of its payload came";
    assert_eq!(peer.read(), [error("HELLO", 7, "BAD_FRAME", text)]);
    assert!(peer.session.is_closing());

    let mut peer = Peer::open();
    peer.send(&bytes[..20]);
    peer.session.on_end(START);
    assert_eq!(peer.read(), [""; 0]);
    assert!(peer.session.is_closing());
}

#[test]
fn a_payload_without_room_closes_before_it_is_read() {
    let config = AmaquetConfig {
        limits: AmaquetLimits {
            payload_reservation: 24,
            ..AmaquetLimits::default()
        },
        ..config()
    };
    let shared = Arc::clone(&config.shared);
    let mut peer = Peer::with(config);
    let bytes = frame(Opcode::Command, 7, PING.as_bytes());
    peer.send(&bytes[..24]);
    assert!(peer.session.is_closing());
    assert_eq!(peer.read(), [""; 0]);
    assert_eq!(shared.payload_bytes(), 0);
}

#[test]
fn a_declared_payload_counts_until_it_is_answered() {
    let config = config();
    let shared = Arc::clone(&config.shared);
    let mut peer = Peer::with(config);
    let bytes = frame(Opcode::Command, 7, PING.as_bytes());
    peer.send(&bytes[..30]);
    assert_eq!(shared.payload_bytes(), 25);
    peer.send(&bytes[30..]);
    assert_eq!(shared.payload_bytes(), 0);
    assert_eq!(peer.read(), [PONG]);
    peer.send(&bytes[..30]);
    peer.session.close();
    assert_eq!(shared.payload_bytes(), 0);
}

#[test]
fn a_peer_that_reads_nothing_is_not_read() {
    let mut config = config();
    config.limits.reply_bytes_max = 60;
    let mut peer = Peer::with(config);
    let bytes = frame(Opcode::Command, 7, PING.as_bytes());
    peer.send(&bytes.repeat(3));
    assert!(!peer.session.wants_read());
    assert_eq!(peer.input.len(), bytes.len());
    // Its time does not run.
    peer.send(&bytes[..30]);
    assert_eq!(peer.session.next_deadline(), None);
    assert_eq!(peer.read(), [PONG, PONG]);
    peer.session.on_bytes(START, &mut peer.input);
    assert_eq!(peer.read(), [PONG]);
    assert_eq!(peer.session.next_deadline(), Some(START.after_ms(10_000)));
}

#[test]
fn the_virtual_host_is_found_by_its_name_first() {
    let mut peer = Peer::with(AmaquetConfig {
        vhost: "other".to_owned(),
        ..config()
    });
    let bytes = frame(Opcode::Command, 7, PING.as_bytes());
    peer.send(&bytes.repeat(2));
    let requests = peer.requests();
    assert_eq!(requests[0], connect());
    assert!(
        requests[1].contains("OpenVhost { name: \"other\" }"),
        "{requests:?}"
    );
    assert!(!peer.session.wants_read());
    assert_eq!(peer.read(), [PONG]);
    peer.event(Event::Admin {
        token: 1 << 31,
        reply: Box::new(AdminReply::Vhost(Ok(tanda_engine::VhostId(3)))),
    });
    peer.session.on_bytes(START, &mut peer.input);
    assert_eq!(peer.read(), [PONG]);
    assert_eq!(
        Session::vhost(&peer.session),
        Some((tanda_engine::VhostId(3), "other"))
    );
}

#[test]
fn commands_on_queues_are_about_those_of_the_virtual_host_that_the_door_serves() {
    let mut peer = Peer::with(AmaquetConfig {
        vhost: "other".to_owned(),
        ..config()
    });
    peer.send(&frame(Opcode::Command, 7, PING.as_bytes()));
    let vhost = tanda_engine::VhostId(3);
    peer.event(Event::Admin {
        token: 1 << 31,
        reply: Box::new(AdminReply::Vhost(Ok(vhost))),
    });
    peer.read();
    peer.requests();
    let commands = ["create", "stats", "redrive", "delete", "pop", "peek"];
    for (id, command) in (8..).zip(commands) {
        let payload = format!(r#"{{"command":"queue.{command}","queue":"q"}}"#);
        peer.send(&frame(Opcode::Command, id, payload.as_bytes()));
        let requests = peer.requests();
        assert_eq!(requests.len(), 1, "{command}: {requests:?}");
        assert!(
            requests[0].contains("vhost: VhostId(3)"),
            "{command}: {requests:?}"
        );
    }
}

#[test]
fn what_follows_a_redrive_is_about_the_same_virtual_host() {
    let mut peer = Peer::with(AmaquetConfig {
        vhost: "other".to_owned(),
        ..config()
    });
    peer.send(&frame(Opcode::Command, 7, PING.as_bytes()));
    peer.event(Event::Admin {
        token: 1 << 31,
        reply: Box::new(AdminReply::Vhost(Ok(tanda_engine::VhostId(3)))),
    });
    peer.requests();
    let redrive = r#"{"command":"queue.redrive","queue":"q.dlq"}"#;
    peer.send(&frame(Opcode::Command, 8, redrive.as_bytes()));
    let Some(Request::Admin { reply, .. }) = peer.session.next_request() else {
        panic!("nothing was asked");
    };
    peer.event(Event::Admin {
        token: reply.token,
        reply: Box::new(AdminReply::Redriven(Ok(Redriven::default()))),
    });
    let requests = peer.requests();
    assert!(
        requests[0].contains("InspectQueue { vhost: VhostId(3)"),
        "{requests:?}"
    );
}
