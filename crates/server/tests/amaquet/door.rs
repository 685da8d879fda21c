//! HELLO, the node's identity, what the server says of itself, and who is let in.

use std::{os::unix::fs::PermissionsExt, path::Path};

use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::{Value, json};

use crate::{
    peer::{AUTH, HELLO, Peer, SUBSCRIBE, fields},
    support::{self, TempDir, TestServer},
};

/// Sixteen bytes and what they are in base64.
const NONCE: (&[u8], &str) = (b"0123456789abcdef", "MDEyMzQ1Njc4OWFiY2RlZg==");

fn unbase64(text: &Value) -> Vec<u8> {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let text = text.as_str().unwrap();
    let digits = text.trim_end_matches('=').bytes();
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    for digit in digits {
        let value = alphabet.iter().position(|it| *it == digit).unwrap();
        bits = (bits << 6 | u32::try_from(value).unwrap()) & 0xff_ffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).unwrap());
        }
    }
    bytes
}

fn hello(server: &TestServer, payload: &Value) -> Value {
    let mut peer = Peer::of(server);
    peer.ask(HELLO, payload).result().clone()
}

#[test]
fn hello_tells_of_the_server() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[("amaquet.limits.max_payload", "1MiB")]);
    let said = hello(&server, &json!({}));
    assert_eq!(said["protocol"], 1);
    assert_eq!(said["auth_required"], false);
    assert_eq!(said["max_payload"], 1 << 20);
    assert!(said["features"].is_array(), "{said}");
    for text in ["server", "version", "node_id"] {
        assert!(!said[text].as_str().unwrap().is_empty(), "{text}: {said}");
    }
    assert_eq!(unbase64(&said["public_key"]).len(), 32);
    assert_eq!(said["signature"], Value::Null);
    let expected = [
        "auth_required",
        "features",
        "max_payload",
        "node_id",
        "protocol",
        "public_key",
        "server",
        "signature",
        "version",
    ];
    assert_eq!(fields(&said), expected);
    // The whole payload may be absent.
    let mut peer = Peer::of(&server);
    peer.send_bytes(&crate::peer::request(HELLO, 9, b""));
    assert_eq!(peer.answer(9).result(), &said);
}

#[test]
fn hello_signs_the_nonce_with_the_node_s_key() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let said = hello(&server, &json!({"nonce": NONCE.1}));
    let key = UnparsedPublicKey::new(&ED25519, unbase64(&said["public_key"]));
    let signed = [b"amaquet-hello-v1", NONCE.0].concat();
    let signature = unbase64(&said["signature"]);
    key.verify(&signed, &signature).unwrap();
    key.verify(NONCE.0, &signature).unwrap_err();
}

#[test]
fn a_nonce_has_16_to_64_bytes_of_base64() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = Peer::of(&server);
    let bytes = |count: usize| "AAAA".repeat(count / 3);
    for good in [
        &format!("{}AA==", bytes(15)),
        &bytes(63),
        &format!("{}AA==", bytes(63)),
    ] {
        let answer = peer.ask(HELLO, &json!({"nonce": good}));
        assert!(answer.result()["signature"].is_string(), "{good}");
    }
    for bad in [
        json!(""),
        json!(bytes(15)),
        json!(bytes(66)),
        json!("!"),
        json!(7),
    ] {
        assert_eq!(
            peer.ask(HELLO, &json!({"nonce": bad})).code(),
            "BAD_REQUEST"
        );
    }
}

fn key_file(dir: &Path) -> std::path::PathBuf {
    dir.join("node-key")
}

#[test]
fn the_identity_is_made_once_and_kept() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let first = hello(&server, &json!({}));
    assert!(server.stop());
    let mode = std::fs::metadata(key_file(dir.path()))
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let server = TestServer::start(dir.path(), &[]);
    let again = hello(&server, &json!({}));
    assert_eq!(again["node_id"], first["node_id"]);
    assert_eq!(again["public_key"], first["public_key"]);
    let other = TempDir::new();
    let other_server = TestServer::start(other.path(), &[]);
    assert_ne!(
        hello(&other_server, &json!({}))["node_id"],
        first["node_id"]
    );
}

#[test]
fn a_damaged_identity_is_refused_and_left_as_it_is() {
    let dir = TempDir::new();
    assert!(TestServer::start(dir.path(), &[]).stop());
    let path = key_file(dir.path());
    let whole = std::fs::read_to_string(&path).unwrap();
    for damaged in [
        "",
        &whole[..whole.len() / 2],
        &whole.replace("seed", "sead"),
    ] {
        std::fs::write(&path, damaged).unwrap();
        let error = support::start_error(support::config(dir.path(), &[]));
        assert!(error.contains("node-key"), "{error}");
        assert!(error.contains("bring the file back"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), damaged);
    }
}

#[test]
fn what_the_server_tells_of_itself() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = Peer::of(&server);
    let _idle = server.connect();
    assert_eq!(peer.run("server.ping", json!({})), json!({"pong": true}));
    peer.run("counter.add", json!({"key": "a"}));
    peer.run("queue.create", json!({"queue": "q"}));
    let info = peer.run("server.info", json!({}));
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(info["keys"], 1);
    assert_eq!(info["connections"], 2);
    assert!(info["uptime_ms"].is_u64(), "{info}");
    assert!(info["memory_bytes"].as_u64().unwrap() > 1 << 20, "{info}");
    // Its dead letters have a queue of their own.
    assert_eq!(info["queues"], 2);
}

#[test]
fn commands_are_told_with_their_arguments() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let told = Peer::of(&server).run("server.commands", json!({}));
    let commands = told["commands"].as_array().unwrap();
    assert_eq!(commands.len(), 56, "as many as the document lists");
    let shape = ["arguments", "name", "permission", "result", "summary"];
    assert!(commands.iter().all(|it| fields(it) == shape), "{told}");
    let pop = commands.iter().find(|it| it["name"] == "list.pop").unwrap();
    assert!(!pop["summary"].as_str().unwrap().is_empty());
    assert_eq!(pop["permission"], "w");
    assert_eq!(pop["result"], json!({"value": "payload"}));
    let arguments = pop["arguments"].as_array().unwrap();
    let said = |it: &Value| json!([it["name"], it["type"], it["required"]]);
    let said: Vec<Value> = arguments.iter().map(said).collect();
    let expected = [
        json!(["key", "string", true]),
        json!(["side", "string", false]),
        json!(["wait_ms", "u64", false]),
    ];
    assert_eq!(said, expected);
}

#[test]
fn the_virtual_host_is_an_option_and_must_be_there() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let (status, _) = server.http(
        "PUT /api/vhosts/shop HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\
         Authorization: Basic Z3Vlc3Q6Z3Vlc3Q=",
    );
    assert!(status < 300, "{status}");
    let mut peer = Peer::of(&server);
    peer.run("counter.add", json!({"key": "a"}));
    assert!(server.stop());
    let server = TestServer::start(dir.path(), &[("amaquet.vhost", "shop")]);
    let mut peer = Peer::of(&server);
    assert_eq!(peer.fail("counter.get", json!({"key": "a"})), "NOT_FOUND");
    assert!(server.stop());
    let server = TestServer::start(dir.path(), &[("amaquet.vhost", "nowhere")]);
    let mut peer = Peer::of(&server);
    let answer = peer.try_run("counter.add", json!({"key": "a"}));
    assert_eq!(answer.code(), "NOT_FOUND");
    let message = answer.payload["error"]["message"].to_string();
    assert!(message.contains("virtual host"), "{message}");
}

const ROOT: &str = "tanda_the-first-key-of-all-that-is-here-01";

#[test]
fn before_auth_everything_but_hello_and_auth_is_unauthenticated() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[("auth.bootstrap_apikey", ROOT)]);
    let mut peer = Peer::of(&server);
    assert_eq!(peer.ask(HELLO, &json!({})).result()["auth_required"], true);
    assert_eq!(peer.fail("server.ping", json!({})), "UNAUTHENTICATED");
    assert_eq!(peer.fail("no.command", json!({})), "UNAUTHENTICATED");
    let subscribe = json!({"key": "k", "channel": "c"});
    assert_eq!(peer.ask(SUBSCRIBE, &subscribe).code(), "UNAUTHENTICATED");
    // Whatever else is wrong with it.
    assert_eq!(peer.ask(77, &json!([])).code(), "UNAUTHENTICATED");
    let wrong = json!({"api_key": "tanda_no-such-key-in-all-the-world-here-1"});
    assert_eq!(peer.ask(AUTH, &wrong).code(), "UNAUTHENTICATED");
    assert_eq!(peer.ask(AUTH, &json!({})).code(), "BAD_REQUEST");

    let who = peer.ask(AUTH, &json!({"api_key": ROOT})).result().clone();
    assert_eq!(who["superadmin"], true);
    assert!(
        who["key_id"].is_string() && who["name"].is_string(),
        "{who}"
    );
    assert_eq!(peer.run("server.ping", json!({})), json!({"pong": true}));
    // A failure leaves the connection as it was.
    assert_eq!(peer.ask(AUTH, &wrong).code(), "UNAUTHENTICATED");
    assert_eq!(peer.run("server.ping", json!({})), json!({"pong": true}));
}

#[test]
fn without_authentication_everybody_is_anonymous() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = Peer::of(&server);
    let anonymous = json!({"key_id": null, "name": "anonymous", "superadmin": true});
    let key = json!({"api_key": "whatever"});
    assert_eq!(peer.ask(AUTH, &key).result(), &anonymous);
}
