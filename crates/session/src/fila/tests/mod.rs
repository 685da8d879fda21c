//! A scripted peer and a scripted engine around one session.

mod admin;
mod authentication;
mod batches;
mod cluster;
mod frames;
mod handshake;
mod hostile;
mod key_admin;
mod lifecycle;
mod outbound;
mod permissions;
mod refusals;
mod revocation;
mod subscriptions;
mod throttles;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tanda_engine::{ConnId, DeliveryBatch, DeliveryItem, Event, MessageId, Millis, Request, Span};
use tanda_wire::fila::control::Handshake;
use tanda_wire::fila::error::ErrorFrame;
use tanda_wire::fila::frame::{FrameHeader, split_frame, write_body, write_frame};
use tanda_wire::fila::{Body, Capabilities, ErrorCode, Opcode};

use super::{FilaSession, SessionConfig};

const CONN: ConnId = ConnId(9);
const START: Millis = Millis(1_000_000);

/// A frame as the peer sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    header: FrameHeader,
    body: Vec<u8>,
}

impl Seen {
    fn decode<'a, B: Body<'a>>(&'a self) -> B {
        assert_eq!(self.header.opcode, B::OPCODE, "{self:?}");
        let mut reader = tanda_wire::cursor::Reader::new(&self.body);
        let body = B::read(&mut reader).unwrap();
        assert_eq!(reader.remaining(), 0, "bytes after {}", B::OPCODE);
        body
    }

    fn error(&self) -> ErrorFrame<'_> {
        self.decode()
    }
}

/// One session, its peer and its engine.
struct Peer {
    session: FilaSession,
    input: BytesMut,
    now: Millis,
}

fn config() -> SessionConfig {
    SessionConfig {
        advertised_addr: "node.test:5555".to_owned(),
        ..SessionConfig::default()
    }
}

/// A body as one frame.
fn frame_of<'a, B: Body<'a>>(request_id: u32, body: &B) -> Vec<u8> {
    let mut out = Vec::new();
    write_body(&mut out, request_id, 0, body).unwrap();
    out
}

/// Any frame.
fn raw_frame(opcode: u8, flags: u8, request_id: u32, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_frame(&mut out, Opcode::from_wire(opcode), request_id, |out| {
        out.extend_from_slice(body);
        Ok(())
    })
    .unwrap();
    out[5] = flags;
    out
}

fn handshake(version: u16, client_capabilities: Capabilities) -> Vec<u8> {
    let handshake = Handshake {
        protocol_version: version,
        api_key: None,
        client_capabilities,
    };
    frame_of(0, &handshake)
}

impl Peer {
    /// A connection without handshake.
    fn accepted(config: SessionConfig) -> Self {
        let session = FilaSession::new(CONN, Arc::new(config), START);
        Self {
            session,
            input: BytesMut::new(),
            now: START,
        }
    }

    /// A connection after its handshake.
    fn open_with(config: SessionConfig, capabilities: Capabilities) -> Self {
        let mut peer = Self::accepted(config);
        peer.send(&handshake(1, capabilities));
        assert_eq!(peer.frames().len(), 1);
        assert!(matches!(
            peer.requests()[..],
            [Request::Connect { conn: CONN, .. }]
        ));
        peer
    }

    fn open() -> Self {
        Self::open_with(config(), Capabilities::CREDIT_FLOW_CONTROL)
    }

    fn send(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        self.session.on_bytes(self.now, &mut self.input);
        self.session.assert_invariants();
    }

    fn call<'a, B: Body<'a>>(&mut self, request_id: u32, body: &B) {
        self.send(&frame_of(request_id, body));
    }

    fn event(&mut self, event: Event) {
        self.session.on_event(self.now, event);
        self.session.assert_invariants();
        self.session.on_bytes(self.now, &mut self.input);
    }

    fn pass_ms(&mut self, ms: u64) {
        self.now = self.now.after_ms(ms);
        self.session.on_timer(self.now);
        self.session.assert_invariants();
    }

    fn requests(&mut self) -> Vec<Request> {
        std::iter::from_fn(|| self.session.next_request()).collect()
    }

    fn request(&mut self) -> Request {
        let mut requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:?}");
        requests.remove(0)
    }

    /// Writes everything and returns it.
    fn bytes(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            let part = self.session.output().split();
            if part.is_empty() {
                return bytes;
            }
            self.session.on_written(part.len());
            self.session.assert_invariants();
            bytes.extend_from_slice(&part);
        }
    }

    /// Writes everything and returns the frames.
    fn frames(&mut self) -> Vec<Seen> {
        parse(&self.bytes())
    }

    fn frame(&mut self) -> Seen {
        let mut frames = self.frames();
        assert_eq!(frames.len(), 1, "{frames:?}");
        frames.remove(0)
    }

    /// The next frame is an error with this code for this request; its text.
    fn refusal(&mut self, request_id: u32, code: ErrorCode) -> String {
        let frame = self.frame();
        let error = frame.error();
        assert_eq!(error.error_code, code, "{error:?}");
        assert_eq!(frame.header.request_id, request_id, "{error:?}");
        assert!(!error.message.is_empty());
        error.message.to_owned()
    }

    /// Sends a frame that gets `InvalidFrame` and leaves the connection as it was.
    fn expect_invalid(&mut self, bytes: &[u8], request_id: u32) -> String {
        self.send(bytes);
        let text = self.refusal(request_id, ErrorCode::InvalidFrame);
        assert!(self.requests().is_empty());
        assert!(!self.session.is_closing(), "{text}");
        self.send(&raw_frame(0x03, 0, 0x7777, &[]));
        assert_eq!(self.frame().header, FrameHeader::new(Opcode::Pong, 0x7777));
        text
    }

    /// Subscribes and returns the token.
    fn subscribe(&mut self, request_id: u32) -> u32 {
        self.subscribe_to(request_id, "q")
    }

    fn subscribe_to(&mut self, request_id: u32, queue: &str) -> u32 {
        let consume = tanda_wire::fila::consume::Consume {
            queue,
            ..tanda_wire::fila::consume::Consume::default()
        };
        self.call(request_id, &consume);
        let Request::Subscribe { sub, .. } = self.request() else {
            panic!("no Subscribe")
        };
        self.event(Event::Subscribed {
            token: sub.token,
            consumer: 5,
        });
        assert_eq!(
            self.frame().header,
            FrameHeader::new(Opcode::ConsumeOk, request_id)
        );
        sub.token
    }
}

/// Splits a stream into frames, continuation frames joined.
fn parse(mut bytes: &[u8]) -> Vec<Seen> {
    let mut frames = Vec::new();
    let mut partial = BTreeMap::<(u32, u8), Vec<u8>>::new();
    while !bytes.is_empty() {
        let frame = split_frame(bytes, 16 << 20).unwrap().expect("whole frames");
        let key = (frame.header.request_id, frame.header.opcode.to_wire());
        let mut body = partial.remove(&key).unwrap_or_default();
        body.extend_from_slice(frame.body);
        if frame.header.is_continued() {
            partial.insert(key, body);
        } else {
            frames.push(Seen {
                header: frame.header,
                body,
            });
        }
        bytes = &bytes[frame.consumed..];
    }
    assert!(partial.is_empty(), "an unfinished body");
    frames
}

/// The token of a request that has an answer.
fn token(request: &Request) -> u32 {
    match request {
        Request::Publish { reply, .. }
        | Request::Settle { reply, .. }
        | Request::Get { reply, .. }
        | Request::Transaction { reply, .. }
        | Request::Admin { reply, .. } => reply.token,
        Request::Subscribe { sub, .. }
        | Request::Grant { sub, .. }
        | Request::Unsubscribe { sub, .. } => sub.token,
        Request::Connect { .. }
        | Request::Disconnect { .. }
        | Request::Drained { .. }
        | Request::Pool { .. }
        | Request::Keys { .. }
        | Request::CancelWait { .. }
        | Request::KeysUndelivered { .. }
        | Request::GotUndelivered { .. }
        | Request::Watch { .. }
        | Request::Unwatch { .. }
        | Request::WatchDrained { .. }
        | Request::ScriptDone { .. } => panic!("no token in {request:?}"),
    }
}

/// A message ID whose time is `ms`.
fn id(ms: u64, tail: u128) -> MessageId {
    MessageId(u128::from(ms) << 80 | tail)
}

/// A content without headers.
fn content(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let none = tanda_wire::fila::headers::NO_HEADERS;
    tanda_wire::fila::enqueue::encode_content(&mut out, none, payload).unwrap();
    out
}

/// Deliveries of these payloads, with ids 1, 2 and so on.
fn deliveries(payloads: &[&[u8]]) -> DeliveryBatch {
    let mut batch = DeliveryBatch {
        queue_id: tanda_engine::QueueId(9),
        queue: "q".into(),
        leased_at: START,
        lease_expires_at: START.after_ms(30_000),
        keys: b"tenant".to_vec(),
        ..DeliveryBatch::default()
    };
    let mut chunk = Vec::new();
    for (index, payload) in payloads.iter().enumerate() {
        let content = content(payload);
        batch.items.push(DeliveryItem {
            id: id(1_500, index as u128 + 1),
            at: DeliveryItem::RESOLVED,
            len: u32::try_from(content.len()).unwrap(),
            form: tanda_engine::Form::Fila,
            has_attributes: false,
            is_leased: true,
            chunk: 0,
            start: u32::try_from(chunk.len()).unwrap(),
            fairness_key: Span { start: 0, len: 6 },
            weight: 3,
            deliveries: 1,
            attempts: 2,
            redrives: 1,
            permit: 0,
        });
        chunk.extend_from_slice(&content);
    }
    batch.chunks.push(Bytes::from(chunk));
    batch
}
