//! The doors with TLS: who gets in, who does not, what that costs others, and how certificates are
//! replaced. (fila.md, "TLS")

#[path = "support/certificates.rs"]
mod certificates;
mod support;

use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, TcpStream},
    process::Command,
};

use certificates::{Authority, Client, Identity, login_by_certificate, write};
use rustls::{
    ProtocolVersion, SupportedProtocolVersion,
    version::{TLS12, TLS13},
};
use support::{DISCONNECT, PING, PONG, Peer, TempDir, TestServer, deliveries};

static ONLY_1_2: [&SupportedProtocolVersion; 1] = [&TLS12];
static ONLY_1_3: [&SupportedProtocolVersion; 1] = [&TLS13];

/// A server with TLS for Fila on a free port, and with these options.
fn start(dir: &TempDir, identity: &Identity, options: &[(&str, &str)]) -> TestServer {
    let files = identity.write(dir.path());
    let mut all: Vec<(&str, &str)> = files.iter().map(|(k, v)| (*k, v.as_str())).collect();
    all.push(("fila_tls", "127.0.0.1:0"));
    all.push(("amqp_tls", "127.0.0.1:0"));
    all.push(("firemq_tls", "127.0.0.1:0"));
    all.push(("amaquet_tls", "127.0.0.1:0"));
    all.push(("http_tls", "127.0.0.1:0"));
    all.extend(options);
    TestServer::start(&dir.path().join("data"), &all)
}

fn talk<S: Read + Write>(peer: &mut Peer<S>, queue: &str) {
    peer.create_queue(queue);
    let id = peer.enqueue(queue, b"over tls");
    peer.consume(queue, 9);
    assert_eq!(deliveries(&peer.answer()), [(id, b"over tls".to_vec())]);
    peer.ack(queue, id);
}

#[test]
fn tls_1_2_and_1_3_carry_the_protocol() {
    let dir = TempDir::new();
    let authority = Authority::new("ours");
    let server = start(&dir, &authority.issue(), &[]);
    let addr = server.address("fila tls");
    let cases = [
        (&ONLY_1_2, ProtocolVersion::TLSv1_2),
        (&ONLY_1_3, ProtocolVersion::TLSv1_3),
    ];
    for (versions, expected) in cases {
        let mut peer = authority.client().speaking(versions).connect(addr);
        assert_eq!(peer.stream.conn.protocol_version(), Some(expected));
        assert_eq!(peer.stream.conn.alpn_protocol(), None);
        talk(&mut peer, &format!("{expected:?}"));
    }
    // The door without TLS is still there.
    talk(&mut server.connect(), "plain");
    assert!(server.stop());
}

#[test]
fn the_end_is_announced_with_a_close_notify() {
    let dir = TempDir::new();
    let authority = Authority::new("ours");
    let server = start(&dir, &authority.issue(), &[]);
    let mut peer = authority.client().connect(server.address("fila tls"));
    peer.send(DISCONNECT, 1, &[]);
    // Without one rustls reads `UnexpectedEof` here.
    assert_eq!(peer.stream.read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_client_that_ends_its_side_still_gets_its_answers() {
    let dir = TempDir::new();
    let authority = Authority::new("ours");
    let server = start(&dir, &authority.issue(), &[]);
    let mut peer = authority.client().connect(server.address("fila tls"));
    for id in 1..=100 {
        peer.send(PING, id, &[]);
    }
    peer.stream.conn.send_close_notify();
    peer.stream.flush().unwrap();
    peer.stream.sock.shutdown(Shutdown::Write).unwrap();
    for id in 1..=100 {
        let answer = peer.receive();
        assert_eq!((answer.opcode, answer.id), (PONG, id));
    }
    assert!(peer.try_receive().is_none());
}

#[test]
fn megabytes_flow_both_ways() {
    let dir = TempDir::new();
    let authority = Authority::new("ours");
    let server = start(&dir, &authority.issue(), &[]);
    let mut peer = authority.client().connect(server.address("fila tls"));
    peer.create_queue("q");
    let payload: Vec<u8> = (0..12_000_000_u32).map(|i| i.to_le_bytes()[1]).collect();
    let id = peer.enqueue("q", &payload);
    peer.consume("q", 9);
    assert!(deliveries(&peer.answer()) == [(id, payload)]);
}

#[test]
fn plain_bytes_to_the_tls_door_end_that_connection_only() {
    let dir = TempDir::new();
    let authority = Authority::new("ours");
    let server = start(&dir, &authority.issue(), &[]);
    let addr = server.address("fila tls");
    let mut peer = authority.client().connect(addr);
    let mut plain = Peer::dial(addr);
    plain.send(support::HANDSHAKE, 0, &[0, 1, 0, 0, 0, 0, 1]);
    // What comes is an alert of TLS, then the end.
    let mut rest = Vec::new();
    let read = plain.stream.read_to_end(&mut rest);
    assert!(read.is_ok() || read.unwrap_err().kind() == ErrorKind::ConnectionReset);
    peer.send(PING, 1, &[]);
    assert_eq!(peer.receive().opcode, PONG);
}

#[test]
fn a_client_of_another_authority_does_not_trust_us() {
    let dir = TempDir::new();
    let authority = Authority::new("ours");
    let server = start(&dir, &authority.issue(), &[]);
    let addr = server.address("fila tls");
    let refusal = Authority::new("theirs").client().refusal(addr);
    assert!(refusal.contains("UnknownIssuer"), "{refusal}");
    authority.client().connect(addr);
}

#[test]
fn with_client_ca_only_its_certificates_get_in() {
    let dir = TempDir::new();
    let (authority, clients) = (Authority::new("ours"), Authority::new("clients"));
    let client_ca = write(dir.path(), "clients.pem", &clients.pem());
    let options = [("tls.client_ca", client_ca.as_str())];
    let server = start(&dir, &authority.issue(), &options);
    let addr = server.address("fila tls");
    for versions in [&ONLY_1_2, &ONLY_1_3] {
        let client = authority.client().speaking(versions);
        let known = client.clone().showing(&clients.issue());
        let mut peer = known.connect(addr);
        peer.send(PING, 1, &[]);
        assert_eq!(peer.receive().opcode, PONG);
        assert_refused(&client, addr, "none");
        let foreign = client.clone().showing(&Authority::new("clients").issue());
        assert_refused(&foreign, addr, "foreign");
        let expired = client.showing(&clients.issue_until(2001));
        assert_refused(&expired, addr, "expired");
    }
}

/// Refused with an alert; at times the system throws it away with the connection.
fn assert_refused(client: &Client, addr: std::net::SocketAddr, what: &str) {
    let refusal = client.refusal(addr);
    let refused = ["alert", "reset", "Broken pipe"];
    assert!(
        refused.iter().any(|word| refusal.contains(word)),
        "{what}: {refusal}"
    );
}

#[test]
fn an_optional_certificate_may_be_missing_but_not_foreign() {
    let dir = TempDir::new();
    let (authority, clients) = (Authority::new("ours"), Authority::new("clients"));
    let client_ca = write(dir.path(), "clients.pem", &clients.pem());
    let options = [
        ("tls.client_ca", client_ca.as_str()),
        ("tls.client_auth", "optional"),
    ];
    let server = start(&dir, &authority.issue(), &options);
    let addr = server.address("fila tls");
    authority.client().connect(addr);
    authority.client().showing(&clients.issue()).connect(addr);
    let foreign = Authority::new("foreign").issue();
    assert_refused(&authority.client().showing(&foreign), addr, "foreign");
}

#[test]
fn an_expired_certificate_is_served_and_refused_by_clients() {
    let dir = TempDir::new();
    let authority = Authority::new("ours");
    let server = start(&dir, &authority.issue_until(2001), &[]);
    let refusal = authority.client().refusal(server.address("fila tls"));
    assert!(refusal.contains("expired"), "{refusal}");
}

#[test]
fn a_changed_certificate_serves_new_connections_and_old_ones_go_on() {
    let dir = TempDir::new();
    let (before, after) = (Authority::new("before"), Authority::new("after"));
    let options = [("tls.reload_interval", "10ms")];
    let server = start(&dir, &before.issue(), &options);
    let addr = server.address("fila tls");
    let mut old = before.client().connect(addr);
    after.issue().write(dir.path());
    wait_until(|| before.client().is_refused(addr));
    talk(&mut after.client().connect(addr), "new");
    talk(&mut old, "old");
}

#[test]
fn a_bad_certificate_is_not_put_in_place_and_asking_reads_again() {
    let dir = TempDir::new();
    let (before, after) = (Authority::new("before"), Authority::new("after"));
    // Nothing is noticed by itself.
    let options = [("tls.reload_interval", "1d")];
    let server = start(&dir, &before.issue(), &options);
    let addr = server.address("fila tls");
    server.server().reload_certificates();
    // A key of another certificate.
    write(dir.path(), "server.key", &after.issue().key);
    server.server().reload_certificates();
    before.client().connect(addr);
    after.issue().write(dir.path());
    server.server().reload_certificates();
    wait_until(|| before.client().is_refused(addr));
    after.client().connect(addr);
}

impl Client {
    fn is_refused(&self, addr: std::net::SocketAddr) -> bool {
        self.stream(addr).write_all(&[0; 4]).is_err()
    }
}

/// Tries until it is so. Each try is a whole handshake, so this does not spin.
fn wait_until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        std::thread::yield_now();
    }
}

#[test]
fn half_a_handshake_costs_only_its_own_connection() {
    let dir = TempDir::new();
    let authority = Authority::new("ours");
    let options = [
        ("limits.handshake_timeout", "200ms"),
        ("limits.connections_max", "64"),
    ];
    let server = start(&dir, &authority.issue(), &options);
    let addr = server.address("fila tls");
    let mut peer = authority.client().connect(addr);
    // Silent ones, and ones that stop inside of a record.
    let halves: Vec<TcpStream> = (0..32)
        .map(|index| {
            let mut half = support::dial(addr);
            if index % 2 == 0 {
                half.write_all(&[0x16, 3, 1, 2, 0, 1]).unwrap();
            }
            half
        })
        .collect();
    // Others get in meanwhile, and who is in is served.
    talk(&mut authority.client().connect(addr), "q");
    peer.send(PING, 1, &[]);
    assert_eq!(peer.receive().opcode, PONG);
    // All of them are closed when their time is over.
    for mut half in halves {
        let read = half.read_to_end(&mut Vec::new());
        assert!(read.is_ok() || read.unwrap_err().kind() == ErrorKind::ConnectionReset);
    }
}

#[test]
fn unfinished_handshakes_count_and_make_room_when_the_door_is_full() {
    let dir = TempDir::new();
    let authority = Authority::new("ours");
    let options = [
        ("limits.handshake_timeout", "10m"),
        ("limits.connections_max", "4"),
    ];
    let server = start(&dir, &authority.issue(), &options);
    let addr = server.address("fila tls");
    let mut first = authority.client().connect(addr);
    let halves: Vec<TcpStream> = (0..8).map(|_| support::dial(addr)).collect();
    let mut second = authority.client().connect(addr);
    for peer in [&mut first, &mut second] {
        peer.send(PING, 1, &[]);
        assert_eq!(peer.receive().opcode, PONG);
    }
    // Two places are left for the halves, and the oldest of them gave theirs away.
    for mut half in halves.into_iter().take(6) {
        let read = half.read_to_end(&mut Vec::new());
        assert!(read.is_ok() || read.unwrap_err().kind() == ErrorKind::ConnectionReset);
    }
}

#[test]
fn https_answers_like_http() {
    let dir = TempDir::new();
    let authority = Authority::new("ours");
    let server = start(&dir, &authority.issue(), &[]);
    let mut stream = authority.client().stream(server.address("http tls"));
    stream
        .write_all(
            b"GET /api/tanda/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        )
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("\"status\":\"ok\""), "{answer}");
}

/// A client that shares no code with us: Python with OpenSSL.
const PYTHON: &str = r#"
import socket, ssl, struct, sys
context = ssl.create_default_context(cafile=sys.argv[2])
raw = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
with context.wrap_socket(raw, server_hostname="localhost") as tls:
    tls.sendall(struct.pack(">IBBI", 13, 1, 0, 0) + bytes([0, 1, 0, 0, 0, 0, 1]))
    length, opcode = struct.unpack(">IB", tls.recv(5, 0))
    while length > 1:
        length -= len(tls.recv(length - 1))
    tls.sendall(struct.pack(">IBBI", 6, 3, 0, 7))
    length, pong, flags, request = struct.unpack(">IBBI", tls.recv(10))
    print(tls.version(), opcode, pong, request)
"#;

#[test]
fn python_with_openssl_gets_in() {
    let dir = TempDir::new();
    let authority = Authority::new("ours");
    let server = start(&dir, &authority.issue(), &[]);
    let ca = write(dir.path(), "ca.pem", &authority.pem());
    let port = server.address("fila tls").port().to_string();
    let python = Command::new("python3")
        .args(["-c", PYTHON, &port, &ca])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&python.stdout);
    let complaints = String::from_utf8_lossy(&python.stderr);
    assert_eq!(said, "TLSv1.3 2 4 7\n", "{complaints}");
}

#[test]
fn a_certificate_is_a_login_of_the_user_it_names() {
    let dir = TempDir::new();
    let authority = Authority::new("ours");
    let ca = write(dir.path(), "ca.pem", &authority.pem());
    let server = start(&dir, &authority.issue(), &[("tls.client_ca", &ca)]);
    let body = r#"{"password_hash": "", "tags": []}"#;
    let head = "PUT /api/users/anna HTTP/1.1\r\nHost: localhost";
    assert_eq!(server.http_with(head, body).0, 201);
    let addr = server.address("amqp tls");
    let stream = |name| {
        let identity = authority.issue_named(name);
        authority.client().showing(&identity).stream(addr)
    };
    let tune = login_by_certificate(stream("anna")).unwrap();
    assert_eq!(tune[..4], [0, 10, 0, 30]);
    // Without a word, as other logins of clients that bear no close.
    assert_eq!(login_by_certificate(stream("berta")), None);
}
