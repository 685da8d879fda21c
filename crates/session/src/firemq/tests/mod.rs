//! A scripted peer and a scripted engine around one session.
//!
//! What the peer reads is shown field by field as it stands on the wire, so that what is left out
//! is seen to be left out.

mod deliveries;
mod ends;
mod flow;
mod frames;
mod handshake;
mod heartbeats;
mod hostile;
mod permissions;
mod publishes;
mod reserved;
mod settlements;
mod subscriptions;
mod topology;

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tanda_engine::{
    AdminReply, AdminRequest, ConnId, DeclaredQueue, DeliveryBatch, DeliveryItem, Event, Form,
    MessageId, Millis, PublishBatch, PublishResult, QueueId, Request, SettleBatch, TopologyCode,
    TopologyError, VhostId,
};
use tanda_wire::firemq::consume::Subscribe;
use tanda_wire::firemq::frame::{Framing, Split, split_frame, write_head};
use tanda_wire::firemq::publish::Publish;
use tanda_wire::firemq::session::{Auth, Hello};
use tanda_wire::firemq::writer::MapWriter;
use tanda_wire::firemq::{Header, Props, RawMap, Value};
use tanda_wire::mapping::FireMessage;

use super::{FireConfig, FireSession};
use crate::Session;
use crate::login::{Identity, Unrestricted};

const CONN: ConnId = ConnId(9);
const START: Millis = Millis(1_000_000);
const VHOST: VhostId = VhostId(3);

/// What every open connection is told first.
const WELCOME: &str = "welcome ver=1 server={name=firemq version=0.1.0} conn_id=9 heartbeat=30 \
                       max_frame=16777216 caps=[confirms credit mandatory exchange-bindings \
                       dead-letter ttl]";

/// One session, its peer and its engine.
struct Peer {
    session: FireSession,
    input: BytesMut,
    now: Millis,
}

/// A frame with a payload.
fn frame_with<'a>(header: &impl Header<'a>, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_head(&mut out, Framing::Stream, header, payload.len(), u32::MAX).unwrap();
    out.extend_from_slice(payload);
    out
}

/// A frame.
fn frame<'a>(header: &impl Header<'a>) -> Vec<u8> {
    frame_with(header, b"")
}

/// Any frame.
fn raw_frame(op: u8, header: &[u8], payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(5 + header.len() + payload.len()).unwrap();
    let mut out = len.to_be_bytes().to_vec();
    out.push(op);
    out.extend_from_slice(&u32::try_from(header.len()).unwrap().to_be_bytes());
    out.extend_from_slice(header);
    out.extend_from_slice(payload);
    out
}

/// A map.
fn map(entries: &[(&str, Value<'_>)]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = MapWriter::begin(&mut out);
    for (key, value) in entries {
        writer.entry(key, value);
    }
    writer.finish();
    out
}

/// What the peer reads, one line per frame.
fn shown(bytes: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let Ok(Split::Frame(frame)) = split_frame(rest, u32::MAX) else {
            panic!("no whole frame: {:?}", rest.escape_ascii().to_string())
        };
        let mut line = frame.op.name().to_owned();
        for (key, value) in RawMap::decode(frame.header).unwrap() {
            line.push_str(&format!(" {}={}", text(&key), text(&value)));
        }
        if !frame.payload.is_empty() {
            line.push_str(&format!(" | {}", frame.payload.escape_ascii()));
        }
        lines.push(line);
        rest = &rest[frame.consumed..];
    }
    lines
}

fn text(value: &Value<'_>) -> String {
    match value {
        Value::Nil => "nil".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::F32(value) => format!("{value:?}f"),
        Value::F64(value) => format!("{value:?}"),
        Value::Str(value) => (*value).to_owned(),
        Value::Bin(value) => format!("<{}>", value.escape_ascii()),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| text(&item)).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Map(entries) => {
            let entries = entries.iter();
            let entries = entries.map(|(key, value)| format!("{}={}", text(&key), text(&value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(" "))
        }
        Value::Ext { kind, data } => format!("ext({kind} {})", data.escape_ascii()),
    }
}

/// `hello` of an ordinary client.
fn hello() -> Hello<'static> {
    Hello {
        ver: 1,
        auth: Auth {
            mech: "plain",
            user: "guest",
            pass: "guest",
        },
        heartbeat: 30,
        ..Hello::default()
    }
}

/// A message to the default exchange.
fn publish(seq: u64, key: &str) -> Publish<'_> {
    Publish {
        seq,
        key,
        ..Publish::default()
    }
}

/// The frame of a message to the default exchange.
fn message(seq: u64, key: &str, body: &[u8]) -> Vec<u8> {
    frame_with(&publish(seq, key), body)
}

/// Requests of the topology have nothing to compare them by.
fn assert_asked(request: &AdminRequest, expected: &AdminRequest) {
    assert_eq!(format!("{request:?}"), format!("{expected:?}"));
}

fn topology_error<T>(code: TopologyCode, text: &str) -> Result<T, TopologyError> {
    Err(TopologyError {
        code,
        text: text.to_owned(),
    })
}

impl Peer {
    /// A connection of which nothing has come.
    fn accepted(config: FireConfig) -> Self {
        Self::of(FireSession::new(CONN, Arc::new(config), true, None, START))
    }

    fn of(session: FireSession) -> Self {
        Self {
            session,
            input: BytesMut::new(),
            now: START,
        }
    }

    /// A connection that has sent its `hello`.
    fn greeted(config: FireConfig, hello: &Hello<'_>) -> Self {
        let mut peer = Self::accepted(config);
        peer.send(b"FMQ1");
        peer.say(hello);
        peer
    }

    /// An open connection of somebody; the answer to `hello` is dropped.
    fn open_as(config: FireConfig, hello: &Hello<'_>, identity: Arc<dyn Identity>) -> Self {
        let mut peer = Self::greeted(config, hello);
        assert!(peer.session.take_login().is_some());
        peer.session.on_login(peer.now, Ok(identity));
        peer.enter();
        assert_eq!(peer.lines().len(), 1);
        peer
    }

    /// The engine finds the virtual host.
    fn enter(&mut self) {
        let requests = self.requests();
        let [
            Request::Connect { conn: CONN, .. },
            Request::Admin { reply, .. },
        ] = &requests[..]
        else {
            panic!("{requests:?}")
        };
        self.admin(reply.token, AdminReply::Vhost(Ok(VHOST)));
    }

    fn open_with(config: FireConfig) -> Self {
        let identity = Arc::new(Unrestricted::new("guest"));
        Self::open_as(config, &hello(), identity)
    }

    fn open() -> Self {
        Self::open_with(FireConfig::default())
    }

    fn send(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        self.session.on_bytes(self.now, &mut self.input);
        self.session.assert_invariants();
    }

    fn say<'a>(&mut self, header: &impl Header<'a>) {
        self.send(&frame(header));
    }

    fn event(&mut self, event: Event) {
        self.session.on_event(self.now, event);
        self.session.assert_invariants();
        self.session.on_bytes(self.now, &mut self.input);
        self.session.assert_invariants();
    }

    fn admin(&mut self, token: u32, reply: AdminReply) {
        let reply = Box::new(reply);
        self.event(Event::Admin { token, reply });
    }

    fn pass_ms(&mut self, ms: u64) {
        self.now = self.now.after_ms(ms);
        self.session.on_timer(self.now);
        self.session.assert_invariants();
    }

    /// All requests; that deliveries have left is not news here.
    fn requests(&mut self) -> Vec<Request> {
        let requests = std::iter::from_fn(|| self.session.next_request());
        let is_news = |request: &Request| !matches!(request, Request::Drained { .. });
        requests.filter(is_news).collect()
    }

    fn request(&mut self) -> Request {
        let mut requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:?}");
        requests.remove(0)
    }

    /// The only request is about the topology.
    fn asked(&mut self) -> (u32, AdminRequest) {
        let request = self.request();
        let Request::Admin { reply, request } = request else {
            panic!("{request:?}")
        };
        (reply.token, request)
    }

    /// The only request is messages.
    fn published(&mut self) -> (u32, PublishBatch) {
        let request = self.request();
        let Request::Publish { reply, batch } = request else {
            panic!("{request:?}")
        };
        (reply.token, batch)
    }

    /// The only request is settlements, credit for which is another matter.
    fn settled(&mut self) -> (u32, SettleBatch) {
        let mut requests = self.requests();
        requests.retain(|request| !matches!(request, Request::Pool { .. }));
        let [Request::Settle { reply, batch }] = &requests[..] else {
            panic!("{requests:?}")
        };
        (reply.token, batch.clone())
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

    /// Writes everything and returns a line per frame.
    fn lines(&mut self) -> Vec<String> {
        shown(&self.bytes())
    }

    /// Starts a subscription and returns its token.
    fn subscribe(&mut self, subscribe: &Subscribe<'_>) -> u32 {
        self.say(subscribe);
        let token = self.subscribing();
        self.event(Event::Subscribed { token, consumer: 5 });
        assert_eq!(self.lines(), [format!("ok rid={}", subscribe.rid)]);
        token
    }

    /// The token of a subscription that is being started.
    fn subscribing(&mut self) -> u32 {
        let mut requests = self.requests();
        requests.retain(|request| !matches!(request, Request::Pool { .. }));
        let [Request::Subscribe { sub, .. }] = &requests[..] else {
            panic!("{requests:?}")
        };
        sub.token
    }

    /// Subscription 1 to the queue "q".
    fn subscribe_q(&mut self) -> u32 {
        self.subscribe(&to_q(1))
    }

    /// Delivers messages with ids from 1 on, and drops what the peer reads.
    fn deliver(&mut self, token: u32, count: u64) {
        let batch = deliveries(1, count);
        self.event(Event::Delivery { token, batch });
        self.bytes();
    }
}

/// A subscription to the queue "q".
fn to_q(sub: u64) -> Subscribe<'static> {
    Subscribe {
        rid: 77,
        sub,
        queue: "q",
        credit: 100,
        ..Subscribe::default()
    }
}

/// A message ID.
fn id(number: u64) -> MessageId {
    MessageId(1_500 << 80 | u128::from(number))
}

/// A message as it is kept.
fn envelope(exchange: &str, key: &str, properties: &[u8], body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for name in [exchange, key] {
        out.push(u8::try_from(name.len()).unwrap());
        out.extend_from_slice(name.as_bytes());
    }
    for part in [properties, body] {
        out.extend_from_slice(&u32::try_from(part.len()).unwrap().to_be_bytes());
        out.extend_from_slice(part);
    }
    out
}

/// The properties of a message as they are kept.
fn kept(persistent: bool, props: &[u8], headers: &[u8]) -> Vec<u8> {
    let message = FireMessage {
        persistent,
        props: Props::decode(props).unwrap(),
        headers: RawMap::decode(headers).unwrap(),
    };
    let mut out = Vec::new();
    message.encode(&mut out);
    out
}

/// Deliveries of contents in a form, with ids from `first` on.
fn deliveries_of(first: u64, form: Form, contents: &[Vec<u8>]) -> DeliveryBatch {
    let mut batch = DeliveryBatch {
        consumer: 5,
        queue: "q".into(),
        queue_id: QueueId(7),
        leased_at: START,
        lease_expires_at: Millis(u64::MAX),
        ..DeliveryBatch::default()
    };
    let mut chunk = Vec::new();
    for (number, content) in (first..).zip(contents) {
        batch.items.push(DeliveryItem {
            id: id(number),
            form,
            at: DeliveryItem::RESOLVED,
            len: u32::try_from(content.len()).unwrap(),
            start: u32::try_from(chunk.len()).unwrap(),
            deliveries: 1,
            attempts: 1,
            ..DeliveryItem::default()
        });
        chunk.extend_from_slice(content);
    }
    batch.chunks.push(Bytes::from(chunk));
    batch
}

/// Deliveries of messages of this protocol with ids from `first` on.
fn deliveries(first: u64, count: u64) -> DeliveryBatch {
    let content = envelope("ex", "key", &kept(true, b"", b""), b"body");
    let count = usize::try_from(count).unwrap();
    deliveries_of(first, Form::Fire, &vec![content; count])
}

fn stored(token: u32, count: usize) -> Event {
    Event::Published {
        token,
        results: vec![PublishResult::Stored(id(1)); count],
    }
}

fn declared(name: &str, messages: u64, consumers: u32) -> AdminReply {
    let name = name.to_owned();
    AdminReply::QueueDeclared(Ok(DeclaredQueue {
        name,
        messages,
        consumers,
    }))
}
