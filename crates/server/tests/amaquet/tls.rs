//! The door with TLS.

use serde_json::json;

use crate::{
    certificates::Authority,
    peer::{HELLO, Peer},
    support::{TempDir, TestServer},
};

#[test]
fn tls_carries_the_protocol() {
    let dir = TempDir::new();
    let authority = Authority::new("ours");
    let files = authority.issue().write(dir.path());
    let mut options: Vec<(&str, &str)> = files.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let doors = [
        "fila_tls",
        "amqp_tls",
        "firemq_tls",
        "amaquet_tls",
        "http_tls",
    ];
    options.extend(doors.map(|door| (door, "127.0.0.1:0")));
    let server = TestServer::start(&dir.path().join("data"), &options);
    let addr = server.address("amaquet tls");
    let mut peer = Peer::over(authority.client().stream(addr));
    assert_eq!(peer.ask(HELLO, &json!({})).result()["protocol"], 1);
    assert_eq!(peer.run("counter.add", json!({"key": "c"}))["value"], 1);
    drop(peer);
    assert_eq!(
        Peer::of(&server).run("counter.get", json!({"key": "c"}))["value"],
        1
    );
    assert!(server.stop());
}
