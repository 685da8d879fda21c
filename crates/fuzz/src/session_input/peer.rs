//! The session, its peer and its engine, and what must hold between them.

use std::sync::Arc;

use bytes::{Buf, BytesMut};
use tanda_engine::{ConnId, Event, Millis, Request};
use tanda_session::fila::{Authentication, FilaSession, SessionConfig};
use tanda_wire::fila::continuation::{Reassembler, ReassemblyLimits};
use tanda_wire::fila::control::Handshake;
use tanda_wire::fila::frame::{FrameHeader, LENGTH_BYTES, split_frame, write_body, write_frame};
use tanda_wire::fila::{Capabilities, Direction, Opcode};

use super::{answers, keys};
use crate::frame_decode::check_body;
use crate::script::Script;

const CONN: ConnId = ConnId(9);
/// When a session begins.
pub(super) const START: Millis = Millis(1_000_000);

/// Subscriptions that are kept to be delivered to.
const SUBSCRIPTIONS_MAX: usize = 64;

/// Room for input beyond the input itself: what the session reserves ahead.
const ROOM_AHEAD_BYTES: usize = 3 << 20;

/// One session and what is known of it outside.
pub(super) struct Peer {
    session: FilaSession,
    config: Arc<SessionConfig>,
    input: BytesMut,
    now: Millis,
    /// Requests that the engine has and has not answered.
    owed: Vec<Request>,
    /// Tokens of subscriptions, live or not.
    subscriptions: Vec<u32>,
    refusals: u8,
    /// What the engine knows of the connection.
    heard: Heard,
    /// What the session wrote and is not decoded yet.
    written: Vec<u8>,
    joined: Reassembler,
    is_closed: bool,
    /// Time passed and the session is closing: a peer that is taken for dead gets nothing more.
    is_given_up: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Nothing,
    Connect,
    Disconnect,
}

fn config(bits: u8) -> SessionConfig {
    let small = bits & 1 == 0;
    SessionConfig {
        max_frame_size: if small { 1024 } else { 64 << 10 },
        max_body_bytes: if small { 5_000 } else { 256 << 10 },
        unfinished_max: 3,
        max_message_bytes: if bits & 2 == 0 { 2_000 } else { 128 << 10 },
        batch_items_max: 200,
        outbound_bytes_max: 10_000,
        reply_bytes_max: if bits & 4 == 0 { 2_000 } else { 64 << 10 },
        subscriptions_max: 8,
        requests_in_flight_max: if bits & 8 == 0 { 5 } else { 40 },
        admin_in_flight_max: 3,
        advertised_addr: "node:5555".to_owned(),
        authentication: if bits & 16 == 0 {
            Authentication::Off
        } else {
            Authentication::On
        },
        entropy: Some(Arc::new(keys::Fixed)),
        ..SessionConfig::default()
    }
}

impl Peer {
    pub(super) fn new(bits: u8) -> Self {
        let config = Arc::new(config(bits));
        let mut session = FilaSession::new(CONN, Arc::clone(&config), START);
        if let Some(table) = keys::tables().get(1) {
            session.on_keys(START, table);
        }
        Self {
            session,
            config,
            input: BytesMut::new(),
            now: START,
            owed: Vec::new(),
            subscriptions: Vec::new(),
            refusals: 0,
            heard: Heard::Nothing,
            written: Vec::new(),
            joined: Reassembler::new(ReassemblyLimits::default()),
            is_closed: false,
            is_given_up: false,
        }
    }

    pub(super) fn send(&mut self, bytes: &[u8]) {
        if self.session.wants_read() {
            self.input.extend_from_slice(bytes);
        }
        self.session.on_bytes(self.now, &mut self.input);
    }

    pub(super) fn send_frame(&mut self, script: &mut Script<'_>) {
        let opcode = opcode(script);
        let (flags, request_id) = (flags(script), request_id(script));
        let body = script.short();
        self.send_as(opcode, flags, request_id, body);
    }

    pub(super) fn send_big(&mut self, script: &mut Script<'_>) {
        let (opcode, request_id) = (opcode(script), request_id(script));
        let len = usize::from(script.u16()) % 20_000;
        let body = vec![script.byte(); len];
        self.send_as(opcode, u8::from(len % 2 == 0), request_id, &body);
    }

    fn send_as(&mut self, opcode: Opcode, flags: u8, request_id: u32, body: &[u8]) {
        let mut frame = Vec::new();
        let written = write_frame(&mut frame, opcode, request_id, |out| {
            out.extend_from_slice(body);
            Ok(())
        });
        assert_eq!(written, Ok(()));
        if let Some(byte) = frame.get_mut(LENGTH_BYTES + 1) {
            *byte = flags;
        }
        self.send(&frame);
    }

    pub(super) fn send_handshake(&mut self, script: &mut Script<'_>) {
        let version = script.byte();
        let key = String::from_utf8_lossy(script.short()).into_owned();
        let handshake = Handshake {
            protocol_version: if version > 200 { u16::from(version) } else { 1 },
            api_key: (!key.is_empty()).then_some(&key),
            client_capabilities: if version.is_multiple_of(2) {
                Capabilities::CREDIT_FLOW_CONTROL
            } else {
                Capabilities::default()
            },
        };
        let mut frame = Vec::new();
        assert_eq!(write_body(&mut frame, 0, 0, &handshake), Ok(()));
        self.send(&frame);
    }

    pub(super) fn answer(&mut self, script: &mut Script<'_>) {
        let at = script.pick(self.owed.len().min(200));
        if at >= self.owed.len() {
            return;
        }
        let request = self.owed.remove(at);
        if let Some(event) = answers::answer(script, &request) {
            self.event(event);
        }
    }

    pub(super) fn any_event(&mut self, script: &mut Script<'_>) {
        let token = match (script.byte(), self.owed.first()) {
            (0..128, Some(request)) => token(request).unwrap_or_default(),
            (0..200, _) => u32::from(script.byte()),
            _ => script.u32(),
        };
        self.event(answers::any_event(script, token));
        self.owed
            .retain(|request| self::token(request) != Some(token));
    }

    pub(super) fn deliver(&mut self, script: &mut Script<'_>) {
        let at = script.pick(SUBSCRIPTIONS_MAX) % self.subscriptions.len().max(1);
        let batch = answers::deliveries(script, self.now);
        if let Some(token) = self.subscriptions.get(at).copied() {
            self.event(Event::Delivery { token, batch });
        }
    }

    /// An engine says nothing to a connection that it has not heard of.
    fn event(&mut self, event: Event) {
        if self.heard == Heard::Nothing {
            return;
        }
        self.session.on_event(self.now, event);
        self.session.on_bytes(self.now, &mut self.input);
    }

    /// The socket takes up to `bytes` of the output.
    pub(super) fn read(&mut self, bytes: usize) {
        let output = self.session.output();
        let taken = bytes.min(output.len());
        let part = output.get(..taken).unwrap_or_default();
        self.written.extend_from_slice(part);
        output.advance(taken);
        self.session.on_written(taken);
        self.session.on_bytes(self.now, &mut self.input);
        self.decode_written();
    }

    pub(super) fn wait(&mut self, script: &mut Script<'_>) {
        self.now = self.now.after_ms(u64::from(script.u16()) * 100);
        self.session.on_timer(self.now);
        if let Some(at) = self.session.next_deadline() {
            let soon = self.now.after_ms(1);
            self.session.on_timer(at.max(self.now).min(soon));
        }
        self.is_given_up |= self.session.is_closing();
    }

    pub(super) const fn refuse(&mut self, count: u8) {
        self.refusals = count;
    }

    /// The keys have changed.
    pub(super) fn on_keys(&mut self, script: &mut Script<'_>) {
        let tables = keys::tables();
        if let Some(table) = tables.get(script.pick(tables.len())) {
            self.session.on_keys(self.now, table);
        }
    }

    pub(super) fn shut_down(&mut self) {
        self.session.begin_shutdown(self.now);
    }

    pub(super) fn close(&mut self) {
        self.session.close();
        self.is_closed = true;
        self.written.clear();
        self.joined = Reassembler::new(ReassemblyLimits::default());
    }

    /// Pulls what the session asks, and checks it and the bounds.
    pub(super) fn check(&mut self) {
        self.session.assert_invariants();
        let audited = self.session.take_audit();
        assert!(
            audited.len() < 1000,
            "{} events to write down",
            audited.len()
        );
        while let Some(request) = self.session.next_request() {
            if self.refusals > 0 {
                self.refusals -= 1;
                self.session.on_refused(request);
                continue;
            }
            self.hear(request);
        }
        self.session.assert_invariants();
        let waiting = self.owed.iter().filter(|request| !is_unasked(request));
        let (waiting, max) = (waiting.count(), self.config.requests_in_flight_max);
        assert!(
            waiting <= max,
            "{waiting} requests in flight, {max} at most"
        );
        self.check_input();
    }

    /// What stays in the input is one frame that is not complete, if the session wants more.
    fn check_input(&self) {
        let (len, capacity) = (self.input.len(), self.input.capacity());
        let frame = self.config.max_frame_size as usize + LENGTH_BYTES;
        if self.session.wants_read() {
            assert!(len <= frame.max(200 << 10), "{len} bytes left in the input");
        }
        assert!(
            capacity <= 2 * len + ROOM_AHEAD_BYTES,
            "room for {capacity} bytes, {len} of them used"
        );
    }

    fn hear(&mut self, request: Request) {
        match (&request, self.heard) {
            (Request::Connect { conn, .. }, Heard::Nothing) => {
                assert_eq!(*conn, CONN);
                self.heard = Heard::Connect;
            }
            (Request::Disconnect { conn }, Heard::Connect) => {
                assert_eq!(*conn, CONN);
                assert!(self.is_closed, "Disconnect while the connection lives");
                self.heard = Heard::Disconnect;
            }
            (_, Heard::Connect) => {}
            (_, heard) => unreachable!("{request:?} after {heard:?}"),
        }
        if let Request::Subscribe { sub, .. } = &request {
            if self.subscriptions.len() == SUBSCRIPTIONS_MAX {
                self.subscriptions.remove(0);
            }
            self.subscriptions.push(sub.token);
        }
        if token(&request).is_some() {
            self.owed.push(request);
        }
    }

    /// What was written is frames, each within the limit, whose bodies decode to the last byte.
    fn decode_written(&mut self) {
        loop {
            let split = split_frame(&self.written, self.config.max_frame_size.max(1024));
            let frame = match split {
                Ok(Some(frame)) => frame,
                Ok(None) => return,
                Err(error) => unreachable!("written: {error}"),
            };
            let consumed = frame.consumed;
            let body = match self.joined.push(frame.header, frame.body) {
                Ok(body) => body,
                Err(error) => unreachable!("written: {error}"),
            };
            if let Some(body) = body {
                check_written(frame.header, &body);
            }
            self.written.drain(..consumed);
        }
    }

    /// The end of an input: everything is written, the socket closes, and all is quiet.
    pub(super) fn finish(mut self) {
        self.refusals = 0;
        for _ in 0..20_000 {
            self.read(usize::MAX);
            self.check();
            if self.session.output().is_empty() {
                break;
            }
        }
        assert!(self.session.output().is_empty(), "output without end");
        if !self.is_closed && !self.is_given_up {
            assert!(
                self.written.is_empty(),
                "a frame without its end: {:02x?}",
                self.written
            );
        }
        self.close();
        // Requests that were refused come again.
        self.now = self.now.after_ms(1_000);
        self.session.on_timer(self.now);
        self.check();
        let heard = self.heard;
        assert_ne!(heard, Heard::Connect, "the engine was not told of the end");
        assert!(self.session.output().is_empty(), "output after the end");
        assert!(self.session.is_closing() && !self.session.wants_read());
    }
}

fn check_written(header: FrameHeader, body: &[u8]) {
    let direction = header.opcode.direction();
    assert!(
        matches!(direction, Direction::ToClient | Direction::Either),
        "a server sent {header:?}"
    );
    match check_body(header.opcode, body) {
        Ok(known) => assert_eq!(known, body.len(), "bytes after {header:?}"),
        Err(error) => unreachable!("{header:?} {body:02x?}: {error:?}"),
    }
}

/// The token of a request that is owed an answer.
fn token(request: &Request) -> Option<u32> {
    request.answer_to().map(|reply| reply.token)
}

/// Whether the session sends this request by itself and does not wait for its answer.
fn is_unasked(request: &Request) -> bool {
    token(request) == Some(u32::MAX)
}

/// A known opcode, or any.
fn opcode(script: &mut Script<'_>) -> Opcode {
    let byte = script.byte();
    let known = Opcode::ALL.get(usize::from(byte));
    known.copied().unwrap_or_else(|| Opcode::from_wire(byte))
}

/// Mostly none.
fn flags(script: &mut Script<'_>) -> u8 {
    match script.byte() {
        0..192 => 0,
        192..250 => 1,
        other => other,
    }
}

/// Few different ones, so that they meet.
fn request_id(script: &mut Script<'_>) -> u32 {
    match script.byte() {
        byte @ 0..250 => u32::from(byte % 8),
        250 => 0x8000_0000,
        251 => 0x8000_0001,
        _ => script.u32(),
    }
}
