//! A scripted peer and a scripted engine around one session. What the peer reads is shown as it
//! stands on the wire: kind, opcode, id and the whole payload.

mod concurrency;
mod frames;
mod keys;
mod permissions;
mod queues;
mod subscriptions;

use std::sync::Arc;

use bytes::BytesMut;
use tanda_engine::{ConnId, ConnLimits, Event, Millis, Request};
use tanda_wire::amaquet::{Header, Opcode, Sender, Split, split_frame};

use super::{AmaquetConfig, AmaquetLimits, AmaquetSession, AmaquetShared};
use super::{NodeIdentity, ServerFacts};
use crate::Session;
use crate::login::Authentication;

const CONN: ConnId = ConnId(9);
const START: Millis = Millis(1_000_000);

/// A node whose signature is what it signs, folded.
#[derive(Debug)]
struct Node;

impl NodeIdentity for Node {
    fn node_id(&self) -> &'static str {
        "n1"
    }

    fn public_key(&self) -> [u8; 32] {
        [1; 32]
    }

    fn sign(&self, bytes: &[u8]) -> [u8; 64] {
        let mut signature = [0; 64];
        for (at, byte) in bytes.iter().enumerate() {
            signature[at % 64] ^= byte;
        }
        signature
    }
}

#[derive(Debug)]
struct Facts;

impl ServerFacts for Facts {
    fn version(&self) -> &'static str {
        "0.1.0"
    }

    fn uptime_ms(&self) -> u64 {
        5_000
    }

    fn connections(&self) -> u64 {
        3
    }

    fn memory_bytes(&self) -> u64 {
        1 << 20
    }
}

fn config() -> AmaquetConfig {
    AmaquetConfig {
        vhost: "/".to_owned(),
        authentication: Authentication::Off,
        limits: AmaquetLimits::default(),
        shared: Arc::new(AmaquetShared::default()),
        node: Arc::new(Node),
        facts: Arc::new(Facts),
    }
}

/// One session, its peer and its engine.
struct Peer {
    session: AmaquetSession,
    input: BytesMut,
    now: Millis,
}

/// A frame.
fn frame(opcode: Opcode, request_id: u64, payload: &[u8]) -> Vec<u8> {
    let header = Header {
        payload_bytes: u32::try_from(payload.len()).unwrap(),
        ..Header::request(opcode, request_id)
    };
    [&header.encode()[..], payload].concat()
}

/// What the peer reads, one line per frame.
fn shown(bytes: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let Ok(Split::Frame(frame)) = split_frame(rest, Sender::Server, u32::MAX) else {
            panic!("no whole frame: {:?}", rest.escape_ascii().to_string())
        };
        let header = frame.header;
        let payload = String::from_utf8(frame.payload.to_vec()).unwrap();
        let (kind, opcode, id) = (header.kind.name(), header.opcode, header.request_id);
        let event = if kind == "event" { "event " } else { "" };
        lines.push(format!("{event}{} {id} {payload}", opcode.name()));
        rest = &rest[frame.consumed()..];
    }
    lines
}

impl Peer {
    fn with(config: AmaquetConfig) -> Self {
        Self {
            session: AmaquetSession::new(CONN, Arc::new(config), START),
            input: BytesMut::new(),
            now: START,
        }
    }

    /// An open connection that the engine knows.
    fn open() -> Self {
        let mut peer = Self::with(config());
        peer.ask(1, r#"{"command":"server.ping"}"#);
        assert_eq!(peer.requests(), [connect()]);
        assert_eq!(
            peer.read(),
            [r#"COMMAND 1 {"ok":true,"result":{"pong":true}}"#]
        );
        peer
    }

    /// Bytes come.
    fn send(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        self.session.on_bytes(self.now, &mut self.input);
        self.session.assert_invariants();
    }

    /// A frame comes.
    fn say(&mut self, opcode: Opcode, request_id: u64, payload: &str) {
        self.send(&frame(opcode, request_id, payload.as_bytes()));
    }

    /// A command comes.
    fn ask(&mut self, request_id: u64, payload: &str) {
        self.say(Opcode::Command, request_id, payload);
    }

    /// What the peer reads; all is written.
    fn read(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        loop {
            let output = self.session.output();
            let part = output.split();
            if part.is_empty() {
                break;
            }
            all.extend_from_slice(&part);
            self.session.on_written(part.len());
        }
        shown(&all)
    }

    /// What the engine is asked, as texts.
    fn requests(&mut self) -> Vec<String> {
        let requests = core::iter::from_fn(|| self.session.next_request());
        requests.map(|request| format!("{request:?}")).collect()
    }

    /// Time passes.
    fn wait(&mut self, ms: u64) {
        self.now = self.now.after_ms(ms);
        self.session.on_timer(self.now);
    }

    fn event(&mut self, event: Event) {
        self.session.on_event(self.now, event);
        self.session.assert_invariants();
    }
}

/// What the engine is told first.
fn connect() -> String {
    let limits = ConnLimits {
        outbound_bytes_max: 8 << 20,
        subscriptions_max: u32::MAX,
    };
    format!("{:?}", Request::Connect { conn: CONN, limits })
}
