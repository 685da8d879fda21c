//! What a client of Amaquet says and reads.

use std::sync::Arc;

use tanda_engine::{Event, Request};
use tanda_session::Session;
use tanda_session::amaquet::{
    AmaquetConfig, AmaquetLimits, AmaquetSession, AmaquetShared, NodeIdentity, ServerFacts,
};
use tanda_session::login::Authentication;
use tanda_wire::amaquet::{Header, Opcode};

use super::answers;
use super::reader::Reader;
use crate::driven::{CONN, Dialect, Driven, START};
use crate::script::Script;
use crate::session_input::keys;

/// Bytes of payloads that all connections may declare.
const RESERVATION: u64 = 2_000;
/// Commands that may be unanswered.
const ACTIVE_MAX: usize = 8;

/// Commands of an ordinary conversation.
const COMMANDS: [&str; 24] = [
    r#"{"command":"server.ping"}"#,
    r#"{"command":"server.info"}"#,
    r#"{"command":"key.scan","glob":"*"}"#,
    r#"{"command":"value.set","key":"q","value":{"type":"text","data":"x"}}"#,
    r#"{"command":"value.get","key":"q"}"#,
    r#"{"command":"value.get_many","keys":["q","r"]}"#,
    r#"{"command":"counter.add","key":"q"}"#,
    r#"{"command":"map.all","key":"q"}"#,
    r#"{"command":"list.push","key":"q","values":[1]}"#,
    r#"{"command":"list.pop","key":"q","wait_ms":50}"#,
    r#"{"command":"list.pop","key":"q"}"#,
    r#"{"command":"ranking.range","key":"q","start":0,"stop":-1}"#,
    r#"{"command":"lock.acquire","key":"q","ttl_ms":9,"wait_ms":9}"#,
    r#"{"command":"queue.create","queue":"q","dedup_key":["payload"]}"#,
    r#"{"command":"queue.push","queue":"q","messages":[{"payload":1,"headers":{"a":"b"}}]}"#,
    r#"{"command":"queue.pop","queue":"q","max":9,"wait_ms":9}"#,
    r#"{"command":"queue.peek","queue":"q"}"#,
    r#"{"command":"queue.ack","queue":"q","ids":["x","00000000-0000-0000-0000-000000000001"]}"#,
    r#"{"command":"queue.extend","queue":"q","ids":[],"extend_by_ms":1}"#,
    r#"{"command":"queue.stats","queue":"q"}"#,
    r#"{"command":"queue.redrive","queue":"q.dlq"}"#,
    r#"{"command":"queue.delete","queue":"q"}"#,
    r#"{"command":"pubsub.publish","key":"q","channel":"c","payload":[]}"#,
    r#"{"command":"pubsub.channels","key":"q"}"#,
];

/// Other requests.
const KNOWN: [(Opcode, &str); 10] = [
    (Opcode::Hello, ""),
    (Opcode::Hello, r#"{"nonce":"AAECAwQFBgcICQoLDA0ODw=="}"#),
    (Opcode::Auth, r#"{"api_key":"root"}"#),
    (Opcode::Auth, r#"{"api_key":"some"}"#),
    (Opcode::Auth, r#"{"api_key":"late"}"#),
    (Opcode::Subscribe, r#"{"key":"q","channel":"c","buffer":2}"#),
    (Opcode::Subscribe, r##"{"key":"q","channel":"#"}"##),
    (Opcode::Unsubscribe, r#"{"key":"q","channel":"c"}"#),
    (Opcode::Cancel, r#"{"request_id":1}"#),
    (Opcode::Cancel, r#"{"request_id":2}"#),
];

/// A session, its peer and its engine.
pub(super) type Peer = Driven<Amaquet>;

/// What a client knows of the conversation.
pub(super) struct Amaquet {
    reader: Reader,
    shared: Arc<AmaquetShared>,
}

/// A node and a server that always say the same.
#[derive(Debug)]
struct Fixed;

impl NodeIdentity for Fixed {
    fn node_id(&self) -> &'static str {
        "n1"
    }

    fn public_key(&self) -> [u8; 32] {
        [1; 32]
    }

    fn sign(&self, _bytes: &[u8]) -> [u8; 64] {
        [2; 64]
    }
}

impl ServerFacts for Fixed {
    fn version(&self) -> &'static str {
        "1"
    }

    fn uptime_ms(&self) -> u64 {
        1
    }

    fn connections(&self) -> u64 {
        1
    }

    fn memory_bytes(&self) -> u64 {
        1
    }
}

fn config(bits: u8) -> AmaquetConfig {
    AmaquetConfig {
        vhost: if bits & 8 == 0 { "/" } else { "other" }.to_owned(),
        authentication: if bits & 4 == 0 {
            Authentication::Off
        } else {
            Authentication::On
        },
        limits: AmaquetLimits {
            max_payload: if bits & 1 == 0 { 600 } else { 64 << 10 },
            active_per_connection: ACTIVE_MAX,
            active_total: ACTIVE_MAX - 1,
            payload_reservation: RESERVATION,
            max_message_bytes: 100,
            outbound_bytes_max: 10_000,
            reply_bytes_max: if bits & 2 == 0 { 300 } else { 64 << 10 },
            subscriptions_max: 2,
            ..AmaquetLimits::default()
        },
        shared: Arc::default(),
        node: Arc::new(Fixed),
        facts: Arc::new(Fixed),
    }
}

fn frame(opcode: Opcode, request_id: u64, payload: &[u8]) -> Vec<u8> {
    let header = Header {
        payload_bytes: u32::try_from(payload.len()).unwrap_or_default(),
        ..Header::request(opcode, request_id)
    };
    [&header.encode()[..], payload].concat()
}

impl Peer {
    pub(super) fn new(bits: u8) -> Self {
        let config = config(bits);
        let shared = Arc::clone(&config.shared);
        let mut session = AmaquetSession::new(CONN, Arc::new(config), START);
        if let Some(table) = keys::tables().get(1) {
            session.on_keys(START, table);
        }
        let reader = Reader::default();
        let mut peer = Self::of(session, Amaquet { reader, shared });
        if bits & 16 != 0 {
            peer.send(&frame(Opcode::Auth, 1, br#"{"api_key":"root"}"#));
        }
        peer
    }

    pub(super) fn send_frame(&mut self, script: &mut Script<'_>) {
        let opcode = Opcode::from_wire(u16::from(script.byte() % 9));
        let id = u64::from(script.byte() % 8);
        let payload = script.short();
        self.send(&frame(opcode, id, payload));
    }

    pub(super) fn send_command(&mut self, script: &mut Script<'_>) {
        let command = COMMANDS.get(script.pick(COMMANDS.len())).copied();
        let id = u64::from(script.byte() % 16);
        let payload = command.unwrap_or_default().as_bytes();
        self.send(&frame(Opcode::Command, id, payload));
    }

    pub(super) fn send_known(&mut self, script: &mut Script<'_>) {
        let known = KNOWN.get(script.pick(KNOWN.len())).copied();
        let (opcode, payload) = known.unwrap_or((Opcode::Hello, ""));
        let id = u64::from(script.byte() % 16);
        self.send(&frame(opcode, id, payload.as_bytes()));
    }

    pub(super) fn watched(&mut self, script: &mut Script<'_>) {
        let token = self.token(script);
        let message = Box::new(answers::watched(script));
        self.event(Event::Watched { token, message });
    }

    /// The keys have changed.
    pub(super) fn on_keys(&mut self, script: &mut Script<'_>) {
        let tables = keys::tables();
        if let Some(table) = tables.get(script.pick(tables.len())) {
            self.session.on_keys(self.now, table);
            drop(self.session.take_audit());
        }
    }

    pub(super) fn check_all(&mut self) {
        self.check();
        let shared = &self.dialect.shared;
        assert!(shared.active() < ACTIVE_MAX as u64, "active commands");
        let bytes = shared.payload_bytes();
        assert!(bytes <= RESERVATION, "{bytes} of payloads");
    }

    pub(super) fn finish_all(&mut self) {
        self.finish();
        let shared = &self.dialect.shared;
        assert_eq!(shared.active(), 0, "commands of nobody");
        assert_eq!(shared.payload_bytes(), 0, "payloads of nobody");
    }
}

impl Dialect for Amaquet {
    type Session = AmaquetSession;

    fn on_output(&mut self, bytes: &[u8]) {
        self.reader.take(bytes);
    }

    fn on_closed(&mut self) {
        self.reader.forget();
    }

    fn answer(script: &mut Script<'_>, request: &Request) -> Option<Event> {
        answers::answer(script, request)
    }

    fn any(script: &mut Script<'_>, token: u32) -> Event {
        answers::any(script, token)
    }
}
